// The life of a server's connection.
#include <eddy/http/session.hpp>

#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/log.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/timeout.hpp>
#include <eddy/io/when.hpp>

#include "http/fields/http_date.hpp"
#include "http/session/message_reader.hpp"
#include "http/session/message_writer.hpp"
#include "http/session/resting_session.hpp"
#include "http/session/spare_buffers.hpp"
#include "io/sockets/linger.hpp"
#include "net/network.hpp"

#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

namespace eddy::http {
namespace {

using http1::body_framing;

bool has_no_body(int status) noexcept { return status == 204 || status == 304; }

/// Framing of a response's body. HTTP/1.0 has no chunks.
body_framing framing_of(const response& answer, unsigned minor_version) {
    if (has_no_body(answer.status)) return body_framing::none();
    if (const auto size = answer.body.size()) return body_framing::sized(*size);
    return minor_version == 0 ? body_framing::until_close() : body_framing::chunked();
}

/// `version` is the minor one of the request.
void write_head(byte_buffer& out, const response& answer, body_framing framing, bool keep,
                unsigned version) {
    http1::head_writer writer(out);
    writer.response(answer.status).fields(answer.headers);
    if (!answer.headers.contains("Date")) {
        thread_local http_date_writer dates;
        out.append(dates.write_field(wall_clock_seconds()));
    }
    // The framing until the close needs no field.
    const bool says_close = framing.how == body_framing::kind::until_close ||
                            answer.headers.contains_token("Connection", "close");
    if (!keep && !says_close)
        writer.field("Connection", "close");
    else if (keep && version == 0)
        writer.field("Connection", "keep-alive");
    const auto written = writer.end(framing);
    EDDY_ASSERT(written.has_value());  // response::is_valid() has been checked
}

/// The request's fault: what to answer. No status where the connection has failed.
http1::parse_error fault_of(std::error_code failure, const http1::parse_error& of_parser) {
    if (of_parser.status != 0) return of_parser;
    if (failure == errc::limit_reached) return {413, "the body is above the limit"};
    if (failure == errc::timed_out) return {408, "the request did not arrive whole in time"};
    return {};
}

/// The fault of a request whose handler has thrown. Rethrows what is no std::exception.
http1::parse_error fault_of_handler(const std::exception_ptr& failure,
                                    const http1::request_head& head) {
    try {
        std::rethrow_exception(failure);
    } catch (const std::bad_alloc&) {
        return {503, "there is no memory for the request"};
    } catch (const std::exception& thrown) {
        log_error("http", head.method + " " + head.target + ": " + thrown.what());
        return {500, "the request could not be answered"};
    }
}

/// Status in the record of a request whose connection ended before a response began, as in nginx's
/// logs. It is never sent.
constexpr int no_response = 499;

/// Status in the record of a head that a reset has cut off, as of one that ended with the client's
/// half of the connection. It is never sent.
constexpr int cut_head = 400;

/// For sessions without an observer.
class unobserved final : public session_observer {
public:
    void enter(session_state) noexcept override {}
    void note(const exchange_record&) override {}
    bool is_ending() const noexcept override { return false; }
};

/// Responses with a text of at most this many bytes wait for the responses to the requests behind
/// them, so that a pipeline is answered by one write.
constexpr std::size_t queued_text_limit = 16 * 1024;
/// Bytes of responses that wait at most; one response comes on top.
constexpr std::size_t queued_limit = 64 * 1024;
/// Most requests of a pipeline that are answered before other work of the loop runs.
constexpr unsigned requests_in_a_row = 32;
/// Pause before queued responses are tried again while a handler waits and the socket is full.
constexpr duration flush_pause = std::chrono::milliseconds(10);
/// Lingering behind a request that has come whole, whose client sends no more but requests of a
/// pipeline, and behind one that came too slowly: its client must not hold its place for longer.
constexpr duration short_linger_time = std::chrono::seconds(2);
/// A handler works for so long before its session begins to watch whether the client is still
/// there.
constexpr duration unwatched_time = std::chrono::milliseconds(100);

class server_session final : private timer, private request_session {
public:
    server_session(stream& peer, request_handler& handler, const session_limits& limits,
                   session_observer& observer, resting_observer* leaving, duration rest_after)
        : peer_(peer),
          handler_(handler),
          limits_(limits),
          observer_(observer),
          leaving_(leaving),
          rest_after_(rest_after),
          parser_(limits.parser),
          reader_(peer_, parser_, traffic_),
          client_watch_(*this) {}

