// Target of a request: its parts, percent-encoding and query parameters.
#pragma once

#include <eddy/base/result.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace eddy::http1 {

/// The four forms of RFC 9112 (3.2).
enum class target_form : unsigned char {
    origin,     ///< /path?query
    absolute,   ///< http://host/path?query, as sent to a proxy
    authority,  ///< host:port, with CONNECT only
    asterisk,   ///< *, with OPTIONS only
};

/// A request's target, taken apart; nothing is decoded. Views into the text that was split.
struct target_parts {
    /// Its form.
    target_form form = target_form::origin;
    std::string_view scheme;     ///< of the absolute form
    std::string_view authority;  ///< of the absolute and the authority form
    std::string_view path;  ///< begins with '/'; empty or "/" may stand for an absolute form's root
    std::string_view query;  ///< behind '?', without it
};

/// Takes a target apart. errc::malformed when it has none of the four forms, holds a byte that no
/// target may hold (spaces, control bytes, '#', beyond ASCII), names a user, has a malformed
/// authority, or has a form that does not go with the method. An authority is a name, an IPv4
/// address or an IPv6 address in brackets without a zone, and a port (RFC 3986, 3.2.2).
[[nodiscard]] result<target_parts> split_target(std::string_view method,
                                                std::string_view target) noexcept;

/// Replaces each %xx by its byte. errc::malformed when a '%' lacks its two hexadecimal digits. The
/// result may hold any byte: a caller that makes a file's name of it must check for '/' and NUL.
[[nodiscard]] result<std::string> percent_decode(std::string_view text);

/// Writes everything but letters, digits and -._~ as %XX, so that it fits one segment of a path
/// or one part of a query.
std::string percent_encode(std::string_view text);

/// A decoded name=value of a query.
struct query_parameter {
    /// Decoded.
    std::string name;
    /// Decoded; empty without a '='.
    std::string value;
};

/// Walks the parameters of a query, or of a form body, in their order:
///
///     http1::query_reader reader(parts.query);
///     while (auto parameter = reader.next()) use(parameter->name, parameter->value);
///     if (reader.malformed()) return bad_request();
///
/// '+' is a space; a name without '=' has an empty value; empty parts (a=1&&b=2) are skipped. Views
/// the query until its last use. One thread. The functions of this header: any thread.
class query_reader {
public:
    /// `query` is without its '?'.
    explicit query_reader(std::string_view query) noexcept : rest_(query) {}

    /// The next parameter; none at the end and at a malformed percent-encoding.
    std::optional<query_parameter> next();

    /// True if next() ended at malformed text.
    bool malformed() const noexcept { return malformed_; }

private:
    std::string_view rest_;
    bool malformed_ = false;
};

}  // namespace eddy::http1
