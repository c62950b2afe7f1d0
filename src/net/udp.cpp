// Binding UDP sockets.
#include <eddy/net/udp.hpp>

#include "net/address.hpp"

namespace eddy::udp {

result<datagram> bind(std::string_view address, std::uint16_t port, const listen_options& options) {
    const auto local = address_to_bind(address, port);
    if (!local) return fail(local.error());
    return loop::current().bind_datagram(*local, options);
}

}  // namespace eddy::udp
