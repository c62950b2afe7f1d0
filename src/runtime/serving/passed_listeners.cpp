// Adoption of listeners that another process has passed.
#include "runtime/serving/passed_listeners.hpp"

#include <eddy/io/loop.hpp>

#include "io/posix/sockets.hpp"
#include "transport/taken_listener.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <utility>

namespace eddy::runtime {
namespace {

result<> adopt_into(inherited_listeners& to, passed_listener& from) {
    switch (from.what) {
        case passed_listener::kind::stream: {
            const bool has_handoffs = from.where.kind == transport::scheme::handoff;
            auto opened = has_handoffs
                              ? transport::adopt_handoffs(std::move(from.socket), from.where)
                              : loop::current().adopt_listener(std::move(from.socket));
            if (!opened) return fail(opened.error());
            inherited_listeners::entry given;
            given.where = std::move(from.where);
            given.port = from.port;
            given.from.socket = std::move(*opened);
            given.from.file = from.file;
            to.all.push_back(std::move(given));
            return {};
        }
        case passed_listener::kind::datagram: {
            auto opened = loop::current().adopt_datagram(std::move(from.socket));
            if (!opened) return fail(opened.error());
            to.bound.emplace(std::move(from.where), noted_datagram{std::move(*opened), {}},
                             std::vector<inherited_listeners::datagram_peer>());
            return {};
        }
        case passed_listener::kind::senders: {
            const auto local = endpoint::unix_path(from.where.path);
            if (!local) return fail(errc::bad_address);
            handoff::handoff_socket given;
            given.local = *local;
            given.socket.local = *local;
            given.socket.socket = std::move(from.socket);
            to.senders.emplace(std::move(given),
                               from.is_seqpacket ? unix_socket::socket_type::seqpacket
                                                 : unix_socket::socket_type::stream,
                               from.mode, from.file, address_note());
            return {};
        }
        case passed_listener::kind::unread: {
            const endpoint local = local_endpoint(from.socket.get());
            to.unread.push_back(
                {std::move(from.where), std::move(from.socket), local, address_note()});
            return {};
        }
    }
    return {};
}

}  // namespace

result<unique_fd> copy_of(int socket) noexcept {
    unique_fd copy(::fcntl(socket, F_DUPFD_CLOEXEC, 3));
    if (!copy) return fail_errno();
    return copy;
}

outcome<std::shared_ptr<passed_listeners>> share_datagram(const transport::address& where,
                                                          const noted_datagram& bound,
                                                          std::uint16_t port,
                                                          std::string_view name) {
    auto given = std::make_shared<passed_listeners>();
    if (where.port == 0) given->chosen_port = port;
    if (!bound.socket) return given;
    auto copy = copy_of(bound.socket.native_handle());
    if (!copy)
        return refuse(
            503, fmt::format("{} cannot pass on its socket: {}", name, copy.error().message()));
    passed_listener each;
    each.what = passed_listener::kind::datagram;
    each.where = where;
    each.port = port;
    each.socket = std::move(*copy);
    given->all.push_back(std::move(each));
    return given;
}

result<std::shared_ptr<inherited_listeners>> adopt(passed_listeners from) {
    auto made = std::make_shared<inherited_listeners>();
    made->chosen_port = from.chosen_port;
    for (passed_listener& each : from.all)
        if (auto taken = adopt_into(*made, each); !taken) return fail(taken.error());
    return made;
}

void take_possession(const listener& of) noexcept {
    if (!of) return;
    of.driver().resume();
    of.driver().set_shared(false);
}

void share(const listener& of) noexcept {
    if (of) of.driver().set_shared(true);
}

}  // namespace eddy::runtime
