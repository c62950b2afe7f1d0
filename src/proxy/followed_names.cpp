// Lookups of names, again and again, and the answers that change something.
#include "proxy/followed_names.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>

#include "base/text/text.hpp"
#include "proxy/backend.hpp"
#include "proxy/balancer.hpp"

#include <algorithm>
#include <cerrno>
#include <new>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

namespace eddy::proxy {
namespace {

class resolver_lookup final : public name_lookup {
public:
    explicit resolver_lookup(resolver_options options) : names_(std::move(options)) {}
    task<result<host_addresses>> look_up(std::string host) override {
        return names_.look_up(std::move(host));
    }
    task<result<service_records>> look_up_service(std::string name) override {
        return names_.look_up_service(std::move(name));
    }

private:
    resolver names_;
};

/// In an order of their own and each of them once: name servers send them in a new order each time.
void sort(std::vector<endpoint>& all) {
    std::ranges::sort(all, {}, [](const endpoint& each) { return each.to_string(); });
    const auto rest = std::ranges::unique(all);
    all.erase(rest.begin(), rest.end());
}

/// Weights from 1 to max_weight, in the same proportions as far as that goes.
void scale_weights(std::span<service_server> of) noexcept {
    std::uint32_t most = 0;
    for (const service_server& each : of) most = std::max(most, each.weight);
    for (service_server& each : of) {
        if (most > max_weight) each.weight = (each.weight * max_weight + most / 2) / most;
        each.weight = std::max(each.weight, std::uint32_t{1});
    }
}

}  // namespace

std::shared_ptr<name_lookup> make_name_lookup(resolver_options options) {
    return std::make_shared<resolver_lookup>(std::move(options));
}

std::vector<service_server> servers_of_records(std::vector<service_record> records) {
    std::erase_if(records, [](const service_record& each) { return each.host.empty(); });
    for (service_record& each : records) each.host = lower(each.host);
    std::ranges::sort(records, {}, [](const service_record& each) {
        return std::tuple(each.priority, -int{each.weight}, each.host, each.port);
    });
    std::vector<service_server> made;
    for (const service_record& each : records) {
        const bool is_known = std::ranges::any_of(made, [&](const service_server& other) {
            return other.host == each.host && other.port == each.port;
        });
        if (is_known || made.size() == max_backends) continue;
        made.push_back(
            {each.host, each.port, each.weight, each.priority != records.front().priority});
    }
    const auto backups = std::ranges::find(made, true, &service_server::is_backup);
    scale_weights({made.begin(), backups});
    scale_weights({backups, made.end()});
    return made;
}

/// A name, and its last answer.
struct followed_names::followed {
    followed(bool as_service, std::string of, cancel_source* parent)
        : is_service(as_service), name(std::move(of)), source(parent) {}

    const bool is_service;
    const std::string name;
    cancel_source source;
    std::vector<endpoint> addresses;      // of a host
    std::vector<service_server> servers;  // of a service
    duration valid_for{};
    bool is_awaited = true;  // for the first time
    duration retry = first_retry;
    std::optional<time_point> failed_since = {};
    std::optional<time_point> reported_at = {};  // the last failure that was noted
    bool is_failure_noted = false;               // of the present one
    bool is_gone_noted = false;
    bool is_excess_noted = false;

    bool has_answer() const noexcept { return !addresses.empty() || !servers.empty(); }
};

followed_names::followed_names(name_observer& observer, std::shared_ptr<name_lookup> by)
    : observer_(observer), lookup_(std::move(by)) {
    answered_.set();
}

followed_names::~followed_names() { EDDY_ASSERT(names_.empty()); }

void followed_names::set_lookup(std::shared_ptr<name_lookup> by) noexcept {
    lookup_ = std::move(by);
}

bool followed_names::follow(std::vector<std::string> hosts, std::vector<std::string> services) {
    hosts_ = std::move(hosts);
    services_ = std::move(services);
    return follow_wanted();
}

task<void> followed_names::wait() { static_cast<void>(co_await answered_.wait()); }

task<void> followed_names::end() {
    tasks_.cancel();
    co_await tasks_.join();
    names_.clear();
    waiting_ = 0;
    answered_.set();
}

followed_names::followed_pointer followed_names::find(bool is_service,
                                                      std::string_view name) const noexcept {
    for (const followed_pointer& each : names_)
        if (each->is_service == is_service && each->name == name) return each;
    return nullptr;
}

std::vector<endpoint> followed_names::addresses_of(std::string_view host) const {
    const followed_pointer its = find(false, host);
    return its ? its->addresses : std::vector<endpoint>();
}

std::vector<service_server> followed_names::servers_of(std::string_view service) const {
    const followed_pointer its = find(true, service);
    return its ? its->servers : std::vector<service_server>();
}

/// Begins to follow what is wanted and new, with the servers of services, and ends the rest.
bool followed_names::follow_wanted() {
    std::vector<followed_pointer> kept;
    std::vector<followed_pointer> added;
    bool has_room = true;
    const auto want = [&](bool is_service, const std::string& name) {
        const auto has = [&](const followed_pointer& each) {
            return each->is_service == is_service && each->name == name;
        };
        if (std::ranges::any_of(kept, has)) return;
        if (kept.size() == max_names) {
            has_room = false;
            return;
        }
        followed_pointer its = find(is_service, name);
        if (!its) {
            its = std::make_shared<followed>(is_service, name, &tasks_.source());
            added.push_back(its);
        }
        kept.push_back(std::move(its));
    };
    for (const std::string& each : services_) want(true, each);
    for (const std::string& each : hosts_) want(false, each);
    for (const std::string& each : services_)
        for (const service_server& server : servers_of(each)) want(false, server.host);
    waiting_ += added.size();
    if (waiting_ > 0) answered_.reset();
    const std::vector<followed_pointer> before = std::exchange(names_, kept);
    for (const followed_pointer& each : before) {
        if (std::ranges::find(kept, each) != kept.end()) continue;
        each->source.request();
        end_wait(*each);
    }
    for (const followed_pointer& each : added) tasks_.spawn(run(each).under(each->source));
    return has_room;
}

task<void> followed_names::run(followed_pointer its) {
    for (;;) {
        const result<> looked_up = co_await try_look_up(its);
        if (its->source.requested()) co_return;
        const bool is_late = its->is_awaited && !looked_up && looked_up.error() == errc::timed_out;
        if (looked_up)
            note_success(*its);
        else if (!is_late)
            note_failure(*its, looked_up.error());
        try {
            if (looked_up && its->is_service) follow_wanted();
            end_wait(*its);
            notify();
        } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): the next answer notifies
        }
        // One whose first wait was too short continues at once.
        if (is_late) continue;
        const duration pause = looked_up ? its->valid_for : its->retry;
        if (!looked_up) its->retry = std::min(2 * its->retry, longest_retry);
        const result<> slept = co_await loop::current().sleep_for(pause);
        if (!slept) co_return;
    }
}

