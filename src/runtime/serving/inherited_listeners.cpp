// Inherited listeners: which of them serves an address.
#include "runtime/serving/inherited_listeners.hpp"

#include "io/posix/unix_listener.hpp"
#include "transport/taken_listener.hpp"

#include <algorithm>

namespace eddy::runtime {
namespace {

using transport::address;
using transport::scheme;

bool is_tcp(const address& of) noexcept { return of.kind == scheme::tcp || of.kind == scheme::tls; }

/// True when its socket serves `wanted`, whatever the handshake is.
bool has_socket_of(const inherited_listeners::entry& old, const address& wanted) {
    if (is_tcp(old.where) && is_tcp(wanted))
        return old.where.host == wanted.host &&
               (wanted.port == old.where.port || wanted.port == old.port);
    // A file that was removed by hand, or replaced, leads to it no longer.
    return old.where.kind == wanted.kind && old.where.path == wanted.path &&
           old.where.handoff == wanted.handoff && socket_file::at(wanted.path) == old.from.file;
}

/// True when both cannot be open at a time.
bool excludes(const inherited_listeners::entry& old, const address& wanted) {
    if (is_tcp(old.where) && is_tcp(wanted)) return wanted.port != 0 && old.port == wanted.port;
    return !is_tcp(old.where) && !is_tcp(wanted) && old.where.path == wanted.path;
}

}  // namespace

void inherited_listeners::close() noexcept {
    all.clear();
    bound.reset();
    unread.clear();
    close_senders();
}

void inherited_listeners::close_senders() noexcept {
    // The others remove the files of theirs.
    if (senders) remove_socket_file(senders->from.local, senders->from.socket.file);
    senders.reset();
}

transport::address inherited_listeners::with_chosen_port(address wanted) const {
    if (wanted.port == 0 && (is_tcp(wanted) || wanted.kind == scheme::udp))
        wanted.port = chosen_port;
    return wanted;
}

std::vector<inherited_listeners::entry>::iterator inherited_listeners::find(const address& wanted) {
    return std::ranges::find_if(all,
                                [&](const entry& each) { return has_socket_of(each, wanted); });
}

void inherited_listeners::close_excluded(const address& by) {
    const auto count = std::erase_if(all, [&](const entry& each) { return excludes(each, by); });
    has_closed = has_closed || count > 0;
}

result<std::optional<noted_listener>> inherited_listeners::take(const address& wanted,
                                                                bool is_in_parts) {
    const auto found = find(wanted);
    if (found == all.end()) {
        close_excluded(wanted);
        return std::optional<noted_listener>();
    }
    noted_listener taken;
    if (is_in_parts) {
        auto parts = transport::take_in_parts(found->from.socket, wanted);
        if (!parts) return fail(parts.error());
        taken.socket = std::move(parts->below);
        taken.finish = std::move(parts->finish);
        taken.renew = std::move(parts->renew);
    } else {
        taken.socket = std::move(found->from.socket);
    }
    taken.note = std::move(found->from.note);
    taken.file = found->from.file;
    all.erase(found);
    return std::optional(std::move(taken));
}

std::optional<inherited_listeners::unread_datagram> inherited_listeners::take_unread(
    const address& wanted) {
    const auto found = std::ranges::find_if(unread, [&](const unread_datagram& each) {
        return each.where.host == wanted.host &&
               (wanted.port == each.where.port || wanted.port == each.local.port());
    });
    if (found == unread.end()) {
        // Both cannot be open at a time.
        const auto count = std::erase_if(unread, [&](const unread_datagram& each) {
            return wanted.port != 0 && each.local.port() == wanted.port;
        });
        has_closed = has_closed || count > 0;
        return std::nullopt;
    }
    std::optional<unread_datagram> taken(std::move(*found));
    unread.erase(found);
    return taken;
}

std::optional<noted_listener> inherited_listeners::take_back(const address& own) {
    const auto found = find(own);
    if (found == all.end()) {
        close_excluded(own);
        return std::nullopt;
    }
    std::optional<noted_listener> taken(std::move(found->from));
    all.erase(found);
    return taken;
}

}  // namespace eddy::runtime
