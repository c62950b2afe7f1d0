// Text of a JSON body, checked as far as that goes without a parser: for json.hpp, and for programs
// with a parser of another library.
//
//     auto text = co_await http::read_json_text(request);
//     if (!text) co_return http::response();
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/http/request.hpp>
#include <eddy/io/task.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace eddy::http {

/// Limits on a JSON body.
struct json_limits {
    /// Bytes of the body, 413; none: the session's limit.
    std::optional<std::uint64_t> bytes = std::nullopt;
    std::size_t depth = 64;  ///< arrays and objects within each other, 400
};

/// Reads a body of Content-Type application/json, or application/...+json, which must not have been
/// read in part. Yields a result<std::string>, which may still be no JSON. Fails with
/// errc::unsupported for another type (415), errc::malformed when it nests too deep (400), and as
/// request::collect(). After all of these the session answers by itself, whatever the handler
/// returns. The request must live until then. The loop's thread.
task<result<std::string>> read_json_text(request& incoming, json_limits limits);
/// The same with the default limits. Yields and fails as the other one; the request must live until
/// then.
task<result<std::string>> read_json_text(request& incoming);

/// Declares the text that was read to be no JSON: the session answers 400. Returns errc::malformed.
std::error_code refuse_json(request& incoming) noexcept;

}  // namespace eddy::http
