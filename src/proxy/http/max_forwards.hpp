// Max-Forwards: the limit on the proxies that a TRACE or OPTIONS request passes (RFC 9110, 7.6.2).
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/http/response.hpp>
#include <eddy/wire/http1.hpp>

#include <cstdint>
#include <optional>

namespace eddy::proxy {

/// The proxies that the request may still pass, this one among them; none where the field has no
/// effect: with other methods, and without it. A greater number than fits counts as the greatest.
/// errc::malformed for a field that is no number, and for several.
[[nodiscard]] result<std::optional<std::uint32_t>> max_forwards_of(const http1::request_head& head);

/// The answer of the final recipient, which the proxy is at 0: to TRACE the request as it came,
/// without its credentials and cookies (RFC 9110, 9.3.8); to OPTIONS an empty one.
http::response answer_as_recipient(const http1::request_head& head);

}  // namespace eddy::proxy
