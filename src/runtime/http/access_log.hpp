// Lines of the access log.
#pragma once

#include <eddy/http/session.hpp>
#include <eddy/io/endpoint.hpp>

#include "http/server/server_worker.hpp"
#include "runtime/http/options.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace eddy::runtime::http {

/// The label of a client in lines of a format: its address, without the port but in JSON; "unix:",
/// as in nginx, for one that came over a Unix socket or shared memory; "-" for one that is not
/// known. IPv4 stays IPv4 on a socket of both families. `user` may have any bytes.
eddy::http::client_label log_label(access_format format, const endpoint& peer, std::string user);

/// Writer of lines. What clients sent is escaped, so that it makes no second line and no other
/// field: in JSON by its rules, else as in nginx, quotes, backslashes and bytes that are not
/// printable ASCII as \xHH. One thread.
class access_log_writer {
public:
    explicit access_log_writer(access_format format) noexcept : format_(format) {}

    access_format format() const noexcept { return format_; }

    /// A line with its newline for one response. `ended` is the time of day when it ended, which
    /// is written in the local time zone, but in JSON as UTC.
    std::string line(const eddy::http::client_label& client,
                     const eddy::http::exchange_record& what,
                     std::chrono::system_clock::time_point ended);

private:
    std::string apache_line(const eddy::http::client_label& client,
                            const eddy::http::exchange_record& what, std::int64_t second);
    std::string_view local_time(std::int64_t second);

    access_format format_;
    std::optional<std::int64_t> written_;  // the second of local_time_
    std::string local_time_;
};

}  // namespace eddy::runtime::http
