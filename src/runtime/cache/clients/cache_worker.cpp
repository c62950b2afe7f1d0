// A worker: service of RESP clients.
#include "runtime/cache/clients/cache_worker.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/timeout.hpp>
#include <eddy/wire/resp/reply_writer.hpp>

#include "cache/clients/engine_clients.hpp"
#include "runtime/cache/config/protection.hpp"
#include "runtime/cache/files/append_file.hpp"
#include "runtime/clock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

namespace eddy::runtime::cache {
namespace {

/// Replies that may wait for the end of a turn; beyond it they go out one by one.
constexpr std::size_t most_waiting_bytes = 4 * 1024 * 1024;
/// One batch in so many is timed: reading the clock for each would cost half a percent.
constexpr std::uint32_t batches_a_sample = 16;

}  // namespace

cache_worker::cache_worker(const serving::worker_place& place, cache_context& of,
                           const limits& chosen)
    : loop_worker(place), context_(of), remote_(!of.home.is_current()) {
    set_limits(chosen);
    clients_.before_closing([](serving::connection& c) noexcept {
        if (!static_cast<cache_connection&>(c).is_client()) return;
        client& its = static_cast<client&>(c);
        its.at.retire(its);
    });
    if (!remote_) return;
    const loop_lock lock(of.lockable.get());
    lane_ = std::make_unique<eddy::cache::lane>(of.engine);
}

void cache_worker::set_limits(const limits& chosen) noexcept {
    clients_.set_limits(chosen.of_connections);
    resp::request_limits parsed = parser_.limits();
    parsed.max_bulk = chosen.max_argument;
    parser_.set_limits(parsed);
    max_query_buffer_ = chosen.max_query_buffer;
}

void cache_worker::apply_limits(cache_context& of) {
    if (of.pool == nullptr) return;
    of.pool->post_to_all([chosen = of.limits()](serving::loop_worker& each) {
        static_cast<cache_worker&>(each).set_limits(chosen);
    });
}

void cache_worker::limits_changed(cache_context& of) noexcept {
    if (of.pool != nullptr && of.pool->here() != nullptr)
        static_cast<cache_worker*>(of.pool->here())->set_limits(of.limits());
    of.limits_due.set();
}

task<void> cache_worker::keep_limits(cache_context& of) {
    while (co_await of.limits_due.wait()) {
        apply_limits(of);
        of.limits_due.reset();
    }
}

cache_worker::~cache_worker() {
    const loop_lock lock(context_.lockable.get());
    EDDY_ASSERT(to_notify_.empty() && !wakeup_is_posted_);
    lane_.reset();
}

void cache_worker::take(stream accepted, serving::connection_slot slot) {
    if (is_announced() && rejects(accepted.peer())) {
        ++counted_.connections_refused;
        auto rejected = std::make_unique<rejected_client>(clients_, std::move(accepted),
                                                          tasks_.source(), std::move(slot));
        cancel_source& cancel = rejected->cancel;
        tasks_.spawn(runtime::cache::reject(std::move(rejected)).under(cancel));
        return;
    }
    auto c = std::make_unique<client>(clients_, std::move(accepted), tasks_.source(), *this,
                                      std::move(slot));
    begin(std::move(c));
}

void cache_worker::begin(std::unique_ptr<client> c) {
    cancel_source& cancel = c->cancel;
    if (auto all_there = gate()) [[unlikely]]
        tasks_.spawn(serve_after(std::move(all_there), std::move(c)).under(cancel));
    else
        tasks_.spawn(serve(std::move(c)).under(cancel));
}

/// Clients that were moved here, on this loop or another, may have subscribed to what it publishes.
task<void> cache_worker::serve_after(std::shared_ptr<event> all_there, std::unique_ptr<client> c) {
    if (co_await all_there->wait()) co_await serve(std::move(c));
}

/// Protected mode, for the address that a proxy has announced.
bool cache_worker::rejects(const endpoint& peer) {
    const loop_lock lock(context_.lockable.get());
    return is_rejected(context_.engine, context_.settings, peer);
}

task<void> cache_worker::drain(duration limit) {
    co_await loop_worker::drain(limit);
    cancel_source until_run;
    co_await await_last_wakeup().under(until_run);
}

/// Waits until the wake-ups of a client's commands are done; false at its end.
[[gnu::noinline]] task<bool> cache_worker::await_all_woken() {
    const result<> woken = co_await all_woken_.wait();
    co_return woken.has_value();
}

task<void> cache_worker::await_last_wakeup() {
    for (;;) {
        {
            const loop_lock lock(context_.lockable.get());
            if (!wakeup_is_posted_) co_return;
        }
        co_await loop::current().yield();
    }
}

/// Passes notifications on to their client: at once, or in one of the next turns. Another thread
/// keeps the loop locked until they are queued, and the client exists until they are delivered or
/// forgotten.
void cache_worker::notify(client::own_session& to, std::uint8_t what) noexcept {
    EDDY_ASSERT(what != 0);
    if (!remote_) {
        const time_point turn = loop::current().now();
        if (std::exchange(woken_in_, turn) != turn) woken_at_once_ = 0;
        const bool is_wakeup = what == client::woken;
        if (!is_wakeup || woken_at_once_ < most_woken_a_turn) {
            woken_at_once_ += is_wakeup ? 1 : 0;
            return to.of.take_notifications(what);
        }
        has_deferred_ = true;
        all_woken_.reset();
    }
    to.pending |= what;
    if (!to.list_link<client>::linked()) to_notify_.push_back(to);
    if (std::exchange(wakeup_is_posted_, true)) return;
    if (!here_.post(wakeup_)) wakeup_is_posted_ = false;
}

/// Delivers a turn's share of the notifications, on this loop. Their effects are this loop's, so
/// they follow after the loop was unlocked.
void cache_worker::deliver() noexcept {
    std::size_t count = 0;
    bool is_last = true;
    {
        const loop_lock lock(context_.lockable.get());
        while (count < deliveries_.size() && !to_notify_.empty()) {
            client::own_session& to = to_notify_.pop_front();
            deliveries_[count++] = {&to, std::exchange(to.pending, std::uint8_t{0})};
        }
        wakeup_is_posted_ = !to_notify_.empty() && here_.post(wakeup_).has_value();
        is_last = !wakeup_is_posted_;
    }
    for (std::size_t i = 0; i < count; ++i) {
        const delivery next = std::exchange(deliveries_[i], delivery());
        EDDY_ASSERT(next.to == nullptr || next.what != 0);
        if (next.to != nullptr) next.to->of.take_notifications(next.what);
    }
    if (is_last) all_woken_.set();
}

/// With the loop locked, as the client goes.
void cache_worker::forget(client::own_session& gone) noexcept {
    gone.list_link<client>::unlink();
    for (delivery& each : deliveries_) {
        if (each.to == &gone) each.to = nullptr;
    }
}

/// With the loop locked.
void cache_worker::note_view(client& c) noexcept {
    client::own_session& its = *c.session;
    its.seen = {.authenticated = its.authenticated,
                .closing = its.closing,
                .blocked = its.blocked,
                .waits_for_others = its.waits_for_others(),
                .is_replica = (its.special & eddy::cache::client_session::replica) != 0,
                .runs_script = its.blocked && context_.engine.script_is_late(its)};
    if (context_.append == nullptr) return;
    EDDY_ASSERT(!held_by_disk_ || held_by_disk_->position <= context_.append->present().position);
    if (context_.append->was_given_up(its)) [[unlikely]] {
        // More than this is given up: the wait for it ends at once, and so does the client.
        held_by_disk_ = append_file::mark();
        return;
    }
    if (!context_.append->holds_replies()) return;
    append_file::mark now = context_.append->present();
    if (held_by_disk_) now.given_up = held_by_disk_->given_up;
    held_by_disk_ = now;
}

// ---- one client

/// Hides the session from commands of others, once its connection has ended or will end with its
/// last replies: elements that are pushed for waiting clients go to the others.
void cache_worker::retire(client& c) noexcept {
    if (!c.session) return;
    const loop_lock lock(context_.lockable.get());
    if (context_.engine.script_is_late(*c.session)) return;
    eddy::cache::engine_clients(context_.engine).retire(*c.session);
    c.session->seen.closing = true;
    c.session->seen.blocked = false;
}

/// Waits for the end of a script, which continues without its client, in whatever way that has
/// ended: other clients must not see it half done. At most until a stop's time has passed.
[[gnu::noinline]] task<void> cache_worker::await_script_end(client& c) {
    cancel_source until_stop(&tasks_.source());
    c.enter(serving::activity::working);
    co_await await_script_end_there(c).under(until_stop);
}

task<void> cache_worker::await_script_end_there(client& c) {
    if (!c.push_mode) c.push_mode = std::make_unique<client::push_state>();
    event& woken = c.push_mode->something;
    for (;;) {
        woken.reset();
        {
            const loop_lock lock(context_.lockable.get());
            if (!context_.engine.script_is_late(*c.session)) co_return;
        }
        if (!co_await woken.wait()) co_return;
    }
}

/// A client's life: read, execute, reply, until one side ends it.
task<void> cache_worker::serve(std::unique_ptr<client> owned) {
    // The frame is a part of what an idle client costs, and smaller with a reference.
    client& c = *owned;
    const std::uint64_t id = c.session->id;
    try {
        next then = c.rest ? next::again : next::read;  // with input if it was moved here
        bool is_lost = false;
        while (then != next::close) {
            is_lost = true;
            if (moved_ && co_await move(c)) [[unlikely]]
                co_return;
            if (then == next::read && c.session->has_output) [[unlikely]] {
                begin_service();
            } else if (then == next::read && begins_large_argument(c)) [[unlikely]] {
                if (!co_await receive_large_argument(c)) break;
                begin_service();
                then = execute_rest(c);
            } else if (then == next::read) {
                if (!c.rest && clients_.draining()) break;
                c.enter(c.rest ? serving::activity::reading : serving::activity::resting);
                result<lease> got = co_await c.socket.read();
                const bool is_interrupted = c.take_interruption(tasks_.source());
                if (!got && !is_interrupted) break;
                // From here to the next rest a stop lets it finish.
                c.enter(serving::activity::working);
                begin_service();
                if (got) {
                    c.touch();
                    counted_.bytes_in += got->size();
                    ++counted_.reads;
                    then = receive(c, got->text());
                }
            } else {
                begin_service();
                then = execute_rest(c);
            }
            const bool has_deferred = has_deferred_;
            if (!replies_.empty()) {
                if (!fits_queue(c)) break;
                if (held_by_disk_) [[unlikely]] {
                    if (!co_await wait_for_disk(*held_by_disk_)) break;
                } else if (!has_deferred &&
                           waiting_bytes_ + replies_.size() <= most_waiting_bytes) {
                    co_await wait_for_turn_end();
                }
                if (!send_now(c)) break;
            } else if (held_by_disk_) [[unlikely]] {
                if (!co_await wait_for_disk(*held_by_disk_)) break;
            }
            if (has_deferred && replies_.empty() && then != next::close) [[unlikely]] {
                if (!co_await await_all_woken()) break;
            }
            // A wait may have ended while earlier replies were on their way: its answer waits.
            if (!replies_.empty() || then == next::wait ||
                (then != next::close && (c.seen().waits_for_others || c.session->has_output)))
                then = co_await serve_in_push_mode(c, then);
            is_lost = false;
        }
        if (c.seen().runs_script) [[unlikely]]
            co_await await_script_end(c);
        if (is_lost) co_return;
        co_await part_with(c);
        c.rest.reset();
        c.enter(serving::activity::resting);
        if (c.socket.shutdown_write()) co_await serving::linger(c);
    } catch (const std::bad_alloc&) {
        reset_shared();
        context_.note_no_memory(counted_, id);
    }
}

/// Sends the last output, such as an element that another client's push gave to this one, which
/// waited: it is in no list any more. So it is sent although a stop or a kill has cancelled the
/// client, once the disk has it.
[[gnu::noinline]] task<void> cache_worker::part_with(client& c) {
    begin_service();
    byte_buffer last = c.leave();
    if (last.empty()) co_return;
    if (held_by_disk_) {
        replies_ = std::move(last);
        if (!co_await wait_for_disk(*held_by_disk_)) co_return;
        last = std::move(replies_);
    }
    static_cast<void>(c.socket.try_write(last.bytes()));
}

/// Clears the shared buffers of a client that was given up within its turn, for the next client.
void cache_worker::reset_shared() noexcept {
    replies_ = byte_buffer();
    parser_ = resp::request_parser(parser_.limits());
}

/// Executes what was received, together with what was left before. What cannot be executed yet is
/// copied.
cache_worker::next cache_worker::receive(client& c, std::string_view received) {
    // First the command whose beginning came earlier, and no byte more of what is behind it.
    while (c.rest) {
        const std::size_t size = std::min(c.rest->wanted, received.size());
        c.rest->bytes.append(received.substr(0, size));
        note_grown(c, size);
        received.remove_prefix(size);
        const next then = execute_rest(c);
        if (then == next::close) return then;
        if (then != next::read) {
            keep(c, received);
            return then;
        }
        if (received.empty()) return then;
    }
    std::size_t used = 0;
    const next then = execute(c, received, used);
    EDDY_ASSERT(used <= received.size());
    if (then != next::close) keep(c, received.substr(used));
    return then;
}

bool cache_worker::begins_large_argument(const client& c) noexcept {
    return c.rest && c.rest->parser &&
           c.rest->parser->open_argument() >= eddy::cache::large_argument::least_size;
}

/// Receives the rest of an argument to where it can stay; false at the end of the connection.
[[gnu::noinline]] task<bool> cache_worker::receive_large_argument(client& c) {
    client::leftover& rest = *c.rest;
    const std::size_t offset = rest.parser->open_argument_offset();
    EDDY_ASSERT(offset <= rest.bytes.size());
    eddy::cache::large_argument& its = rest.large.emplace_back(rest.parser->open_argument(), offset,
                                                               rest.bytes.text().substr(offset));
    rest.bytes.truncate(offset);
    while (!its.is_whole()) {
        while (c.session->has_output) {
            if (!co_await send_output(c)) co_return false;
        }
        c.enter(serving::activity::reading);
        const result<std::size_t> got = co_await c.socket.read_some(its.room());
        const bool is_interrupted = c.take_interruption(tasks_.source());
        c.enter(serving::activity::working);
        if (!got && is_interrupted) continue;
        if (!got) co_return false;
        c.touch();
        counted_.bytes_in += *got;
        ++counted_.reads;
        its.note_received(*got);
        note_grown(c, *got);
    }
    rest.parser->place_argument(its.text().data());
    co_return true;
}

/// Sends the output of other clients' commands while a large argument is on its way; false when the
/// connection must end.
[[gnu::noinline]] task<bool> cache_worker::send_output(client& c) {
    held_by_disk_.reset();
    static_cast<void>(take_output(c, true));
    if (!fits_queue(c)) co_return false;
    if (held_by_disk_ && !co_await wait_for_disk(*held_by_disk_)) co_return false;
    if (replies_.empty()) co_return true;
    if (!send_now(c)) co_return false;
    if (replies_.empty()) co_return true;
    byte_buffer rest = set_replies_aside();
    // Else no time limit ends a peer that takes nothing.
    c.enter(serving::activity::writing);
    const bool sent = (co_await c.socket.write_all(rest.bytes())).has_value();
    c.enter(serving::activity::working);
    keep_spare(std::move(rest));
    co_return sent;
}

/// Appends to what is left.
void cache_worker::keep(client& c, std::string_view bytes) {
    if (bytes.empty()) return;
    if (!c.rest) c.rest = std::make_unique<client::leftover>();
    c.rest->bytes.append(bytes);
    note_grown(c, bytes.size());
}

void cache_worker::note_input(client& c) noexcept {
    std::size_t held = c.rest ? c.rest->held_bytes() : 0;
    if (c.push_mode) held += c.push_mode->received.size();
    c.session->input.store(counted_bytes(held), std::memory_order_relaxed);
}

void cache_worker::note_grown(client& c, std::size_t bytes) {
    note_input(c);
    const loop_lock lock(context_.lockable.get());
    eddy::cache::engine_clients(context_.engine).note_memory(bytes);
}

cache_worker::next cache_worker::execute_rest(client& c) {
    if (!c.rest) return next::read;
    std::size_t used = 0;
    const next then = execute(c, c.rest->bytes.text(), used);
    c.rest->bytes.consume(used);
    if (c.rest->bytes.empty()) c.rest.reset();
    note_input(c);
    return then;
}

/// Executes the whole commands at the start of `input`, batch by batch.
cache_worker::next cache_worker::execute(client& c, std::string_view input, std::size_t& used) {
    for (;;) {
        const bool own = c.rest && c.rest->parser;
        resp::request_parser& parser = own ? *c.rest->parser : parser_;
        const resp::batch_outcome parsed =
            batch_.parse(parser, input.substr(used), !c.seen().authenticated);
        if (!parsed.commands.empty()) {
            const std::size_t executed = execute_batch(c, parsed.commands);
            EDDY_ASSERT(executed <= parsed.commands.size());
            counted_.messages_in += executed;
            counted_.messages_out += executed;
            const bool blocked = c.seen().blocked;
            if (c.seen().closing || blocked || executed < parsed.commands.size()) {
                // Much is to be sent before the other commands, or they wait for others. Their
                // views will not last: they are parsed anew, from where the first of them begins.
                parser = resp::request_parser(parser.limits());
                if (c.seen().closing) return next::close;
                if (executed == parsed.commands.size()) {
                    used += parsed.consumed;
                } else if (c.rest && !c.rest->large.empty()) {
                    c.rest->join();
                } else {
                    resp::request_parser again(parser.limits());
                    for (std::size_t i = 0; i < executed; ++i)
                        used += again.next(input.substr(used)).consumed;
                }
                return blocked ? next::wait : next::again;
            }
        }
        used += parsed.consumed;
        switch (parsed.status) {
            case resp::parse_status::need_more:
                if (!own && parser.in_progress()) {
                    if (!c.rest) c.rest = std::make_unique<client::leftover>();
                    c.rest->parser = std::make_unique<resp::request_parser>(std::move(parser));
                    parser = resp::request_parser(c.rest->parser->limits());
                }
                if (c.rest) c.rest->wanted = parsed.wanted;
                return next::read;
            case resp::parse_status::error:
                ++counted_.errors;
                resp::reply_writer(replies_, c.session->protocol).error(parsed.error);
                retire(c);
                parser = resp::request_parser(parser.limits());
                return next::close;
            case resp::parse_status::complete: break;
        }
        if (replies_.size() >= context_.max_pending_reply) return next::again;
    }
}

/// Number of commands that the engine has executed.
std::size_t cache_worker::execute_batch(client& c, std::span<const resp::command> commands) {
    const time_point now = loop::current().now();
    const bool has_large = c.rest && !c.rest->large.empty();
    std::size_t beside_others = 0;
    if (lane_ && !has_large && lane_->is_of_use(now.time_since_epoch())) {
        const shared_loop_lock lock(context_.lockable.get());
        // Upkeep that has come to its end is requested anew on the exclusive path.
        const bool holds_reads = context_.append != nullptr && context_.append->holds_reads();
        if (context_.clock.is_current(now) && context_.work_done.is_set() && !holds_reads) {
            const auto done = lane_->execute(*c.session, commands, replies_);
            if (done.is_over) return done.executed;
            beside_others = done.executed;
        }
    }
    return beside_others + execute_exclusive(c, now, commands.subspan(beside_others));
}

std::size_t cache_worker::execute_exclusive(client& c, time_point now,
                                            std::span<const resp::command> commands) {
    const loop_lock lock(context_.lockable.get());
    context_.clock.update(now);
    context_.ask_upkeep();
    const std::size_t executed =
        c.rest && !c.rest->large.empty()
            ? context_.engine.execute(*c.session, commands.front(), c.rest->large, replies_)
            : context_.engine.execute(*c.session, commands, replies_);
    if (context_.engine.is_behind() && !context_.is_behind.is_set()) [[unlikely]]
        context_.is_behind.set();
    note_view(c);
    return executed;
}

/// The first reply of a turn wakes a sleeping peer, which costs this side some microseconds; those
/// that follow at once find it awake. So every client whose commands have arrived is served before
/// the first reply goes out. A task of its own: what it holds is no part of an idle connection.
task<void> cache_worker::wait_for_turn_end() {
    byte_buffer waiting = set_replies_aside();
    waiting_bytes_ += waiting.size();
    co_await loop::current().yield();
    EDDY_ASSERT(waiting_bytes_ >= waiting.size());
    waiting_bytes_ -= waiting.size();
    take_up(std::move(waiting));
}

/// Takes a client's replies out of the shared buffer while others use that.
byte_buffer cache_worker::set_replies_aside() noexcept {
    byte_buffer aside = std::move(replies_);
    if (!spare_buffers_.empty()) {
        replies_ = std::move(spare_buffers_.back());
        spare_buffers_.pop_back();
    }
    return aside;
}

void cache_worker::take_up(byte_buffer replies) {
    replies.swap(replies_);
    keep_spare(std::move(replies));
}

/// Keeps a buffer that was sent for other replies.
void cache_worker::keep_spare(byte_buffer sent) {
    if (spare_buffers_.size() < most_spare_buffers && sent.capacity() <= kept_reply_capacity &&
        sent.capacity() > 0)
        spare_buffers_.push_back(std::move(sent));
}

/// Waits until the append-only file, or the disk, has the changes that the replies report. False,
/// with the replies dropped, when the disk has refused them: no reply reports what may be lost.
[[gnu::noinline]] task<bool> cache_worker::wait_for_disk(append_file::mark until) {
    byte_buffer waiting = set_replies_aside();
    if (!until.waits_for_disk) {
        // One write for all clients whose commands have arrived, see wait_for_turn_end().
        const std::size_t size = waiting.size();
        waiting_bytes_ += size;
        if (waiting_bytes_ <= most_waiting_bytes) co_await loop::current().yield();
        EDDY_ASSERT(waiting_bytes_ >= size);
        waiting_bytes_ -= size;
        if (write_appended(until)) {
            take_up(std::move(waiting));
            co_return true;
        }
    }
    // An element that was taken out for this client is in no list any more: the reply goes out
    // though a stop or a kill has closed the client meanwhile.
    cancel_source until_written;
    task<bool> written = context_.append->await_written(until).under(until_written);
    const bool is_written =
        remote_ ? (co_await resume_on(context_.home, std::move(written))).value_or(false)
                : co_await std::move(written);
    if (!is_written) co_return false;
    take_up(std::move(waiting));
    co_return true;
}

/// Writes the appended changes to the file, if that needs no wait.
bool cache_worker::write_appended(append_file::mark until) {
    if (until.position <= written_to_file_) return true;
    const loop_lock lock(context_.lockable.get());
    if (!context_.append->write_now(until)) return false;
    written_to_file_ = until.position;
    return true;
}

/// False, with the reply dropped, when it is too large: the connection must end.
bool cache_worker::fits_queue(client& c) {
    // The engine stops when max_pending_reply is reached: whatever is beyond it is one reply.
    if (replies_.size() <= context_.max_queue + context_.max_pending_reply) return true;
    ++counted_.errors;
    ++counted_.dropped;
    context_.events.write(fmt::format("client {} closed: a reply of {} bytes is over --max-queue",
                                      c.session->id, replies_.size()));
    replies_ = byte_buffer();
    return false;
}

/// Sends what the socket takes at once, which is nearly always all of it, and removes that from the
/// reply buffer; false when the connection must end.
bool cache_worker::send_now(client& c) {
    const result<std::size_t> sent = c.socket.try_write(replies_.bytes());
    if (!sent) {
        replies_.clear();
        return false;
    }
    counted_.bytes_out += *sent;
    ++counted_.writes;
    EDDY_ASSERT(*sent <= replies_.size());
    replies_.consume(*sent);
    if (batches_++ % batches_a_sample == 0) {
        const auto took = static_cast<std::uint64_t>(
            std::max<std::int64_t>((precise_now() - c.touched_at()).count(), 0));
        const shared_loop_lock lock(context_.lockable.get());
        latency_->record(took);
    }
    return true;
}

void cache_worker::set_unsent(client& c, std::size_t bytes) {
    c.session->unsent.store(counted_bytes(bytes), std::memory_order_relaxed);
    const time_point now = loop::current().now();
    const loop_lock lock(context_.lockable.get());
    context_.clock.update(now);
    context_.engine.set_unsent(*c.session, bytes);
}

}  // namespace eddy::runtime::cache
