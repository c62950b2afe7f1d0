// State store in memory, for tests: of parts that need a store and no disk.
#pragma once

#include "daemon/state/state_store.hpp"

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace eddy::daemon::testing {

/// Any thread.
class memory_store final : public state_store {
public:
    outcome<> save(const runtime_record& record) const override {
        if (is_full) return refuse(507, "the store is full");
        const std::lock_guard lock(mutex_);
        records_[record.name] = record;
        return {};
    }
    outcome<> erase(std::string_view name) const override {
        if (is_full) return refuse(507, "the store is full");
        const std::lock_guard lock(mutex_);
        records_.erase(std::string(name));
        return {};
    }
    outcome<> stage(const state_change&) const override {
        if (is_full) return refuse(507, "the store is full");
        return {};
    }
    outcome<> commit(const state_change& change) const override {
        if (is_full) return refuse(507, "the store is full");
        const std::lock_guard lock(mutex_);
        for (const runtime_record& each : change.saved) records_[each.name] = each;
        for (const std::string& name : change.erased) records_.erase(name);
        return {};
    }
    void discard(const state_change&) const override {}
    bool contains(std::string_view name) const override {
        const std::lock_guard lock(mutex_);
        return records_.contains(name);
    }
    outcome<loaded_state> load(unfinished) const override {
        if (is_full) return refuse(500, "the store cannot be read");
        const std::lock_guard lock(mutex_);
        loaded_state all;
        for (const auto& [name, record] : records_) all.records.push_back(record);
        return all;
    }

    /// A copy; the record must be there.
    runtime_record at(std::string_view name) const {
        const std::lock_guard lock(mutex_);
        return records_.find(name)->second;
    }

    /// While this is set, nothing can be written, removed or loaded.
    std::atomic<bool> is_full{false};

private:
    mutable std::mutex mutex_;
    mutable std::map<std::string, runtime_record, std::less<>> records_;
};

}  // namespace eddy::daemon::testing
