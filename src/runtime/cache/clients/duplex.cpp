// Duplex service of a client: one task reads, one executes, one writes.
//
// A client that subscribes, monitors or waits is served like this until its end; any other client
// while its replies wait. Most clients write a pipeline whole before they read its first reply, so
// commands must be received whether replies are taken or not: they are executed until
// most_unsent_replies wait, and kept in the query buffer beyond that.
#include <eddy/base/assert.hpp>
#include <eddy/io/timeout.hpp>

#include "base/rollback.hpp"
#include "cache/clients/engine_clients.hpp"
#include "runtime/cache/clients/cache_worker.hpp"
#include "runtime/cache/clients/replica_feed.hpp"
#include "runtime/cache/files/append_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

namespace eddy::runtime::cache {
namespace {

/// Limit of one write that does not wait.
constexpr std::size_t largest_write = 1024 * 1024;
/// Limit of one write that waits, so that a slow client is seen to make progress: --write-timeout.
constexpr std::size_t largest_waiting_write = 64 * 1024;
/// Smaller replies are copied behind the ones that wait.
constexpr std::size_t least_own_block = 16 * 1024;
/// A longer wait is split into waits of this time.
constexpr duration longest_wait = std::chrono::hours(1);

}  // namespace

/// Yields next::close at the client's end, and anything else when one task is enough again. A task
/// of its own, so that its frame is no part of other connections.
[[gnu::noinline]] task<cache_worker::next> cache_worker::serve_in_push_mode(client& c, next then) {
    c.push_mode = std::make_unique<client::push_state>();
    co_await with_scope([this, &c, &then](scope& tasks) -> task<void> {
        // The scope's end waits, and other clients are served meanwhile.
        rollback shared([this] { reset_shared(); });
        tasks.spawn(read_ahead(c));
        then = co_await run_push_mode(c, tasks, then);
        if (then == next::close) retire(c);
        shared.keep();
    });
    if (then == next::close) co_return then;
    // Bytes that the reader had received when it was stopped. An end of the stream is read again.
    const std::unique_ptr<client::push_state> last = std::exchange(c.push_mode, nullptr);
    while (!last->received.empty()) keep(c, last->received.pop().text());
    note_input(c);
    co_return c.rest ? next::again : next::read;
}

/// Executes what was read and has it sent, in order, until one side ends it, or until a client that
/// is here only for its replies has taken them.
task<cache_worker::next> cache_worker::run_push_mode(client& c, scope& tasks, next then) {
    EDDY_ASSERT(c.push_mode != nullptr);
    client::push_state& here = *c.push_mode;
    bool stays = then == next::wait || c.seen().waits_for_others || c.session->has_output;
    if (!replies_.empty() && !send_or_queue(c, tasks)) co_return next::close;
    if (then == next::close) {
        static_cast<void>(co_await all_sent(c));
        co_return then;
    }
    for (;;) {
        here.something.reset();
        here.execution_waits = false;
        begin_service();
        end_wait(c);
        const bool may_reply = here.unsent.size() < most_unsent();
        then = c.seen().closing ? next::close : next::read;
        if (then == next::read && !c.seen().blocked && may_reply) then = execute_next(c);
        const bool has_deferred = has_deferred_;
        if (!fits_queue(c)) co_return next::close;
        time_point until = take_output(c, may_reply);
        if (here.feeds && !replies_.empty()) {
            close_answered_replica(c);
            co_return next::close;
        }
        // Also of clients that want no replies: there is a limit to what may wait.
        if (held_by_disk_) [[unlikely]] {
            if (!co_await hold_replies(c)) co_return next::close;
        }
        if (!replies_.empty() && !send_or_queue(c, tasks)) co_return next::close;
        if (here.is_broken) co_return next::close;
        if (then == next::close) {
            static_cast<void>(co_await all_sent(c));
            co_return then;
        }
        if (has_deferred && !co_await await_all_woken()) co_return next::close;
        if (c.seen().is_replica && !here.feeds) {
            // From then on another task writes.
            if (!co_await all_sent(c)) co_return next::close;
            here.feeds = true;
            tasks.spawn(context_.replicas->feed(c, counted_));
        }
        const bool is_paused = here.unsent.size() >= most_unsent();
        const bool is_blocked = c.seen().blocked;
        if (!is_paused && !is_blocked && (then == next::again || !here.received.empty())) {
            // One block of commands a turn: others are served in between.
            if (c.cancel.requested()) co_return next::close;
            here.room.set();
            co_await loop::current().yield();
            continue;
        }
        // A script continues without its client: other clients must not see it half done.
        const bool runs_script = c.seen().runs_script;
        const bool is_sent = here.unsent.empty();
        if (here.at_end && !runs_script && is_sent) co_return next::close;
        if (here.something.is_set()) continue;
        const bool has_input = c.rest || !here.received.empty();
        // The rest of its replies is sent, and nothing more comes.
        if (here.at_end && (is_blocked || !is_paused || !has_input)) retire(c);
        if (clients_.draining() && !runs_script && is_sent && (!has_input || is_blocked))
            co_return next::close;
        stays |= is_blocked || c.seen().waits_for_others;
        if (is_sent && (!stays || is_to_move(c))) co_return next::read;
        here.execution_waits = is_paused || is_blocked;
        here.room.set();
        c.enter(activity_in_wait(c));
        if (is_paused && is_overrun(c, until)) co_return next::close;
        if (!co_await wait_for_something(c, until)) co_return next::close;
        c.enter(serving::activity::working);
    }
}

/// Activity of a client that waits for something in push mode.
serving::activity cache_worker::activity_in_wait(const client& c) noexcept {
    const client::push_state& here = *c.push_mode;
    if (!here.unsent.empty()) return serving::activity::writing;
    if (c.seen().runs_script) return serving::activity::working;
    if (c.seen().waits_for_others) return serving::activity::listening;
    return c.rest || !here.received.empty() ? serving::activity::reading
                                            : serving::activity::resting;
}

/// Waits until the disk has the changes that the replies confirm. False when the connection must
/// end.
task<bool> cache_worker::hold_replies(client& c) {
    EDDY_ASSERT(held_by_disk_ && !c.push_mode->awaits_disk);
    c.push_mode->awaits_disk = true;
    if (!co_await wait_for_disk(*held_by_disk_)) {
        // Earlier replies are not affected by the refusal of the disk.
        static_cast<void>(co_await all_sent(c));
        co_return false;
    }
    c.push_mode->awaits_disk = false;
    co_return true;
}

/// Closes a replica that would get replies in the middle of the stream.
void cache_worker::close_answered_replica(client& c) {
    replies_.clear();
    ++counted_.errors;
    context_.events.write(
        fmt::format("replica {} closed: it sent a command that expects a reply", c.session->id));
    c.close();
}

/// Executes a part of the received commands: a turn of the loop is for all clients.
cache_worker::next cache_worker::execute_next(client& c) {
    client::push_state& here = *c.push_mode;
    const next then = execute_rest(c);
    if (then != next::read || here.received.empty()) return then;
    const byte_buffer block = here.received.pop();
    const next after = receive(c, block.text());
    note_input(c);
    return after;
}

std::size_t cache_worker::most_unsent() const noexcept {
    return std::min(most_unsent_replies, context_.max_queue);
}

/// False when the connection must end.
bool cache_worker::send_or_queue(client& c, scope& tasks) {
    client::push_state& here = *c.push_mode;
    if (here.unsent.empty()) {
        if (!send_now(c)) return false;
        if (replies_.empty()) return true;
        c.touch();
    }
    const std::size_t more = replies_.size();
    // The feed writes alone.
    EDDY_ASSERT(!here.feeds);
    if (more < least_own_block) {
        here.unsent.append(replies_.text());
        replies_.clear();
    } else {
        here.unsent.push(set_replies_aside());
    }
    set_unsent(c, here.unsent.size());
    note_grown(c, more);
    if (!std::exchange(here.is_writing, true)) tasks.spawn(write_out(c));
    return true;
}

/// Writes what is unsent, to its end.
task<void> cache_worker::write_out(client& c) {
    client::push_state& here = *c.push_mode;
    EDDY_ASSERT(here.is_writing);
    while (!here.unsent.empty()) {
        const const_bytes block = here.unsent.front().bytes();
        result<std::size_t> sent =
            c.socket.try_write(block.first(std::min(block.size(), largest_write)));
        if (sent && *sent == 0) {
            const const_bytes part = block.first(std::min(block.size(), largest_waiting_write));
            const result<> written = co_await c.socket.write_all(part);
            sent = written ? result<std::size_t>(part.size()) : fail(written.error());
        }
        if (!sent) {
            here.is_broken = true;
            break;
        }
        c.touch();
        EDDY_ASSERT(*sent <= block.size());
        counted_.bytes_out += *sent;
        ++counted_.writes;
        keep_spare(here.unsent.consume(*sent));
        set_unsent(c, here.unsent.size());
        if (here.unsent.size() < most_unsent()) here.something.set();
        if (!here.unsent.empty()) co_await loop::current().yield();
    }
    here.is_writing = false;
    here.something.set();
}

/// Waits until nothing is unsent; false when the connection must end.
task<bool> cache_worker::all_sent(client& c) {
    client::push_state& here = *c.push_mode;
    c.enter(serving::activity::writing);
    while (!here.unsent.empty() && !here.is_broken) {
        here.something.reset();
        if (!co_await here.something.wait()) co_return false;
    }
    c.enter(serving::activity::working);
    co_return !here.is_broken;
}

/// True when a client whose query buffer is full must be closed. Else `until` is the time for the
/// next check, at the latest.
bool cache_worker::is_overrun(client& c, time_point& until) {
    if (c.push_mode->received.size() < max_query_buffer_) return false;
    const time_point end = c.touched_at() + longest_stall;
    if (loop::current().now() < end) {
        until = std::min(until, end);
        return false;
    }
    ++counted_.errors;
    ++counted_.dropped;
    context_.events.write(
        fmt::format("client {} closed: {} bytes of commands wait for it to take its replies, over "
                    "client-query-buffer-limit; read replies while commands are written, or raise "
                    "the limit by CONFIG SET",
                    c.session->id, c.push_mode->received.size()));
    const loop_lock lock(context_.lockable.get());
    eddy::cache::engine_clients(context_.engine).count_closed_query();
    return true;
}

/// Ends a session's wait whose deadline has passed.
void cache_worker::end_wait(client& c) {
    const time_point now = loop::current().now();
    const loop_lock lock(context_.lockable.get());
    context_.clock.update(now);
    context_.ask_upkeep();
    context_.engine.end_wait(*c.session);
    note_view(c);
}

/// Takes the output of other clients' commands, if it is wanted. Yields the time at which the
/// session's wait ends by itself, on this loop's clock.
time_point cache_worker::take_output(client& c, bool wanted) {
    const time_point now = loop::current().now();
    const loop_lock lock(context_.lockable.get());
    if (wanted) {
        c.session->has_output = false;
        context_.engine.take_output(*c.session, replies_);
    }
    note_view(c);
    const std::int64_t deadline_us = eddy::cache::engine::deadline_us(*c.session);
    if (deadline_us == eddy::cache::client_session::no_deadline) return time_point::max();
    const auto left = std::chrono::microseconds(deadline_us) - context_.clock.steady();
    return now + std::min<duration>(left, longest_wait);
}

/// Waits until there is something to do, at most until the given time.
task<result<>> cache_worker::wait_for_something(client& c, time_point until) {
    if (until == time_point::max()) co_return co_await c.push_mode->something.wait();
    const duration pause = until - loop::current().now();
    const result<> woken = co_await with_timeout(pause, c.push_mode->something.wait());
    if (!woken && woken.error() == errc::timed_out) co_return result<>();
    co_return woken;
}

/// Reads what comes, so that the end of the connection is noticed at any time. Up to a limit;
/// beyond it nothing is read. A busy execution gets no more than it can soon use.
task<void> cache_worker::read_ahead(client& c) {
    client::push_state& here = *c.push_mode;
    for (;;) {
        while (here.received.size() >= (here.execution_waits
                                            ? max_query_buffer_
                                            : std::min(most_read_ahead, max_query_buffer_))) {
            here.room.reset();
            if (!co_await here.room.wait()) co_return;
        }
        result<lease> got = co_await c.socket.read();
        if (got) {
            c.touch();
            counted_.bytes_in += got->size();
            ++counted_.reads;
            if (here.feeds) context_.replicas->note_progress(c);
            try {
                here.received.append(got->text());
                note_grown(c, got->size());
            } catch (const std::bad_alloc&) {
                context_.note_no_memory(counted_, c.session->id);
                got = fail(errc::limit_reached);
            }
        }
        here.at_end = !got;
        // At once: its coroutine may come behind commands that push what it waits for.
        if (!got && got.error() != errc::cancelled && c.seen().blocked) retire(c);
        here.something.set();
        if (!got) co_return;
    }
}

}  // namespace eddy::runtime::cache
