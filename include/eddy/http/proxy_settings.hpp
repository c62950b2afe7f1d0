// Proxies that a client uses, from the environment or by choice.
#pragma once

#include <string>

namespace eddy::http {

/// Proxies of HTTP, each a URL such as "http://name:password@proxy.example:3128"; without a scheme
/// it is one of http. https to a proxy works; SOCKS is errc::unsupported.
struct proxy_settings {
    std::string http;   ///< for http; empty: none
    std::string https;  ///< for https, by CONNECT; empty: none

    /// Hosts that are reached without a proxy, separated by commas: "*" for all, "example.com" for
    /// it and what is below it, with or without a dot before it, each with ":port" for that port
    /// alone; addresses are compared as texts.
    std::string no_proxy;

    /// Settings from the environment: http_proxy, https_proxy or HTTPS_PROXY, all_proxy or
    /// ALL_PROXY for the schemes without one, and no_proxy or NO_PROXY. HTTP_PROXY is never read: a
    /// CGI program has the client's field "Proxy" in it. Must not run while another thread changes
    /// the environment.
    static proxy_settings from_environment();
};

}  // namespace eddy::http
