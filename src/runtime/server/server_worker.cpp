// Server worker: service of a stream server's clients on one loop.
#include "runtime/server/server_worker.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/timeout.hpp>

#include "runtime/logs/message_text.hpp"
#include "runtime/options/units.hpp"
#include "runtime/scripting/script_limits.hpp"
#include "runtime/server/http_visit.hpp"
#include "runtime/serving/listeners.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <utility>

namespace eddy::runtime::server {
namespace {

/// Time for a client that finished sending to read its last messages.
constexpr duration farewell = std::chrono::seconds(5);
/// A queued message has some overhead, so their number is limited, too: to this many bytes of
/// --max-queue each.
constexpr std::size_t bytes_a_queued_message = 64;
/// Batches of other loops that are taken in before other work of the loop has its turn.
constexpr int batches_a_turn = 16;
/// Between two lines of the journal about refusals of one kind: each connection may cause one.
constexpr duration refusal_note_pause = std::chrono::minutes(1);
/// Bytes of an origin in such a line.
constexpr std::size_t longest_noted_origin = 256;

server_worker::refusal refusal_of(foreign_protocol spoken) noexcept {
    if (spoken == foreign_protocol::tls) return server_worker::refusal::tls;
    if (spoken == foreign_protocol::stun) return server_worker::refusal::stun;
    EDDY_ASSERT(spoken == foreign_protocol::proxy);
    return server_worker::refusal::proxy;
}

std::string text_of(server_worker::refusal reason, std::string_view detail) {
    using refusal = server_worker::refusal;
    switch (reason) {
        case refusal::no_files:
            return "sent an HTTP request, which was refused: --http serves files, --raw-http makes "
                   "requests messages";
        case refusal::origin:
            return fmt::format("is a page of {}, which may not connect: see --origins",
                               detail.substr(0, longest_noted_origin));
        case refusal::tls:
            return "closed: it began a TLS handshake on a connection without TLS, see --tls";
        case refusal::stun:
            return "closed: it sent a STUN message, as web pages do by WebRTC; a server takes none";
        case refusal::proxy:
            return "closed: it sent a PROXY protocol header: name the proxy by --accept-proxy, or "
                   "turn the header off in the proxy";
        case refusal::late_request:
            return "closed: it sent an HTTP request after it had received messages";
        case refusal::long_line:
            return fmt::format("closed: it sent a line longer than {} (--max-line)", detail);
        case refusal::bad_frame:
            return fmt::format(
                "closed: it violated the WebSocket protocol, or sent a message longer "
                "than {}",
                detail);
        case refusal::count: break;
    }
    EDDY_ASSERT(false);
}

/// The end of the exchange for the clients of a loop, if there are several.
std::optional<exchange_end> end_of_exchange(const serving::worker_place& place,
                                            server_context& of) {
    if (!of.between_loops || place.index == 0) return std::nullopt;
    return std::optional<exchange_end>(std::in_place, *of.between_loops);
}

constexpr duration replaced_pause = std::chrono::milliseconds(10);
/// Time for their queues to be flushed.
constexpr duration replaced_flush = std::chrono::seconds(5);

}  // namespace

server_worker::server_worker(const serving::worker_place& place, server_context& of,
                             const config& chosen, std::optional<eddy::http::static_files> files)
    : loop_worker(place),
      context_(of),
      index_(place.index),
      config_(chosen),
      client_limiter_(limiter_for(chosen.rate_limit)),
      files_(std::move(files)),
      others_(end_of_exchange(place, of)),
      out_(clients_, counted_, of.events, latency_, chosen.max_queue,
           chosen.messages == framing::line ? chosen.max_line + 1 : 0),
      modes_(of, chosen, out_, others_ ? &*others_ : nullptr) {
    clients_.set_limits(limits());
    if (others_) {
        out_.share(*others_, latency_guard_);
        taking_in_.spawn(take_in());
    }
    out_.frame_for(of.web_clients, chosen.messages == framing::line);
    background_.spawn(out_.run());
    const bool serves = place.count == 1 || place.index != 0;
    if (!chosen.script || !serves) return;
    to_script_clients_.emplace(out_, others_ ? &*others_ : nullptr, place, of, counted_, modes_,
                               config_);
    auto made = server_script::make(chosen.script, of.identity, of.events, *to_script_clients_);
    if (made) {
        script_ = std::move(*made);
        background_.spawn(to_script_clients_->run());
    } else {
        const std::lock_guard lock(of.script_guard);
        of.script_fault = made.error().message;
    }
}

server_worker::~server_worker() = default;

serving::connections::limits server_worker::limits() const noexcept {
    serving::connections::limits chosen;
    chosen.most = config_.max_connections;
    chosen.idle = config_.idle_timeout;
    return chosen;
}

queued_writer_options server_worker::queue_options() noexcept {
    queued_writer_options chosen;
    chosen.max_queued_bytes = config_.max_queue;
    chosen.max_queued_messages = static_cast<std::uint32_t>(
        std::clamp<std::size_t>(config_.max_queue / bytes_a_queued_message, 4096, 1U << 20));
    chosen.policy = config_.slow_reader;
    chosen.high_watermark = config_.max_queue / 2;
    chosen.low_watermark = config_.max_queue / 4;
    chosen.observer = &delivered_;
    return chosen;
}

void server_worker::apply(const config& chosen) {
    const bool has_new_pace = chosen.rate_limit != config_.rate_limit ||
                              chosen.global_rate_limit != config_.global_rate_limit;
    copy_live(option_rows(), chosen, config_);
    modes_.apply(config_);
    clients_.set_limits(limits());
    if (!has_new_pace) return;
    client_limiter_ = limiter_for(config_.rate_limit);
    clients_.for_each(
        [&](serving::connection& each) { static_cast<client&>(each).limiter = client_limiter_; });
}

void server_worker::replace_files(std::optional<eddy::http::static_files> files) {
    EDDY_ASSERT(files.has_value() == files_.has_value());
    // Requests under way hold the address of what is there.
    if (files) *files_ = std::move(*files);
}

void server_worker::take(stream accepted, serving::connection_slot slot) {
    auto c = std::make_unique<client>(clients_, std::move(accepted), tasks_, queue_options(),
                                      client_limiter_, std::move(slot));
    if (config_.takes_raw_http) {
        c->is_judged = true;
        c->become_raw();
    }
    cancel_source& cancel = c->cancel;
    tasks_.spawn(serve(std::move(c)).under(cancel));
}

task<void> server_worker::drain(duration limit) {
    const time_point until = loop::current().after(limit);
    is_draining_ = true;
    if (script_) {
        co_await script_->stop(std::min(limit, script_farewell));
        to_script_clients_->flush();
    }
    co_await end_handshakes(limit);
    // Clients of a conversation that is short end it by themselves.
    const time_point last = loop::current().after(std::min(limit, replaced_grace));
    while (is_replaced() && clients_.count() > 0 && loop::current().now() < last)
        if (!co_await loop::current().sleep_for(replaced_pause)) break;
    if (others_) {
        taking_in_.cancel();
        co_await taking_in_.join();
        co_await take_in_rest(until);
    }
    out_.flush();
    clients_.for_each([&](serving::connection& each) {
        auto& c = static_cast<client&>(each);
        if (c.input.empty()) c.become_raw();
        if (c.speaks == speech::http && c.doing() == serving::activity::resting)
            c.close();
        else
            leave_websocket(c);
    });
    if (is_replaced()) close_flushed();
    if (limit > duration{}) {
        // One that reads slowly must not keep the others from the next server.
        co_await flush_queues(is_replaced() ? std::min(until, loop::current().after(replaced_flush))
                                            : until);
        co_await end_http(until);
    }
    tasks_.cancel();
    co_await tasks_.join();
    if (script_) {
        const duration left = until - loop::current().now();
        co_await script_->end(std::clamp(left, duration{}, duration(script_farewell)));
    }
    background_.cancel();
    co_await background_.join();
}

/// Closes the clients that have got all that was for them.
void server_worker::close_flushed() {
    clients_.for_each([](serving::connection& each) {
        auto& c = static_cast<client&>(each);
        if (c.speaks != speech::http && c.out.queued_bytes() == 0) c.close();
    });
}

/// Queues the last frame for a WebSocket.
void server_worker::leave_websocket(client& c) {
    if (!c.web() || !c.listens()) return;
    const byte_buffer last = close_frame(eddy::websocket::close_code::going_away);
    (void)c.enqueue(last.bytes(), 0);
    c.leaving = true;
}

/// Closes the other clients, and awaits the end of the responses of HTTP.
task<void> server_worker::end_http(time_point until) {
    if (http_clients_ == 0) co_return;
    clients_.for_each([](serving::connection& each) {
        if (static_cast<client&>(each).speaks != speech::http) each.close();
    });
    (void)co_await with_deadline(until, no_http_clients_.wait());
}

task<void> server_worker::flush_queues(time_point until) {
    std::uint64_t done = 0;
    for (;;) {
        // The clients stand in the order of their ids; some may leave while one is waited for.
        client* next = nullptr;
        clients_.for_each([&](serving::connection& each) {
            auto& c = static_cast<client&>(each);
            if (!next && c.id() > done && c.out.queued_bytes() > 0) next = &c;
        });
        const duration left = until - loop::current().now();
        if (!next || left <= duration{}) co_return;
        done = next->id();
        (void)co_await next->out.flush_within(left);
    }
}

task<result<>> server_worker::flush_now() {
    out_.flush();
    co_return result<>();
}

task<result<>> server_worker::wait_for_readers(time_point until) {
    while (out_.must_wait(nullptr)) {
        const result<> waited = co_await with_deadline(until, out_.wait_for_readers(nullptr));
        if (!waited) co_return waited;
        out_.flush();
    }
    co_return result<>();
}

task<result<std::uint64_t>> server_worker::send_here(shared_messages what,
                                                     std::optional<time_point> arrived,
                                                     time_point until) {
    if (config_.slow_reader == slow_reader_policy::wait) {
        out_.flush();
        const result<> ready = co_await wait_for_readers(until);
        if (!ready) co_return fail(ready.error());
    }
    co_return out_.deliver(what, arrived);
}

histogram server_worker::latency() const {
    const std::lock_guard lock(latency_guard_);
    return latency_;
}

/// Takes in what other loops send. Under --slow-reader wait it waits for readers as any sender
/// does; the inbox fills meanwhile, and then the senders on other loops wait, too.
task<void> server_worker::take_in() {
    EDDY_ASSERT(others_.has_value());
    inbox& own = others_->own();
    int batches = 0;
    while (co_await own.came().wait()) {
        own.came().reset();
        while (const auto next = own.front()) {
            if (config_.slow_reader == slow_reader_policy::wait) {
                out_.flush();
                if (out_.must_wait(nullptr)) {
                    if (!co_await out_.wait_for_readers(nullptr)) co_return;
                    continue;
                }
            }
            deliver(*next);
            own.pop();
            if (++batches % batches_a_turn == 0) co_await loop::current().yield();
        }
    }
}

/// The same for what is there at the end.
task<void> server_worker::take_in_rest(time_point until) {
    inbox& own = others_->own();
    while (const auto next = own.front()) {
        out_.flush();
        if (config_.slow_reader == slow_reader_policy::wait && out_.must_wait(nullptr)) {
            if (co_await wait_for_readers(until)) continue;
        }
        deliver(*next);
        own.pop();
    }
}

void server_worker::deliver(const shared_messages& what) {
    if (what.to == nullptr)
        modes_.deliver(what);
    else if (script_)
        to_script_clients_->deliver(*script_, what);
}

/// A client's life: read, pass on, until one side ends it. Tens of thousands of these may sleep at
/// a time: what is rare is done by other functions, to keep this frame small.
task<void> server_worker::serve(std::unique_ptr<client> c) {
    greet(*c);
    bool out_of_memory = false;
    try {
        enter_script(*c);
        progress state;
        if (!c->input.empty()) state = begin_moved(*c);
        while (state.next < progress::then::close) {
            if (state.next == progress::then::read) {
                c->enter(c->input.empty() ? serving::activity::resting
                                          : serving::activity::reading);
                result<lease> got = co_await c->socket.read();
                c->enter(serving::activity::working);
                if (got)
                    state = receive(*c, std::move(*got));
                else if (got.error() == errc::end_of_stream)
                    state = finish_input(*c);
                else if (c->is_dismissed)
                    state.next = progress::then::close;
                else if (!moving_ || !c->take_interruption(tasks_.source()) || co_await move(*c))
                    break;
            } else {
                state = co_await go_on(state.next, state.pause, *c);
            }
        }
        if (c->is_dismissed) (void)c->take_interruption(tasks_.source());
        if (state.next == progress::then::close || state.next == progress::then::refuse)
            co_await say_farewell(*c, state.next);
    } catch (const std::bad_alloc&) {
        out_of_memory = true;
    }
    leave_script(*c);
    see_off(*c, out_of_memory);
}

void server_worker::greet(const client& c) {
    if (!config_.log_traffic) return;
    context_.events.write(
        fmt::format("client {} connected from {}", c.id(), c.socket.peer().to_string()));
}

void server_worker::see_off(const client& c, bool out_of_memory) {
    modes_.leave(c);
    if (out_of_memory) {
        ++counted_.errors;
        context_.events.write(fmt::format("client {} closed: no memory for its messages", c.id()));
    } else if (config_.log_traffic) {
        context_.events.write(fmt::format("client {} left", c.id()));
    }
}

[[gnu::noinline]] server_worker::progress server_worker::receive(client& c, lease got) {
    c.touch();
    counted_.bytes_in += got.size();
    const time_point arrived = loop::current().now();
    if (c.web()) return receive_frames(c, got.text());
    if (!c.is_judged) return receive_first(c, got.text(), arrived);
    if (!c.input.empty()) {
        c.input.append(got.text());
        got.reset();
        return consume_rest(c, arrived);
    }
    const progress made = consume(c, got.text(), arrived);
    c.input.append(got.text().substr(made.used));
    return made;
}

/// The client has finished sending. A last line without a newline is a line all the same.
[[gnu::noinline]] server_worker::progress server_worker::finish_input(client& c) {
    progress made;
    if (!std::exchange(c.finished, true) && !c.input.empty() && !c.web()) {
        if (!std::exchange(c.is_judged, true) &&
            judge_first_bytes(c.input.text(), recognition(), true) == speech::http)
            return begin_http(c);
        c.become_raw();
        if (config_.messages == framing::line && !c.input.text().ends_with('\n'))
            c.input.append('\n');
        made = consume_rest(c, loop::current().now());
    }
    c.become_raw();
    if (made.next == progress::then::read) made.next = progress::then::close;
    return made;
}

first_bytes_rules server_worker::recognition() const noexcept {
    return {.by_line = config_.messages == framing::line,
            .longest_message = config_.max_line,
            .is_secure = is_secure()};
}

bool server_worker::is_secure() const noexcept { return runtime::is_secure(config_.where); }

/// The first line of a client decides what it speaks.
server_worker::progress server_worker::receive_first(client& c, std::string_view text,
                                                     time_point arrived) {
    EDDY_ASSERT(!c.is_judged && !c.web());
    c.input.append(text);
    const first_bytes_rules rules = recognition();
    const foreign_protocol other = judge_foreign_protocol(c.input.text(), rules);
    if (other == foreign_protocol::undecided) return {};
    if (other != foreign_protocol::none) return refuse_client(c, refusal_of(other));
    switch (judge_first_bytes(c.input.text(), rules)) {
        case speech::http: return begin_http(c);
        case speech::undecided:
            if (c.input.size() <= longest_blank_start || !is_blank(c.input.text())) return {};
            break;
        default:
            c.is_judged = true;
            c.become_raw();
            break;
    }
    return consume_rest(c, arrived);
}

/// A request, with its cookies, is none of the messages that others get, though after messages it
/// cannot be answered.
server_worker::progress server_worker::begin_http(const client& c) {
    EDDY_ASSERT(!c.web());
    if (c.speaks != speech::undecided) return refuse_client(c, refusal::late_request);
    progress made;
    made.next = progress::then::http;
    return made;
}

server_worker::progress server_worker::refuse_client(const client& c, refusal reason) {
    ++counted_.errors;
    note(reason, c);
    progress over;
    over.next = progress::then::close;
    return over;
}

void server_worker::note(refusal reason, const client& c, std::string_view detail) {
    const time_point now = loop::current().now();
    std::optional<time_point>& last = noted_at_[static_cast<std::size_t>(reason)];
    if (last && now - *last < refusal_note_pause) return;
    last = now;
    context_.events.write(fmt::format("client {} {}", c.id(), text_of(reason, detail)));
}

/// Waits for a rate limit, for slow readers, or for other loops; or serves requests. Yields what is
/// next.
[[gnu::noinline]] task<server_worker::progress> server_worker::go_on(progress::then next,
                                                                     duration length, client& c) {
    progress over;
    over.next = progress::then::end;
    const auto rest = [&] {
        const bool is_over = c.cancel.requested() && !c.is_dismissed;
        return is_over ? over : consume_rest(c, loop::current().now());
    };
    switch (next) {
        case progress::then::http: {
            while (c.script != nullptr && c.script->is_busy)
                if (!co_await c.script->idle.wait()) break;
            if (c.is_dismissed || c.cancel.requested()) {
                over.next = c.is_dismissed ? progress::then::close : over.next;
                co_return over;
            }
            co_await serve_http(c);
            if (!c.web()) break;
            const byte_buffer received = std::move(c.web()->pending);
            co_return receive_frames(c, received.text());
        }
        case progress::then::script: (void)co_await c.script->idle.wait(); co_return rest();
        case progress::then::yield: (void)co_await loop::current().yield(); co_return rest();
        case progress::then::pause:
            (void)co_await loop::current().sleep_for(length);
            co_return rest();
        case progress::then::wait_for_loops:
            (void)co_await others_->wait_for_room();
            co_return rest();
        case progress::then::run_commands: co_return co_await run_commands(c);
        default: (void)co_await out_.wait_for_readers(&c); co_return rest();
    }
    co_return over;
}

/// Counts a client of HTTP as long as it lives.
class server_worker::http_client {
public:
    explicit http_client(server_worker& of) noexcept : of_(of) {
        ++of_.http_clients_;
        of_.no_http_clients_.reset();
    }
    ~http_client() {
        EDDY_ASSERT(of_.http_clients_ > 0);
        if (--of_.http_clients_ == 0) of_.no_http_clients_.set();
    }
    http_client(const http_client&) = delete;
    http_client& operator=(const http_client&) = delete;

private:
    server_worker& of_;
};

/// Requests, until the client is a WebSocket or its connection ends.
task<void> server_worker::serve_http(client& c) {
    if (to_script_clients_) to_script_clients_->keep_held(c);
    c.become_http(counted_);
    const http_client counting(*this);
    http_visit visit(*this, c, files_ ? &*files_ : nullptr, counted_, http_requests_,
                     c.input.size());
    eddy::http::session_limits limits;
    if (config_.idle_timeout > duration{}) limits.idle_time = config_.idle_timeout;
    byte_buffer received = std::move(c.input);
    co_await eddy::http::serve_observed(c.socket, visit, limits, visit, std::move(received));
}

std::size_t server_worker::max_web_message() const noexcept {
    return config_.messages == framing::line ? config_.max_line : out_.piece_limit();
}

void server_worker::open_websocket(client& c, stream peer, byte_buffer received) {
    EDDY_ASSERT(c.speaks == speech::http);
    c.socket = std::move(peer);
    c.extra = std::make_unique<web_peer>(context_.web_clients, max_web_message());
    c.speaks = speech::web;
    c.web()->pending = std::move(received);
    // Short lines are longer as frames, and what fits into the queues of the others fits here, too.
    c.out.raise_limit(2 * config_.max_queue);
    if (to_script_clients_) to_script_clients_->opened(c);
    if (is_draining_) leave_websocket(c);
    if (config_.log_traffic) context_.events.write(fmt::format("client {} uses WebSocket", c.id()));
}

server_worker::progress server_worker::receive_frames(client& c, std::string_view text) {
    const bool by_line = config_.messages == framing::line;
    c.web()->decode(text, c.input, by_line);
    byte_buffer& replies = c.web()->replies();
    if (!replies.empty()) {
        // One that does not read gets no more than its queue holds.
        (void)c.enqueue(replies.bytes(), 0);
        replies.clear();
        replies.release_if_empty();
    }
    return consume_rest(c, loop::current().now());
}

/// Lets the client have what is queued for it, and perhaps the reason, before it is closed.
[[gnu::noinline]] task<void> server_worker::say_farewell(client& c, progress::then why) {
    // Broadcasts of its script are for it, too.
    if (c.script != nullptr) out_.flush();
    c.leaving = true;
    modes_.leave(c);
    c.input = byte_buffer();
    if (why == progress::then::refuse && c.web()) {
        ++counted_.errors;
        note(refusal::bad_frame, c, format_size(static_cast<std::int64_t>(max_web_message())));
    } else if (why == progress::then::refuse) {
        ++counted_.errors;
        const std::string most = format_size(static_cast<std::int64_t>(config_.max_line));
        note(refusal::long_line, c, most);
        const std::string reason = fmt::format("error: a line is longer than {}; closing\n", most);
        (void)c.enqueue(as_bytes(reason), 0);
    }
    result<> taken = co_await c.out.flush_within(farewell);
    if (taken) taken = c.socket.shutdown_write();
    if (!taken) co_return c.disconnect();
    if (why == progress::then::refuse) co_await serving::linger(c);
}

server_worker::progress server_worker::consume_rest(client& c, time_point arrived) {
    progress made = consume(c, c.input.text(), arrived);
    EDDY_ASSERT(made.used <= c.input.size());
    c.input.consume(made.used);
    c.input.release_if_empty();
    if (c.web() && made.next == progress::then::read && c.web()->now() != web_peer::state::open) {
        const bool is_broken = c.web()->now() == web_peer::state::broken;
        made.next = is_broken ? progress::then::refuse : progress::then::close;
    }
    return made;
}

/// Passes on the whole messages at the start of `input`, as far as limits allow.
server_worker::progress server_worker::consume(client& c, std::string_view input,
                                               time_point arrived) {
    progress made;
    if (config_.mode == flow::out && !modes_.has_commands()) {
        made.used = input.size();
        return made;
    }
    if (c.script != nullptr) {
        if (c.is_dismissed)
            made.next = progress::then::close;
        else if (c.script->is_busy)
            made.next = progress::then::script;
        if (made.next != progress::then::read) return made;
    }
    while (made.used < input.size()) {
        const line_command_split first = modes_.split(input.substr(made.used));
        if (first.what == line_command::cache) {
            made.next = progress::then::run_commands;
            return made;
        }
        if (first.what == line_command::master) {
            const progress claimed = take_claim(c, first);
            made.used += claimed.used;
            made.next = claimed.next;
            made.pause = claimed.pause;
            if (made.next != progress::then::read) return made;
            continue;
        }
        if (c.script != nullptr && script_->takes_messages_of(*c.script)) {
            const progress handed =
                consume_by_script(c, input.substr(made.used, first.size), arrived);
            made.used += handed.used;
            made.next = handed.next;
            made.pause = handed.pause;
            if (handed.used == 0 || made.next != progress::then::read) return made;
            continue;
        }
        const client_modes::route to = modes_.route_of(c);
        if (const auto waits = wait_before(c, to != client_modes::route::none)) {
            made.next = *waits;
            return made;
        }
        const std::string_view rest = modes_.bounded(input.substr(made.used, first.size), to);
        const piece next =
            config_.messages == framing::line ? next_lines(c, rest) : next_bytes(c, rest);
        if (next.size > 0) pass_on(c, rest.substr(0, next.size), next.messages, arrived, to);
        made.used += next.size;
        EDDY_ASSERT(next.size <= rest.size());
        if (next.too_long) {
            made.next = progress::then::refuse;
            return made;
        }
        if (next.paused) {
            made.next = progress::then::pause;
            made.pause = next.pause;
            return made;
        }
        if (next.size == 0) return made;
    }
    return made;
}

/// Reason to wait before another message of the client, if there is one.
std::optional<server_worker::progress::then> server_worker::wait_before(const client& c,
                                                                        bool is_sent) {
    if (!is_sent) return std::nullopt;
    if (config_.slow_reader == slow_reader_policy::wait && out_.must_wait(&c))
        return progress::then::wait_for_readers;
    if (others_ && others_->must_wait()) return progress::then::wait_for_loops;
    return std::nullopt;
}

/// The script gets the messages, one by one.
server_worker::progress server_worker::consume_by_script(client& c, std::string_view input,
                                                         time_point /*arrived*/) {
    to_script_clients_->begin_batch(*c.script);
    progress made;
    while (made.used < input.size() && made.next == progress::then::read) {
        if (const auto waits = wait_before(c, config_.mode == flow::inout)) {
            made.next = *waits;
            break;
        }
        const progress one = hand_to_script(c, input.substr(made.used));
        made.used += one.used;
        made.next = one.next;
        made.pause = one.pause;
        if (one.used == 0) break;
    }
    to_script_clients_->end_batch();
    return made;
}

/// The same for the first message of `input`.
server_worker::progress server_worker::hand_to_script(client& c, std::string_view input) {
    const bool by_line = config_.messages == framing::line;
    const piece next = by_line ? next_line(c, input) : next_bytes(c, input);
    progress made;
    made.used = next.size;
    if (next.size > 0) {
        std::string_view text = input.substr(0, next.size);
        note_messages(c, text, 1);
        if (by_line) text.remove_suffix(text.ends_with("\r\n") ? 2 : 1);
        if (!script_->message(*c.script, text)) made.next = progress::then::script;
        if (script_->is_round_over()) made.next = progress::then::yield;
        if (c.is_dismissed) made.next = progress::then::close;
    } else if (next.too_long) {
        made.next = progress::then::refuse;
    } else if (next.paused) {
        made.next = progress::then::pause;
        made.pause = next.pause;
    }
    return made;
}

/// A client that has come, for the script.
void server_worker::enter_script(client& c) {
    if (!script_) return;
    context_.script_clients.fetch_add(1, std::memory_order_relaxed);
    c.script = &script_->enter(c.id(), &c);
    script_->connect(*c.script);
}

void server_worker::leave_script(client& c) noexcept {
    if (c.script == nullptr) return;
    context_.script_clients.fetch_sub(1, std::memory_order_relaxed);
    to_script_clients_->drop(*c.script);
    script_->leave(*std::exchange(c.script, nullptr));
}

task<result<bool>> server_worker::take_upstream(upstream_event what) {
    if (!script_) co_return false;
    co_return co_await script_->upstream(std::move(what));
}

task<outcome<>> server_worker::start_script() {
    if (!script_) co_return outcome<>();
    co_return co_await script_->start();
}

task<result<outcome<std::optional<std::string>>>> server_worker::ask_script(std::string text) {
    if (!script_ || !script_->takes_sends()) co_return outcome<std::optional<std::string>>(text);
    co_return co_await script_->send(std::move(text));
}

task<outcome<>> server_worker::prepare_script(script_file by) {
    if (!script_) co_return outcome<>();
    co_return co_await script_->prepare(std::move(by));
}

void server_worker::adopt_script() {
    if (script_) script_->adopt();
}

void server_worker::discard_script() {
    if (script_) script_->discard();
}

/// Takes one message from the rate limits; returns the time for which it must wait.
duration server_worker::pace(client& c) {
    if (std::exchange(c.paid, false)) return {};
    duration wait{};
    const time_point now = loop::current().now();
    if (!c.limiter.unlimited()) wait = c.limiter.take_later(1, now);
    if (!context_.pace.unlimited()) wait = std::max(wait, context_.pace.take_later(1, now));
    c.paid = wait > duration{};
    return wait;
}

server_worker::piece server_worker::next_lines(client& c, std::string_view input) {
    const std::size_t most = out_.piece_limit();
    const bool paced = !c.limiter.unlimited() || !context_.pace.unlimited();
    piece made;
    if (!paced && input.size() <= std::min(config_.max_line, most)) {
        // The common case: no line can be too long, and all of them may go.
        const void* last = ::memrchr(input.data(), '\n', input.size());
        if (!last) return made;
        made.size = static_cast<std::size_t>(static_cast<const char*>(last) - input.data()) + 1;
        made.messages =
            static_cast<std::uint64_t>(std::count(input.data(), input.data() + made.size, '\n'));
        return made;
    }
    while (made.size < input.size()) {
        const std::size_t end = input.find('\n', made.size);
        const std::size_t length = (end == std::string_view::npos ? input.size() : end) - made.size;
        if (length > config_.max_line) {
            made.too_long = true;
            break;
        }
        if (end == std::string_view::npos) break;
        if (made.size > 0 && end + 1 > most) break;
        if (paced) {
            made.pause = pace(c);
            made.paused = made.pause > duration{};
            if (made.paused) break;
        }
        made.size = end + 1;
        ++made.messages;
    }
    return made;
}

/// The first line alone.
server_worker::piece server_worker::next_line(client& c, std::string_view input) {
    piece made;
    const std::size_t end = input.find('\n');
    const std::size_t length = end == std::string_view::npos ? input.size() : end;
    made.too_long = length > config_.max_line;
    if (made.too_long || end == std::string_view::npos) return made;
    if (!c.limiter.unlimited() || !context_.pace.unlimited()) {
        made.pause = pace(c);
        made.paused = made.pause > duration{};
        if (made.paused) return made;
    }
    made.size = end + 1;
    made.messages = 1;
    return made;
}

server_worker::piece server_worker::next_bytes(client& c, std::string_view input) {
    piece made;
    made.pause = pace(c);
    made.paused = made.pause > duration{};
    if (made.paused) return made;
    made.size = std::min(input.size(), out_.piece_limit());
    made.messages = 1;
    if (c.web()) {
        made.size = c.web()->first_size();
        c.web()->drop_first();
    }
    return made;
}

/// A line that claims the master is none of the messages.
server_worker::progress server_worker::take_claim(client& c, const line_command_split& line) {
    progress made;
    made.pause = pace(c);
    if (made.pause > duration{}) {
        made.next = progress::then::pause;
        return made;
    }
    ++counted_.messages_in;
    made.used = line.size;
    if (c.script == nullptr || !script_->judges_claims())
        modes_.claim(c, line.argument);
    else if (modes_.begin_claim(c) && !script_->claim(*c.script, line.argument))
        made.next = progress::then::script;
    return made;
}

/// Runs the commands at the start of a client's input, then consumes the rest.
task<server_worker::progress> server_worker::run_commands(client& c) {
    std::vector<std::string> commands;
    std::size_t used = 0;
    progress paused;
    while (commands.size() < max_cache_batch) {
        const line_command_split line = modes_.split(c.input.text().substr(used));
        if (line.what != line_command::cache) break;
        paused.pause = pace(c);
        if (paused.pause > duration{}) {
            paused.next = progress::then::pause;
            break;
        }
        commands.emplace_back(line.argument);
        used += line.size;
    }
    counted_.messages_in += commands.size();
    c.input.consume(used);
    const result<> done =
        commands.empty() ? result<>() : co_await modes_.run_commands(c, std::move(commands));
    if (!done || c.cancel.requested()) {
        progress over;
        over.next = progress::then::end;
        co_return over;
    }
    if (paused.next == progress::then::pause) co_return paused;
    co_return consume_rest(c, loop::current().now());
}

void server_worker::pass_on(client& c, std::string_view messages, std::uint64_t count,
                            time_point arrived, client_modes::route to) {
    if (config_.mode == flow::out) return;
    modes_.send_on(c, messages, count, to, arrived);
    note_messages(c, messages, count);
}

void server_worker::note_messages(const client& c, std::string_view messages, std::uint64_t count) {
    counted_.messages_in += count;
    if (context_.has_log && !context_.log.append(messages, count)) counted_.dropped += count;
    if (config_.mode == flow::in || config_.log_traffic)
        journal_messages(context_.events, c.id(), messages, config_.messages == framing::line);
}

}  // namespace eddy::runtime::server
