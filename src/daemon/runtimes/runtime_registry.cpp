// Look-up, owners and membership of the daemon's runtimes.
#include "daemon/runtimes/runtime_registry.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/base/glob.hpp>
#include <eddy/base/nearest.hpp>

#include "daemon/runtimes/runtime_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace eddy::daemon {

removal_log::removal_log(runtime_registry& of) : of_(of) {
    EDDY_ASSERT(of_.removals_ == nullptr);
    of_.removals_ = this;
}

removal_log::~removal_log() {
    EDDY_ASSERT(of_.removals_ == this);
    of_.removals_ = nullptr;
}

runtime_registry::~runtime_registry() { EDDY_ASSERT(removals_ == nullptr); }

outcome<const runtime::type*> runtime_registry::find_type(std::string_view name) const {
    const auto found = std::ranges::find(types_, name, &runtime::type::name);
    if (found != types_.end()) return &*found;
    std::vector<std::string_view> names;
    for (const runtime::type& each : types_) names.push_back(each.name);
    const std::string_view meant = nearest_word(name, names);
    return refuse(400, meant.empty() ? fmt::format("there is no type \"{}\"; there are {}", name,
                                                   fmt::join(names, ", "))
                                     : fmt::format("there is no type \"{}\"; did you mean \"{}\"?",
                                                   name, meant));
}

outcome<runtime_ref> runtime_registry::find(std::string_view name_or_id) const {
    if (const auto found = runtimes_.find(name_or_id); found != runtimes_.end())
        return found->second;
    std::vector<std::string_view> names;
    for (const auto& [name, entry] : runtimes_) {
        if (entry->desired.record.id == name_or_id) return entry;
        names.push_back(name);
    }
    return std::unexpected(runtime::unknown_runtime(name_or_id, names));
}

bool runtime_registry::was_named(std::string_view id, std::string_view name) const {
    return std::ranges::any_of(runtimes_, [&](const auto& each) {
        const runtime_record& record = each.second->desired.record;
        return record.id == id && record.former_name == name;
    });
}

runtime_ref runtime_registry::get(std::string_view name) const {
    const auto found = runtimes_.find(name);
    return found == runtimes_.end() ? nullptr : found->second;
}

std::vector<runtime_ref> runtime_registry::match(std::string_view pattern) const {
    std::vector<runtime_ref> matching;
    const bool is_name = !pattern.starts_with('@') && !glob_has_wildcard(pattern);
    if (const auto found = is_name ? runtimes_.find(pattern) : runtimes_.end();
        found != runtimes_.end())
        return {found->second};
    for (const auto& [name, entry] : runtimes_) {
        const runtime_record& record = entry->desired.record;
        if (runtime::is_match(pattern, name, record.id, record.group)) matching.push_back(entry);
    }
    return matching;
}

std::vector<runtime_ref> runtime_registry::all() const {
    std::vector<runtime_ref> every;
    for (const auto& [name, entry] : runtimes_) every.push_back(entry);
    return every;
}

// --- Owners ---------------------------------------------------------------------------------

std::vector<runtime_ref> runtime_registry::children_of(std::string_view owner) const {
    std::vector<runtime_ref> children;
    const std::string name(owner);
    for (auto at = owned_.lower_bound({name, ""}); at != owned_.end() && at->first == name; ++at)
        children.push_back(get(at->second));
    return children;
}

void runtime_registry::note_owner(const managed_runtime& of) {
    const runtime_record& record = of.desired.record;
    if (!record.owner.empty()) owned_.emplace(record.owner, record.name);
}

void runtime_registry::forget_owner(const managed_runtime& of) {
    const runtime_record& record = of.desired.record;
    const std::size_t erased = owned_.erase({record.owner, record.name});
    EDDY_ASSERT(erased == (record.owner.empty() ? 0U : 1U));
}

outcome<> runtime_registry::check_owner(std::string_view owner, std::string_view of) const {
    // No owner's owner may be the runtime itself. State files may hold a circle of others.
    std::size_t steps = 0;
    for (std::string_view above = owner; !above.empty(); ++steps) {
        if (steps > runtimes_.size())
            return refuse(
                409, fmt::format("\"{}\" cannot own \"{}\": its owners own each other", owner, of));
        if (above == of)
            return refuse(409,
                          fmt::format("\"{}\" cannot own \"{}\": it would own itself", owner, of));
        const auto found = runtimes_.find(above);
        if (found == runtimes_.end()) {
            if (above != owner) break;
            return with_context("--owner", find(owner).error());
        }
        above = found->second->desired.record.owner;
    }
    return {};
}

