// Relay sources: what they have in common.
#include "runtime/stream/sources/relay_source.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>

#include "base/text/text.hpp"
#include "runtime/stream/answer.hpp"
#include "runtime/stream/sources/proxied_head.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

namespace eddy::runtime::stream {
namespace {

http::client_pool_options pool_options(const config& chosen) {
    http::client_pool_options options;
    // Each stream has one, so the limit of streams, which may change, is theirs.
    options.host_connections = max_streams;
    options.connections = max_streams;
    options.waiting = max_streams;
    // A backend that cannot be reached keeps the next one waiting for no longer than a silent one.
    options.connect.timeout = std::min(options.connect.timeout, chosen.source_timeout);
    options.handshake_time = std::min(options.handshake_time, chosen.source_timeout);
    options.limits.response_time = chosen.source_timeout;
    options.limits.read_time = chosen.source_timeout;
    options.redirects = 0;
    options.decompress = false;
    options.tls.ca = chosen.source_ca;
    return options;
}

/// The one at --source-url, and the others.
std::vector<backend> backends_of(const config& chosen) {
    backend first;
    first.url = chosen.source_url;
    first.socket = chosen.source_socket;
    first.key = chosen.key;
    first.key_field = chosen.key_field;
    std::vector<backend> all = {std::move(first)};
    all.insert(all.end(), chosen.backends.begin(), chosen.backends.end());
    return all;
}

secret_texts secrets_of(const config& chosen) {
    secret_texts made(chosen.key, chosen.source_url);
    for (const backend& each : chosen.backends) made.include(each.key, each.url);
    for (const response_header& each : chosen.source_fields) made.include(each.value, {});
    return made;
}

/// At most an hour or so, which is enough for what is shown of it.
std::uint32_t microseconds_since(time_point begun) noexcept {
    const auto passed =
        std::chrono::duration_cast<std::chrono::microseconds>(loop::current().now() - begun);
    return static_cast<std::uint32_t>(std::min<std::int64_t>(passed.count(), UINT32_MAX));
}

constexpr int too_many_requests = 429;
constexpr int first_server_error = 500;

/// True for the outcome of a request that the next backend may answer.
bool is_failure(const result<http::pool_response>& answer) noexcept {
    return !answer || answer->status == too_many_requests || answer->status >= first_server_error;
}

}  // namespace

relay_source::relay_source(sessions& in, observer& owner, const config& chosen,
                           serving::journal& lines)
    : sessions_(in),
      owner_(owner),
      config_(chosen),
      backends_(backends_of(chosen)),
      web_(pool_options(chosen)),
      secrets_(secrets_of(chosen)),
      failures_(lines, failure_log_interval),
      fallbacks_(lines, failure_log_interval,
                 {.one = "the next backend is asked", .many = "requests went on from"}) {}

relay_source::~relay_source() {
    EDDY_ASSERT(tasks_.children() == 0);
    loop::current().disarm(*this);
}

void relay_source::begin(std::uint32_t client, stream_request from) {
    if (client >= relays_.size()) relays_.resize(client + 1);
    EDDY_ASSERT(relays_[client] == nullptr);
    tasks_.spawn(serve(client, std::make_unique<stream_request>(std::move(from))));
}

void relay_source::forget(std::uint32_t client) noexcept {
    if (client < relays_.size() && relays_[client] != nullptr) leave(*relays_[client]);
}

/// Ends the stream of a client that has gone.
void relay_source::leave(relay& gone) noexcept {
    gone.is_gone = true;
    gone.unlink();
    gone.source.request();
    relays_[gone.client] = nullptr;
}

void relay_source::end_overdue(std::uint32_t client) noexcept {
    if (client >= relays_.size() || relays_[client] == nullptr) return;
    relays_[client]->is_overdue = true;
    relays_[client]->source.request();
}

task<void> relay_source::close() {
    for (relay* const each : relays_) {
        if (each == nullptr) continue;
        const std::uint32_t client = each->client;
        const bool is_cut = each->ends_by == stream_end::chunk && !sessions_.is_writing(client);
        leave(*each);
        if (is_cut) static_cast<void>(sessions_.finish(client, std::string(broken_chunk)));
    }
    sessions_.flush();
    web_.close();
    co_await tasks_.join();
}

/// Its frame is there as long as the stream: it holds the relay and nothing else of weight.
task<void> relay_source::serve(std::uint32_t client, std::unique_ptr<stream_request> from) {
    relay to(client);
    relays_[client] = &to;
    if (sends_heartbeats()) {
        quiet_.push_back(to);
        if (!armed()) loop::current().arm(*this, to.last_sent + config_.heartbeat);
    }
    if (config_.takes_keys && !from->api_key.empty())
        to.key = std::make_unique<const std::string>(std::move(from->api_key));
    std::string_view fault;
    try {
        fault = co_await run(to, std::move(from)).under(to.source);
    } catch (const std::bad_alloc&) {
        // It would end all streams.
        fault = "no_memory";
    }
    if (to.asked != 0) --under_way_;
    if (to.is_overdue) fault = overdue_reason;
    end(to, fault);
}

void relay_source::end(relay& to, std::string_view fault) {
    to.unlink();
    if (to.is_gone) return;
    // Without the request's fields, which went with its task.
    if (!fault.empty() && !to.has_head) refuse(to, stream_request(), fault);
    if (to.is_gone) return;
    std::string last;
    if (to.ends_by == stream_end::event)
        last = fault.empty() ? std::string(done_event) : error_event(fault);
    if (to.ends_by == stream_end::chunk) last = fault.empty() ? last_chunk : broken_chunk;
    relays_[to.client] = nullptr;
    bool is_passed = true;
    if (to.ends_by == stream_end::close && !fault.empty())
        sessions_.break_off(to.client);
    else
        is_passed = sessions_.finish(to.client, std::move(last));
    sessions_.flush();
    if (!is_passed) return;
    if (fault.empty())
        owner_.on_end(to.client, loop::current().now() - to.begun);
    else
        owner_.on_fault(to.client, fault);
}

/// Heartbeats for clients that were sent nothing else, whatever their source does meanwhile.
void relay_source::fire() noexcept {
    loop& here = loop::current();
    for (unsigned i = 0; i < burst && !quiet_.empty(); ++i) {
        relay& first = quiet_.front();
        if (here.now() - first.last_sent < config_.heartbeat) break;
        try {
            beat(first);
        } catch (const std::bad_alloc&) {
            const std::uint32_t client = first.client;
            sessions_.abandon(client);
            leave(first);
            owner_.on_fault(client, "no_memory");
        }
    }
    sessions_.flush();
    if (!quiet_.empty()) here.arm(*this, quiet_.front().last_sent + config_.heartbeat);
}

void relay_source::beat(relay& to) {
    note_sent(to);
    // A client that is lost over it is forgotten.
    static_cast<void>(sessions_.send_comment(to.client, heartbeat_event));
}

/// Puts its next heartbeat off.
void relay_source::note_sent(relay& to) noexcept {
    to.last_sent = loop::current().now();
    if (!to.linked()) return;
    to.unlink();
    quiet_.push_back(to);
}

bool relay_source::pass_on(relay& to, std::string bytes, std::uint32_t events) {
    if (to.is_gone) return false;
    ++messages_sent_;
    if (events > 0) owner_.on_events(to.client, events);
    note_sent(to);
    // A client that is lost over it is forgotten, which sets is_gone.
    return sessions_.send_owned(to.client, std::move(bytes));
}

task<bool> relay_source::send(relay& to, std::string bytes, std::uint32_t events) {
    const sent how = try_send(to, std::move(bytes), events);
    if (how != sent::waits) co_return how == sent::all;
    co_return co_await await_client(to);
}

relay_source::sent relay_source::try_send(relay& to, std::string bytes, std::uint32_t events) {
    if (!pass_on(to, std::move(bytes), events)) return sent::gone;
    sessions_.flush();
    if (to.is_gone) return sent::gone;
    return sessions_.is_writing(to.client) ? sent::waits : sent::all;
}

task<bool> relay_source::await_client(relay& to) {
    if (to.is_gone || !sessions_.is_writing(to.client)) co_return !to.is_gone;
    // The source waits for a client that reads more slowly than it sends.
    to.has_caught_up.reset();
    sessions_.notify_when_idle(to.client);
    auto waited = co_await with_timeout(config_.source_timeout, to.has_caught_up.wait());
    if (!waited && waited.error() == errc::timed_out && !to.is_gone) {
        if (!sessions_.cut(to.client)) {
            owner_.on_fault(to.client, to_string(handoff::loss::too_slow));
            forget(to.client);
        }
    }
    co_return !to.is_gone;
}

void relay_source::on_idle(std::uint32_t client) noexcept {
    if (client < relays_.size() && relays_[client] != nullptr) relays_[client]->has_caught_up.set();
}

void relay_source::end_by_close(relay& to) {
    if (to.is_gone) return;
    to.ends_by = stream_end::close;
    sessions_.reset_unless_finished(to.client);
}

void relay_source::refuse(relay& to, const stream_request& from, std::string_view reason) {
    to.has_head = true;
    pass_on(to, refusal(502, reason, from), 0);
}

std::string_view relay_source::note_failure(const relay& of, std::string_view reason,
                                            std::string_view why) {
    if (of.is_overdue) return overdue_reason;
    if (!of.is_gone) failures_.write(reason, shown(without_secrets(of, why)));
    return reason;
}

std::string_view relay_source::note_no_response(const relay& of, std::error_code error) {
    const std::string_view reason = reason_of(error);
    return note_failure(of, reason, "the source gave no response: " + error.message());
}

std::string_view relay_source::note_broken(const relay& of, std::error_code error) {
    if (error == errc::timed_out)
        return note_failure(of, "backend_stalled", "the source's answer does not go on");
    return note_failure(of, "backend_broke_off",
                        "the source's answer broke off: " + error.message());
}

task<std::string_view> relay_source::note_status(const relay& of, http::pool_response& answer) {
    constexpr std::string_view reason = "backend_status";
    const std::string kind = fmt::format("{} {}", reason, answer.status);
    if (of.is_gone) co_return reason;
    std::string text;
    if (failures_.is_due(kind)) text = co_await read_failure(of, answer);
    if (of.is_gone) co_return reason;
    const std::string_view colon = text.empty() ? "" : ": ";
    failures_.write(kind, fmt::format("the source answered {} {}{}{}", answer.status,
                                      http1::reason_phrase(answer.status), colon, shown(text)));
    co_return reason;
}

task<std::string_view> relay_source::note_content(const relay& of, http::pool_response& answer,
                                                  std::string why, std::string content) {
    bool is_error = false;
    const std::string text = co_await read_failure(of, answer, std::move(content), &is_error);
    if (!text.empty()) why.append(": ").append(text);
    co_return note_failure(of, is_error ? "backend_error" : "backend_malformed", why);
}

/// The text of a response's content that says what failed, without secrets.
task<std::string> relay_source::read_failure(const relay& of, http::pool_response& answer,
                                             std::string content, bool* is_error) {
    const time_point until = loop::current().after(failure_text_time);
    content.resize(std::min(content.size(), max_failure_text));
    bool is_whole = false;
    while (content.size() < max_failure_text) {
        const auto piece = co_await with_deadline(until, answer.body().read());
        is_whole = !piece && piece.error() == errc::end_of_stream;
        if (!piece) break;
        content += piece->substr(0, max_failure_text - content.size());
    }
    if (is_error != nullptr) *is_error = is_whole && reports_error(content);
    co_return without_secrets(of, error_text_of(content), !is_whole);
}

/// Reason of a request that got no response.
std::string_view relay_source::reason_of(std::error_code error) noexcept {
    if (error == errc::timed_out) return "backend_stalled";
    if (error == errc::malformed || error == errc::limit_reached) return "backend_malformed_head";
    for (const errc each : {errc::untrusted_certificate, errc::certificate_name_mismatch,
                            errc::certificate_expired, errc::certificate_refused})
        if (error == each) return "backend_certificate";
    for (const errc each : {errc::not_tls, errc::handshake_failed, errc::no_common_protocol,
                            errc::unusable_certificate})
        if (error == each) return "backend_tls";
    return "backend_unreachable";
}

void relay_source::add_field(http::pool_request& to, std::string_view name,
                             std::string_view value) {
    const result<> added = to.headers.add(name, value);
    EDDY_ASSERT(added);
}

http::pool_request relay_source::upstream(const backend& at, std::string_view path,
                                          const relay& to) const {
    http::pool_request made;
    made.method = "POST";
    made.may_repeat = true;
    made.url = url_below(at.url, path);
    add_field(made, "Content-Type", "application/json");
    const std::string& key = to.key ? *to.key : at.key;
    const std::string_view field =
        at.key_field.empty() ? std::string_view("Authorization") : at.key_field;
    for (const response_header& each : config_.source_fields)
        if (!to.key || !equal_in_any_case(each.name, field)) add_field(made, each.name, each.value);
    if (!key.empty() && !made.headers.contains(field))
        add_field(made, field, at.key_field.empty() ? "Bearer " + key : key);
    if (!at.socket.empty()) {
        transport::address socket;
        socket.kind = transport::scheme::unix_socket;
        socket.path = at.socket;
        made.connect_to = socket;
    }
    return made;
}

http::pool_request relay_source::request_to(const backend& /*at*/, const relay& /*to*/,
                                            stream_request& /*from*/, bool /*is_last*/) const {
    EDDY_ASSERT(false);
}

bool relay_source::has_backend(const stream_request& from) const {
    return !backends_.order(from.backend).empty();
}

task<result<http::pool_response>> relay_source::ask(relay& to, stream_request& from) {
    const backend* const only = backends_.only();
    return only != nullptr ? send_to(*only, to, from, true) : ask_in_order(to, from);
}

/// As ask() of one backend.
task<result<http::pool_response>> relay_source::send_to(const backend& at, relay& to,
                                                        stream_request& from, bool is_last) {
    if (to.asked == 0) ++under_way_;
    to.asked = static_cast<std::uint8_t>(&at - backends_.all().data() + 1);
    to.asked_us = microseconds_since(to.begun);
    return web_.send(request_to(at, to, from, is_last));
}

void relay_source::note_response(const relay& to, const http::pool_response& of) noexcept {
    const backend_answer by = {
        .name = backends_.all()[to.asked - 1U].name,
        .status = of.status,
        .time = std::chrono::microseconds(microseconds_since(to.begun) - to.asked_us)};
    // The number of a client that has gone may be another's.
    owner_.on_response(to.is_gone ? no_client : to.client, by);
}

task<result<http::pool_response>> relay_source::ask_in_order(relay& to, stream_request& from) {
    std::vector<const backend*> order = backends_.order(from.backend);
    EDDY_ASSERT(!order.empty());  // has_backend()
    // A user's key is for one of them.
    if (to.key) order.resize(1);
    for (std::size_t i = 0;; ++i) {
        const bool is_last = i + 1 == order.size();
        auto answer = co_await send_to(*order[i], to, from, is_last);
        if (is_last || to.is_gone || to.is_overdue || !is_failure(answer)) co_return answer;
        if (answer) note_response(to, *answer);
        note_fallback(to, *order[i], answer);
    }
}

void relay_source::note_fallback(const relay& of, const backend& failed,
                                 const result<http::pool_response>& answer) {
    owner_.on_fallback(failed.name);
    const std::string why = answer ? fmt::format("it answered {} {}", answer->status,
                                                 http1::reason_phrase(answer->status))
                                   : "it gave no response: " + answer.error().message();
    fallbacks_.write(failed.name,
                     fmt::format("{} failed: {}", failed.name, without_secrets(of, why)));
}

/// A text without the source's secrets, and without the handoff's.
std::string relay_source::without_secrets(const relay& of, std::string_view text,
                                          bool is_cut_off) const {
    std::string made = secrets_.hide(text, is_cut_off);
    return of.key ? secret_texts(*of.key, {}).hide(made, is_cut_off) : made;
}

}  // namespace eddy::runtime::stream
