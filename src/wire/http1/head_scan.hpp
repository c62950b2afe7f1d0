// One-pass scan of a head that has arrived whole: classes of 64 bytes at a time as bit masks, and
// the parts of the head as offsets.
#pragma once

#include <eddy/wire/http1/headers.hpp>

#include "wire/http1/text.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace eddy::http1 {

/// Fields that decide about framing, the connection or a request's validity.
enum class field_kind : unsigned char {
    other,
    connection,
    content_length,
    expect,
    host,
    transfer_encoding,
    upgrade,
};

/// The kind of a field by its name, which must be a token.
inline field_kind kind_of(std::string_view name) noexcept {
    const auto is = [name](std::string_view lower) { return is_token_in_lower_case(name, lower); };
    if (name.size() == 4) return is("host") ? field_kind::host : field_kind::other;
    switch (name.size()) {
        case 6: return is("expect") ? field_kind::expect : field_kind::other;
        case 7: return is("upgrade") ? field_kind::upgrade : field_kind::other;
        case 10: return is("connection") ? field_kind::connection : field_kind::other;
        case 14: return is("content-length") ? field_kind::content_length : field_kind::other;
        case 17: return is("transfer-encoding") ? field_kind::transfer_encoding : field_kind::other;
        default: return field_kind::other;
    }
}

/// Parts of a head. Its memory is uninitialised until a scan has succeeded.
struct head_scan {
    using field = header_list::entry;

    /// A head with more fields is left to the line parser.
    static constexpr std::size_t field_limit = 64;
    /// The longest head that is scanned; a longer one is left to the line parser.
    static constexpr std::size_t size_limit = header_list::size_limit;

    std::size_t method_size;   // of a request: the method is the head's beginning,
    std::size_t target_size;   // and the target follows it and a space
    unsigned minor_version;    // of a request
    std::size_t fields_at;     // the first byte behind the start line's CRLF
    std::size_t fields_size;   // all field lines and the blank one with their CRLFs
    std::size_t field_count;   // valid elements of `fields`
    std::uint64_t candidates;  // fields that kind_of() may know, the first the highest bit
    std::array<field, field_limit> fields;  // offsets from fields_at
};

/// Implementations of the scan.
enum class scan_kernel : unsigned char { plain, avx2 };

/// True if this processor supports the kernel.
bool has_kernel(scan_kernel kernel) noexcept;

/// Scans a request's head at the beginning of `input`. False when it is not whole, is not
/// well-formed or exceeds a limit of head_scan: the line parser then decides, so no error is
/// reported here. Verified: token rules, CRLF, the version's form, the target's bytes (not its
/// form), the fields' bytes. It uses the fastest kernel.
bool scan_request(std::string_view input, head_scan& out) noexcept;
/// The same with a kernel that the processor must have, for tests.
bool scan_request_with(scan_kernel kernel, std::string_view input, head_scan& out) noexcept;

/// The same for field lines and the blank line behind them, from `at` on.
bool scan_fields(std::string_view input, std::size_t at, head_scan& out) noexcept;
/// The same with a kernel that the processor must have, for tests.
bool scan_fields_with(scan_kernel kernel, std::string_view input, std::size_t at,
                      head_scan& out) noexcept;

}  // namespace eddy::http1
