// Guard of the console: its files are public, the API is behind the token.
#include "daemon/console/console_handler.hpp"

#include <eddy/base/assert.hpp>

#include "base/secret.hpp"
#include "daemon/console/console_page.hpp"
#include "daemon/control/control_api.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace eddy::daemon {
namespace {

/// Scripts and styles of the page's own files alone, requests to its own origin, and WebSockets to
/// servers of this machine.
constexpr std::string_view content_policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self' "
    "ws://127.0.0.1:* ws://localhost:* wss://127.0.0.1:* wss://localhost:*; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'";

http::response guarded(http::response response) {
    response.add("Content-Security-Policy", content_policy);
    response.add("X-Content-Type-Options", "nosniff");
    response.add("Referrer-Policy", "no-referrer");
    response.add("Cross-Origin-Resource-Policy", "same-origin");
    return response;
}

http::response page_response(const console_file& file, bool is_head) {
    http::response made(200, file.type, is_head ? std::string() : std::string(file.content));
    made.add("Cache-Control", "no-store");
    return guarded(std::move(made));
}

http::response refusal(int status, std::string_view why) {
    return guarded(error_response(status, why));
}

}  // namespace

console_handler::console_handler(http::request_handler& to, std::string token, std::uint16_t port)
    : to_(to), token_(std::move(token)), port_(port) {
    EDDY_ASSERT(!token_.empty() && port_ != 0);
}

bool console_handler::is_for_this_host(const http::request& request) const {
    const auto host = request.headers().find("Host");
    if (!host) return false;
    for (const std::string_view name : {"127.0.0.1", "localhost"})
        if (*host == fmt::format("{}:{}", name, port_)) return true;
    return false;
}

bool console_handler::has_token(const http::request& request) const {
    constexpr std::string_view scheme = "Bearer ";
    const auto given = request.headers().find("Authorization");
    return given && given->starts_with(scheme) &&
           is_same_secret(given->substr(scheme.size()), token_);
}

task<http::response> console_handler::handle(http::request& request) {
    // A refusal awaits no body: a stranger that sends one slowly would keep its connection.
    if (!is_for_this_host(request))
        co_return refusal(
            403, fmt::format("the console answers as 127.0.0.1:{0} and localhost:{0}", port_));
    if (request.method() == "GET" || request.method() == "HEAD") {
        for (const console_file& file : console_files())
            if (request.path() == file.path)
                co_return page_response(file, request.method() == "HEAD");
    }
    const bool is_api = request.path().starts_with("/v1/");
    if (is_api && has_token(request)) co_return guarded(co_await to_.handle(request));
    if (!is_api) co_return refusal(404, "there is no such page");
    co_return refusal(401,
                      "the token is missing or wrong; `eddy console` prints the address with "
                      "it");
}

http::response console_handler::reject(int status, std::string_view what) {
    return guarded(to_.reject(status, what));
}

}  // namespace eddy::daemon
