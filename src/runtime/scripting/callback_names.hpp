// Names of callbacks, for checks of scripts: also in a program without scripts.
#pragma once

#include "script/coroutine_host.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace eddy::runtime {

/// Callbacks of every type; those of a type follow them.
inline constexpr std::size_t callback_start = 0;
inline constexpr std::size_t callback_stop = 1;
inline constexpr std::size_t callback_tick = 2;
inline constexpr std::size_t callback_reload = 3;
inline constexpr std::size_t first_own_callback = 4;
inline constexpr std::array<script::callback, first_own_callback> common_callbacks = {{
    {.name = "on_start"},
    {.name = "on_stop"},
    {.name = "on_tick", .arguments = "ms"},
    {.name = "on_reload", .arguments = "old"},
}};

/// Names of the callbacks of all types, and of caches' scripts: a script may be for several types.
inline constexpr std::array<std::string_view, 24> all_callbacks = {"on_start",
                                                                   "on_stop",
                                                                   "on_tick",
                                                                   "on_reload",
                                                                   "on_auth",
                                                                   "on_connect",
                                                                   "on_client_message",
                                                                   "on_message",
                                                                   "on_disconnect",
                                                                   "on_upstream",
                                                                   "on_upstream_connect",
                                                                   "on_upstream_disconnect",
                                                                   "on_websocket",
                                                                   "on_master_auth",
                                                                   "on_send",
                                                                   "on_http_request",
                                                                   "on_route",
                                                                   "on_proxy_request",
                                                                   "on_proxy_response",
                                                                   "handle",
                                                                   "on_miss",
                                                                   "on_write",
                                                                   "on_delete",
                                                                   "on_expire"};

/// Names of all callbacks of a type with these of its own; none where it has none.
inline std::vector<std::string_view> names_of_callbacks(std::span<const script::callback> own) {
    std::vector<std::string_view> names;
    if (own.empty()) return names;
    for (const script::callback& each : common_callbacks) names.push_back(each.name);
    for (const script::callback& each : own) names.push_back(each.name);
    return names;
}

}  // namespace eddy::runtime
