// Accepting clients, cutting what they send into messages, and passing those on.
#include "runtime/server/stream_server.hpp"

#include <eddy/io/timeout.hpp>

#include "runtime/clock.hpp"
#include "runtime/message_text.hpp"
#include "runtime/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace eddy::runtime::server {
namespace {

/// How long a client that finished sending may take to read what is left for it.
constexpr duration farewell = std::chrono::seconds(5);
/// How long `eddy send` waits for slow readers under --slow-reader wait.
constexpr duration send_patience = std::chrono::seconds(5);
/// A queued message has some overhead, so their number is limited, too: to this many bytes of
/// --max-queue each.
constexpr std::size_t bytes_a_queued_message = 64;

constexpr std::string_view refusal_line = "error: the server is full; try again later\n";

rate_limiter limiter_for(std::uint64_t per_second) noexcept {
    const auto rate = static_cast<double>(per_second);
    return rate_limiter(rate, rate, loop::current().now());
}

}  // namespace

struct stream_server::running {
    explicit running(noted_listener opened) : listening(std::move(opened)) {}

    noted_listener listening;
    endpoint address;
    scope accepting;
    scope background;
    scope logging;
    scope sessions;
    std::unique_ptr<broadcast> out;
};

stream_server::stream_server(creation from)
    : name_(std::move(from.name)),
      options_(std::move(from.options)),
      host_(std::move(from.host)),
      events_(*from.events),
      clients_(counted_, events_),
      global_limiter_(0, 0, {}),
      client_limiter_(0, 0, {}),
      log_(events_) {}

stream_server::~stream_server() = default;

connections::limits stream_server::limits() const noexcept {
    connections::limits chosen;
    chosen.most = config_.max_connections;
    chosen.idle = config_.idle_timeout;
    return chosen;
}

queued_writer_options stream_server::queue_options() const noexcept {
    queued_writer_options chosen;
    chosen.max_queued_bytes = config_.max_queue;
    chosen.max_queued_messages = static_cast<std::uint32_t>(
        std::clamp<std::size_t>(config_.max_queue / bytes_a_queued_message, 4096, 1U << 20));
    chosen.policy = config_.slow_reader;
    chosen.high_watermark = config_.max_queue / 2;
    chosen.low_watermark = config_.max_queue / 4;
    return chosen;
}

void stream_server::set_pace() {
    global_limiter_ = limiter_for(config_.global_rate_limit);
    client_limiter_ = limiter_for(config_.rate_limit);
    clients_.for_each(
        [&](connection& each) { static_cast<client&>(each).limiter = client_limiter_; });
}

task<outcome<>> stream_server::start() {
    if (running_) co_return refuse(409, name_ + " runs already");
    outcome<config> read = read_config(options_);
    if (!read) co_return std::unexpected(read.error());
    config_ = std::move(*read);

    if (!config_.log_file.empty()) {
        if (outcome<> opened = log_.open(config_.log_file); !opened) co_return opened;
    }
    outcome<noted_listener> opened = listen_on(config_.where, host_.get());
    if (!opened) {
        log_.close();
        co_return std::unexpected(opened.error());
    }
    running_ = std::make_unique<running>(std::move(*opened));
    running_->address = running_->listening.socket.local();
    running_->out =
        std::make_unique<broadcast>(clients_, counted_, events_, *latency_, config_.max_queue,
                                    config_.messages == framing::line ? config_.max_line + 1 : 0);
    set_pace();
    clients_.reset();
    clients_.set_limits(limits());
    running_->background.spawn(running_->out->run());
    if (log_.is_open()) running_->logging.spawn(log_.run());
    running_->accepting.spawn(accept_all());
    co_return outcome<>();
}

task<void> stream_server::stop(duration drain) {
    if (!running_) co_return;
    const time_point until = loop::current().after(drain);
    running_->accepting.cancel();
    co_await running_->accepting.join();
    running_->listening.socket.close();
    running_->out->flush();
    if (drain > duration{}) co_await flush_queues(until);
    running_->sessions.cancel();
    co_await running_->sessions.join();
    running_->background.cancel();
    co_await running_->background.join();
    log_.finish();
    co_await running_->logging.join();
    log_.close();
    running_.reset();
}

task<void> stream_server::flush_queues(time_point until) {
    std::uint64_t done = 0;
    for (;;) {
        // The clients stand in the order of their ids; some may leave while one is waited for.
        client* next = nullptr;
        clients_.for_each([&](connection& each) {
            auto& c = static_cast<client&>(each);
            if (!next && c.id() > done && c.out.queued_bytes() > 0) next = &c;
        });
        const duration left = until - loop::current().now();
        if (!next || left <= duration{}) co_return;
        done = next->id();
        (void)co_await next->out.flush_within(left);
    }
}

