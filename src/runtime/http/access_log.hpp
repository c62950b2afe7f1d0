// Lines of the access log.
#pragma once

#include <eddy/http/session.hpp>

#include "runtime/http/options.hpp"

#include <chrono>
#include <string>
#include <string_view>

namespace eddy::runtime::http {

/// A line with its newline for one response. `client` is the peer's address, `ended` the time of
/// day when the response ended. What the client sent is escaped, so that it makes no second line.
std::string access_line(access_format format, std::string_view client,
                        const eddy::http::exchange_record& what,
                        std::chrono::system_clock::time_point ended);

}  // namespace eddy::runtime::http
