// Valid client names (CLIENT SETNAME, SETINFO).
#pragma once

#include <string_view>

namespace eddy::cache {

/// Printable ASCII without spaces, so that CLIENT LIST stays readable; also empty.
inline bool is_client_name(std::string_view name) noexcept {
    for (const char each : name) {
        if (each < '!' || each > '~') return false;
    }
    return true;
}

}  // namespace eddy::cache
