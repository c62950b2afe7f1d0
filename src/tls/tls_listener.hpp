// A listener over another one, whose streams speak TLS.
#pragma once

#include <eddy/base/frame_pool.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/tls/tls.hpp>

#include "tls/callback.hpp"

#include <cstddef>
#include <optional>

namespace eddy::tls {

class tls_listener final : public listener_driver {
public:
    tls_listener(listener below, context as, duration timeout);
    static void* operator new(std::size_t size) { return frame_allocate(size); }
    static void operator delete(void* block, std::size_t size) noexcept { frame_free(block, size); }

    bool start(accept_operation& op) override;
    void cancel(accept_operation& op) noexcept override;
    endpoint local() const noexcept override { return below_.local(); }
    int native_handle() const noexcept override { return below_.native_handle(); }
    void close() noexcept override;

private:
    ~tls_listener() = default;

    void on_accepted();
    bool deliver(accept_operation& op);

    listener below_;
    context context_;
    duration timeout_;
    callback accepted_;
    std::optional<accept_operation> below_op_;
    accept_operation* waiter_ = nullptr;
    bool accepting_ = false;  // below_op_ is under way
    bool closing_ = false;
};

/// A stream over `plain` whose handshake has begun. errno ENOMEM.
result<stream> start_handshake(stream plain, context as, std::string server_name, duration timeout);

}  // namespace eddy::tls