metrics stream_server::count() const {
    metrics copy(counted_);
    copy.latency = std::make_shared<const histogram>(*latency_);
    return copy;
}

endpoint stream_server::local() const { return running_ ? running_->address : endpoint(); }

task<outcome<>> stream_server::check_restart(settings next, bool /*discards_data*/) {
    outcome<config> read = read_config(next);
    if (!read) co_return std::unexpected(read.error());
    if (!read->log_file.empty()) {
        if (outcome<> good = line_log::check(read->log_file); !good) co_return good;
    }
    const endpoint own = local();
    co_return try_address(std::move(read->where), std::span(&own, 1), host_.get());
}

outcome<> stream_server::apply(const settings& changed) {
    outcome<config> read = read_config(changed);
    if (!read) return std::unexpected(read.error());
    const bool new_pace = read->rate_limit != config_.rate_limit ||
                          read->global_rate_limit != config_.global_rate_limit;
    config_.max_connections = read->max_connections;
    config_.rate_limit = read->rate_limit;
    config_.global_rate_limit = read->global_rate_limit;
    config_.idle_timeout = read->idle_timeout;
    options_ = changed;
    if (running_) {
        if (new_pace) set_pace();
        clients_.set_limits(limits());
    }
    return {};
}

task<outcome<std::uint64_t>> stream_server::send(std::string message) {
    if (auto ok = may_send(config_, name_, running_ != nullptr); !ok)
        co_return std::unexpected(ok.error());
    if (config_.messages == framing::line && !message.ends_with('\n')) message += '\n';
    if (message.size() > config_.max_queue / 2) {
        co_return refuse(400, fmt::format("the message has {} bytes; {} takes at most {}, half of "
                                          "--max-queue",
                                          message.size(), name_, config_.max_queue / 2));
    }
    const time_point patience_ends = loop::current().now() + send_patience;
    while (config_.slow_reader == slow_reader_policy::wait && running_->out->must_wait(nullptr)) {
        const result<> waited =
            co_await with_deadline(patience_ends, running_->out->wait_for_readers(nullptr));
        if (!running_) co_return refuse(409, fmt::format("{} was stopped", name_));
        if (!waited) {
            co_return refuse(503, fmt::format("a client of {} reads too slowly and the others wait "
                                              "for it (--slow-reader wait); try again later",
                                              name_));
        }
    }
    const auto count = static_cast<std::uint64_t>(std::count(message.begin(), message.end(), '\n'));
    running_->out->add(nullptr, message, std::max<std::uint64_t>(count, 1), precise_now());
    co_return running_->out->flush();
}

task<void> stream_server::accept_all() {
    // A line would corrupt what raw clients talk.
    const std::string_view refusal =
        config_.messages == framing::line ? refusal_line : std::string_view();
    for (;;) {
        result<stream> peer = co_await clients_.accept(running_->listening.socket, refusal);
        if (!peer) co_return;
        auto c = std::make_unique<client>(clients_, std::move(*peer), running_->sessions,
                                          queue_options(), client_limiter_);
        cancel_source& cancel = c->cancel;
        running_->sessions.spawn(serve(std::move(c)).under(cancel));
    }
}

/// A client's life: read, pass on, until one side ends it. Tens of thousands of these may sleep at
/// a time: what is rare is done by other functions, to keep this frame small.
task<void> stream_server::serve(std::unique_ptr<client> c) {
    greet(*c);
    bool out_of_memory = false;
    try {
        progress state;
        while (state.next < progress::then::close) {
            if (state.next == progress::then::read) {
                c->enter(c->input.empty() ? activity::resting : activity::reading);
                result<lease> got = co_await c->socket.read();
                c->enter(activity::working);
                if (got)
                    state = receive(*c, std::move(*got));
                else if (got.error() == errc::end_of_stream)
                    state = finish_input(*c);
                else
                    break;
            } else {
                co_await pause(state.next, state.pause, *c);
                if (c->cancel.requested()) break;
                state = consume_rest(*c, loop::current().now());
            }
        }
        if (state.next >= progress::then::close) co_await say_farewell(*c, state.next);
    } catch (const std::bad_alloc&) {
        out_of_memory = true;
    }
    see_off(*c, out_of_memory);
}

