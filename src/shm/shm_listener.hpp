// Driver of a shared-memory listener: a Unix listener, and the handshakes of what it accepted.
#pragma once

#include <eddy/io/event.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>
#include <eddy/shm/shm.hpp>

#include "net/peer_process.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace eddy::shm {

/// It frees itself once it is closed and its tasks have ended. One loop's thread.
class shm_listener final : public listener_driver {
public:
    shm_listener(listener below, listen_options wanted);

    bool start(accept_operation& op) override;
    void cancel(accept_operation& op) noexcept override;
    endpoint local() const noexcept override { return below_.local(); }
    int native_handle() const noexcept override { return below_.native_handle(); }
    void close() noexcept override;

    std::uint64_t failures() const noexcept { return failures_; }

    /// Accepts, and makes handshakes, from now on, so that a client can connect before accept() is
    /// called. False without memory; accept() tries again.
    bool begin_accepting() noexcept;

private:
    /// One that is under way; it stands in under_way_ as long as it lives.
    struct handshake {
        handshake(shm_listener& listening, int with);
        ~handshake();
        handshake(const handshake&) = delete;
        handshake& operator=(const handshake&) = delete;

        shm_listener& of;
        unix_socket::peer_process process;
        int socket;
        bool is_given_up = false;
    };

    ~shm_listener() = default;

    static task<void> accept_all(shm_listener* self);
    static task<void> shake_hands(shm_listener* self, stream plain);
    void end_one() noexcept;
    task<void> accept_until_closed(scope& handshakes);
    bool give(accept_operation& op);
    void end_waiter(std::error_code error) noexcept;
    bool is_full() const noexcept {
        return under_way_.size() + ready_.size() >= max_waiting_connections;
    }

    listener below_;
    const listen_options options_;
    std::deque<stream> ready_;
    std::vector<handshake*> under_way_;  // oldest first
    std::uint64_t failures_ = 0;
    accept_operation* waiter_ = nullptr;
    scope* accepting_ = nullptr;  // while accept_all() runs
    bool has_begun_ = false;      // accept_all() runs, or will
    event has_room_;
    bool is_closing_ = false;
};

}  // namespace eddy::shm