    /// A response that broke off, in whatever way, must not look whole. Only here: the observer may
    /// need the peer's address before.
    ~server_session() {
        stop_flush_timer();
        if (is_cut_) peer_.abort();
    }
    server_session(const server_session&) = delete;
    server_session& operator=(const server_session&) = delete;

    /// Yields whether the connection rests: open, idle, and without a byte of the peer's here.
    task<bool> run();
    /// Before run(): bytes that the client has sent.
    void begin_with(byte_buffer received) {
        if (!received.empty()) reader_.append(received.bytes());
    }
    /// The connection's next owner; null where it ends.
    std::unique_ptr<connection_takeover> take_successor() noexcept { return std::move(successor_); }
    byte_buffer take_rest() noexcept { return reader_.take_rest(); }

private:
    /// Begins to watch the client of a handler that takes long. It stays armed from one request to
    /// the next, so that those which are answered at once cost no timer.
    class watch_timer final : private timer {
    public:
        explicit watch_timer(server_session& of) noexcept : of_(of) {}
        ~watch_timer() {
            if (armed()) loop::current().disarm(*this);
        }
        void start() noexcept {
            is_working_ = true;
            loop& here = loop::current();
            if (!armed()) here.arm(*this, here.after(unwatched_time));
        }
        void stop() noexcept { is_working_ = false; }

    private:
        void fire() noexcept override {
            if (!is_working_) return;
            loop& here = loop::current();
            const time_point due = of_.head_at_ + unwatched_time;
            if (here.now() < due)
                here.arm(*this, due);
            else
                of_.watch_client();
        }

        server_session& of_;
        bool is_working_ = false;
    };

    enum class arrival : unsigned char { head, malformed, timed_out, ended, rests };

    void begin_request() noexcept;
    std::optional<arrival> take_head();
    task<arrival> await_head();
    task<bool> answer_request();
    void begin_body(const http1::request_head& head);
    bool may_keep(const http1::request_head& head, const response& answer);
    task<result<>> send_interim(int status, http1::header_list fields) override;
    void take_expectation() noexcept override { reader_.take_expectation(); }
    scope& background() override;
    const client_address& client() override;
    [[gnu::noinline]] task<void> end_background();
    void watch_client() noexcept;
    [[gnu::noinline]] task<void> end_watch();
    // Code that is rare or waits has a frame of its own: the compiler would inline it into the
    // frames of its callers, which every connection has.
    [[gnu::noinline]] task<void> reject(http1::parse_error fault,
                                        const http1::request_head* request,
                                        const upstream_note* upstream = nullptr);
    void make_valid(response& answer);
    bool sends_no_content(const response& answer) const noexcept;
    bool queue(const response& answer);
    [[gnu::noinline]] task<result<>> switch_protocols(response answer);
    [[gnu::noinline]] task<result<>> flush();
    void start_flush_timer() noexcept;
    void stop_flush_timer() noexcept;
    void fire() noexcept override;
    [[gnu::noinline]] task<result<>> send(response answer, bool keep);
    [[gnu::noinline]] task<result<>> stream_body(const body& content, message_writer& to);
    task<void> produce(body_producer& from, message_writer& to, cancel_source& waiting,
                       result<>& sent);
    task<void> watch_for_hangup(cancel_source& to_cancel, bool is_finite);
    [[gnu::noinline]] task<void> linger(duration longest);

