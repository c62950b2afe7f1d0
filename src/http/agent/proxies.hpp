// Choice of a proxy for a URL, and the tunnel through it.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/http/proxy_settings.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>

#include "http/agent/url.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace eddy::http {

/// Looks up a variable of the environment; null without one.
using environment = std::function<const char*(const char* name)>;

/// proxy_settings::from_environment() of another environment.
proxy_settings read_proxies(const environment& look_up);

/// The proxy for a URL; none where it is reached without. errc::bad_address for one that is no URL,
/// errc::unsupported for one of another scheme than http and https.
result<std::optional<url>> proxy_for(const proxy_settings& from, const url& to);

/// The value of Authorization and Proxy-Authorization for "name:password".
std::string basic_credentials(std::string_view user);

/// Opens a tunnel to `to` (CONNECT) through the proxy at the other end of `through`, which must
/// outlive the task. Yields a result<>: EACCES when it wants other credentials (407), ECONNREFUSED
/// for other answers but a success, errc::malformed, errc::limit_reached, errc::truncated, or the
/// stream's error.
task<result<>> open_tunnel(stream& through, url to, std::string user);

}  // namespace eddy::http
