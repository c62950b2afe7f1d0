// Lines of the access log.
#pragma once

#include <eddy/http/session.hpp>
#include <eddy/io/endpoint.hpp>

#include "http/server/server_worker.hpp"
#include "wire/proxy_protocol/client_values.hpp"

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace eddy::runtime {

/// Lines of the access log.
enum class access_format : std::uint8_t {
    common,    ///< the Common Log Format of NCSA httpd
    combined,  ///< the same with Referer and User-Agent, as Apache httpd and nginx write it
    json,      ///< an object a line
};

/// A time of day as JSON lines have it: "2026-12-01T03:04:05.678Z".
std::string json_time(std::chrono::system_clock::time_point at);
/// The text of a line of JSON, without its newline. Bytes that are no UTF-8 are replaced.
std::string json_text(const nlohmann::ordered_json& of);

/// The label of a client in lines of a format: its address, without the port but in JSON; "unix:",
/// as in nginx, for one that came over a Unix socket or shared memory; "-" for one that is not
/// known. IPv4 stays IPv4 on a socket of both families. `user` may have any bytes.
///
/// `announced`, which may be null, is what the PROXY header of the connection says of the client:
/// in JSON lines have it as "announced", with "alpn", "authority", "unique_id" (in hexadecimal
/// digits where it is no printable text), and "tls" with "version", "cipher", "name" and
/// "verified". The name of a verified certificate is the user where there is no other.
eddy::http::client_label log_label(access_format format, const endpoint& peer, std::string user,
                                   const proxy_protocol::client_values* announced = nullptr);

/// Writer of lines. Where another server has answered, a line ends with its name, the number of
/// tries and the seconds until the head of its response came, of a proxy with "-" three times where
/// none has; in JSON they are "upstream", "tries"
/// and "upstream_seconds". What clients sent is escaped, so that it makes no second line and no
/// other field: in JSON by its rules, else as in nginx, quotes, backslashes and bytes that are not
/// printable ASCII as \xHH. One thread.
class access_log_writer {
public:
    /// `is_proxy`: other servers answer.
    explicit access_log_writer(access_format format, bool is_proxy = false) noexcept
        : format_(format), is_proxy_(is_proxy) {}

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
    bool is_proxy_;
    std::optional<std::int64_t> written_;  // the second of local_time_
    std::string local_time_;
};

}  // namespace eddy::runtime
