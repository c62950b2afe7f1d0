// Hosts of the rarer forms.
#include "wire/http1/authority.hpp"

#include <eddy/base/assert.hpp>

#include <arpa/inet.h>

#include <algorithm>

namespace eddy::http1 {
namespace {

constexpr byte_set future_bytes("-._~!$&'()*+,;=:");

bool is_hex(std::string_view text) noexcept {
    return std::ranges::all_of(text, [](char c) { return hex_value(c) >= 0; });
}

bool is_ipv6(std::string_view text) noexcept {
    char ended[INET6_ADDRSTRLEN] = {};
    // The bytes are checked, since inet_pton() ends at a zero byte.
    const bool is_possible = text.size() < sizeof ended &&
                             text.find_first_not_of("0123456789abcdefABCDEF:.") == text.npos;
    if (!is_possible) return false;
    std::ranges::copy(text, ended);
    in6_addr address;
    return inet_pton(AF_INET6, ended, &address) == 1;
}

/// An address of a later version: "v", its number, ".", and the address.
bool is_future_address(std::string_view text) noexcept {
    if (to_lower(text[0]) != 'v') return false;
    const std::size_t dot = std::min(text.find('.'), text.size());
    const std::string_view version = text.substr(1, dot - 1);
    const std::string_view address = text.substr(std::min(dot + 1, text.size()));
    return !version.empty() && is_hex(version) && !address.empty() && future_bytes.has_all(address);
}

bool is_encoded_name(std::string_view text) noexcept {
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (name_bytes.has(text[at])) continue;
        const std::string_view digits = text.substr(at + 1, 2);
        if (text[at] != '%' || digits.size() != 2 || !is_hex(digits)) return false;
        at += 2;
    }
    return true;
}

}  // namespace

bool is_literal_or_encoded_name(std::string_view host) noexcept {
    EDDY_ASSERT(!host.empty());
    if (!host.starts_with('[')) return is_encoded_name(host);
    if (host.size() < 3 || !host.ends_with(']')) return false;
    const std::string_view literal = host.substr(1, host.size() - 2);
    return is_ipv6(literal) || is_future_address(literal);
}

}  // namespace eddy::http1
