// OpenAI source: chat completions with "stream": true, of OpenAI's API and of the many programs
// that have the same one.
//
// https://platform.openai.com/docs/api-reference/chat/streaming
#include <eddy/base/assert.hpp>
#include <eddy/wire/sse.hpp>

#include "runtime/stream/answer.hpp"
#include "runtime/stream/sources/completion_reader.hpp"
#include "runtime/stream/sources/provider_text.hpp"
#include "runtime/stream/sources/relay_source.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace eddy::runtime::stream {
namespace {

using nlohmann::json;

/// Members of a handoff that are not the API's.
constexpr std::string_view own_members[] = {
    "user_id",    "prompt",       "backend",      "last_event_id",  "response_headers",
    "request_id", "test_pattern", "http_version", "request_method", "api_key"};

std::string completion_request(const stream_request& from, const std::string& model) {
    json body = from.message.empty() ? json::object() : json::parse(from.message, nullptr, false);
    for (const std::string_view each : own_members) body.erase(std::string(each));
    if (from.messages.empty())
        body["messages"] = json::array({{{"role", "user"}, {"content", from.prompt}}});
    if (from.model.empty()) body["model"] = model;
    body["stream"] = true;
    return body.dump(-1, ' ', false, json::error_handler_t::replace);
}

/// Completes an event whose blank line is missing at the end of the content, as some servers leave
/// it.
constexpr std::string_view missing_end = "\n\n";

/// Why the content of a response cannot be read; empty for one that can.
std::string fault_of(const http1::header_list& fields) {
    const auto coding = fields.find("Content-Encoding");
    if (!coding || http1::equal_ignoring_case(*coding, "identity")) return {};
    return fmt::format("the source's answer has a content coding, {}", *coding);
}

/// True for a response that claims to be one object. Some servers label event streams so, too.
bool is_called_json(const http1::header_list& fields) {
    constexpr std::string_view json_type = "application/json";
    const auto type = fields.find("Content-Type");
    return type && http1::equal_ignoring_case(type->substr(0, json_type.size()), json_type);
}

/// True when content begins as JSON does, and no line of an event stream.
bool begins_as_json(std::string_view content) noexcept {
    const std::size_t at = content.find_first_not_of(" \t\r\n");
    return at != std::string_view::npos && (content[at] == '{' || content[at] == '[');
}

/// Bytes that are kept of content without events, for the log.
constexpr std::size_t most_kept = 200;

/// True when content with this beginning may be an event stream whose first event has not come.
bool may_be_events(std::string_view beginning) noexcept {
    const std::size_t at = beginning.find_first_not_of("\xef\xbb\xbf\r\n");
    if (at == std::string_view::npos) return true;
    beginning.remove_prefix(at);
    constexpr std::string_view lines[] = {":", "data", "event", "id", "retry"};
    return std::ranges::any_of(lines,
                               [&](std::string_view each) { return beginning.starts_with(each); });
}

}  // namespace

std::string openai_source::opening(const stream_request& from) const {
    return response_head(from.headers);
}

http::pool_request openai_source::request_to(const backend& at, const relay& to,
                                             stream_request& from, bool /*is_last*/) const {
    http::pool_request asked = upstream(at, "/chat/completions", to);
    add_field(asked, "Accept", sse::content_type);
    add_field(asked, "Accept-Encoding", "identity");
    if (http1::is_field_value(from.test_pattern) && !from.test_pattern.empty())
        add_field(asked, "X-Test-Pattern", from.test_pattern);
    asked.body = completion_request(from, at.model.empty() ? options().model : at.model);
    return asked;
}

/// As ask(); frees the handoff's request when no other backend needs it.
task<result<http::pool_response>> openai_source::ask_and_free(
    relay& to, std::unique_ptr<stream_request>& from) {
    auto asking = ask(to, *from);
    if (has_one_backend()) from.reset();
    return asking;
}

/// The end of a stream by an event; none where the stream continues.
std::optional<std::string_view> openai_source::end_of(relay& to, completion_reader& reader,
                                                      completion_reader::step what) {
    switch (what) {
        case completion_reader::step::pieces: return std::nullopt;
        case completion_reader::step::done: return "";
        case completion_reader::step::error:
            return note_failure(to, "backend_error", "the source reports: " + reader.detail());
        case completion_reader::step::malformed:
            return note_failure(to, "backend_malformed",
                                "the source's answer cannot be read: " + reader.detail());
    }
    EDDY_ASSERT(false);
}

/// The end of a stream whose source has ended the content.
std::string_view openai_source::end_of_content(relay& to, const completion_reader& reader) {
    if (reader.is_finished()) return "";
    return note_failure(to, "backend_broke_off",
                        "the source's answer ended without a finish_reason and without [DONE]");
}

task<bool> openai_source::send_all(relay& to, std::vector<std::string> events) {
    for (std::string& each : events)
        if (!co_await send(to, std::move(each))) co_return false;
    co_return true;
}

task<std::string_view> openai_source::run(relay& to, std::unique_ptr<stream_request> from) {
    to.has_head = true;
    to.ends_by = stream_end::event;
    auto answer = co_await ask_and_free(to, from);
    from.reset();
    if (!answer) co_return note_no_response(to, answer.error());
    note_response(to, *answer);
    if (answer->status != 200) co_return co_await note_status(to, *answer);
    if (std::string why = fault_of(answer->headers); !why.empty())
        co_return co_await note_content(to, *answer, std::move(why), {});
    std::string_view piece;  // of the body, and not parsed
    if (is_called_json(answer->headers)) {
        // Without one the next read yields the error again.
        if (const auto first = co_await answer->body().read()) piece = *first;
        if (begins_as_json(piece))
            co_return co_await note_content(to, *answer, "the source's answer is no event stream",
                                            std::string(piece));
    }
    answer->headers = {};
    answer->url = {};

    std::string beginning(piece.substr(0, most_kept));
    bool has_events = false;
    completion_reader reader(options().events);
    sse::parser parser;
    bool has_ended = false;
    std::optional<std::string_view> end;
    while (!end) {
        const sse::step step = parser.parse(piece);
        piece.remove_prefix(step.consumed);
        if (step.what == sse::step_kind::error) {
            end = note_failure(to, "backend_malformed", parser.error());
        } else if (step.what == sse::step_kind::event) {
            has_events = true;
            const auto what = reader.take(parser.event());
            // The rest of an event that was cut off is no fault of its own.
            if (has_ended && what == completion_reader::step::malformed) continue;
            if (!reader.events().empty() &&
                !co_await send_all(to, std::exchange(reader.events(), {})))
                co_return "";
            end = end_of(to, reader, what);
        } else if (has_ended) {
            end = has_events || may_be_events(beginning)
                      ? end_of_content(to, reader)
                      : note_failure(to, "backend_malformed",
                                     "the source's answer is no event stream: " + shown(beginning));
        } else {
            const auto next = co_await answer->body().read();
            has_ended = !next && next.error() == errc::end_of_stream;
            if (!next && !has_ended) co_return note_broken(to, next.error());
            if (next && !has_events) beginning += next->substr(0, most_kept - beginning.size());
            piece = has_ended ? missing_end : *next;
        }
    }
    if (!end->empty()) co_return *end;
    reader.end();
    static_cast<void>(co_await send_all(to, std::move(reader.events())));
    co_return "";
}

}  // namespace eddy::runtime::stream
