// The server's end: the answer to a request for a WebSocket, and its service behind that.
#include <eddy/base/log.hpp>
#include <eddy/http/websocket.hpp>

#include "http/websocket/connection.hpp"

#include <algorithm>
#include <coroutine>
#include <exception>
#include <utility>

namespace eddy::http {
namespace {

using eddy::websocket::agreement;
using eddy::websocket::close_code;
using eddy::websocket::role;

/// Runs the service, and the closing handshake behind it.
class websocket_takeover final : public connection_takeover {
public:
    websocket_takeover(agreement&& agreed, std::shared_ptr<const websocket_options> options,
                       websocket_service service)
        : agreed_(std::move(agreed)), options_(std::move(options)), service_(std::move(service)) {}

    task<void> run(stream peer, byte_buffer received) override {
        return serve(detail::websocket_connection::make(std::move(peer), std::move(received),
                                                        role::server, std::move(agreed_),
                                                        std::move(options_)));
    }

private:
    using connection = detail::websocket_connection;

    /// It lasts as long as the WebSocket, so its frame is kept small: what it needs at the end is
    /// made by others.
    task<void> serve(std::shared_ptr<connection> served) {
        close_code last = close_code::normal;
        try {
            co_await service_run(*this, served);
        } catch (const std::exception& thrown) {
            last = log_failure(thrown);
        }
        const cancel_source* const ends = co_await current_source();
        if (ends != nullptr && ends->requested()) last = close_code::going_away;
        co_await served->finish(last);
    }
    [[gnu::noinline]] static close_code log_failure(const std::exception& thrown) {
        log_error("http", std::string("the service of a WebSocket: ") + thrown.what());
        return close_code::internal_error;
    }

    /// Awaits the end of the service: 1,842 bytes for an idle WebSocket, and 1,906 where the task
    /// is awaited plainly (http/memory_test.cpp, 2026-11-29).
    class service_run {
    public:
        using keeps_frame_memory = void;

        [[gnu::noinline]] service_run(const websocket_takeover& of,
                                      const std::shared_ptr<connection>& served)
            : work_(of.service_(websocket(served))) {}
        [[gnu::noinline]] ~service_run() = default;
        service_run(const service_run&) = delete;
        service_run& operator=(const service_run&) = delete;

        static constexpr bool await_ready() noexcept { return false; }
        template <class Promise>
        std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> waiter) noexcept {
            return std::move(work_).operator co_await().await_suspend(waiter);
        }
        [[gnu::noinline]] void await_resume() {
            std::move(work_).operator co_await().await_resume();
        }

    private:
        task<void> work_;
    };

    detail::websocket_terms agreed_;
    std::shared_ptr<const websocket_options> options_;
    websocket_service service_;
};

response refuse(int status, std::string_view what) {
    return text(std::string(what) + "\n", status);
}

bool may_come_from(std::string_view origin, const websocket_options& options) {
    return options.origins.empty() ||
           std::ranges::any_of(options.origins, [&](std::string_view each) {
               return http1::equal_ignoring_case(each, origin);
           });
}

}  // namespace

response upgrade(const request& incoming, std::shared_ptr<const websocket_options> options,
                 websocket_service service) {
    eddy::websocket::server_policy policy;
    policy.protocols = options->protocols;
    policy.deflate = detail::deflate_policy_of(*options);
    auto agreed = eddy::websocket::check_request(incoming.head(), policy);
    if (!agreed) {
        response refused = refuse(agreed.error().status, agreed.error().what);
        const result<> added = eddy::websocket::add_error_fields(refused.headers, agreed.error());
        EDDY_ASSERT(added.has_value());
        return refused;
    }
    for (const http1::header each : incoming.headers()) {
        if (!http1::equal_ignoring_case(each.name, "Origin")) continue;
        if (!may_come_from(each.value, *options))
            return refuse(403, "a page of this origin may not connect");
    }
    response switching(101);
    const result<> added = eddy::websocket::add_response_fields(switching.headers, *agreed);
    if (!added) return refuse(500, "the agreement on a WebSocket cannot be sent");
    switching.takeover = std::make_unique<websocket_takeover>(
        std::move(*agreed), std::move(options), std::move(service));
    return switching;
}

response upgrade(const request& incoming, websocket_options options, websocket_service service) {
    return upgrade(incoming, std::make_shared<const websocket_options>(std::move(options)),
                   std::move(service));
}

// --- The handle of both ends ---

websocket::operator bool() const noexcept { return connection_ && connection_->is_open(); }

namespace {

task<result<websocket_message>> fail_receiving() { co_return fail(errc::closed); }
task<result<>> fail_sending() { co_return fail(errc::closed); }

}  // namespace

task<result<websocket_message>> websocket::receive() {
    return connection_ ? connection_->receive(false) : fail_receiving();
}

task<result<websocket_message>> websocket::receive_piece() {
    return connection_ ? connection_->receive(true) : fail_receiving();
}

task<result<>> websocket::send(std::string_view text) {
    return connection_ ? connection_->send(eddy::websocket::opcode::text, text) : fail_sending();
}

task<result<>> websocket::send(const_bytes binary) {
    return connection_ ? connection_->send(eddy::websocket::opcode::binary, as_text(binary))
                       : fail_sending();
}

task<result<>> websocket::send(websocket_message message) {
    return message.is_text ? send(message.data) : send(as_bytes(message.data));
}

result<> websocket::try_send(std::string_view text) {
    if (!connection_) return fail(errc::closed);
    return connection_->try_send(eddy::websocket::opcode::text, text);
}

result<> websocket::try_send(const_bytes binary) {
    if (!connection_) return fail(errc::closed);
    return connection_->try_send(eddy::websocket::opcode::binary, as_text(binary));
}

result<> websocket::ping(std::string_view payload) {
    return connection_ ? connection_->ping(payload) : fail(errc::closed);
}

task<result<>> websocket::close(close_code code, std::string_view reason) {
    return connection_ ? connection_->close(code, reason) : fail_sending();
}

const websocket_close& websocket::closed_with() const noexcept {
    static const websocket_close none;
    return connection_ ? connection_->closed_with() : none;
}

std::string_view websocket::protocol() const noexcept {
    return connection_ ? connection_->protocol() : std::string_view();
}

bool websocket::is_compressed() const noexcept {
    return connection_ && connection_->is_compressed();
}

std::size_t websocket::queued_bytes() const noexcept {
    return connection_ ? connection_->writer().queued_bytes() : 0;
}

std::uint64_t websocket::dropped() const noexcept {
    return connection_ ? connection_->writer().dropped() : 0;
}

}  // namespace eddy::http
