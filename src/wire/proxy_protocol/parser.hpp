// Parser of PROXY protocol headers, of both versions.
#pragma once

#include <eddy/base/result.hpp>

#include "wire/proxy_protocol/header.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace eddy::proxy_protocol {

/// Reads one header that arrives in pieces; the result does not depend on how it was cut. A reader
/// that takes at most wanted() bytes from its connection each time reads nothing behind the header.
///
/// The header keeps the connection's own addresses where it has none for TCP or UDP over IP: LOCAL,
/// UNKNOWN, an unspecified family, and Unix sockets. One thread.
class parser {
public:
    parser() noexcept;

    /// Takes bytes up to the end of the header, and returns how many. errc::malformed as soon as
    /// that is known, and in each later call; errc::limit_reached beyond max_content.
    [[nodiscard]] result<std::size_t> feed(std::string_view piece);

    /// So many bytes are missing at least; 0 once the header is complete, or has failed.
    std::size_t wanted() const noexcept { return wanted_; }
    bool is_complete() const noexcept { return is_complete_; }
    /// True once a byte was taken.
    bool has_begun() const noexcept { return !text_.empty(); }

    // A complete header has:

    /// None: the connection's own addresses stay.
    const std::optional<addresses>& found() const noexcept { return found_; }
    /// TLVs of version 2, checked, for take_tlv(); empty where the header keeps the connection's
    /// own addresses. Valid as long as this object.
    std::string_view tlvs() const noexcept;

private:
    result<> advance();
    result<> read_line();
    result<> read_fields();
    std::size_t least_rest() const noexcept;
    result<> read_prefix();
    result<> read_content();
    result<> check_tlvs() const;

    std::string text_;  // of the header, at most binary_prefix + max_content
    std::size_t wanted_;
    std::size_t tlvs_at_ = 0;  // in text_; 0: none
    bool is_complete_ = false;
    std::error_code failure_;
    std::optional<addresses> found_;
};

}  // namespace eddy::proxy_protocol
