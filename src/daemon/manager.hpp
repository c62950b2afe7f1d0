// Runtime manager: the composition of registry, lifecycle, editor and restoration that the control
// API, the runtimes' hosts and the daemon's main task use.
//
// The manager lives on the control loop. Changes to one runtime are made one after the other, by
// its change_lock; different runtimes do not wait for each other.
#pragma once

#include <eddy/io/blocking.hpp>
#include <eddy/io/loop_group.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "daemon/journal_files.hpp"
#include "daemon/json.hpp"
#include "daemon/managed_runtime.hpp"
#include "daemon/problem.hpp"
#include "daemon/runtime_editor.hpp"
#include "daemon/runtime_lifecycle.hpp"
#include "daemon/runtime_registry.hpp"
#include "daemon/state_access.hpp"
#include "daemon/state_restore.hpp"
#include "daemon/state_store.hpp"
#include "runtime/message_bus.hpp"
#include "runtime/type.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::daemon {

/// How many runtimes a daemon keeps.
inline constexpr std::size_t runtime_limit = 1000;

struct manager_options {
    std::span<const runtime::type> types;
    /// Folders on this machine: of journals, and of files that take data from one instance to the
    /// next.
    std::string journal_folder;
    std::string handover_folder;
    /// For a runtime whose own options do not say how long its connections may take to finish.
    duration drain = std::chrono::seconds(5);
    std::size_t runtimes = runtime_limit;  ///< kept at most
    /// For so long start_loaded() tries again to start what finds its address taken: after a crash
    /// the kernel may still be closing the sockets of the daemon before.
    duration address_grace{};
};

class manager {
public:
    /// Everything given outlives the manager; it is used on the control loop's thread alone.
    manager(const state_store& store, blocking_pool& disk, loop_group& loops,
            manager_options options);
    ~manager();
    manager(const manager&) = delete;
    manager& operator=(const manager&) = delete;

    // Of state_restore.
    task<outcome<>> load() { return restore_.load(); }
    task<void> start_loaded() { return restore_.start_loaded(); }
    task<outcome<reread_summary>> reread() { return restore_.reread(); }

    // Of runtime_lifecycle.
    task<outcome<>> start(runtime_ref which) { return lifecycle_.start(std::move(which)); }
    task<outcome<>> stop(runtime_ref which, unsaved data = unsaved::kept) {
        return lifecycle_.stop(std::move(which), data);
    }
    task<outcome<>> reload(runtime_ref which, restart_data data = restart_data::kept) {
        return lifecycle_.reload(std::move(which), data);
    }
    task<outcome<std::uint64_t>> send(runtime_ref which, std::string message) {
        return lifecycle_.send(std::move(which), std::move(message));
    }
    task<outcome<>> prepare_shutdown(duration drain) { return lifecycle_.prepare_shutdown(drain); }
    task<bool> shut_down(duration drain) { return lifecycle_.shut_down(drain); }
    task<void> refresh() { return lifecycle_.refresh(); }
    std::size_t loops() const noexcept { return lifecycle_.loops(); }

    // Of runtime_editor.
    task<outcome<runtime_ref>> create(runtime_request request) {
        return editor_.create(std::move(request));
    }
    task<outcome<>> remove(runtime_ref which, unsaved data = unsaved::kept) {
        return editor_.remove(std::move(which), data);
    }
    task<outcome<edit_plan>> edit(runtime_ref which, edit_request wanted) {
        return editor_.edit(std::move(which), std::move(wanted));
    }
    task<outcome<edit_plan>> plan_edit(runtime_ref which, edit_request wanted) {
        return editor_.plan_edit(std::move(which), std::move(wanted));
    }
    task<outcome<>> keep_options(runtime_ref which, json options) {
        return editor_.keep_options(std::move(which), std::move(options));
    }

    // Of runtime_registry.
    outcome<runtime_ref> find(std::string_view name_or_id) const {
        return registry_.find(name_or_id);
    }
    std::vector<runtime_ref> match(std::string_view pattern) const {
        return registry_.match(pattern);
    }
    std::vector<runtime_ref> all() const { return registry_.all(); }
    std::span<const runtime::type> types() const noexcept { return registry_.types(); }

    /// A runtime as the control API shows it.
    json describe(const managed_runtime& which) const;

private:
    runtime_lifecycle::host_factory host_factory();

    /// For hosts, which may ask for something when it is gone: null then. The control loop's.
    const std::shared_ptr<manager*> self_ = std::make_shared<manager*>(this);
    const std::shared_ptr<runtime::message_bus> messages_ =
        std::make_shared<runtime::message_bus>();
    journal_files journals_;
    const state_access state_;
    runtime_registry registry_;
    runtime_lifecycle lifecycle_;
    runtime_editor editor_;
    state_restore restore_;
};

}  // namespace eddy::daemon
