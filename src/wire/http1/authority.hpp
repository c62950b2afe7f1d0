// Authorities: a host and its port, in the field Host and in targets (RFC 3986, 3.2).
#pragma once

#include "wire/http1/text.hpp"

#include <cstddef>
#include <string_view>

namespace eddy::http1 {

/// Bytes of a name that is not percent-encoded, and of an IPv4 address.
inline constexpr byte_set name_bytes("-._~!$&'()*+,;=");

/// True for the rarer forms of a host: an IPv6 or future address in brackets, and a name with
/// percent-encoded bytes. An IPv6 address has no zone: it means something on one machine alone. The
/// text is not empty.
bool is_literal_or_encoded_name(std::string_view host) noexcept;

/// True for a value of Host: a host, and behind a colon its port, of digits or empty. The host may
/// be empty only without a port (RFC 9112, 3.2). Any thread.
inline bool is_host(std::string_view text) noexcept {
    // From the end: most names end in a letter, and a port is short.
    std::size_t end = text.size();
    while (end > 0 && is_digit(text[end - 1])) --end;
    if (end > 0 && text[end - 1] == ':') {
        if (end == 1) return false;
        text = text.substr(0, end - 1);
    }
    return name_bytes.has_all(text) || is_literal_or_encoded_name(text);
}

/// The same of a target, whose host is never empty.
inline bool is_authority(std::string_view text) noexcept { return !text.empty() && is_host(text); }

}  // namespace eddy::http1
