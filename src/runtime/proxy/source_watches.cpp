// Following of names.
#include "runtime/proxy/source_watches.hpp"

#include <eddy/base/assert.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <new>

namespace eddy::runtime::proxy {
namespace {

using eddy::proxy::followed_names;

std::shared_ptr<eddy::proxy::name_lookup> lookup_at(const std::string& servers) {
    resolver_options options;
    options.servers = servers;
    return eddy::proxy::make_name_lookup(std::move(options));
}

/// Writes a line, or none without memory: states show what it says.
template <class... Values>
void write(serving::journal& to, fmt::format_string<Values...> text, Values&&... values) noexcept
    try {
    to.write(fmt::format(text, std::forward<Values>(values)...));
} catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch)
}

}  // namespace

source_watches::source_watches(host& daemon, serving::journal& events,
                               std::function<void()> on_change, own_address is_self)
    : daemon_(daemon),
      events_(events),
      on_change_(std::move(on_change)),
      is_self_(std::move(is_self)),
      dns_(static_cast<eddy::proxy::name_observer&>(*this), lookup_at({})),
      masters_(static_cast<eddy::proxy::master_observer&>(*this)) {}

source_watches::~source_watches() { EDDY_ASSERT(tasks_.children() == 0); }

void source_watches::follow(const std::vector<backend_source>& sources, const std::string& servers,
                            eddy::proxy::sentinel_group sentinels) {
    if (servers != servers_) {
        dns_.set_lookup(lookup_at(servers));
        servers_ = servers;
    }
    std::vector<std::string> hosts;
    std::vector<std::string> services;
    for (const backend_source& each : sources) {
        if (!each.service.empty()) services.push_back(each.service);
        if (!each.host().empty()) hosts.emplace_back(each.host());
    }
    const bool has_room = dns_.follow(std::move(hosts), std::move(services));
    if (!has_room && !has_noted_limit_)
        write(events_, "there are more names of backends than {}; the others are not followed",
              followed_names::max_names);
    has_noted_limit_ = !has_room;
    std::vector<std::string> masters;
    for (const backend_source& each : sources)
        if (!each.master.empty()) masters.push_back(each.master);
    if (masters.empty()) sentinels = {};
    const bool has_room_for_masters = masters_.follow(masters, std::move(sentinels));
    EDDY_ASSERT(has_room_for_masters);  // a proxy has no more backends
    follow_runtimes(sources);
}

void source_watches::follow_runtimes(const std::vector<backend_source>& sources) {
    for (const backend_source& each : sources) {
        if (!each.is_runtime() || std::ranges::find(runtimes_, each.name) != runtimes_.end())
            continue;
        auto watch = daemon_.watch(each.name);
        if (!watch) {
            events_.write(
                fmt::format("backend {} is not followed: {}", each.name, watch.error().message));
            continue;
        }
        runtimes_.push_back(each.name);
        tasks_.spawn(follow_runtime(std::move(*watch)));
    }
}

task<void> source_watches::end() {
    tasks_.cancel();
    co_await tasks_.join();
    co_await dns_.end();
    co_await masters_.end();
}

task<void> source_watches::wait() {
    co_await dns_.wait();
    co_await masters_.wait();
}

/// Until it is cancelled, or ends with the instance.
task<void> source_watches::follow_runtime(address_watch addresses) {
    for (;;) {
        const auto changed = co_await addresses.changed();
        if (!changed) co_return;
        notify();
    }
}

void source_watches::notify() {
    if (!is_waiting()) on_change_();
}

// ---- masters

bool source_watches::is_own(const transport::address& where) const {
    return is_self_ && is_self_(where);
}

void source_watches::note_changed_masters() { notify(); }

void source_watches::note_master(std::string_view name, const eddy::proxy::known_master& now,
                                 const transport::address* before) noexcept {
    write(events_, "backend @{}-master is {}, says the Sentinel {}", name,
          eddy::proxy::host_and_port(now.where), now.source);
    if (before != nullptr)
        write(events_, "connections to {}, the master before, are closed",
              eddy::proxy::host_and_port(*before));
}

void source_watches::note_no_master(std::string_view name, std::string_view why,
                                    bool has_master) noexcept {
    write(events_, "backend @{}-master: {}; {}", name, why,
          has_master ? "the last master stays in use" : "it has no address yet");
}

void source_watches::note_lost_sentinel(std::string_view why) noexcept {
    write(events_, "a Sentinel is lost: {}; the next one is asked", why);
}

void source_watches::note_found_sentinel(std::string_view sentinel) noexcept {
    write(events_, "the Sentinel {} answers again", sentinel);
}

std::string source_watches::masters_of(const std::vector<backend_source>& sources) const {
    std::string text;
    for (const backend_source& each : sources) {
        if (each.master.empty()) continue;
        const auto now = masters_.master_of(each.master);
        if (!text.empty()) text += ", ";
        text += now ? fmt::format("{} is {} ({})", each.name,
                                  eddy::proxy::host_and_port(now->where), now->source)
                    : fmt::format("{} is unknown", each.name);
    }
    return text;
}

// ---- names in DNS

void source_watches::note_changed_names() { notify(); }

void source_watches::note_failed_name(std::string_view name, std::error_code why,
                                      bool has_addresses) noexcept {
    write(events_, "backend name {} cannot be looked up: {}; {}", name, why.message(),
          has_addresses ? "its last addresses stay in use" : "it has no address yet");
}

void source_watches::note_gone_name(std::string_view name) noexcept {
    write(events_, "backend name {} has not been found for {} minutes", name,
          std::chrono::duration_cast<std::chrono::minutes>(followed_names::gone_after).count());
}

void source_watches::note_found_name(std::string_view name) noexcept {
    write(events_, "backend name {} is found again", name);
}

void source_watches::note_long_answer(std::string_view name, std::size_t count) noexcept {
    write(events_, "backend name {} has {} addresses; {} of them are used", name, count,
          eddy::proxy::max_backends);
}

}  // namespace eddy::runtime::proxy
