// Functions of scripts that change the runtimes of their daemon: eddy.create() and so on, behind
// --lua-admin. They are requests to the control API, over its socket.
#pragma once

#include <eddy/io/timer.hpp>

#include "runtime/host/host.hpp"
#include "script/library.hpp"

#include <chrono>
#include <cstddef>
#include <memory>

namespace eddy::runtime {

/// Requests of one state at a time at most, bytes of an answer, and the limit of a wait: a runtime
/// may take long to stop.
inline constexpr std::size_t max_admin_requests = 16;
inline constexpr std::size_t max_admin_answer = std::size_t{4} << 20;
inline constexpr duration admin_patience = std::chrono::minutes(2);

/// Requests of one state. It must outlive the state's host. One loop's thread.
class script_admin {
public:
    /// `daemon` may be null: there is none, or it is a trial.
    script_admin(std::shared_ptr<host> daemon, bool is_allowed) noexcept
        : daemon_(std::move(daemon)), is_allowed_(is_allowed) {}

    /// Table `control`, for script::control_prelude().
    script::library functions() noexcept;

private:
    friend struct admin_functions;

    const std::shared_ptr<host> daemon_;
    const bool is_allowed_;
    std::size_t requests_ = 0;
};

}  // namespace eddy::runtime
