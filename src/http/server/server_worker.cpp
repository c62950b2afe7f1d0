// Serving the HTTP connections of one loop.
#include "http/server/server_worker.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>

#include "base/rollback.hpp"
#include "http/session/resting_session.hpp"

#include <algorithm>
#include <chrono>
#include <coroutine>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace eddy::http {

using serving::activity;
using serving::connection;
using serving::connections;

/// A connection; it lives as long as the coroutine that serves it.
class server_worker::client final : public connection, public resting_observer {
public:
    client(server_worker& of, stream accepted, serving::connection_slot slot)
        : connection(of.clients_, std::move(accepted), of.tasks_.source(), std::move(slot)),
          label_(of.label(socket)) {
        // The header's word about its client would be lost.
        if (of.is_announced()) of.staying_.insert(this);
    }
    ~client() {
        server_worker& by = worker();
        if (!by.staying_.empty()) by.staying_.erase(this);
        if (by.moving_) by.moving_->interrupted.erase(this);
    }
    client(const client&) = delete;
    client& operator=(const client&) = delete;

    server_worker& worker() const noexcept {
        return static_cast<server_worker&>(serving::worker_connections::worker_of(all_));
    }
    task<succession> begin_session(lease received) {
        server_worker& by = worker();
        byte_buffer begun;
        if (!by.begun_.empty()) begun.append(std::exchange(by.begun_, {}));
        if (!received.bytes().empty()) begun.append(received.bytes());
        return serve_until_rest(socket, *by.handler_, by.limits_, *this, rest_after,
                                std::move(begun));
    }

    /// TLS and shared memory have no socket of their own, and their state cannot leave.
    bool may_leave() const {
        return socket.native_handle() >= 0 && !worker().staying_.contains(this);
    }
    /// Its session, or its wait without one, can be interrupted.
    bool is_idle() const noexcept { return doing() == activity::resting; }

    void enter(session_state now) noexcept override {
        touch();
        switch (now) {
            case session_state::idle: return connection::enter(activity::resting);
            // Its protocol has limits of its own.
            case session_state::taken_over:
                return connection::enter(worker().drains_tunnels_ ? activity::working
                                                                  : activity::listening);
            // The time for a request is the session's to limit.
            case session_state::receiving:
            case session_state::working: return connection::enter(activity::working);
        }
    }
    void note(const exchange_record& what) override { worker().note(label_.get(), what); }
    bool is_ending() const noexcept override { return all_.draining(); }
    bool awaits_request() const noexcept override { return !all_.closes_resting(); }
    bool is_leaving() const override {
        const auto& its = worker().moving_;
        return its && !its->has_ended && may_leave();
    }
    bool is_interrupted() const override {
        const auto& its = worker().moving_;
        return its && its->interrupted.contains(this);
    }
    bool end_interruption() override {
        worker().moving_->interrupted.erase(this);
        return take_interruption(worker().tasks_.source());
    }
    void note_lingering() override { worker().staying_.insert(this); }

private:
    const std::unique_ptr<const client_label> label_;
};

// The frame of serve() is what a resting connection costs, beside its stream and its client. It
// holds these awaitables and nothing else: since it is a loop, a compiler would keep temporaries,
// results and handles of tasks in it, too. So they are awaited where they stand, and what they do
// with results is not inlined: 512 bytes for a resting connection, and 704 where tasks and a read
// are awaited plainly (http/memory_test.cpp, 2026-11-29).

/// Sessions of a connection, one at a time.
class server_worker::session_run {
public:
    using keeps_frame_memory = void;

    [[gnu::noinline]] explicit session_run(client& c) : work_(c.begin_session(lease())) {}
    [[gnu::noinline]] ~session_run() = default;
    session_run(const session_run&) = delete;
    session_run& operator=(const session_run&) = delete;