    void note(const http1::request_head* request, int status, bool is_whole,
              const upstream_note* upstream = nullptr);

    stream& peer_;
    request_handler& handler_;
    const session_limits& limits_;
    session_observer& observer_;
    resting_observer* const leaving_;  // the same; null where it never leaves
    const duration rest_after_;        // that it is idle
    traffic traffic_;
    http1::request_parser parser_;
    message_reader reader_;
    byte_buffer out_;       // responses that wait, and the head of the one that is sent
    bool is_cut_ = false;   // a response is under way, or broke off
    duration head_time_{};  // that the request's head took
    time_point head_at_;    // when it was complete
    std::unique_ptr<connection_takeover> successor_;
    std::optional<cancel_source> hangup_;  // of the handler
    std::unique_ptr<scope> watching_;      // while the client of a handler is watched
    std::unique_ptr<scope> background_;    // beside the response at hand
    watch_timer client_watch_;
    std::unique_ptr<client_address> client_;  // once a handler has asked
};

task<bool> server_session::run() {
    hangup_.emplace(co_await current_source());
    unsigned in_a_row = 0;
    for (;;) {
        begin_request();
        // The next of a pipeline is there already.
        std::optional<arrival> came = reader_.waiting() > 0 ? take_head() : std::nullopt;
        if (!came) came = co_await await_head();
        switch (*came) {
            case arrival::ended: co_return false;
            case arrival::rests: co_return true;
            case arrival::timed_out:
                co_await reject(fault_of(errc::timed_out, {}), nullptr);
                co_return false;
            case arrival::malformed: co_await reject(parser_.error(), nullptr); co_return false;
            case arrival::head: break;
        }
        const bool goes_on = co_await answer_request();
        if (background_) co_await end_background();
        if (goes_on && ++in_a_row == requests_in_a_row) {
            in_a_row = 0;
            static_cast<void>(co_await loop::current().yield());
        }
        if (!goes_on) co_return false;
    }
}

void server_session::begin_request() noexcept {
    head_at_ = loop::current().now();
    head_time_ = duration::zero();
    parser_.set_body_limit(limits_.parser.body);
}

/// Takes the received head; none if it is not whole.
std::optional<server_session::arrival> server_session::take_head() {
    const http1::step step = reader_.parse();
    if (step.what == http1::event::error) return arrival::malformed;
    if (step.what != http1::event::head) return std::nullopt;
    observer_.enter(session_state::working);
    return arrival::head;
}

task<server_session::arrival> server_session::await_head() {
    loop& here = loop::current();
    time_point deadline = here.after(std::min(limits_.idle_time, rest_after_));
    std::optional<time_point> begun;
    for (;;) {
        if (const auto came = take_head()) {
            head_at_ = here.now();
            if (begun) head_time_ = head_at_ - *begun;
            co_return *came;
        }
        // First, since a client's time to send does not run while it reads.
        if (!out_.empty()) {
            const auto sent = co_await flush();
            if (!sent) co_return arrival::ended;
        }
        if (!begun && !parser_.idle()) {
            begun = here.now();
            deadline = here.after(limits_.request_time);
            observer_.enter(session_state::receiving);
        }
        if (!begun) {
            if (!observer_.awaits_request()) co_return arrival::ended;
            observer_.enter(session_state::idle);
            reader_.release_memory();
            give_spare(out_);
            if (leaving_ != nullptr && leaving_->is_leaving()) co_return arrival::rests;
        }
        const auto received = co_await reader_.receive(deadline);
        bool goes_on = false;
        if (leaving_ != nullptr && leaving_->is_interrupted()) {
            // A child of the source that ends.
            hangup_.reset();
            goes_on = leaving_->end_interruption();
            hangup_.emplace(co_await current_source());
        }
        if (received || (goes_on && received.error() == errc::cancelled)) continue;
        if (received.error() == errc::timed_out) {
            if (begun) co_return arrival::timed_out;
            co_return rest_after_ < limits_.idle_time ? arrival::rests : arrival::ended;
        }
        // A request that was cut off is answered, for clients that closed their half only.
        if (received.error() == errc::end_of_stream && parser_.finish() == http1::event::error)
            co_return arrival::malformed;
        // No answer would reach a client that has reset the connection.
        if (begun && received.error() != errc::end_of_stream &&
            received.error() != errc::cancelled) {
            head_at_ = here.now();
            note(nullptr, cut_head, false);
        }
        co_return arrival::ended;
    }
}

void server_session::begin_body(const http1::request_head& head) {
    message_reader::terms terms;
    terms.pause = limits_.read_time;
    terms.least = limits_.read_bytes;
    terms.whole_time = std::max(limits_.request_time - head_time_, duration::zero());
    terms.expects_continue = head.expect_continue;
    terms.write_time = limits_.write_time;
    terms.limit = limits_.parser.body;
    reader_.begin_body(terms);
    // The end of a body waits for the handler, which may raise the limit on it.
    if (!head.has_body()) reader_.probe_end();
}

/// True if another request may follow the response.
bool server_session::may_keep(const http1::request_head& head, const response& answer) {
    // The rest of the body stands before the next request. Bytes that have not arrived yet are not
    // waited for, and a producer may still read them.
    const bool is_read = answer.body.producer() ? reader_.ended() : reader_.skip_received();
    return head.keep_alive && is_read && !observer_.is_ending() &&
           !answer.headers.contains_token("Connection", "close") &&
           (head.minor_version > 0 || answer.body.size());
}

/// False when the connection ends with it.
task<bool> server_session::answer_request() {
    const http1::request_head& head = parser_.head();
    begin_body(head);
    auto incoming =
        handler_.forwards() ? request::make_undecoded(head, reader_) : request::make(head, reader_);
    response answer;
    http1::parse_error fault;
    if (!out_.empty()) {
        if (head.expect_continue) {
            const auto sent = co_await flush();
            if (!sent) co_return false;
        } else {
            // The responses before must not wait for a handler that does.
            start_flush_timer();
        }
    }
    if (!incoming) {
        fault = {400, "the request's target is malformed"};
    } else {
        incoming->set_connection(peer_);
        incoming->set_session(*this);
        client_watch_.start();
        std::exception_ptr failure;
        try {
            answer = co_await eddy::detail::also_under(handler_.handle(*incoming), *hangup_);
        } catch (...) {
            failure = std::current_exception();
        }
        client_watch_.stop();
        if (watching_) co_await end_watch();
        if (failure) fault = fault_of_handler(failure, head);
        if (hangup_->requested()) {
            note(&head, no_response, false, &incoming->upstream());
            co_return false;
        }
    }
    const upstream_note* const upstream = incoming ? &incoming->upstream() : nullptr;
    // The handler may have found a fault in what it has read, or wanted to read.
    if (incoming && fault.status == 0) fault = incoming->fault();
    if (fault.status != 0) answer = handler_.reject(fault.status, fault.what);
    if (reader_.failure()) {
        fault = fault_of(reader_.failure(), parser_.error());
        if (fault.status != 0)
            co_await reject(fault, &head, upstream);
        else
            note(&head, no_response, false, upstream);
        co_return false;
    }
    if (answer.takeover && !reader_.skip_received())
        answer = handler_.reject(500, "a request with a body cannot switch protocols");
    make_valid(answer);
    if (answer.takeover) {
        const int status = answer.status;
        const auto switched = co_await switch_protocols(std::move(answer));
        note(&head, status, switched.has_value(), upstream);
        co_return false;
    }
    const bool keep = may_keep(head, answer);
    if (keep && queue(answer)) {
        note(&head, answer.status, true, upstream);
        if (out_.size() < queued_limit) co_return true;
        const auto flushed = co_await flush();
        co_return flushed.has_value();
    }
    const int status = answer.status;
    const auto sent = co_await send(std::move(answer), keep);
    note(&head, status, sent.has_value(), upstream);
    if (sent && !keep) co_await linger(reader_.ended() ? short_linger_time : duration::max());
    co_return sent&& keep;
}

task<result<>> server_session::send_interim(int status, http1::header_list fields) {
    if (parser_.head().minor_version == 0) co_return result<>();
    stop_flush_timer();
    take_spare(out_);
    const std::size_t before = out_.size();
    if (status < 100 || status > 199 || status == 101) co_return fail(errc::malformed);
    const auto written =
        http1::head_writer(out_).response(status).fields(fields).end(body_framing::none());
    if (!written) co_return written;
    traffic_.out += out_.size() - before;
    co_return co_await flush();
}

scope& server_session::background() {
    if (!background_) background_ = std::make_unique<scope>(&*hangup_);
    return *background_;
}

const client_address& server_session::client() {
    if (!client_) {
        const endpoint peer = peer_.peer();
        client_ = std::make_unique<client_address>(peer, host_text(peer));
    }
    return *client_;
}

task<void> server_session::end_background() {
    background_->cancel();
    co_await background_->join();
    background_.reset();
}

/// Watches the client of a handler that has worked for a while. Without memory there is no watch.
void server_session::watch_client() noexcept try {
    auto made = std::make_unique<scope>();
    made->spawn(watch_for_hangup(*hangup_, true));
    watching_ = std::move(made);
} catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): it is no failure
}

