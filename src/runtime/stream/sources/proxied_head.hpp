// Heads of proxied responses: which fields of a source's response a client gets, and how the
// content is framed for it.
#pragma once

#include <eddy/wire/http1.hpp>

#include "runtime/stream/stream_request.hpp"

#include <string>
#include <string_view>

namespace eddy::runtime::stream {

/// A head, and the framing of the content behind it, by which the client notices that the content
/// broke off: none behind 204, 304 and responses to HEAD; the source's Content-Length; chunks; for
/// clients that have none the end of the connection.
struct proxied_head {
    std::string text;
    http1::body_framing::kind framing = http1::body_framing::kind::none;
};

/// Head of the response to `to` for a source's response. It has the source's fields without
/// hop-by-hop fields (RFC 9110 7.6.1) and without commands to a web server before the client
/// (X-Accel-*, X-Sendfile). The fields of `to` come in place of the source's of the same name, but
/// for Set-Cookie, of which the client gets all.
proxied_head make_proxied_head(int status, const http1::header_list& fields,
                               const stream_request& to);

/// A chunk of that content; empty for none.
std::string chunk_of(std::string_view content);
/// The end of content in chunks.
inline constexpr std::string_view last_chunk = "0\r\n\r\n";
/// The end of content in chunks that broke off: no chunk, so that every parser fails. That the last
/// chunk is missing is not enough for Node's fetch() (undici): behind "Connection: close" it takes
/// each end of the connection, also a reset, for the end of the content.
inline constexpr std::string_view broken_chunk = "The content broke off.\r\n\r\n";

}  // namespace eddy::runtime::stream
