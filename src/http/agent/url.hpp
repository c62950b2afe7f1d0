// URLs of http and https (RFC 9110, 4.2), and the references in Location that are resolved by them
// (RFC 3986, 5.2).
#pragma once

#include <eddy/base/result.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace eddy::http {

/// A URL, taken apart. Any thread.
struct url {
    bool is_secure = false;  ///< https
    std::string host;        ///< in lower case, without brackets; may end in a zone (%eth0)
    std::uint16_t port = 80;
    std::string target = "/";  ///< path and query, as sent
    std::string user;          ///< "name:password", decoded; empty for none

    /// errc::bad_address for what is no URL of http or https. A fragment is dropped; bytes beyond
    /// ASCII and spaces are percent-encoded.
    [[nodiscard]] static result<url> parse(std::string_view text);

    /// The URL that a reference in a document at this one stands for. It has no user but one of its
    /// own. errc::bad_address as above.
    [[nodiscard]] result<url> resolve(std::string_view reference) const;

    /// The value of Host: without the scheme's usual port, and without a zone, which means
    /// something on this machine alone.
    std::string authority() const;
    /// "host:port", as CONNECT has it; without a zone.
    std::string host_and_port() const;
    /// The target of a request to a proxy (RFC 9112, 3.2.2); without user and zone.
    std::string absolute_form() const;
    /// The path of the target.
    std::string_view path() const noexcept;
    /// The URL again, without its user.
    std::string to_string() const;

    bool has_origin_of(const url& other) const noexcept {
        return is_secure == other.is_secure && host == other.host && port == other.port;
    }
};

}  // namespace eddy::http