    static constexpr bool await_ready() noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> waiter) noexcept {
        return std::move(work_).operator co_await().await_suspend(waiter);
    }
    static void await_resume() noexcept {}

    /// After the wait: the session's result, or what it has thrown. Its memory is free then.
    succession take() {
        succession next = std::move(work_).operator co_await().await_resume();
        free_frame(work_);
        return next;
    }
    void begin(client& c, lease received) { work_ = c.begin_session(std::move(received)); }

private:
    task<succession> work_;
};

/// Step behind a session: another protocol, another server, a rest of the connection, or its end.
class server_worker::takeover_run {
public:
    using keeps_frame_memory = void;

    [[gnu::noinline]] takeover_run(client& c, session_run& before) {
        succession next = before.take();
        rests_ = next.rests;
        if (rests_ && c.is_leaving()) work_.emplace(c.worker().move(c));
        if (!next.successor) return;
        c.enter(session_state::taken_over);
        successor_ = std::move(next.successor);
        work_.emplace(successor_->run(std::move(c.socket), std::move(next.received)));
    }
    [[gnu::noinline]] ~takeover_run() = default;
    takeover_run(const takeover_run&) = delete;
    takeover_run& operator=(const takeover_run&) = delete;

    /// True if there is a protocol, or the way to another server, to await.
    bool has_work() const noexcept { return work_.has_value(); }
    /// True if it stays here, and waits for bytes.
    bool rests(const client& c) const noexcept { return rests_ && c.socket; }

    static constexpr bool await_ready() noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> waiter) noexcept {
        return std::move(*work_).operator co_await().await_suspend(waiter);
    }
    [[gnu::noinline]] void await_resume() { std::move(*work_).operator co_await().await_resume(); }

private:
    std::unique_ptr<connection_takeover> successor_;
    std::optional<task<void>> work_;
    bool rests_ = false;
};

/// The next bytes of a connection that rests. Its idle time is up to connections::limits.
class server_worker::arrival final : public read_operation {
public:
    using keeps_frame_memory = void;

    [[gnu::noinline]] explicit arrival(const client& c) : read_operation(c.socket.driver(), {}) {}
    [[gnu::noinline]] ~arrival() = default;

    static constexpr bool await_ready() noexcept { return false; }
    template <class Promise>
    bool await_suspend(std::coroutine_handle<Promise> waiter) {
        return operation::begin(waiter, waiter.promise().source());
    }
    static void await_resume() noexcept {}

    /// After the wait: begins the next session with the received bytes, without them where it was
    /// interrupted. False at the connection's end.
    [[gnu::noinline]] bool begin(client& c, session_run& next) {
        const bool goes_on = c.is_interrupted() && c.end_interruption();
        if (error_ && !(goes_on && error_ == errc::cancelled)) return false;
        next.begin(c, std::move(received_));
        return true;
    }
};

server_worker::server_worker(const serving::worker_place& place, request_handler* handler,
                             const session_limits& limits, std::uint64_t max_connections)
    : loop_worker(place), handler_(handler), limits_(limits) {
    // A response announces the end of its connection.
    clients_.keep_resting();
    set_max_connections(max_connections);
}

void server_worker::set_max_connections(std::uint64_t most) noexcept {
    connections::limits chosen;
    chosen.most = most;
    chosen.idle = limits_.idle_time == duration::max() ? duration::zero() : limits_.idle_time;
    clients_.set_limits(chosen);
}

void server_worker::take(stream accepted, serving::connection_slot slot) {
    EDDY_PRECONDITION(handler_ != nullptr, "a server's handler_factory has made no handler");
    begin(std::move(accepted), std::move(slot));
}

void server_worker::begin(stream accepted, serving::connection_slot slot) {
    auto c = std::make_unique<client>(*this, std::move(accepted), std::move(slot));
    tasks_.spawn(serve(*c).under(c->cancel));
    // Once the coroutine has begun, it is the owner; it may have ended by now.
    static_cast<void>(c.release());
}