task<void> server_session::end_watch() {
    watching_->cancel();
    co_await watching_->join();
    watching_.reset();
}

/// `request` is null where its head is no valid one.
task<void> server_session::reject(http1::parse_error fault, const http1::request_head* request,
                                  const upstream_note* upstream) {
    observer_.enter(session_state::working);
    response answer = handler_.reject(fault.status, fault.what);
    make_valid(answer);
    const auto sent = co_await send(std::move(answer), false);
    note(request, fault.status, sent.has_value(), upstream);
    if (sent) co_await linger(fault.status == 408 ? short_linger_time : duration::max());
}

void server_session::note(const http1::request_head* request, int status, bool is_whole,
                          const upstream_note* upstream) {
    exchange_record what;
    if (upstream != nullptr && upstream->name) what.upstream = upstream;
    what.request = request;
    what.status = status;
    what.is_whole = is_whole;
    what.content_bytes = traffic_.content_out;
    what.time = loop::current().now() - head_at_;
    what.bytes_in = traffic_.in;
    what.bytes_out = traffic_.out;
    traffic_ = {};
    observer_.note(what);
}

void server_session::make_valid(response& answer) {
    if (answer.takeover && answer.status != 101 && parser_.head().method != "CONNECT")
        answer.takeover.reset();
    if (!answer.is_valid())
        answer = handler_.reject(500, "the response has a status or a field that cannot be sent");
    if (!answer.is_valid()) answer = response(500);
}

