// Cookies of a server (RFC 6265): reader of a client's cookies, and writer of the field that sets
// one.
#pragma once

#include <eddy/base/result.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace eddy::http {

/// A cookie as a client sends it; views of its Cookie field.
struct cookie_pair {
    std::string_view name;   ///< as it was sent
    std::string_view value;  ///< without quotes around it; not decoded
};

/// Walks the cookies of one Cookie field's value in their order (RFC 6265, 5.4). Browsers send what
/// the grammar does not have, so that is read, too: any byte but ';' may stand in a value, and a
/// part without '=' is skipped. Views the text until its last use. One thread.
class cookie_reader {
public:
    /// `field` is the value of a Cookie field.
    explicit cookie_reader(std::string_view field) noexcept : rest_(field) {}

    /// The next cookie; none at the end.
    std::optional<cookie_pair> next() noexcept;

private:
    std::string_view rest_;
};

/// Requests from other sites that a browser sends a cookie with (RFC 6265bis, 5.6.7).
enum class same_site_policy : unsigned char {
    unset,   ///< as the browser's default is
    none,    ///< all; needs Secure
    lax,     ///< requests that open the site at the top of a window by a safe method
    strict,  ///< none
};

/// A cookie to set. Its defaults are the safe ones for a session: not seen by scripts, not sent
/// with other sites' requests, for the whole site. Set `secure` on any site that has TLS.
struct cookie {
    /// A token. "__Secure-" and "__Host-" before it bind it to TLS, and the second to one host.
    std::string name;
    /// Visible ASCII without '"', ',', ';' and '\'; http1::percent_encode() makes that of any
    /// text.
    std::string value;
    /// The paths that it is sent to: this one and those below it. Begins with '/'.
    std::string path = "/";
    /// Sent to this domain and all below it; empty: to the host that set it alone.
    std::string domain = {};
    /// Lifetime; zero removes it. Without this and `expires`: until the browser ends.
    std::optional<std::chrono::seconds> max_age = std::nullopt;
    /// The second since 1970, UTC, at which it ends, for old clients. max_age takes precedence.
    std::optional<std::int64_t> expires = std::nullopt;
    bool secure = false;    ///< sent over TLS alone
    bool http_only = true;  ///< hidden from the page's scripts

    same_site_policy same_site = same_site_policy::lax;  ///< requests of other sites that have it

    bool partitioned = false;  ///< kept apart for each site that embeds this one; needs `secure`
};

/// Bytes of a name with its value, and of each attribute, that browsers keep (RFC 6265bis, 5.6).
inline constexpr std::size_t cookie_size_limit = 4096;

/// The value of the Set-Cookie field (RFC 6265, 4.1.1). errc::malformed for bytes that may not
/// stand where they do, and for what browsers would drop: SameSite=None, Partitioned or "__Secure-"
/// without `secure`, "__Host-" with a domain or another path than "/"; errc::limit_reached for more
/// than cookie_size_limit. Any thread.
[[nodiscard]] result<std::string> format_cookie(const cookie& set);

}  // namespace eddy::http
