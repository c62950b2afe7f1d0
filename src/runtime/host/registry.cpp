// Registry of runtimes. One lock guards it; watches are notified under it, which posts and never
// calls back.
#include "runtime/host/registry.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/base/glob.hpp>
#include <eddy/base/nearest.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace eddy::runtime {
namespace {

using transport::scheme;

bool is_pattern(std::string_view target) noexcept {
    return target.starts_with('@') || target.find_first_of("*?[") != std::string_view::npos;
}

bool is_wildcard(const endpoint& where) {
    const std::string host = where.host();
    return host == "::" || host == "0.0.0.0";
}

bool collide(const endpoint& a, const endpoint& b) {
    if (a.is_unix() || b.is_unix()) return a == b;
    return a.port() == b.port() && (is_wildcard(a) || is_wildcard(b) || a.host() == b.host());
}

/// The address at which a client on this machine reaches a listener.
transport::address reachable(const transport::address& where, const endpoint& bound) {
    transport::address at;
    at.kind = where.kind;
    if (bound.is_unix()) {
        at.path = where.path;
        return at;
    }
    at.port = bound.port();
    at.host = bound.host();
    if (is_wildcard(bound)) at.host = bound.family() == AF_INET6 ? "::1" : "127.0.0.1";
    return at;
}

}  // namespace

bool is_match(std::string_view pattern, std::string_view name, std::string_view id,
              std::string_view group) noexcept {
    if (pattern.starts_with('@')) return !group.empty() && glob_match(pattern.substr(1), group);
    return glob_match(pattern, name) || id == pattern;
}

problem unknown_runtime(std::string_view name, std::span<const std::string_view> known) {
    const std::string_view meant = nearest_word(name, known);
    if (!meant.empty())
        return {404, fmt::format("there is no runtime \"{}\"; did you mean \"{}\"?", name, meant)};
    return {404, fmt::format("there is no runtime \"{}\"; `eddy ls` shows those there are", name)};
}

// --- Notes of addresses ----------------------------------------------------------------------

address_note::address_note(std::shared_ptr<registry> in, std::uint64_t id) noexcept
    : in_(std::move(in)), id_(id) {}

address_note::address_note(address_note&& other) noexcept
    : in_(std::move(other.in_)), id_(std::exchange(other.id_, 0)) {}

address_note& address_note::operator=(address_note&& other) noexcept {
    std::swap(in_, other.in_);
    std::swap(id_, other.id_);
    return *this;
}

address_note::~address_note() {
    if (in_ != nullptr) in_->forget(id_);
}

address_note registry::note(std::string runtime, const transport::address& where,
                            const endpoint& bound) {
    const std::lock_guard lock(mutex_);
    notes_.push_back({++last_note_, std::move(runtime), reachable(where, bound), bound});
    address_note made(shared_from_this(), last_note_);
    notify_running(notes_.back().runtime);
    return made;
}

void registry::forget(std::uint64_t note) {
    const std::lock_guard lock(mutex_);
    // Numbers grow, and notes are in their order.
    const auto found = std::ranges::lower_bound(notes_, note, {}, &noted_address::id);
    EDDY_ASSERT(found != notes_.end() && found->id == note);
    const std::string runtime = std::move(found->runtime);
    notes_.erase(found);
    notify_running(runtime);
}

std::string registry::server_at(const endpoint& where, bool is_datagram) const {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(notes_.begin(), notes_.end(), [&](const noted_address& each) {
        return (each.where.kind == scheme::udp) == is_datagram && collide(each.bound, where);
    });
    return found == notes_.end() ? std::string() : found->runtime;
}

// --- Runtimes --------------------------------------------------------------------------------

void registry::add(std::string name, std::string id, std::string group) {
    const std::lock_guard lock(mutex_);
    const auto [at, is_new] =
        runtimes_.insert_or_assign(std::move(name), entry{std::move(id), std::move(group)});
    notify(at->first, at->second);
}

void registry::set_group(std::string_view name, std::string group) {
    const std::lock_guard lock(mutex_);
    const auto found = runtimes_.find(name);
    if (found == runtimes_.end() || found->second.group == group) return;
    notify(name, found->second);  // watches of the old group
    found->second.group = std::move(group);
    notify(name, found->second);
}

void registry::set_running(std::string_view name, bool is_running) {
    const std::lock_guard lock(mutex_);
    const auto found = runtimes_.find(name);
    if (found == runtimes_.end() || found->second.is_running == is_running) return;
    found->second.is_running = is_running;
    notify(name, found->second);
}

void registry::remove(std::string_view name) {
    const std::lock_guard lock(mutex_);
    const auto found = runtimes_.find(name);
    if (found == runtimes_.end()) return;
    notify(name, found->second);
    runtimes_.erase(found);
}