/// True if a response has no content, whatever its body.
bool server_session::sends_no_content(const response& answer) const noexcept {
    return parser_.head().method == "HEAD" || has_no_body(answer.status);
}

/// Queues a short response, to be sent with the responses to the requests behind it. False for
/// others.
bool server_session::queue(const response& answer) {
    if (answer.body.producer() || answer.body.text().size() > queued_text_limit) return false;
    take_spare(out_);
    const std::size_t before = out_.size();
    const unsigned version = parser_.head().minor_version;
    write_head(out_, answer, framing_of(answer, version), true, version);
    if (!sends_no_content(answer)) {
        out_.append(answer.body.text());
        traffic_.content_out += answer.body.text().size();
    }
    traffic_.out += out_.size() - before;
    return true;
}

/// Sends the response 101, or the success of CONNECT, behind queued responses. Bytes that follow
/// the request are no HTTP.
task<result<>> server_session::switch_protocols(response answer) {
    stop_flush_timer();
    take_spare(out_);
    const std::size_t before = out_.size();
    const auto written = http1::head_writer(out_)
                             .response(answer.status)
                             .fields(answer.headers)
                             .end(body_framing::none());
    EDDY_ASSERT(written.has_value());
    traffic_.out += out_.size() - before;
    const auto sent = co_await flush();
    if (sent) successor_ = std::move(answer.takeover);
    co_return sent;
}

