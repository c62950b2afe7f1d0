// Steps that the readers of whole bodies share: faults, the check of the type, and the text.
#pragma once

#include <eddy/http/request.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace eddy::http {

/// Declares a fault of the request. Yields its error: errc::limit_reached for 413,
/// errc::unsupported for 415, else errc::malformed. `what` must always live.
std::error_code declare_fault(request& incoming, int status, std::string_view what) noexcept;

/// The value of Content-Type; empty where it is missing.
std::string_view content_type_of(const request& incoming) noexcept;

/// The whole body, of at most `limit` bytes, or what collect() has read of it before. Yields a
/// result<std::string>; errors as of request::collect(). The request must live until then.
task<result<std::string>> take_text(request& incoming, std::optional<std::uint64_t> limit);

}  // namespace eddy::http