void registry::rename(std::string_view name, std::string to) {
    const std::lock_guard lock(mutex_);
    auto moved = runtimes_.find(name);
    if (moved == runtimes_.end()) return;
    notify(moved->first, moved->second);
    for (noted_address& each : notes_)
        if (each.runtime == name) each.runtime = to;
    auto node = runtimes_.extract(moved);
    node.key() = std::move(to);
    const auto at = runtimes_.insert(std::move(node)).position;
    notify(at->first, at->second);
}

// --- Resolving and watching ------------------------------------------------------------------

void registry::add_addresses(served_addresses& to, std::string_view runtime) const {
    for (const noted_address& each : notes_)
        if (each.runtime == runtime) to.push_back({each.runtime, each.where});
}

outcome<registry::entries::const_iterator> registry::find(std::string_view target) const {
    auto at = runtimes_.find(target);
    if (at == runtimes_.end())
        at = std::find_if(runtimes_.begin(), runtimes_.end(),
                          [&](const auto& each) { return each.second.id == target; });
    if (at == runtimes_.end()) {
        std::vector<std::string_view> names;
        for (const auto& [name, each] : runtimes_) names.push_back(name);
        return std::unexpected(unknown_runtime(target, names));
    }
    return at;
}

void registry::offer_cache(std::string_view name, std::shared_ptr<local_cache> cache) {
    const std::lock_guard lock(mutex_);
    const auto found = runtimes_.find(name);
    if (found != runtimes_.end()) found->second.cache = std::move(cache);
}

outcome<std::shared_ptr<local_cache>> registry::find_cache(std::string_view target) const {
    const std::lock_guard lock(mutex_);
    const auto at = find(target);
    if (!at) return std::unexpected(at.error());
    const auto& [name, found] = **at;
    if (found.cache != nullptr) return found.cache;
    if (found.is_running) return refuse(400, fmt::format("\"{}\" is no cache", name));
    return refuse(409, fmt::format("\"{0}\" does not run; start it with: eddy start {0}", name));
}

outcome<served_addresses> registry::resolve(std::string_view target) const {
    const std::lock_guard lock(mutex_);
    served_addresses found;
    bool is_known = false;
    if (is_pattern(target)) {
        for (const auto& [name, each] : runtimes_) {
            if (!is_match(target, name, each.id, each.group)) continue;
            is_known = true;
            if (each.is_running) add_addresses(found, name);
        }
        if (is_known) return found;
        return refuse(404, target.starts_with('@')
                               ? fmt::format("no runtime is in the group \"{}\"; `eddy ls` shows "
                                             "the groups",
                                             target.substr(1))
                               : fmt::format("no runtime's name matches \"{}\"; `eddy ls` shows "
                                             "those there are",
                                             target));
    }
    const auto at = find(target);
    if (!at) return std::unexpected(at.error());
    if ((*at)->second.is_running) add_addresses(found, (*at)->first);
    return found;
}

void registry::notify(std::string_view name, const entry& of) const noexcept {
    for (const auto& each : watches_) {
        if (!is_match(each->target, name, of.id, of.group)) continue;
        each->has_changed.store(true, std::memory_order_release);
        each->notifier->notify();
    }
}

/// An address of the runtime came or went, which counts while it runs.
void registry::notify_running(std::string_view name) const noexcept {
    const auto found = runtimes_.find(name);
    if (found != runtimes_.end() && found->second.is_running) notify(name, found->second);
}

address_watch registry::watch(std::string target) {
    auto made = std::make_shared<address_watch::state>();
    made->target = std::move(target);
    made->notifier = std::make_shared<loop_notifier>();
    {
        const std::lock_guard lock(mutex_);
        watches_.push_back(made);
    }
    return {shared_from_this(), std::move(made)};
}

void registry::forget(const address_watch::state& watch) {
    const std::lock_guard lock(mutex_);
    std::erase_if(watches_, [&](const auto& each) { return each.get() == &watch; });
}

address_watch::address_watch(std::shared_ptr<registry> in, std::shared_ptr<state> shared) noexcept
    : in_(std::move(in)), shared_(std::move(shared)) {}

address_watch& address_watch::operator=(address_watch&& other) noexcept {
    std::swap(in_, other.in_);
    std::swap(shared_, other.shared_);
    return *this;
}

address_watch::~address_watch() {
    if (in_ != nullptr) in_->forget(*shared_);
}

task<result<>> address_watch::changed() {
    loop_notifier& notifier = *shared_->notifier;
    for (;;) {
        if (notifier.is_closed()) co_return fail(errc::closed);
        if (shared_->has_changed.exchange(false, std::memory_order_acq_rel)) co_return result<>();
        notifier.reset();
        const result<> waited = co_await notifier.wait();
        if (!waited) co_return waited;
    }
}

outcome<served_addresses> address_watch::addresses() const { return in_->resolve(shared_->target); }

}  // namespace eddy::runtime
