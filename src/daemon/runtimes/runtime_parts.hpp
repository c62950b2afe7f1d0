// Composition of the parts that keep the daemon's runtimes: registry, lifecycle, editor and
// restoration. The control API, the runtimes' hosts and the daemon's main task call the part that
// does what they want.
//
// The parts live on the control loop. Changes to one runtime are made one after the other, by its
// change_lock; different runtimes do not wait for each other.
#pragma once

#include <eddy/io/blocking.hpp>
#include <eddy/io/loop_group.hpp>
#include <eddy/io/timer.hpp>

#include "daemon/journal/journal_files.hpp"
#include "daemon/runtimes/runtime_editor.hpp"
#include "daemon/runtimes/runtime_lifecycle.hpp"
#include "daemon/runtimes/runtime_registry.hpp"
#include "daemon/runtimes/state_restore.hpp"
#include "daemon/stacks/stack_editor.hpp"
#include "daemon/state/state_access.hpp"
#include "daemon/state/state_store.hpp"
#include "runtime/host/message_bus.hpp"
#include "runtime/type.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace eddy::daemon {

/// Most runtimes of a daemon, where --max-runtimes does not say otherwise. One that serves has at
/// least one open file, and many systems allow a process 20,000 or fewer.
inline constexpr std::size_t runtime_limit = 20'000;

struct runtime_parts_options {
    std::span<const runtime::type> types;
    /// Folders on this machine: of journals, and of files that take data from one instance to the
    /// next.
    std::string journal_folder;
    std::string handover_folder;
    /// For runtimes that change others.
    runtime::control_access control = {};
    /// For a runtime whose own options do not say how long its connections may take to finish.
    duration drain = std::chrono::seconds(5);
    std::size_t runtimes = runtime_limit;  ///< kept at most
    /// For so long start_loaded() tries again to start what finds its address taken: after a crash
    /// the kernel may still be closing the sockets of the daemon before.
    duration address_grace{};
};

struct runtime_parts {
    /// Everything given outlives the parts; they are used on the control loop's thread alone.
    runtime_parts(const state_store& store, blocking_pool& disk, loop_group& loops,
                  runtime_parts_options options);
    ~runtime_parts();
    runtime_parts(const runtime_parts&) = delete;
    runtime_parts& operator=(const runtime_parts&) = delete;

    /// Writes what journals have. Waits for the disk.
    void flush_journals() { journals_.flush(); }
    /// Writes what journals have, and nothing from then on: their files are another process's.
    /// Waits for the disk.
    void stop_journals() { journals_.stop(); }

private:
    runtime_lifecycle::host_factory host_factory();

    /// For hosts, which may ask for something when it is gone: null then. The control loop's.
    const std::shared_ptr<runtime_parts*> self_ = std::make_shared<runtime_parts*>(this);
    const std::shared_ptr<runtime::message_bus> messages_ =
        std::make_shared<runtime::message_bus>();
    journal_files journals_;
    const runtime::control_access control_;
    state_access state_;

public:
    runtime_registry registry;
    runtime_lifecycle lifecycle;
    runtime_editor editor;
    state_restore restore;
    stack_editor stacks;
};

}  // namespace eddy::daemon
