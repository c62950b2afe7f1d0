// Backend source: what an option names as a backend, and the addresses that it stands for now.
#pragma once

#include <eddy/transport/transport.hpp>

#include "base/problem.hpp"
#include "proxy/balancer.hpp"
#include "proxy/followed_masters.hpp"
#include "proxy/followed_names.hpp"
#include "runtime/host/host.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime::proxy {

/// An address; a service in DNS; a master that Sentinels watch; or the name of a runtime of this
/// daemon, a pattern of names or "@" and a group.
struct backend_source {
    std::string name;                         ///< as it was written, without its weight
    std::optional<transport::address> where;  ///< of an address
    std::uint32_t weight = 1;
    bool is_backup = false;
    std::string service = {};  ///< name of its SRV records, such as "_http._tcp.example.org"
    std::string master = {};   ///< as Sentinels name it: "cache" of "@cache-master"

    /// True for names of runtimes.
    bool is_runtime() const noexcept { return !where && service.empty() && master.empty(); }
    /// Host of its address, if that is to be looked up in DNS; else empty.
    std::string_view host() const noexcept;

    friend bool operator==(const backend_source&, const backend_source&) = default;
};

/// Reads backends joined by commas, each with "*WEIGHT" behind it where that is not 1. The refusal
/// says what is wrong with `flag`, such as "--backend".
/// HOST:PORT is an address of `carrier`: of TCP, where other schemes with streams are taken, too,
/// or of UDP alone.
outcome<std::vector<backend_source>> read_sources(
    std::string_view text, std::string_view flag,
    transport::scheme carrier = transport::scheme::tcp);

/// Makes masters of the sources "@NAME-master". The refusal says which name no Sentinel can have.
outcome<> name_masters(std::vector<backend_source>& sources, std::string_view flag);

/// Addresses that are followed; null for none.
struct followed_addresses {
    const eddy::proxy::followed_names* names = nullptr;
    const eddy::proxy::followed_masters* masters = nullptr;
};

/// The backends of the sources as they are now, at most max_backends. Groups have the runtimes of
/// other members of the cluster, too, as MEMBER/NAME. Runtimes have the name of
/// theirs, and the one called `self` is none, since it would pass clients to itself; of several
/// addresses of one, TCP counts before Unix sockets, shared memory and TLS. With UDP as the carrier
/// only addresses of UDP count. With TLS, of clients whose bytes are encrypted already, a runtime's
/// address of TLS counts first, for connections without another TLS. Each address of a host in DNS
/// is a backend, with the host's URI, "/" and the address as its name, and so is a master, with
/// that of its source, "/", host and port; `known` has them. Those whose name, or whose source, is
/// in `drained` are drained. With `is_local_first` runtimes of other members are backups.
std::vector<eddy::proxy::wanted_backend> resolve(
    const std::vector<backend_source>& sources, const host& daemon, std::string_view self,
    followed_addresses known, const std::vector<std::string>& drained, bool is_local_first = false,
    transport::scheme carrier = transport::scheme::tcp);

}  // namespace eddy::runtime::proxy
