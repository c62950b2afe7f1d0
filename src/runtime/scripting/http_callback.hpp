// on_http_request(request): requests of HTTP that a script answers, for sites and servers.
#pragma once

#include <eddy/http/request.hpp>
#include <eddy/http/response.hpp>
#include <eddy/io/task.hpp>

#include "script/coroutine_host.hpp"

#include <cstddef>
#include <optional>

namespace eddy::runtime {

class loop_script;

/// The whole number from `least` to 599 that a value is; 0 for another value.
int status_of(const script::value& of, int least = 200) noexcept;

/// Row of the callback.
script::callback http_request_callback();

/// Response of the script to a request, whose content of at most `max_body` bytes is awaited
/// before: more is 413. None where the script leaves the request to others. A failure of the script
/// is 500, and a response that cannot be sent, too. The script outlives it.
task<std::optional<eddy::http::response>> answer_by(loop_script& by, std::size_t callback,
                                                    eddy::http::request& incoming,
                                                    std::size_t max_body);

}  // namespace eddy::runtime
