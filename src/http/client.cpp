// Exchanges of a client with its server.
#include <eddy/http/client.hpp>

#include <eddy/base/assert.hpp>
#include <eddy/base/byte_buffer.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/timeout.hpp>

#include "http/alpn.hpp"
#include "http/client_plan.hpp"
#include "http/message_reader.hpp"
#include "http/message_writer.hpp"
#include "http/spare_buffers.hpp"

#include <limits>
#include <string_view>
#include <utility>

namespace eddy::http {

using http1::body_framing;

/// A connection, and the exchange that it is used for. While it waits for more of a response it
/// holds no buffer: a body may come in pieces for minutes, as of an event stream.
struct detail::client_connection {
    client_connection(stream connected, std::shared_ptr<const client_plan> chosen)
        : peer(std::move(connected)),
          plan(std::move(chosen)),
          parser(parser_limits(plan->options.limits)) {}

    static http1::limits parser_limits(const client_limits& bounds) {
        http1::limits made;
        made.start_line = bounds.start_line;
        made.header_bytes = bounds.header_bytes;
        made.header_count = bounds.header_count;
        made.body = std::numeric_limits<std::uint64_t>::max();
        return made;
    }

    task<result<>> await_head();
    task<void> transmit(const body& content, message_writer& to, cancel_source& waiting);
    task<void> receive(cancel_source& waiting);

    const client_limits& limits() const noexcept { return plan->options.limits; }

