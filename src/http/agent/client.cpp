// Client of one server.
#include <eddy/http/client.hpp>

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>

#include "http/agent/exchange.hpp"

#include <utility>

namespace eddy::http {

body_reader& client_response::body() const noexcept {
    EDDY_PRECONDITION(connection_ && connection_->exchanges() == serial_,
                      "body() of a response after its client's next send()");
    return connection_->response_body();
}

client_response::switched client_response::take_connection() {
    EDDY_PRECONDITION(status == 101 && connection_ && connection_->exchanges() == serial_,
                      "take_connection() of a response that is not 101, or was taken");
    client_connection::taken taken = connection_->take_over();
    return {std::move(taken.peer), std::move(taken.received)};
}

client::client(transport::address server, client_options options)
    : plan_(std::make_shared<const detail::client_plan>(std::move(server), std::move(options))) {}

client::~client() { close(); }

void client::close() noexcept { detail::client_exchange::close(connection_); }

bool client::is_reusable() {
    return connection_ && connection_->is_reusable() &&
           loop::current().now() - connection_->last_response() <= plan_->options.limits.keep_time;
}

task<result<client_response>> client::send(client_request request) {
    EDDY_PRECONDITION(!busy_, "a second send() of one client: await the first before the next");
    busy_ = true;
    const struct idle_again {
        bool& busy;
        ~idle_again() { busy = false; }
    } at_end{busy_};
    if (!is_reusable()) close();
    co_return co_await detail::client_exchange::send(connection_, plan_, std::move(request));
}

}  // namespace eddy::http
