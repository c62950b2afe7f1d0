// Base64 (RFC 4648, 4).
#pragma once

#include <string>
#include <string_view>

namespace eddy {

/// The bytes as four characters for three bytes, padded with "=".
std::string base64(std::string_view bytes);

}  // namespace eddy