    stream peer;
    std::shared_ptr<const client_plan> plan;
    http1::response_parser parser;
    traffic counted;
    message_reader reader{peer, parser, counted};
    byte_buffer out;
    std::uint64_t serial = 0;
    time_point last_use{};
    bool keep = false;              // for another request, once the body has been read
    bool has_received = false;      // any byte of the response
    bool is_sent = false;           // the whole request
    bool is_late = false;           // no response in the time for it
    result<> head;                  // of the response
    std::error_code write_failure;  // of the stream
    std::error_code own_failure;    // of the request's producer
    event end_of_sending;           // whole, or not
};

namespace {

/// The least status of a response that refuses its request.
constexpr int first_refusal = 400;

bool is_idempotent(std::string_view method) {
    for (const std::string_view each : {"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})
        if (method == each) return true;
    return false;
}

/// The value of Host. Unix sockets and their like have none of their own.
std::string host_of(const transport::address& server) {
    if (server.host.empty()) return "localhost";
    const bool is_ipv6 = server.host.find(':') != std::string::npos;
    // A zone (%eth0) means something on this machine alone.
    const std::string name = server.host.substr(0, server.host.find('%'));
    return (is_ipv6 ? "[" + name + "]" : name) + ":" + std::to_string(server.port);
}

body_framing framing_of(const client_request& request) {
    const auto size = request.body.size();
    if (!size) return body_framing::chunked();
    const bool is_plain = request.method == "GET" || request.method == "HEAD";
    return *size == 0 && is_plain ? body_framing::none() : body_framing::sized(*size);
}

}  // namespace

task<result<>> detail::client_connection::await_head() {
    std::size_t interim = 0;
    for (;;) {
        const http1::step step = reader.parse();
        if (step.what == http1::event::error) co_return fail(errc::malformed);
        if (step.what == http1::event::head) {
            const int status = parser.head().status;
            if (status >= 200 || status == 101) co_return result<>();
            if (++interim > limits().interim_responses) co_return fail(errc::limit_reached);
        }
        if (step.what != http1::event::need_more) continue;
        const auto received = co_await peer.read();
        if (!received) co_return fail(received.error());
        reader.append(received->bytes());
        has_received = true;
    }
}

/// Sends the request, then guards the time for the response.
task<void> detail::client_connection::transmit(const body& content, message_writer& to,
                                               cancel_source& waiting) {
    result<> sent = co_await to.flush();
    if (sent && content.producer()) sent = co_await content.producer()->produce(to);
    if (sent && !content.producer()) sent = co_await to.write(content.text());
    if (sent) sent = co_await to.finish();
    is_sent = sent.has_value();
    if (out.empty()) give_spare(out);
    write_failure = to.failure();
    end_of_sending.set();
    if (!sent && !write_failure) {
        own_failure = sent.error();
        waiting.request();
        co_return;
    }
    // A server that refuses a request early may close before it has read all of it; its response is
    // there to read all the same.
    const auto slept = co_await loop::current().sleep_for(limits().response_time);
    if (!slept) co_return;
    is_late = true;
    waiting.request();
}

task<void> detail::client_connection::receive(cancel_source& waiting) {
    head = co_await await_head().under(waiting);
    // A server may accept a request before it has read all of it, and a refusal ends it.
    if (head && parser.head().status < first_refusal)
        static_cast<void>(co_await end_of_sending.wait());
}

body_reader& client_response::body() const noexcept {
    EDDY_PRECONDITION(connection_ && connection_->serial == serial_,
                      "body() of a response after its client's next send()");
    return connection_->reader;
}

client_response::switched client_response::take_connection() {
    EDDY_PRECONDITION(status == 101 && connection_ && connection_->serial == serial_,
                      "take_connection() of a response that is not 101, or was taken");
    return {std::move(connection_->peer), connection_->reader.take_rest()};
}

detail::client_plan::client_plan(transport::address server, client_options chosen)
    : at(std::move(server)), options(std::move(chosen)), host(host_of(at)) {
    offer_by_alpn(at);
}

client::client(transport::address server, client_options options)
    : client(std::make_shared<const detail::client_plan>(std::move(server), std::move(options))) {}

client::client(std::shared_ptr<const detail::client_plan> plan) noexcept : plan_(std::move(plan)) {}

client::~client() { close(); }

void client::close() noexcept {
    if (connection_) {
        // A server that takes too long would go on being sent what the kernel has taken.
        if (connection_->write_failure)
            connection_->peer.abort();
        else
            connection_->peer.close();
    }
    connection_.reset();
}

bool client::is_reusable() {
    return connection_ && connection_->keep && connection_->reader.skip_received() &&
           connection_->reader.waiting() == 0 &&  // what was not asked for answers no request
           loop::current().now() - connection_->last_use <= plan_->options.limits.keep_time;
}

/// Whether the server has sent nothing since, neither a response that was not asked for nor the end
/// of the connection.
task<bool> client::is_quiet() {
    const auto early = co_await with_timeout(duration{}, connection_->peer.read());
    co_return !early && early.error() == errc::timed_out;
}

task<result<>> client::connect() {
    const client_options& options = plan_->options;
    auto connected = co_await (options.connector ? options.connector()
                                                 : transport::connect(plan_->at, options.connect));
    if (!connected) co_return fail(connected.error());
    if (options.check) {
        const result<> fine = options.check(*connected);
        if (!fine) co_return fine;
    }
    connection_ = std::make_shared<detail::client_connection>(std::move(*connected), plan_);
    co_return result<>();
}

task<result<client_response>> client::send(client_request request) {
    EDDY_PRECONDITION(!busy_, "a second send() of one client: await the first before the next");
    busy_ = true;
    const struct idle_again {
        bool& busy;
        ~idle_again() { busy = false; }
    } at_end{busy_};

    bool is_reused = is_reusable() && co_await is_quiet();
    if (!is_reused) close();
    for (;;) {
        if (!connection_) {
            const auto connected = co_await connect();
            if (!connected) co_return fail(connected.error());
        }
        auto answered = co_await exchange(request);
        if (answered) co_return answered;
        const std::error_code error = answered.error();
        const bool is_lost = error == errc::end_of_stream || error == std::errc::broken_pipe ||
                             error == std::errc::connection_reset;
        const bool is_repeatable = is_idempotent(request.method) && !request.body.producer();
        const bool is_again = std::exchange(is_reused, false) && is_lost && is_repeatable &&
                              !connection_->has_received;
        close();
        if (!is_again) co_return answered;
    }
}

/// Its frame is there until the head of the response comes, for which a server may take long. So it
/// holds what the wait needs, and the rest is done in functions that are not inlined.
task<result<client_response>> client::exchange(client_request& request) {
    detail::client_connection& with = *connection_;
    const result<> written = begin_exchange(request);
    if (!written) co_return fail(written.error());
    message_writer to(with.peer, with.out, framing_of(request), with.limits().write_time,
                      with.counted);
    cancel_source waiting(co_await current_source());
    co_await with_scope([&](scope& sending) {
        sending.spawn(with.transmit(request.body, to, waiting));
        return with.receive(waiting);
    });
    co_return end_exchange();
}

[[gnu::noinline]] result<> client::begin_exchange(const client_request& request) {
    detail::client_connection& with = *connection_;
    take_spare(with.out);
    http1::head_writer writer(with.out);
    writer.request(request.method, request.target);
    if (!request.headers.contains("Host")) writer.field("Host", plan_->host);
    writer.fields(request.headers);
    const result<> written = writer.end(framing_of(request));
    if (!written) return written;

    ++with.serial;
    with.keep = with.has_received = with.is_sent = with.is_late = false;
    with.own_failure = {};
    with.end_of_sending.reset();
    with.parser.expect_response_to(request.method);
    return {};
}

[[gnu::noinline]] result<client_response> client::end_exchange() {
    detail::client_connection& with = *connection_;
    if (!with.head) {
        if (with.own_failure) return fail(with.own_failure);
        if (with.is_late) return fail(errc::timed_out);
        return fail(with.write_failure ? with.write_failure : with.head.error());
    }
    http1::response_head& head = with.parser.head();
    client_response answered;
    answered.status = head.status;
    answered.headers = std::move(head.headers);
    answered.connection_ = connection_;
    answered.serial_ = with.serial;
    message_reader::terms terms;
    terms.pause = with.limits().read_time;
    with.reader.begin_body(terms);
    with.reader.probe_end();
    with.keep = head.keep_alive && with.is_sent && !with.parser.tunnel();
    with.last_use = loop::current().now();
    return answered;
}

}  // namespace eddy::http
