// Registry of the daemon's runtimes: look-up by name, id, pattern, group and owner, and the types
// that there are. What it holds is published to the runtimes by a runtime::registry, which it keeps
// in step.
#pragma once

#include "base/problem.hpp"
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
    /// By name; null for none.
    runtime_ref get(std::string_view name) const;
    /// By name; all that match a glob pattern, or are of a group ("@group").
    std::vector<runtime_ref> match(std::string_view pattern) const;
    std::vector<runtime_ref> all() const;
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
    /// Removes a runtime after its removal.
    void remove(const managed_runtime& which);
    /// Removes one whose creation failed: it never was.
    void forget(const managed_runtime& which);
    /// Replaces the record of a runtime, which keeps its name, type and id.
    void set_record(managed_runtime& which, runtime_record fresh);
    /// Publishes whether it serves: true after a successful start, false before a stop.
    void publish_running(const managed_runtime& which, bool is_running);

    /// Shared with the runtimes' hosts.
    const std::shared_ptr<runtime::registry>& published() const noexcept { return published_; }

private:
    friend class removal_log;

    bool owns_itself(std::string_view name) const;
    bool has(const managed_runtime& which) const;

    const std::span<const runtime::type> types_;
    const std::size_t limit_;
    std::map<std::string, runtime_ref, std::less<>> runtimes_;
    const std::shared_ptr<runtime::registry> published_ = std::make_shared<runtime::registry>();
    removal_log* removals_ = nullptr;
};

}  // namespace eddy::daemon