task<result<>> followed_names::try_look_up(followed_pointer its) {
    try {
        if (its->is_awaited) co_return co_await with_timeout(first_wait, look_up(its, lookup_));
        co_return co_await look_up(its, lookup_);
    } catch (const std::bad_alloc&) {
        co_return fail(errno_code(ENOMEM));
    }
}

/// Keeps the answer; fails where it has none.
task<result<>> followed_names::look_up(followed_pointer its, std::shared_ptr<name_lookup> by) {
    if (its->is_service) {
        auto found = co_await by->look_up_service(its->name);
        if (!found) co_return fail(found.error());
        const std::size_t count = found->all.size();
        auto servers = servers_of_records(std::move(found->all));
        if (servers.empty()) co_return fail(errc::name_not_found);
        its->valid_for = std::clamp(found->valid_for, shortest_time, longest_time);
        keep(*its, std::move(servers), count);
        co_return result<>();
    }
    auto found = co_await by->look_up(its->name);
    if (!found) co_return fail(found.error());
    if (found->all.empty()) co_return fail(errc::name_not_found);
    its->valid_for = std::clamp(found->valid_for, shortest_time, longest_time);
    keep(*its, std::move(found->all));
    co_return result<>();
}

/// Keeps the addresses; of too many the known ones, since a name server sends another part of them
/// each time.
void followed_names::keep(followed& its, std::vector<endpoint> found) {
    sort(found);
    note_excess(its, found.size());
    if (found.size() > max_backends) {
        std::ranges::partition(found, [&](const endpoint& each) {
            return std::ranges::find(its.addresses, each) != its.addresses.end();
        });
        found.resize(max_backends);
        sort(found);
    }
    if (found == its.addresses) return;
    its.addresses = std::move(found);
    has_changed_ = true;
}

void followed_names::keep(followed& its, std::vector<service_server> found, std::size_t records) {
    note_excess(its, records);
    if (found == its.servers) return;
    its.servers = std::move(found);
    has_changed_ = true;
}

void followed_names::note_excess(followed& its, std::size_t count) noexcept {
    if (count <= max_backends || std::exchange(its.is_excess_noted, true)) return;
    observer_.note_long_answer(its.name, count);
}

void followed_names::note_failure(followed& its, std::error_code why) noexcept {
    const time_point now = loop::current().now();
    if (!its.failed_since) its.failed_since = now;
    if (!its.is_failure_noted && (!its.reported_at || now - *its.reported_at >= report_interval)) {
        its.is_failure_noted = true;
        its.reported_at = now;
        observer_.note_failed_name(its.name, why, its.has_answer());
    }
    if (now - *its.failed_since < gone_after || its.is_gone_noted) return;
    its.is_gone_noted = true;
    observer_.note_gone_name(its.name);
}

void followed_names::note_success(followed& its) noexcept {
    its.retry = first_retry;
    its.failed_since.reset();
    its.is_gone_noted = false;
    if (std::exchange(its.is_failure_noted, false)) observer_.note_found_name(its.name);
}

void followed_names::end_wait(followed& its) noexcept {
    if (!std::exchange(its.is_awaited, false)) return;
    EDDY_ASSERT(waiting_ > 0);
    if (--waiting_ > 0) return;
    answered_.set();
    // Changes may have waited for it.
    has_changed_ = true;
}

void followed_names::notify() {
    if (waiting_ > 0 || !has_changed_) return;
    observer_.note_changed_names();
    has_changed_ = false;
}

}  // namespace eddy::proxy