void stream_server::greet(const client& c) {
    if (!config_.log_traffic) return;
    events_.write(fmt::format("client {} connected from {}", c.id(), c.socket.peer().to_string()));
}

void stream_server::see_off(const client& c, bool out_of_memory) {
    if (out_of_memory) {
        ++counted_.errors;
        events_.write(fmt::format("client {} closed: no memory for what it sends", c.id()));
    } else if (config_.log_traffic) {
        events_.write(fmt::format("client {} left", c.id()));
    }
}

stream_server::progress stream_server::receive(client& c, lease got) {
    c.touch();
    counted_.bytes_in += got.size();
    const time_point arrived = loop::current().now();
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
stream_server::progress stream_server::finish_input(client& c) {
    progress made;
    if (!std::exchange(c.finished, true) && !c.input.empty()) {
        c.input.append('\n');
        made = consume_rest(c, loop::current().now());
    }
    if (made.next == progress::then::read) made.next = progress::then::close;
    return made;
}

/// Waits for a rate limit or for slow readers.
[[gnu::noinline]] task<void> stream_server::pause(progress::then why, duration length, client& c) {
    if (why == progress::then::pause)
        (void)co_await loop::current().sleep_for(length);
    else
        (void)co_await running_->out->wait_for_readers(&c);
}

/// Lets the client have what is queued for it, and perhaps the reason, before it is closed.
[[gnu::noinline]] task<void> stream_server::say_farewell(client& c, progress::then why) {
    c.leaving = true;
    c.input = byte_buffer();
    if (why == progress::then::refuse) {
        ++counted_.errors;
        const std::string most = format_size(static_cast<std::int64_t>(config_.max_line));
        events_.write(fmt::format("client {} closed: it sent a line longer than {} (--max-line)",
                                  c.id(), most));
        (void)c.out.enqueue(fmt::format("error: a line is longer than {}; closing\n", most));
    }
    if (!co_await c.out.graceful_shutdown(farewell)) co_return;
    if (why == progress::then::refuse) co_await discard_input(c.socket);
}

stream_server::progress stream_server::consume_rest(client& c, time_point arrived) {
    const progress made = consume(c, c.input.text(), arrived);
    c.input.consume(made.used);
    c.input.release_if_empty();
    return made;
}

/// Passes on the whole messages at the start of `input`, as far as limits allow.
stream_server::progress stream_server::consume(client& c, std::string_view input,
                                               time_point arrived) {
    progress made;
    if (config_.mode == flow::out) {
        made.used = input.size();
        return made;
    }
    while (made.used < input.size()) {
        if (config_.mode == flow::inout && config_.slow_reader == slow_reader_policy::wait &&
            running_->out->must_wait(&c)) {
            made.next = progress::then::wait_for_readers;
            return made;
        }
        const std::string_view rest = input.substr(made.used);
        const piece next =
            config_.messages == framing::line ? next_lines(c, rest) : next_bytes(c, rest);
        if (next.size > 0) deliver(c, rest.substr(0, next.size), next.messages, arrived);
        made.used += next.size;
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

/// Takes one message's leave from the rate limits; returns how long it must wait before it goes on.
duration stream_server::pace(client& c) {
    if (std::exchange(c.paid, false)) return {};
    duration wait{};
    const time_point now = loop::current().now();
    if (!c.limiter.unlimited()) wait = c.limiter.take_later(1, now);
    if (!global_limiter_.unlimited()) wait = std::max(wait, global_limiter_.take_later(1, now));
    c.paid = wait > duration{};
    return wait;
}

stream_server::piece stream_server::next_lines(client& c, std::string_view input) {
    const std::size_t most = running_->out->piece_limit();
    const bool paced = !c.limiter.unlimited() || !global_limiter_.unlimited();
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

stream_server::piece stream_server::next_bytes(client& c, std::string_view input) {
    piece made;
    made.pause = pace(c);
    made.paused = made.pause > duration{};
    if (made.paused) return made;
    made.size = std::min(input.size(), running_->out->piece_limit());
    made.messages = 1;
    return made;
}

void stream_server::deliver(client& c, std::string_view messages, std::uint64_t count,
                            time_point arrived) {
    counted_.messages_in += count;
    if (config_.mode == flow::inout) running_->out->add(&c, messages, count, arrived);
    if (log_.is_open() && !log_.append(messages)) counted_.dropped += count;
    if (config_.mode == flow::in || config_.log_traffic)
        journal_messages(events_, c.id(), messages, config_.messages == framing::line);
}

}  // namespace eddy::runtime::server
