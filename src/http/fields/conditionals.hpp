// Conditional requests (RFC 9110, 13): the preconditions of a request against the validators of
// what it would get.
#pragma once

#include <eddy/wire/http1/headers.hpp>

#include <cstdint>
#include <string_view>

namespace eddy::http {

/// Validators of a representation that exists.
struct validators {
    std::string_view etag;      ///< as in the field ETag; empty for none
    std::int64_t modified = 0;  ///< seconds since 1970
    std::int64_t now = 0;       ///< the same
};

/// Outcome of a request's preconditions.
enum class precondition : std::uint8_t {
    holds,         ///< perform the method
    not_modified,  ///< 304
    failed,        ///< 412
};

/// Evaluates If-Match, If-Unmodified-Since, If-None-Match and If-Modified-Since in the order of
/// RFC 9110 (13.2.2). `reads`: the method is GET or HEAD. A date that is malformed or comes several
/// times is ignored. Any thread.
precondition evaluate_preconditions(const http1::header_list& fields, const validators& of,
                                    bool reads) noexcept;

/// True if the request's Range applies: it has no If-Range, or one that names these validators
/// strongly. A date is strong a second after it. Several If-Range name none. Any thread.
bool is_range_wanted(const http1::header_list& fields, const validators& of) noexcept;

}  // namespace eddy::http
