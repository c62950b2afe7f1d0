// Functions for scripts that change a daemon's runtimes.
#pragma once

#include <string_view>

namespace eddy::script {

/// Defines in Lua `eddy.create()`, `start()`, `stop()`, `reload()`, `remove()`, `edit()`, `send()`,
/// `show()`, `list()` and `stats()`, and the declarative `daemon{…}` and `runtimes{…}`. Behind a
/// library `control` with a function request(method, target, body), whose results are a status of
/// HTTP and a text, or nil and why the daemon cannot be asked; with a field is_within, send() is
/// send_to(), and with a text `refusal` each call fails with it.
std::string_view control_prelude() noexcept;

}  // namespace eddy::script
