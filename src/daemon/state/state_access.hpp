// State store for coroutines: its calls, made on the blocking pool.
#pragma once

#include <eddy/io/blocking.hpp>
#include <eddy/io/task.hpp>

#include "base/problem.hpp"
#include "daemon/state/runtime_record.hpp"
#include "daemon/state/state_store.hpp"

#include <functional>
#include <string>
#include <utility>

namespace eddy::daemon {

/// Both outlive it and its tasks. One loop's thread. Calls about one runtime expect its
/// change_lock, so the store never has two of them at a time.
class state_access {
public:
    state_access(const state_store& store, blocking_pool& disk) : store_(store), disk_(disk) {}

    /// Calls `what` after each change that was stored.
    void observe_saves(std::function<void()> what) { on_saved_ = std::move(what); }

    /// Refuses as the store does, and (503) without a thread of the pool.
    task<outcome<>> save(runtime_record record) const;
    task<outcome<>> erase(std::string name) const;
    /// The halves of a change in one step. The caller keeps `change` until they have ended.
    task<outcome<>> stage(const state_change& change) const;
    task<outcome<>> commit(const state_change& change) const;
    task<void> discard(const state_change& change) const;
    /// False, too, where it cannot be found out.
    task<bool> contains(std::string name) const;
    task<outcome<loaded_state>> load(unfinished what) const;

private:
    outcome<> noted(outcome<> stored) const;

    const state_store& store_;
    blocking_pool& disk_;
    std::function<void()> on_saved_;
};

}  // namespace eddy::daemon
