// Compression of responses with a cache of small results.
#pragma once

#include <eddy/http/compression.hpp>

#include "http/codings/coded_cache.hpp"

namespace eddy::http {

/// As compress_response(), and keeps what a small text with a strong ETag comes to in `results`, by
/// the request's path, the tag and the coding.
void compress_response(const request& incoming, response& answer, const compress_options& options,
                       coded_cache& results);

}  // namespace eddy::http
