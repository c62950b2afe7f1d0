// Jar of a client's cookies (RFC 6265, 5.3 and 5.4), bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::http {

/// Cookies that servers have set, each for the hosts and paths that it belongs to. In memory alone.
/// Beyond a limit the oldest ones go. There is no list of public suffixes: a Domain of a single
/// label, such as "com", is refused, one such as "co.uk" is not, so let one jar serve sites that
/// trust one another. One thread.
class cookie_jar {
public:
    /// Cookies at most.
    static constexpr std::size_t max_cookies = 1000;
    /// Cookies of a domain at most.
    static constexpr std::size_t max_domain_cookies = 50;
    /// Bytes of a cookie's name and value at most; larger ones are dropped.
    static constexpr std::size_t max_cookie_bytes = 4096;

    /// Keeps the cookie of a field Set-Cookie in a response of `host`, which is in lower case, to a
    /// request for `path`. `is_secure`: it came over TLS. `now`: seconds since 1970. Ignores what
    /// the standard requires to be ignored: a Domain that does not contain the host, Secure without
    /// TLS, names with a prefix whose conditions are not met.
    void store(std::string_view set_cookie, std::string_view host, std::string_view path,
               bool is_secure, std::int64_t now);

    /// The value of Cookie for a request; empty without cookies. Parameters as of store().
    std::string value_for(std::string_view host, std::string_view path, bool is_secure,
                          std::int64_t now);

    /// Number of cookies, including any that have expired since the last call.
    std::size_t size() const noexcept { return cookies_.size(); }
    /// Removes all.
    void clear() noexcept { cookies_.clear(); }

private:
    struct cookie {
        std::string name;
        std::string value;
        std::string domain;
        std::string path;
        std::int64_t expires;  // seconds since 1970
        bool is_host_only;
        bool is_secure;
    };
    void make_room(const std::string& domain);
    void drop_expired(std::int64_t now);

    std::vector<cookie> cookies_;  // the oldest first
};

}  // namespace eddy::http
