// Reading of additional values of PROXY headers.
#include "wire/proxy_protocol/client_values.hpp"

#include <cstddef>
#include <utility>

namespace eddy::proxy_protocol {
namespace {

// Flags of the client within tlv_tls, and the bytes before its own values: flags, and four of the
// result of the verification.
constexpr unsigned by_tls = 0x01;
constexpr unsigned certificate_on_connection = 0x02;
constexpr unsigned certificate_in_session = 0x04;
constexpr std::size_t tls_prefix = 5;

void set(std::string& to, std::string_view value) {
    if (to.empty()) to = value;
}

void read_tls(std::string_view value, client_values& into) {
    if (into.has_tls || value.size() < tls_prefix) return;
    const auto flags = static_cast<unsigned char>(value[0]);
    const bool is_valid =
        value.substr(1, tls_prefix - 1).find_first_not_of('\0') == std::string_view::npos;
    std::string_view rest = value.substr(tls_prefix);
    client_values found;
    while (const auto each = take_tlv(rest)) {
        switch (each->type) {
            case tlv_tls_version: set(found.tls_version, each->value); break;
            case tlv_tls_name: set(found.tls_name, each->value); break;
            case tlv_tls_cipher: set(found.tls_cipher, each->value); break;
            default: break;
        }
    }
    if (!rest.empty() || (flags & by_tls) == 0) return;
    into.has_tls = true;
    into.tls_version = std::move(found.tls_version);
    into.tls_cipher = std::move(found.tls_cipher);
    into.tls_name = std::move(found.tls_name);
    into.is_verified =
        is_valid && (flags & (certificate_on_connection | certificate_in_session)) != 0;
}

}  // namespace

client_values read_client_values(std::string_view tlvs) {
    client_values made;
    while (const auto each = take_tlv(tlvs)) {
        switch (each->type) {
            case tlv_alpn: set(made.alpn, each->value); break;
            case tlv_authority: set(made.authority, each->value); break;
            case tlv_unique_id:
                if (each->value.size() <= max_unique_id) set(made.unique_id, each->value);
                break;
            case tlv_tls: read_tls(each->value, made); break;
            default: break;
        }
    }
    return made;
}

}  // namespace eddy::proxy_protocol
