// One request and its response.
#include "http/agent/exchange.hpp"

#include <eddy/io/event.hpp>
#include <eddy/io/scope.hpp>

#include "wire/http1/forwarding.hpp"

#include <string_view>
#include <utility>

namespace eddy::http::detail {

using http1::body_framing;

/// A request's content on its way, beside the wait for the response.
struct client_exchange::sending {
    explicit sending(cancel_source* parent) noexcept : waiting(parent) {}

    cancel_source waiting;        // of the wait for the response
    result<> head;                // of the response
    std::error_code own_failure;  // of the request's producer
    event end;                    // of the sending: whole, or not
};

namespace {

/// The least status of a response that refuses its request.
constexpr int first_refusal = 400;

body_framing framing_of(const client_request& request) {
    const auto size = request.body.size();
    if (!size) return body_framing::chunked();
    const bool is_plain = request.method == "GET" || request.method == "HEAD";
    return *size == 0 && is_plain ? body_framing::none() : body_framing::sized(*size);
}

result<> begin(client_connection& with, const client_request& request, const client_plan& by) {
    return with.begin(request.method, request.target, framing_of(request),
                      [&](http1::head_writer& head) {
                          if (!request.headers.contains("Host")) head.field("Host", by.host);
                          head.fields(request.headers);
                      });
}

/// Awaits the final head.
task<result<>> read_final_head(client_connection& from) {
    for (;;) {
        const auto received = co_await from.read_head();
        if (!received || from.has_final_head()) co_return received;
    }
}

}  // namespace

task<void> client_exchange::transmit(client_connection& to, const body& content, sending& state) {
    result<> sent;
    if (body_producer* const producer = content.producer()) {
        sent = co_await to.flush();
        if (sent) sent = co_await producer->produce(to.content());
    } else {
        sent = co_await to.content().write(content.text());
    }
    if (sent) sent = co_await to.finish();
    // A server that refuses a request early may close before it has read all of it; its response is
    // there to read all the same.
    to.give_up_sending();
    state.end.set();
    if (sent || to.write_failure()) co_return;
    state.own_failure = sent.error();
    state.waiting.request();
}

task<void> client_exchange::receive(client_connection& from, sending& state) {
    state.head = co_await read_final_head(from).under(state.waiting);
    // A server may accept a request before it has read all of it, and a refusal ends it.
    if (state.head && from.head().status < first_refusal)
        static_cast<void>(co_await state.end.wait());
}

/// Its frame is there until the head of the response comes, for which a server may take long. So it
/// holds what the wait needs, and the rest is done in functions that are not inlined.
task<result<>> client_exchange::exchange(client_connection& with, client_request& request,
                                         const client_plan& by) {
    const result<> begun = begin(with, request, by);
    if (!begun) co_return begun;
    if (!request.body.producer() && request.body.text().empty()) {
        // The response is read even if that fails.
        static_cast<void>(co_await with.finish());
        const result<> head = co_await read_final_head(with);
        if (!head && with.write_failure() && head.error() != errc::timed_out)
            co_return fail(with.write_failure());
        co_return head;
    }
    sending state(co_await current_source());
    co_await with_scope([&](scope& children) {
        children.spawn(transmit(with, request.body, state));
        return receive(with, state);
    });
    if (state.head) co_return result<>();
    if (state.own_failure) co_return fail(state.own_failure);
    if (with.write_failure() && state.head.error() != errc::timed_out)
        co_return fail(with.write_failure());
    co_return state.head;
}

[[gnu::noinline]] client_response client_exchange::make_response(
    const std::shared_ptr<client_connection>& from) {
    client_response made;
    made.status = from->head().status;
    made.headers = std::move(from->head().headers);
    made.connection_ = from;
    made.serial_ = from->exchanges();
    return made;
}

void client_exchange::close(std::shared_ptr<client_connection>& over) noexcept {
    if (over) over->close();
    over.reset();
}

task<result<client_response>> client_exchange::send(std::shared_ptr<client_connection>& over,
                                                    std::shared_ptr<const client_plan> by,
                                                    client_request request) {
    bool is_reused = over && co_await over->is_quiet();
    if (!is_reused) close(over);
    for (;;) {
        if (!over) {
            auto opened = co_await open_connection(by);
            if (!opened) co_return fail(opened.error());
            over = std::move(*opened);
        }
        const result<> answered = co_await exchange(*over, request, *by);
        if (answered) co_return make_response(over);
        const bool is_repeatable = (request.may_repeat || http1::is_idempotent(request.method)) &&
                                   !request.body.producer();
        const bool is_again =
            std::exchange(is_reused, false) && over->was_closed_unanswered() && is_repeatable;
        close(over);
        if (!is_again) co_return fail(answered.error());
    }
}

}  // namespace eddy::http::detail
