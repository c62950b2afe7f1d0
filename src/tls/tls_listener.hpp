// TLS listener over another one: its streams speak TLS.
#pragma once

#include <eddy/base/frame_pool.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/timer.hpp>
#include <eddy/tls/tls.hpp>

#include "io/tasks/callback.hpp"
#include "tls/handshakes.hpp"

#include <cstddef>
#include <optional>
#include <utility>

namespace eddy::tls {

class tls_stream;

class tls_listener final : public listener_driver, private timer {
public:
    tls_listener(listener below, context as, duration timeout, std::size_t max_handshakes);
    static void* operator new(std::size_t size) { return frame_allocate(size); }
    static void operator delete(void* block, std::size_t size) noexcept { frame_free(block, size); }

    bool start(accept_operation& op) override;
    void cancel(accept_operation& op) noexcept override;
    endpoint local() const noexcept override { return below_.local(); }
    int native_handle() const noexcept override { return below_.native_handle(); }
    void close() noexcept override;
    void use(context as) noexcept { context_ = std::move(as); }

private:
    ~tls_listener() = default;

    void on_accepted();
    void on_handshake_over();
    void fire() noexcept override;
    bool full() const noexcept { return under_way_.count() >= max_handshakes_; }
    tls_stream& oldest() noexcept;
    void wait_for_room() noexcept;
    bool accept_below();
    void deliver(accept_operation& op);

    listener below_;
    context context_;
    duration timeout_;
    std::size_t max_handshakes_;
    handshakes under_way_;
    callback accepted_;
    std::optional<accept_operation> below_op_;
    accept_operation* waiter_ = nullptr;
    bool accepting_ = false;  // below_op_ is under way
    bool closing_ = false;
};

/// A stream over `plain` whose handshake has begun, as one of `counted` if that is not null. errno
/// ENOMEM.
result<stream> start_handshake(stream plain, context as, std::string server_name, duration timeout,
                               handshakes* counted);

}  // namespace eddy::tls
