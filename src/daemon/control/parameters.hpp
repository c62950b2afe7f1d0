// Parameters of requests to the control API, read from their queries.
#pragma once

#include <eddy/http/request.hpp>

#include "base/problem.hpp"
#include "daemon/journal/event_feed.hpp"
#include "daemon/runtimes/managed_runtime.hpp"

#include <chrono>
#include <cstddef>
#include <optional>
#include <string_view>

namespace eddy::daemon {

// Each refuses (400) a value of another form.

outcome<bool> flag_parameter(const http::request& request, std::string_view name,
                             bool otherwise = false);
outcome<std::size_t> count_parameter(const http::request& request, std::string_view name,
                                     std::size_t otherwise);
/// The instant that a parameter such as `since` names: a time, or how long ago it is.
outcome<std::optional<std::chrono::system_clock::time_point>> time_parameter(
    const http::request& request, std::string_view name);
outcome<restart_data> restart_data_parameter(const http::request& request);
/// All of GET /v1/events, where Last-Event-ID counts as `after`.
outcome<event_query> event_parameters(const http::request& request);

}  // namespace eddy::daemon
