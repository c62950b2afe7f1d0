// Clients of a cache: their sessions' beginning and end, and what is left of their input.
#include "runtime/cache/clients/client.hpp"

#include <eddy/base/assert.hpp>

#include "runtime/cache/clients/cache_worker.hpp"

#include <new>
#include <utility>

namespace eddy::runtime::cache {

client::own_session::own_session(client& whose, std::string_view address,
                                 std::string_view local_address)
    : eddy::cache::client_session(whose.at.context().engine, address, local_address), of(whose) {}

void client::own_session::notify(notification what) noexcept { of.at.notify(*this, what); }

client::client(serving::connections& all, stream accepted, cancel_source& parent, cache_worker& its,
               serving::connection_slot slot)
    : cache_connection(true, all, std::move(accepted), parent, std::move(slot)), at(its) {
    // The other end of a Unix socket has no name: both are named by the path, as in Redis.
    const bool is_unix = socket.local().is_unix();
    const std::string local_address = socket.local().to_string() + (is_unix ? ":0" : "");
    const std::string address = is_unix ? local_address : socket.peer().to_string();
    const loop_lock lock(at.context().lockable.get());
    session.emplace(*this, address, local_address);
    at.note_view(*this);
}

client::~client() { static_cast<void>(leave()); }

byte_buffer client::leave() {
    byte_buffer last;
    if (!session) return last;
    const bool takes_more =
        push_mode && !push_mode->awaits_disk && push_mode->unsent.empty() && !push_mode->feeds;
    const loop_lock lock(at.context().lockable.get());
    at.forget(*session);
    try {
        if (takes_more && (at.clients().draining() || session->killed)) {
            at.context().engine.take_output(*session, last);
            at.note_view(*this);
        }
    } catch (const std::bad_alloc&) {
        at.context().note_no_memory(at.counted_, session->id);
    }
    if (rest) at.context().engine.discard(rest->large);
    session.reset();
    return last;
}

std::size_t client::leftover::held_bytes() const noexcept {
    std::size_t all = bytes.size();
    for (const eddy::cache::large_argument& each : large) all += each.held_bytes();
    return all;
}

void client::leftover::join() {
    byte_buffer all;
    std::size_t taken = 0;
    for (const eddy::cache::large_argument& each : large) {
        EDDY_ASSERT(taken <= each.offset() && each.offset() <= bytes.size());
        all.append(bytes.text().substr(taken, each.offset() - taken));
        all.append(each.text());
        all.append("\r\n");
        taken = each.offset();
    }
    all.append(bytes.text().substr(taken));
    bytes = std::move(all);
    large.clear();
}

}  // namespace eddy::runtime::cache