std::vector<std::string> runtime_registry::owner_circles() const {
    std::vector<std::string> found;
    for (const auto& [name, entry] : runtimes_) {
        if (owns_itself(name))
            found.push_back(
                fmt::format("\"{0}\" owns its own owner \"{1}\"; to end that: eddy "
                            "edit {0} --owner \"\"",
                            name, entry->desired.record.owner));
    }
    return found;
}

bool runtime_registry::owns_itself(std::string_view name) const {
    std::string_view above = name;
    for (std::size_t steps = 0; steps < runtimes_.size(); ++steps) {
        const auto found = runtimes_.find(above);
        if (found == runtimes_.end()) return false;
        above = found->second->desired.record.owner;
        if (above == name) return true;
    }
    return false;
}

// --- Membership -----------------------------------------------------------------------------

bool runtime_registry::has(const managed_runtime& which) const {
    return get(which.name()).get() == &which;
}

void runtime_registry::add(runtime_ref fresh) {
    EDDY_ASSERT(fresh->running.status() == runtime_status::created && !fresh->is_removed);
    desired_state& desired = fresh->desired;
    const runtime_record& record = desired.record;
    EDDY_ASSERT(!record.name.empty());
    if (auto type = find_type(record.type); !type) {
        fresh->running.reject(fmt::format("this Eddy has no runtimes of type \"{}\"", record.type));
    } else {
        desired.type = *type;
        read_options(*fresh);
    }
    const bool is_new = runtimes_.emplace(record.name, fresh).second;
    EDDY_ASSERT(is_new);
    note_owner(*fresh);
    published_->add(record.name, record.id, record.group);
}

void runtime_registry::read_options(managed_runtime& which) {
    EDDY_ASSERT(which.desired.type != nullptr);
    auto options = check_options(*which.desired.type, which.desired.record.options);
    if (options)
        which.desired.options = std::move(*options);
    else
        which.running.reject(fmt::format("its options are not valid: {}", options.error().message));
}

void runtime_registry::remove(const managed_runtime& which) {
    EDDY_ASSERT(which.is_removed);
    if (removals_ != nullptr) removals_->names_.insert(which.name());
    forget(which);
}

void runtime_registry::forget(const managed_runtime& which) {
    EDDY_ASSERT(has(which) && !which.running.has_instance());
    // The map's reference may be the last one.
    const std::string name = which.name();
    forget_owner(which);
    runtimes_.erase(name);
    published_->remove(name);
}

void runtime_registry::set_record(managed_runtime& which, runtime_record fresh) {
    runtime_record& record = which.desired.record;
    EDDY_ASSERT(has(which));
    EDDY_ASSERT(fresh.name == record.name && fresh.type == record.type && fresh.id == record.id);
    forget_owner(which);
    record = std::move(fresh);
    note_owner(which);
    published_->set_group(record.name, record.group);
}

void runtime_registry::set_owner(managed_runtime& which, std::string owner) {
    EDDY_ASSERT(has(which));
    forget_owner(which);
    which.desired.record.owner = std::move(owner);
    note_owner(which);
}

void runtime_registry::rename(managed_runtime& which, std::string to) {
    EDDY_ASSERT(has(which) && !runtimes_.contains(to));
    runtime_record& record = which.desired.record;
    record.former_name = record.name;
    for (const runtime_ref& child : children_of(record.name)) set_owner(*child, to);
    forget_owner(which);
    published_->rename(record.name, to);
    auto node = runtimes_.extract(record.name);
    node.key() = to;
    runtimes_.insert(std::move(node));
    record.name = std::move(to);
    note_owner(which);
    EDDY_ASSERT(has(which));
}

runtime_registry::reserved_name runtime_registry::reserve(std::string name) {
    reserved_.insert(name);
    return {*this, std::move(name)};
}

void runtime_registry::note(const managed_runtime& of, event_kind kind, std::string detail) const {
    const runtime_record& record = of.desired.record;
    EDDY_ASSERT(!record.name.empty() && !record.type.empty());
    runtime_event event;
    event.kind = kind;
    event.name = record.name;
    event.id = record.id;
    event.type = record.type;
    event.owner = record.owner;
    event.group = record.group;
    event.detail = std::move(detail);
    events_->note(std::move(event));
}

void runtime_registry::publish_running(const managed_runtime& which, bool is_running) {
    EDDY_ASSERT(has(which));
    EDDY_ASSERT(!is_running || which.running.status() == runtime_status::running);
    published_->set_running(which.name(), is_running);
}

}  // namespace eddy::daemon
