// Living clients on their way to another server: lines and raw bytes over sockets of their own.
#include <eddy/io/loop.hpp>

#include "base/rollback.hpp"
#include "runtime/server/server_worker.hpp"

#include <chrono>
#include <new>
#include <string>
#include <utility>

namespace eddy::runtime::server {
namespace {

/// Time for clients to come to a rest, and for what is queued for them.
constexpr duration rest_patience = std::chrono::seconds(1);
constexpr duration flush_patience = std::chrono::seconds(2);
constexpr duration rest_pause = std::chrono::milliseconds(1);

// Letters of a client's state.
constexpr char raw = 'r';
constexpr char judged = 'j';
constexpr char paid = 'p';

}  // namespace

bool server_worker::may_move(const client& c) noexcept {
    // TLS and shared memory have no socket of their own, and their state cannot leave.
    if (!c.socket || c.socket.native_handle() < 0 || c.finished || !c.listens()) return false;
    return c.speaks == speech::raw || (c.speaks == speech::undecided && c.held() == nullptr);
}

/// True if a client may still come to rest.
bool server_worker::has_unparked() {
    std::size_t count = 0;
    clients_.for_each([&](serving::connection& each) {
        const auto& c = static_cast<client&>(each);
        count += may_move(c) && c.doing() != serving::activity::listening ? 1 : 0;
    });
    return count > 0;
}

task<std::vector<serving::passed_client>> server_worker::move_clients() {
    std::vector<serving::passed_client> none;
    // The first call has waited for all that may leave.
    if (script_ || others_ || modes_.has_commands() || moving_) co_return none;
    loop& here = loop::current();
    out_.flush();
    moving_ = std::make_unique<moving>();
    clients_.for_each([](serving::connection& each) {
        auto& c = static_cast<client&>(each);
        const bool is_reading =
            c.doing() == serving::activity::resting || c.doing() == serving::activity::reading;
        if (is_reading && may_move(c)) c.interrupt();
    });
    time_point until = here.after(rest_patience);
    co_await here.yield();
    while (has_unparked() && here.now() < until)
        if (!co_await here.sleep_for(rest_pause)) break;
    // All are parked: the last messages go out before the clients.
    out_.flush();
    moving_->all_are_parked.set();
    until = here.after(flush_patience + rest_patience);
    while (moving_->parked > 0 && here.now() < until)
        if (!co_await here.sleep_for(rest_pause)) break;
    std::vector<serving::passed_client> all = std::move(moving_->out);
    if (moving_->parked == 0) moving_.reset();
    co_return all;
}

/// Instead of a read. True if the client is not served here any more.
[[gnu::noinline]] task<bool> server_worker::move(client& c) {
    if (!may_move(c) || !c.socket.driver().end_receiving()) co_return false;
    for (;;) {
        const result<lease> got = co_await c.socket.read();
        if (!got && got.error() == errc::closed) break;
        // The next read says so again.
        if (!got) co_return false;
        counted_.bytes_in += got->size();
        c.input.append(got->text());
    }
    c.enter(serving::activity::listening);
    ++moving_->parked;
    const rollback parked([its = moving_.get()] { --its->parked; });
    if (!co_await moving_->all_are_parked.wait()) co_return true;
    if (c.out.queued_bytes() > 0 && !co_await c.out.flush_within(flush_patience)) co_return true;
    serving::passed_client made;
    if (c.speaks == speech::raw) made.state += raw;
    if (c.is_judged) made.state += judged;
    if (c.paid) made.state += paid;
    made.input = c.input.text();
    auto socket = c.socket.detach();
    if (!socket) co_return true;
    made.socket = std::move(*socket);
    moving_->out.push_back(std::move(made));
    co_return true;
}

void server_worker::take_moved(serving::passed_client from, serving::connection_slot slot) {
    auto socket = loop::current().adopt(std::move(from.socket));
    if (!socket) return note_lost("its socket cannot be used", socket.error());
    try {
        auto c = std::make_unique<client>(clients_, std::move(*socket), tasks_, queue_options(),
                                          client_limiter_, std::move(slot));
        c->is_judged = config_.takes_raw_http || from.state.contains(judged);
        c->paid = from.state.contains(paid);
        if (config_.takes_raw_http || from.state.contains(raw)) c->become_raw();
        c->input.append(from.input);
        cancel_source& cancel = c->cancel;
        tasks_.spawn(serve(std::move(c)).under(cancel));
    } catch (const std::bad_alloc&) {
        note_no_memory();
    }
}

/// Bytes that a client has sent before it was moved here.
server_worker::progress server_worker::begin_moved(client& c) {
    const time_point now = loop::current().now();
    return c.is_judged ? consume_rest(c, now) : receive_first(c, {}, now);
}

}  // namespace eddy::runtime::server