/// Sends what waits.
task<result<>> server_session::flush() {
    stop_flush_timer();
    is_cut_ = true;
    const auto sent = co_await with_timeout(limits_.write_time, peer_.write_all(out_.bytes()));
    is_cut_ = !sent;
    out_.clear();
    co_return sent;
}

/// Arms the timer that sends queued responses at the end of this turn, unless they are sent before.
void server_session::start_flush_timer() noexcept {
    loop& here = loop::current();
    if (!armed()) here.arm(*this, here.now());
}

void server_session::stop_flush_timer() noexcept {
    if (armed()) loop::current().disarm(*this);
}

void server_session::fire() noexcept {
    // There is no other writer while the handler runs. An error comes again in flush().
    const auto sent = peer_.try_write(out_.bytes());
    if (!sent) return;
    out_.consume(*sent);
    loop& here = loop::current();
    if (!out_.empty()) here.arm(*this, here.after(flush_pause));
}

task<result<>> server_session::send(response answer, bool keep) {
    stop_flush_timer();
    take_spare(out_);
    const std::size_t waiting = out_.size();
    const unsigned version = parser_.head().minor_version;
    const body_framing framing = framing_of(answer, version);
    write_head(out_, answer, framing, keep, version);
    // Queued responses go out with the head. They are counted already.
    traffic_.out -= waiting;
    message_writer to(peer_, out_, framing, limits_.write_time, traffic_);
    is_cut_ = true;
    result<> sent;
    if (sends_no_content(answer)) {
        sent = co_await to.flush();
    } else if (answer.body.producer()) {
        if (parser_.head().headers.contains_token("TE", "trailers")) to.allow_trailers();
        sent = co_await stream_body(answer.body, to);
    } else {
        sent = co_await to.write(answer.body.text());
        if (sent) sent = co_await to.finish();
    }
    is_cut_ = !sent;
    co_return sent;
}

task<result<>> server_session::stream_body(const body& content, message_writer& to) {
    result<> sent;
    cancel_source waiting(co_await current_source());
    co_await with_scope([&](scope& watcher) {
        // A client that goes away must end the producer's wait for something to write.
        const bool is_finite = content.size() || content.producer()->is_finite();
        watcher.spawn(watch_for_hangup(waiting, is_finite));
        return produce(*content.producer(), to, waiting, sent);
    });
    co_return sent;
}

task<void> server_session::produce(body_producer& from, message_writer& to, cancel_source& waiting,
                                   result<>& sent) {
    if (!from.begins_at_once()) sent = co_await to.flush();
    try {
        if (sent) sent = co_await eddy::detail::also_under(from.produce(to), waiting);
    } catch (const std::bad_alloc&) {
        throw;  // a text for the log would need memory
    } catch (const std::exception& thrown) {
        const http1::request_head& head = parser_.head();
        log_error("http", head.method + " " + head.target + ": the body: " + thrown.what());
        sent = fail(errc::truncated);
    }
    if (waiting.requested()) sent = fail(errc::cancelled);
    if (sent) sent = co_await to.finish();
}

