// Request of a handoff: what a web server says about the client that it hands over, in JSON.
#pragma once

#include <eddy/base/result.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime::stream {

/// Objects and arrays of a message within each other, at most.
inline constexpr std::size_t message_depth_limit = 32;
/// Fields that a message adds to the response, at most; further ones are dropped.
inline constexpr std::size_t max_response_headers = 64;
/// Bytes of a text that a source sends as a field of its request (api_key, last_event_id,
/// test_pattern), at most: several of them have room in an http1::header_list.
inline constexpr std::size_t max_field_text = 64 * 1024;

/// Field of the response.
struct response_header {
    std::string name;
    std::string value;

    friend bool operator==(const response_header&, const response_header&) = default;
};

/// Members that a message has; the others are for the source, which gets `message` whole.
struct stream_request {
    std::string message;  ///< the JSON text; empty for a NUL byte
    std::string user_id;  ///< a text, or a number's digits
    std::string prompt;
    std::string messages;  ///< JSON text of the array
    std::string model;
    std::string test_pattern;
    std::string backend;  ///< names with commas between them
    std::string api_key;
    std::string request_id;
    std::string last_event_id;  ///< of the client's header field Last-Event-ID; a text or digits
    std::optional<std::int64_t> max_tokens;
    /// http_version, the version of the client's HTTP request: below 1.1, which has no chunks. 1.1
    /// where the message names none.
    bool is_before_http_1_1 = false;
    bool is_head = false;  ///< request_method is HEAD: the response has no content
    /// Fields of response_headers that a response may have: hop-by-hop fields, fields that frame
    /// the response, and names or values with other bytes than a field may have are dropped.
    std::vector<response_header> headers;
};

/// Reads a message: a JSON object in UTF-8, or nothing, which is an empty request. NUL bytes at its
/// end are no part of it. A half of a surrogate pair alone becomes U+FFFD.
/// errc::malformed for all else, and for a member of another type than it should have;
/// errc::limit_reached for one that nests deeper than message_depth_limit. Any thread.
[[nodiscard]] result<stream_request> read_request(std::string_view message);

/// Headers and is_head of a message that cannot be read, or was cut off, as far as it can be read.
/// For refusals, whose clients need these fields as well. Any thread.
stream_request read_response_terms(std::string_view message);

}  // namespace eddy::runtime::stream
