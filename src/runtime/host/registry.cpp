// Registry of runtimes. One lock guards it; watches are notified under it, which posts and never
// calls back.
#include "runtime/host/registry.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/base/glob.hpp>
#include <eddy/base/nearest.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>
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
    notes_of_[runtime].push_back(++last_note_);
    notes_.emplace(last_note_, noted_address{std::move(runtime), reachable(where, bound), bound});
    address_note made(shared_from_this(), last_note_);
    notify_running(notes_.at(last_note_).runtime);
    return made;
}

void registry::forget(std::uint64_t note) {
    const std::lock_guard lock(mutex_);
    const auto found = notes_.find(note);
    EDDY_ASSERT(found != notes_.end());
    const std::string runtime = std::move(found->second.runtime);
    notes_.erase(found);
    const auto its = notes_of_.find(runtime);
    EDDY_ASSERT(its != notes_of_.end());
    std::erase(its->second, note);
    if (its->second.empty()) notes_of_.erase(its);
    notify_running(runtime);
}

std::string registry::server_at(const endpoint& where, bool is_datagram) const {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, each] : notes_)
        if ((each.where.kind == scheme::udp) == is_datagram && collide(each.bound, where))
            return each.runtime;
    return {};
}

std::vector<opened_address> registry::opened_by(std::string_view name) const {
    const std::lock_guard lock(mutex_);
    std::vector<opened_address> all;
    const auto found = notes_of_.find(name);
    if (found == notes_of_.end()) return all;
    for (const std::uint64_t number : found->second) {
        const noted_address& each = notes_.at(number);
        all.push_back({each.where.kind, each.bound});
    }
    return all;
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
    if (const auto its = notes_of_.find(name); its != notes_of_.end()) {
        std::vector<std::uint64_t> numbers = std::move(its->second);
        notes_of_.erase(its);
        for (const std::uint64_t number : numbers) notes_.at(number).runtime = to;
        // An instance that has left may still have notes of the name.
        std::vector<std::uint64_t>& all = notes_of_[to];
        all.insert(all.end(), numbers.begin(), numbers.end());
        std::ranges::sort(all);
    }
    auto node = runtimes_.extract(moved);
    node.key() = std::move(to);
    const auto at = runtimes_.insert(std::move(node)).position;
    notify(at->first, at->second);
}

// --- Runtimes of other members ---------------------------------------------------------------

void registry::set_remote(std::string_view member, std::vector<remote_runtime> its) {
    EDDY_ASSERT(!member.empty());
    std::erase_if(its, [](const remote_runtime& each) { return each.group.empty(); });
    std::ranges::sort(its, {}, &remote_runtime::name);
    // Names come from another machine, and may be there twice.
    const auto twice = std::ranges::unique(its, {}, &remote_runtime::name);
    its.erase(twice.begin(), twice.end());
    const std::lock_guard lock(mutex_);
    std::set<std::string, std::less<>> changed;
    const auto add_changed = [&changed](std::span<const remote_runtime> from,
                                        std::span<const remote_runtime> other) {
        for (const remote_runtime& each : from) {
            const auto at = std::ranges::lower_bound(other, each.name, {}, &remote_runtime::name);
            if (at == other.end() || *at != each) changed.insert(each.group);
        }
    };
    const auto before = remote_.find(member);
    const std::span<const remote_runtime> had =
        before == remote_.end() ? std::span<const remote_runtime>() : before->second;
    add_changed(had, its);
    add_changed(its, had);
    replace_remote(member, std::move(its));
    for (const std::string& each : changed) notify_group(each);
}

void registry::replace_remote(std::string_view member, std::vector<remote_runtime> its) {
    auto at = remote_.find(member);
    if (at != remote_.end()) {
        for (const remote_runtime& each : at->second) {
            const auto group = groups_.find(each.group);
            EDDY_ASSERT(group != groups_.end());
            group->second.erase(each.name);
            if (group->second.empty()) groups_.erase(group);
        }
        if (its.empty()) remote_.erase(at);
    }
    if (its.empty()) return;
    if (at == remote_.end()) at = remote_.try_emplace(std::string(member)).first;
    at->second = std::move(its);
    for (const remote_runtime& each : at->second) {
        EDDY_ASSERT(each.name.size() > member.size() && each.name[member.size()] == '/');
        groups_[each.group].emplace(each.name, &each);
    }
}

// --- Resolving and watching ------------------------------------------------------------------

void registry::add_addresses(served_addresses& to, std::string_view runtime) const {
    const auto found = notes_of_.find(runtime);
    if (found == notes_of_.end()) return;
    for (const std::uint64_t number : found->second) {
        const noted_address& each = notes_.at(number);
        EDDY_ASSERT(each.runtime == runtime);
        to.push_back({each.runtime, each.where});
    }
}

/// Adds the addresses of a group, or of all that match a pattern, at other members. True if there
/// is such a group.
bool registry::add_remote(served_addresses& to, std::string_view groups) const {
    bool is_known = false;
    const auto add = [&](const auto& its) {
        is_known = true;
        for (const auto& [name, each] : its) {
            for (const remote_runtime::place& at : each->places) {
                served_address made;
                made.runtime = name;
                made.where.kind = at.kind;
                made.where.host = at.host;
                made.where.port = at.port;
                made.is_remote = true;
                to.push_back(std::move(made));
            }
        }
    };
    if (glob_has_wildcard(groups)) {
        for (const auto& [group, its] : groups_)
            if (glob_match(groups, group)) add(its);
    } else if (const auto found = groups_.find(groups); found != groups_.end()) {
        add(found->second);
    }
    return is_known;
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
        if (target.starts_with('@') && add_remote(found, target.substr(1))) is_known = true;
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

/// Runtimes of the group at other members have changed.
void registry::notify_group(std::string_view group) const noexcept {
    for (const auto& each : watches_) {
        const std::string_view target = each->target;
        if (!target.starts_with('@') || !glob_match(target.substr(1), group)) continue;
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
