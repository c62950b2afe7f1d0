// Refusals: why a request about a runtime failed, as a sentence for the user.
#pragma once

#include <expected>
#include <string>
#include <utility>

namespace eddy {

/// Why a request about a runtime failed: shown to the user as it stands, so `message` says what
/// happened, to what, and what to do. `status` is the HTTP status that fits (400, 403, 404, 409,
/// 500, 503).
struct problem {
    int status = 400;
    std::string message;
};

template <class T = void>
using outcome = std::expected<T, problem>;

inline std::unexpected<problem> refuse(int status, std::string message) {
    return std::unexpected(problem{status, std::move(message)});
}

}  // namespace eddy
