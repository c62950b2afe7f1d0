// Errors as values.
//
// Failures of the outside world (a peer resets, a port is taken, a limit is reached) return as a
// result<T>. Our own bugs are assertions (assert.hpp). Exceptions never cross an I/O path.
#pragma once

#if __cplusplus <= 202002L
#error "Eddy needs C++23: compile with -std=c++23, or ask CMake for cxx_std_23."
#endif

#include <cerrno>
#include <expected>
#include <system_error>

/// The library. Sub-namespaces hold what belongs together by its protocol.
namespace eddy {

/// Errors of Eddy's own, beside the operating system's in std::generic_category().
enum class errc {
    cancelled = 1,              ///< the operation was cancelled by its scope or its caller
    timed_out,                  ///< a deadline passed first
    end_of_stream,              ///< the peer has finished sending
    closed,                     ///< the object was closed on this side
    limit_reached,              ///< a named limit was reached; nothing was changed
    no_buffers,                 ///< so many receive buffers are lent that there may be no more
    malformed,                  ///< the bytes do not follow their format
    bad_address,                ///< an address or URI could not be understood
    unsupported,                ///< known, but not available in this build or on this kernel
    name_not_found,             ///< the resolver knows no such host
    resolver_failed,            ///< the resolver could not answer
    truncated,                  ///< the connection ended where the protocol does not allow it
    not_tls,                    ///< the peer does not speak TLS
    handshake_failed,           ///< TLS: the peer broke the protocol, or gave up
    untrusted_certificate,      ///< TLS: no trusted authority signed the peer's certificate
    certificate_name_mismatch,  ///< TLS: the certificate is for another name
    certificate_expired,        ///< TLS: the certificate is not valid today
    certificate_refused,        ///< TLS: the peer does not accept our certificate, or wants one
    no_common_protocol,         ///< TLS: no version, cipher or application protocol suits both
    unusable_certificate,       ///< TLS: our own certificate, key, CAs or ciphers cannot be used
};

/// The category of eddy::errc; its messages are full sentences' ends ("the peer closed ...").
const std::error_category& error_category() noexcept;

/// Makes an errc comparable with, and convertible to, a std::error_code.
inline std::error_code make_error_code(errc e) noexcept {
    return {static_cast<int>(e), error_category()};
}

/// A value, or the error code that says why there is none. One thread at a time, as any value;
/// codes, categories and the functions of this header may be used by any thread.
template <class T = void>
using result = std::expected<T, std::error_code>;

namespace detail {
template <class T>
inline constexpr bool is_result = false;
template <class T>
inline constexpr bool is_result<result<T>> = true;
}  // namespace detail

/// The failing half of a result: `return fail(errc::closed);`.
inline std::unexpected<std::error_code> fail(std::error_code e) noexcept {
    return std::unexpected(e);
}
/// The same for one of the system's: `return fail(std::errc::message_size);`.
inline std::unexpected<std::error_code> fail(std::errc e) noexcept {
    return std::unexpected(std::make_error_code(e));
}
/// The same for an error of Eddy's own.
inline std::unexpected<std::error_code> fail(errc e) noexcept {
    return std::unexpected(make_error_code(e));
}

/// `number` is an errno value, positive.
inline std::error_code errno_code(int number) noexcept { return {number, std::generic_category()}; }
/// The same for an errno value, by default that of the last system call.
inline std::unexpected<std::error_code> fail_errno(int number = errno) noexcept {
    return std::unexpected(errno_code(number));
}

}  // namespace eddy

template <>
struct std::is_error_code_enum<eddy::errc> : std::true_type {};
