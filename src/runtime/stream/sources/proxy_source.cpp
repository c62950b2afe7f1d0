// Proxy source: the response of a URL, passed through as it comes.
#include <eddy/wire/sse.hpp>

#include "runtime/stream/answer.hpp"
#include "runtime/stream/sources/event_counter.hpp"
#include "runtime/stream/sources/proxied_head.hpp"
#include "runtime/stream/sources/relay_source.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace eddy::runtime::stream {
namespace {

using nlohmann::json;
using framing_kind = http1::body_framing::kind;

constexpr std::string_view switches =
    "the source answered 101 Switching Protocols, which was not asked for";

/// The message without the key, which is sent as a field.
std::string without_key(const std::string& message) {
    json read = json::parse(message, nullptr, false);
    read.erase("api_key");
    return read.dump(-1, ' ', false, json::error_handler_t::replace);
}

bool is_event_stream(const http1::header_list& fields) {
    const auto type = fields.find("Content-Type");
    return type &&
           http1::equal_ignoring_case(type->substr(0, sse::content_type.size()), sse::content_type);
}

}  // namespace

http::pool_request proxy_source::request_to(const backend& at, const relay& to,
                                            stream_request& from, bool is_last) const {
    http::pool_request asked = upstream(at, "", to);
    // The codings that the client takes are not known here.
    add_field(asked, "Accept-Encoding", "identity");
    if (!from.last_event_id.empty() && http1::is_field_value(from.last_event_id))
        add_field(asked, "Last-Event-ID", from.last_event_id);
    if (to.key)
        asked.body = without_key(from.message);
    else if (from.message.empty())
        asked.body = std::string("{}");
    else
        asked.body = is_last ? std::exchange(from.message, {}) : from.message;
    return asked;
}

task<std::string_view> proxy_source::run(relay& to, std::unique_ptr<stream_request> from) {
    auto answer = co_await ask(to, *from);
    if (answer) note_response(to, *answer);
    if (!answer || answer->status < 200) {
        const std::string_view reason = answer ? note_failure(to, "backend_status", switches)
                                               : note_no_response(to, answer.error());
        if (!to.is_gone) refuse(to, *from, reason);
        co_return reason;
    }
    proxied_head head = make_proxied_head(answer->status, answer->headers, *from);
    from.reset();
    const bool has_events = is_event_stream(answer->headers);
    event_counter counter;
    answer->headers = {};
    answer->url = {};
    const auto framing = head.framing;
    if (framing == framing_kind::chunked) to.ends_by = stream_end::chunk;
    if (framing == framing_kind::until_close) end_by_close(to);
    to.has_head = true;
    if (!co_await send(to, std::move(head.text), 0)) co_return "";
    if (framing == framing_kind::none) co_return "";
    for (;;) {
        auto piece = co_await answer->body().read();
        if (!piece && piece.error() == errc::end_of_stream) co_return "";
        if (!piece) co_return note_broken(to, piece.error());
        if (piece->empty()) continue;
        std::string bytes =
            framing == framing_kind::chunked ? chunk_of(*piece) : std::string(*piece);
        const std::uint32_t events = has_events ? counter.count(*piece) : 1;
        if (!co_await send(to, std::move(bytes), events)) co_return "";
    }
}

}  // namespace eddy::runtime::stream
