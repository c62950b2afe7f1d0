// Scheme handoff://: sockets that other processes pass over a Unix socket.
#include "handoff/listener.hpp"
#include "transport/failed_handoffs.hpp"
#include "transport/handoff_parameters.hpp"
#include "transport/schemes.hpp"
#include "transport/taken_listener.hpp"

#include <utility>

namespace eddy::transport {
namespace {

result<handoff::receiver_options> options_of(const address& where, const listen_options& options) {
    const bool is_abstract = where.path.starts_with('@');
    if (is_abstract && !where.handoff.mode.empty()) return fail(errc::bad_address);
    if (is_abstract && options.unix_mode >= 0) return fail_errno(EINVAL);
    const auto users = users_of(where.handoff.allow);
    const auto mode = mode_of(where.handoff.mode);
    if (!users || (!mode && !where.handoff.mode.empty())) return fail(errc::bad_address);
    handoff::receiver_options receiving;
    if (where.handoff.type == "stream") receiving.type = unix_socket::socket_type::stream;
    if (mode)
        receiving.mode = *mode;
    else if (options.unix_mode >= 0)
        receiving.mode = options.unix_mode;
    receiving.allowed_users = *users;
    receiving.max_message = max_handoff_message;
    return receiving;
}

result<listener> listen_handoff(const address& where, const listen_options& options) {
    const auto receiving = options_of(where, options);
    if (!receiving) return fail(receiving.error());
    return handoff::listen(where.path, *receiving);
}

}  // namespace

constinit const scheme_entry handoff_entry = {
    "handoff",
    scheme::handoff,
    true,
    listen_handoff,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    "handoff:// is an address to serve on, for clients that another program hands over; connect "
    "to unix:// or tcp://"};

result<listener> adopt_handoffs(unique_fd socket, const address& where) {
    const auto receiving = options_of(where, {});
    if (!receiving) return fail(receiving.error());
    return handoff::adopt(std::move(socket), where.path, *receiving);
}

bool observe_failed_handoffs(listener& of, std::function<void(std::string_view reason)> observer) {
    return handoff::observe_failures(of, std::move(observer));
}

}  // namespace eddy::transport
