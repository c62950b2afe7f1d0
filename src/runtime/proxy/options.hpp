// Options of `eddy create proxy`, as a table and as what the proxy works with.
#pragma once

#include <eddy/http/session.hpp>
#include <eddy/io/timer.hpp>
#include <eddy/transport/transport.hpp>

#include "base/problem.hpp"
#include "proxy/balancer.hpp"
#include "proxy/followed_masters.hpp"
#include "proxy/health.hpp"
#include "proxy/http/forwarder.hpp"
#include "runtime/logs/access_log.hpp"
#include "runtime/options/bound_options.hpp"
#include "runtime/options/option.hpp"
#include "runtime/options/settings.hpp"
#include "runtime/proxy/backend_source.hpp"
#include "runtime/proxy/error_page_source.hpp"
#include "runtime/proxy/route_source.hpp"
#include "runtime/scripting/script_rows.hpp"
#include "runtime/serving/serving_config.hpp"
#include "wire/proxy_protocol/writer.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace eddy::runtime::proxy {

/// Unit of forwarding.
enum class protocol : std::uint8_t {
    tcp,   ///< the bytes of each connection
    http,  ///< requests and responses
};

/// Checked and converted. The keepalive of `rules` is that of backends, too.
struct config : serving_config {
    protocol speaks = protocol::tcp;
    std::vector<backend_source> backends;   ///< 1 to max_backends, all different
    std::vector<backend_source> backups;    ///< the same, for want of them
    std::vector<std::string> drained;       ///< names of backends
    bool is_local_first = false;            ///< runtimes of other members are backups
    std::string name_servers;               ///< as resolver_options::servers; empty: the system's
    eddy::proxy::sentinel_group sentinels;  ///< of the masters among backends; empty: none are
    eddy::proxy::balancing balance;
    eddy::proxy::health_rules health;
    eddy::proxy::hash_source hashed_by;
    duration connect_timeout{};  ///< of one backend
    duration idle_timeout{};     ///< of a tunnel; 0: none
    /// PROXY header with which a tunnel's connection to its backend begins.
    std::optional<proxy_protocol::version> announces = {};
    std::uint64_t max_connections = 0;

    /// Backends, then backups.
    std::vector<backend_source> all_backends() const {
        std::vector<backend_source> all = backends;
        all.insert(all.end(), backups.begin(), backups.end());
        return all;
    }
    /// True if it passes on datagrams of UDP.
    bool has_datagrams() const noexcept { return where.kind == transport::scheme::udp; }
    transport::scheme carrier() const noexcept {
        return has_datagrams() ? transport::scheme::udp : transport::scheme::tcp;
    }

    /// Besides the one of `backends`: of HTTP, or else of TLS that is not decrypted.
    std::vector<route_source> routes;

    // HTTP alone:
    std::vector<route_source> redirects;  ///< without backends
    bool https_redirect = false;
    std::vector<error_page_source> error_pages;
    eddy::http::session_limits limits;
    eddy::proxy::forwarding_rules forwarding;
    std::string access_log;  ///< empty: none
    access_format format = access_format::common;
    script_config script;
};

/// Rows of the options, in the order of help.
const bound_options<config>& option_rows();
outcome<config> read_config(const settings& chosen);
/// True when a connection to `backend` would come back to a proxy at `where` without end, as far as
/// the texts of the addresses show.
bool is_itself(const transport::address& backend, const transport::address& where);
/// Checks that the files which backends and Sentinels of TLS need can be read now. The refusal
/// names the file.
outcome<> check_files(const config& of);

}  // namespace eddy::runtime::proxy
