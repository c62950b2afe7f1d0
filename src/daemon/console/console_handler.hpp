// Requests of the console: its public page, and the control API behind a token.
//
// A browser runs pages of strangers, and programs of other users reach ports of this machine. So
// the token is in a field that no page can set for another origin, never in a cookie; and requests
// for another host's name are refused, by which a stranger's page would pass as this one.
#pragma once

#include <eddy/http/request.hpp>
#include <eddy/http/session.hpp>
#include <eddy/io/task.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace eddy::daemon {

/// `to` outlives it; control loop.
class console_handler final : public http::request_handler {
public:
    console_handler(http::request_handler& to, std::string token, std::uint16_t port);

    task<http::response> handle(http::request& request) override;
    http::response reject(int status, std::string_view what) override;

private:
    bool is_for_this_host(const http::request& request) const;
    bool has_token(const http::request& request) const;

    http::request_handler& to_;
    const std::string token_;
    const std::uint16_t port_;
};

}  // namespace eddy::daemon
