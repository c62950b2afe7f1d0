// Routes: which backends a request goes to, by its host and path.
#pragma once

#include <eddy/base/result.hpp>

#include "proxy/balancer.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::proxy {

/// Routes of a proxy at most.
inline constexpr std::size_t max_routes = 256;

/// A route. One with a redirection has no backends.
struct route {
    std::string host;  ///< lower case, without a port; "*.example.org" for names below; empty: all
    std::string path = "/";  ///< prefix of whole segments: "/api" is for "/api" and "/api/x"
    /// In the place of the prefix in the forwarded target, such as "/"; none: it stays.
    std::optional<std::string> prefix = std::nullopt;
    std::shared_ptr<balancer> to = nullptr;
    /// URL that the target is appended to, with the request's host, without its port, in the place
    /// of "$host"; empty: none.
    std::string redirect = {};
    int redirect_status = 308;
};

/// The routes in force, constant. Any thread.
class route_table {
public:
    explicit route_table(std::vector<route> all);

    /// The most specific route of a host, in any case and with or without a port, and a path: an
    /// exact host before names below, the longer name before the shorter one, any host last; then
    /// the longest path. Null for none.
    ///
    /// The path counts as a backend would read it: its dot segments are resolved, and bytes that
    /// need no percent-encoding are decoded.
    const route* find(std::string_view host, std::string_view path) const;

    const std::vector<route>& all() const noexcept { return all_; }

private:
    std::vector<route> all_;  // the most specific one first
};

/// Routes by a name that a script may give, such as that of a backend.
using named_routes = std::map<std::string, route, std::less<>>;

/// True if the path, as a backend would read it, is below the route's.
bool is_below(const route& of, std::string_view path);

/// True if a route's host is for this one, which is in lower case and has no port.
bool matches_host(std::string_view of_route, std::string_view host) noexcept;

/// Greater for a route's host that is more specific: an exact one before names below, the longer
/// name before the shorter one, any host last. Different hosts of equal specificity match different
/// hosts.
std::pair<int, std::size_t> host_specificity(std::string_view of_route) noexcept;

/// A path as its reader resolves it: percent-encoded bytes decoded, dot segments and empty segments
/// resolved (RFC 3986, 5.2.4).
std::string resolved_path(std::string_view path);

/// The target that is forwarded by a route: the prefix of its path replaced. errc::malformed where
/// the path has the prefix only once it is resolved.
[[nodiscard]] result<std::string> forwarded_target(const route& by, std::string_view path,
                                                   std::string_view query);

}  // namespace eddy::proxy
