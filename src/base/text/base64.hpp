// Base64 (RFC 4648, 4).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace eddy {

/// The bytes as four characters for three bytes, padded with "=".
std::string base64(std::string_view bytes);
/// The bytes of such a text, also without its padding; nothing for another text.
std::optional<std::string> bytes_of_base64(std::string_view text);

}  // namespace eddy