/// Owns the client from its beginning on.
task<void> server_worker::serve(client& c) {
    try {
        session_run http(c);
        for (;;) {
            co_await http;
            {
                takeover_run next(c, http);
                if (next.has_work()) co_await next;
                if (!next.rests(c)) break;
            }
            arrival received(c);
            co_await received;
            if (!received.begin(c, http)) break;
        }
    } catch (const std::bad_alloc&) {
        c.worker().note_no_memory();
    } catch (...) {
        delete &c;
        throw;
    }
    delete &c;
}

// --- To another server, and from one -------------------------------------------------------------

/// True while a call waits for clients that may leave: for the idle ones, and for any while none
/// has left.
bool server_worker::awaits_leavers(const std::vector<serving::passed_client>& left) {
    bool found = false;
    clients_.for_each([&](connection& each) {
        const auto& c = static_cast<client&>(each);
        found = found || (c.may_leave() && (left.empty() || c.is_idle()));
    });
    return found;
}

task<std::vector<serving::passed_client>> server_worker::move_clients() {
    loop& here = loop::current();
    if (!moving_) moving_ = std::make_unique<moving>(moving{.until = here.after(moving_patience)});
    if (moving_->has_ended) co_return std::vector<serving::passed_client>();
    clients_.for_each([this](connection& each) {
        auto& c = static_cast<client&>(each);
        if (!c.may_leave() || !c.is_idle()) return;
        moving_->interrupted.insert(&c);
        c.interrupt();
    });
    const time_point until = std::min(here.after(batch_patience), moving_->until);
    static_cast<void>(co_await here.yield());
    while (here.now() < until && awaits_leavers(moving_->left))
        if (!co_await here.sleep_for(std::chrono::milliseconds(1))) break;
    // None may leave behind the last call.
    if (moving_->left.empty() || here.now() >= moving_->until) moving_->has_ended = true;
    while (moving_->has_ended && moving_->leaving > 0)
        if (!co_await here.sleep_for(std::chrono::milliseconds(1))) break;
    co_return std::exchange(moving_->left, {});
}

/// A connection that rests. Its socket is closed here then, unless it cannot leave.
task<void> server_worker::move(client& c) {
    EDDY_ASSERT(moving_ && !moving_->has_ended);
    moving& to = *moving_;
    c.connection::enter(activity::working);
    ++to.leaving;
    const rollback counted([&to] { --to.leaving; });
    serving::passed_client made;
    bool is_whole = c.socket.driver().end_receiving();
    while (is_whole) {
        const result<lease> got = co_await c.socket.read();
        // The end of the connection comes again, there or here.
        if (!got) is_whole = got.error() == errc::closed || !made.input.empty();
        if (!got) break;
        made.input.append(got->text());
    }
    auto socket = is_whole ? c.socket.detach() : result<unique_fd>(fail(errc::unsupported));
    if (socket) {
        made.socket = std::move(*socket);
        to.left.push_back(std::move(made));
    }
    c.connection::enter(activity::resting);
}

void server_worker::take_moved(serving::passed_client from, serving::connection_slot slot) {
    EDDY_PRECONDITION(handler_ != nullptr, "a server's handler_factory has made no handler");
    auto socket = loop::current().adopt(std::move(from.socket));
    if (!socket) return note_lost("its socket cannot be used", socket.error());
    try {
        begun_ = std::move(from.input);
        begin(std::move(*socket), std::move(slot));
    } catch (const std::bad_alloc&) {
        note_no_memory();
    }
    begun_.clear();
}

task<void> server_worker::drain(duration limit) {
    // A client that has left and was not taken is closed.
    if (moving_) moving_->has_ended = true;
    if (moving_) moving_->left.clear();
    return loop_worker::drain(limit);
}

std::unique_ptr<const client_label> server_worker::label(const stream& /*accepted*/) const {
    return nullptr;
}

void server_worker::note(const client_label* /*from*/, const exchange_record& what) {
    ++counted_.messages_in;
    ++counted_.messages_out;
    counted_.bytes_in += what.bytes_in;
    counted_.bytes_out += what.bytes_out;
    if (!what.is_whole) ++counted_.errors;
}

}  // namespace eddy::http
