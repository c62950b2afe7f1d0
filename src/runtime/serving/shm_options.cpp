// Options of shared memory: reading, and the name that follows from a port.
#include "runtime/serving/shm_options.hpp"

#include "transport/shm_path.hpp"

#include <fmt/format.h>

#include <utility>

namespace eddy::runtime {

using transport::scheme;

std::vector<option> shm_options() {
    return {
        {.name = "shm",
         .kind = option_kind::flag,
         .help = "also serve programs of this machine over shared memory, at shm://:PORT (the name "
                 "@eddy-shm-UID-PORT) or --shm-path; only of the daemon's user and root"},
        {.name = "shm-path",
         .value_name = "PATH",
         .help = "with --shm: its Unix socket, or @NAME, instead of shm://:PORT",
         .is_path = true,
         .is_socket = true},
    };
}

outcome<std::optional<transport::address>> read_shm(const settings& chosen,
                                                    const transport::address& first) {
    const std::string path = chosen.has("shm-path") ? chosen.text("shm-path") : std::string();
    if (!chosen.flag("shm")) {
        if (!path.empty()) return refuse(400, "--shm-path has no effect without --shm");
        return std::nullopt;
    }
    if (first.kind == scheme::udp)
        return refuse(400, "--shm has no effect with UDP: it carries streams; leave it out");
    const bool has_port = first.kind == scheme::tcp || first.kind == scheme::tls;
    if (path.empty() && !has_port)
        return refuse(400,
                      "--shm takes its name from the port, and there is none: add --shm-path PATH");
    if (!path.empty() && path.front() != '/' && path.front() != '@')
        return refuse(400, fmt::format("--shm-path cannot be \"{}\": write the whole path, from /, "
                                       "or @NAME",
                                       path));
    transport::address made;
    made.kind = scheme::shm;
    made.path = path;
    return made;
}

transport::address shm_address(transport::address of, std::uint16_t port) {
    if (of.path.empty()) of.path = transport::shm_path_of(port);
    return of;
}

}  // namespace eddy::runtime
