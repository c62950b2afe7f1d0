// Content codings (RFC 9110, 8.4) of messages: gzip, deflate, br and zstd. Responses are compressed
// by Accept-Encoding; received content is decoded, with limits on its expansion.
//
//     http::router api;
//     api.use(http::compress()).use(http::decompress());
#pragma once

#include <eddy/http/request.hpp>
#include <eddy/http/response.hpp>
#include <eddy/http/router.hpp>

#include <cstddef>
#include <cstdint>

namespace eddy::http {

/// Options of compress().
struct compress_options {
    /// Content that is known to have fewer bytes is sent as it is.
    std::size_t min_bytes = 1024;
};

/// Compresses the content of `answer`, the response to `incoming`, if the client accepts it: by the
/// coding of the highest quality in Accept-Encoding, zstd before br, gzip and deflate among equal
/// ones. Compressed types are the ones that usually shrink: texts, JSON, JavaScript, XML, SVG,
/// WebAssembly, fonts and bitmaps without compression of their own. Left as they are: content with
/// a Content-Encoding already, a range of it (206), "Cache-Control: no-transform", fewer bytes than
/// the least, and responses to HTTP/1.0, which has no chunks.
///
/// It sets Content-Encoding, adds "Vary: Accept-Encoding" also where it chooses no coding, makes a
/// strong ETag weak (RFC 9110, 8.8.3.3), and removes Accept-Ranges. A text of at most 16 KiB is
/// compressed at once; other content while it is sent, 16 KiB at a time, between which the loop
/// does other work. Each write of a producer can be decoded once it returns, so events are not
/// delayed. Memory: 256 KiB for gzip and deflate, 1.5 MiB for br, 2 MiB for zstd, less for content
/// of a known smaller size, until the response has been sent. Throws std::bad_alloc. The loop's
/// thread.
void compress_response(const request& incoming, response& answer,
                       const compress_options& options = {});

/// Middleware that compresses responses by compress_response().
router::middleware compress(compress_options options = {});

/// Limits on how much a peer's content may expand, beside that on its decoded size.
struct expansion_limits {
    /// Decoded bytes for each encoded one; 1 or more. Beyond it the content is too large.
    std::uint32_t ratio = 200;
    /// Decoded bytes that are exempt from the ratio.
    std::uint64_t free_bytes = 1024 * 1024;
};

/// Options of decompress().
struct decompress_options {
    /// Limits beside that on the request's body, which bounds the encoded content and the decoded
    /// one.
    expansion_limits expansion = {};
};

/// Middleware that decodes the content of requests in gzip, deflate, br or zstd: the handler reads
/// it decoded, and finds Content-Encoding in the fields nevertheless. One coding that is unknown,
/// or more than one, is answered by 415 with Accept-Encoding; damaged content by 400, and content
/// beyond a limit by 413, whatever the handler returns then. Memory: windows of 32 KiB for gzip and
/// deflate, 8 MiB for zstd, 16 MiB for br, and 64 KiB of content.
router::middleware decompress(decompress_options options = {});

}  // namespace eddy::http
