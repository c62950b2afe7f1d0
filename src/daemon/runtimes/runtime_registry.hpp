// Registry of the daemon's runtimes: look-up by name, id, pattern, group and owner, and the types
// that there are. What it holds is published to the runtimes by a runtime::registry, which it keeps
// in step.
#pragma once

#include "base/problem.hpp"
#include "daemon/journal/event_feed.hpp"
#include "daemon/runtimes/managed_runtime.hpp"
#include "runtime/host/registry.hpp"
#include "runtime/type.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::daemon {

class runtime_registry;

/// Names that are removed while it exists. At most one of a registry at a time, which outlives it.
class removal_log {
public:
    explicit removal_log(runtime_registry& of);
    ~removal_log();
    removal_log(const removal_log&) = delete;
    removal_log& operator=(const removal_log&) = delete;

    bool contains(std::string_view name) const { return names_.contains(name); }

private:
    friend class runtime_registry;
    runtime_registry& of_;
    std::set<std::string, std::less<>> names_;
};

/// The control loop's.
class runtime_registry {
public:
    /// `types` outlive it. At most `limit` runtimes are created; load() may find more.
    runtime_registry(std::span<const runtime::type> types, std::size_t limit)
        : types_(types), limit_(limit) {}
    ~runtime_registry();
    runtime_registry(const runtime_registry&) = delete;
    runtime_registry& operator=(const runtime_registry&) = delete;

    std::span<const runtime::type> types() const noexcept { return types_; }
    /// Refuses (400) with the name that was probably meant, or all names.
    outcome<const runtime::type*> find_type(std::string_view name) const;

    /// By name, or by id. Refuses (404) with the name that was probably meant.
    outcome<runtime_ref> find(std::string_view name_or_id) const;
    /// True if the runtime of that id had that name before it was renamed.
    bool was_named(std::string_view id, std::string_view name) const;
    /// By name; null for none.
    runtime_ref get(std::string_view name) const;
    /// By name; all that match a glob pattern, or are of a group ("@group").
    std::vector<runtime_ref> match(std::string_view pattern) const;
    std::vector<runtime_ref> all() const;
    /// Calls `what(managed_runtime&)` for all, by name; it adds and removes none.
    template <class F>
    void for_each(F what) const {
        for (const auto& each : runtimes_) what(*each.second);
    }
    std::size_t size() const noexcept { return runtimes_.size(); }
    std::size_t limit() const noexcept { return limit_; }
    bool is_full() const noexcept { return size() >= limit_; }

    std::vector<runtime_ref> children_of(std::string_view owner) const;
    /// Refuses an owner that is not there, or that the runtime `of` owns itself, maybe through
    /// others.
    outcome<> check_owner(std::string_view owner, std::string_view of) const;
    /// A sentence for each runtime that owns its own owner, which only state files that were edited
    /// by hand bring about.
    std::vector<std::string> owner_circles() const;

    /// Adds a runtime of a new name and derives the rest of its desired state from its record: one
    /// whose type or options are not valid fails with the reason.
    void add(runtime_ref fresh);
    /// Reads the stored options of a runtime of a known type; where they are not valid it fails
    /// with the reason.
    static void read_options(managed_runtime& which);
    /// Removes a runtime after its removal.
    void remove(const managed_runtime& which);
    /// Removes one whose creation failed: it never was.
    void forget(const managed_runtime& which);
    /// Replaces the record of a runtime, which keeps its name, type and id.
    void set_record(managed_runtime& which, runtime_record fresh);
    /// Corrects the owner alone.
    void set_owner(managed_runtime& which, std::string owner);
    /// Gives a runtime another name, which is free. Records of owned ones follow.
    void rename(managed_runtime& which, std::string to);
    /// A name that no new runtime may have, as long as the returned object lives.
    struct reserved_name {
        runtime_registry& of;
        std::string name;
        ~reserved_name() { of.reserved_.erase(name); }
    };
    reserved_name reserve(std::string name);
    bool is_reserved(std::string_view name) const { return reserved_.contains(name); }
    /// Publishes whether it serves: true after a successful start, false before a stop.
    void publish_running(const managed_runtime& which, bool is_running);

    /// The events of all runtimes, removed ones included.
    const std::shared_ptr<event_feed>& events() const noexcept { return events_; }
    /// Adds an event of a runtime.
    void note(const managed_runtime& of, event_kind kind, std::string detail = {}) const;

    /// Shared with the runtimes' hosts.
    const std::shared_ptr<runtime::registry>& published() const noexcept { return published_; }

private:
    friend class removal_log;

    void note_owner(const managed_runtime& of);
    void forget_owner(const managed_runtime& of);
    bool owns_itself(std::string_view name) const;
    bool has(const managed_runtime& which) const;

    const std::span<const runtime::type> types_;
    const std::size_t limit_;
    std::map<std::string, runtime_ref, std::less<>> runtimes_;
    /// Owners with the names of what they own: children_of() without a walk over all runtimes.
    std::set<std::pair<std::string, std::string>> owned_;
    const std::shared_ptr<runtime::registry> published_ = std::make_shared<runtime::registry>();
    const std::shared_ptr<event_feed> events_ = std::make_shared<event_feed>();
    removal_log* removals_ = nullptr;
    std::set<std::string, std::less<>> reserved_;
};

}  // namespace eddy::daemon