task<void> server_session::watch_for_hangup(cancel_source& to_cancel, bool is_finite) {
    // The producer may still read the request.
    const auto read = co_await reader_.body_end().wait();
    if (!read) co_return;
    for (;;) {
        auto received = co_await peer_.read();
        if (!received) {
            // A client that has finished sending still takes a body that ends by itself.
            const bool is_awaited =
                is_finite && !limits_.end_is_hangup && received.error() == errc::end_of_stream;
            if (received.error() != errc::cancelled && !is_awaited) to_cancel.request();
            co_return;
        }
        reader_.append(received->bytes());
        if (reader_.waiting() <= limits_.pipelined_bytes) continue;
        // From here on the client is not watched: what it sends waits in the kernel, for a response
        // that ends by itself.
        if (!is_finite) to_cancel.request();
        co_return;
    }
}

/// `longest` holds beside the session's own limits.
task<void> server_session::linger(duration longest) {
    if (background_) co_await end_background();  // it may read, too
    if (!peer_.shutdown_write() || !observer_.awaits_request()) co_return;
    observer_.enter(session_state::idle);
    if (leaving_ != nullptr) leaving_->note_lingering();
    linger_limits limits;
    limits.whole = std::min(limits_.linger_time, longest);
    limits.idle = limits_.linger_idle;
    co_await eddy::linger(peer_, limits);
}

/// `received` was read before.
task<succession> serve_http(stream& peer, request_handler& handler, const session_limits& limits,
                            session_observer& observer, resting_observer* leaving,
                            duration rest_after, byte_buffer received) {
    server_session serving(peer, handler, limits, observer, leaving, rest_after);
    serving.begin_with(std::move(received));
    succession next;
    next.rests = co_await serving.run();
    next.successor = serving.take_successor();
    if (next.successor) next.received = serving.take_rest();
    co_return next;
}

/// HTTP, whose memory is free before another protocol begins.
task<void> serve_all(task<succession> http, stream& peer, session_observer& observer) {
    succession next = co_await std::move(http);
    free_frame(http);
    if (!next.successor) co_return;
    observer.enter(session_state::taken_over);
    co_await next.successor->run(std::move(peer), std::move(next.received));
}

}  // namespace

task<void> serve(stream peer, request_handler& handler, session_limits limits) {
    unobserved alone;
    try {
        co_await serve_all(serve_http(peer, handler, limits, alone, nullptr, duration::max(), {}),
                           peer, alone);
    } catch (const std::bad_alloc&) {
        // It ends alone: a scope would end the other sessions, too.
        log_error("http", "a connection was closed: there is no memory for it");
    }
}

task<void> serve_observed(stream& peer, request_handler& handler, session_limits limits,
                          session_observer& observer, byte_buffer received) {
    co_await serve_all(
        serve_http(peer, handler, limits, observer, nullptr, duration::max(), std::move(received)),
        peer, observer);
}

task<succession> serve_until_rest(stream& peer, request_handler& handler,
                                  const session_limits& limits, resting_observer& observer,
                                  duration rest_after, byte_buffer received) {
    return serve_http(peer, handler, limits, observer, &observer, rest_after, std::move(received));
}

task<result<>> send_and_close(stream peer, response answer, duration time) {
    EDDY_PRECONDITION(answer.is_valid() && !answer.body.producer(),
                      "send_and_close() of a response that is not valid, or has a streamed body");
    const time_point deadline = loop::current().after(time);
    byte_buffer head;
    write_head(head, answer, framing_of(answer, 1), false, 1);
    traffic uncounted;
    message_writer to(peer, head, framing_of(answer, 1), time, uncounted);
    result<> sent = co_await to.write(answer.body.text());
    if (sent) sent = co_await to.finish();
    if (!sent) {
        peer.abort();
    } else if (peer.shutdown_write()) {
        linger_limits limits;
        limits.whole = std::max(deadline - loop::current().now(), duration::zero());
        co_await linger(peer, limits);
    }
    co_return sent;
}

}  // namespace eddy::http
