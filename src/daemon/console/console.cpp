// Start and end of the console.
#include "daemon/console/console.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/net/tcp.hpp>

#include "runtime/listening.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <utility>

namespace eddy::daemon {
namespace {

/// Empty where there are no random bytes.
std::string new_token() {
    std::array<std::uint64_t, 4> bits{};
    if (::getrandom(bits.data(), sizeof bits, 0) != static_cast<ssize_t>(sizeof bits)) return {};
    return fmt::format("{:016x}{:016x}{:016x}{:016x}", bits[0], bits[1], bits[2], bits[3]);
}

}  // namespace

std::string console_place::url() const {
    return fmt::format("http://127.0.0.1:{}/#{}", port, token);
}

outcome<console_place> console::open(std::uint16_t port) {
    if (place_ && (port == 0 || port == place_->port)) return *place_;
    if (place_)
        return refuse(409, fmt::format("the console is open on port {}; `eddy console --close` "
                                       "closes it",
                                       place_->port));
    EDDY_ASSERT(!place_);
    if (server_) return refuse(409, "the console is being closed; try again");
    std::string token = new_token();
    if (token.empty()) return refuse(500, "the system has no random bytes for a token");
    auto opened = tcp::listen("127.0.0.1", port);
    if (!opened) {
        transport::address wanted;
        wanted.host = "127.0.0.1";
        wanted.port = port;
        problem why = runtime::explain_listen_failure(wanted, opened.error(), nullptr);
        why.message.insert(0, "the console could not be opened: ");
        return std::unexpected(std::move(why));
    }
    const std::uint16_t real_port = opened->local().port();
    serve(std::move(*opened), {.port = real_port, .token = std::move(token)});
    return *place_;
}

outcome<> console::take_over(listener from, std::string token) {
    if (place_ || server_) return refuse(409, "a console is open already");
    const std::uint16_t port = from.local().port();
    if (token.empty() || port == 0) return refuse(400, "its token or its port is not known");
    serve(std::move(from), {.port = port, .token = std::move(token)});
    return {};
}

void console::end_accepting() noexcept {
    if (server_) server_->end_accepting();
}

void console::serve(listener from, console_place at) {
    EDDY_ASSERT(!place_ && !server_ && !handler_);
    place_ = std::move(at);
    server_limits limits;
    limits.connections = max_connections;
    limits.for_root = 0;
    handler_ = std::make_unique<console_handler>(api_, place_->token, place_->port);
    server_ = std::make_unique<control_server>(std::move(from), *handler_, counted_, limits, false);
    serving_ = std::make_unique<scope>();
    serving_->spawn(server_->run());
}

task<void> console::close() {
    if (!place_) co_return;
    EDDY_ASSERT(server_ != nullptr && serving_ != nullptr && handler_ != nullptr);
    place_.reset();
    server_->stop_accepting();
    serving_->cancel();
    co_await serving_->join();
    serving_.reset();
    server_.reset();
    handler_.reset();
}

}  // namespace eddy::daemon
