// Choice among the addresses of a runtime.
#include "runtime/host/local_address.hpp"

#include <fmt/format.h>

namespace eddy::runtime {
namespace {

using transport::scheme;

/// Order in which the addresses are preferred; negative: it is not taken.
int rank(const transport::address& of) noexcept {
    switch (of.kind) {
        case scheme::tcp: return 3;
        case scheme::unix_socket: return 2;
        case scheme::shm: return 1;
        case scheme::tls: return 0;
        case scheme::udp:
        case scheme::handoff: break;
    }
    return -1;
}

}  // namespace

outcome<transport::address> find_local_address(const host& daemon, std::string_view target,
                                               std::string_view self) {
    const auto served = daemon.resolve(target);
    if (!served) return std::unexpected(served.error());
    const served_address* best = nullptr;
    for (const served_address& each : *served)
        if (!each.is_remote && each.runtime != self && rank(each.where) >= 0 &&
            (best == nullptr || rank(each.where) > rank(best->where)))
            best = &each;
    if (best == nullptr)
        return refuse(404, fmt::format("\"{}\" has no address here: it must run, be another "
                                       "runtime, and serve streams",
                                       target));
    transport::address where = best->where;
    // This daemon has the port, so no other program answers there.
    if (where.kind == scheme::tls) where.tls.verify = "none";
    return where;
}

}  // namespace eddy::runtime
