// Response by a representation: conditions, ranges and fields; its content follows.
#pragma once

#include <eddy/http/request.hpp>
#include <eddy/http/response.hpp>

#include "http/files/file_body.hpp"
#include "http/files/media_types.hpp"
#include "http/files/representation.hpp"

#include <string_view>
#include <vector>

namespace eddy::http {

/// A response whose body, where it has one, is still to be made.
struct file_response {
    response head;
    bool has_content = false;      ///< of the representation: `parts`
    std::vector<body_part> parts;  ///< of the body, in the representation's content
};

/// The response to GET or HEAD: 200, 206, 304, 412 or 416 (RFC 9110, 13.2.2). `varies`: other
/// codings could have been chosen by Accept-Encoding. `cache_control` is the value of that field;
/// empty for none. `now` is in seconds since 1970. Any thread.
file_response respond_with(const request& incoming, const representation& chosen,
                           const media_type& type, bool varies, std::string_view cache_control,
                           std::int64_t now);

/// A response that is one line of text, the status's reason.
response plain_response(int status);

}  // namespace eddy::http
