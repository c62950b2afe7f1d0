// OpenAI backend: chat completions with "stream": true, of OpenAI's API and of the many programs
// that have the same one.
//
// https://platform.openai.com/docs/api-reference/chat/streaming
#include <eddy/wire/json.hpp>
#include <eddy/wire/sse.hpp>

#include "runtime/stream/answer.hpp"
#include "runtime/stream/relay_backend.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <utility>

namespace eddy::runtime::stream {
namespace {

using nlohmann::json;

/// Members of a handoff that are not the API's.
constexpr std::string_view own_members[] = {"user_id",       "prompt",           "backend",
                                            "last_event_id", "response_headers", "request_id",
                                            "test_pattern",  "http_version",     "request_method"};

std::string completion_request(const request& from, const std::string& model) {
    json body = from.message.empty() ? json::object() : json::parse(from.message, nullptr, false);
    for (const std::string_view each : own_members) body.erase(std::string(each));
    if (from.messages.empty())
        body["messages"] = json::array({{{"role", "user"}, {"content", from.prompt}}});
    if (from.model.empty()) body["model"] = model;
    body["stream"] = true;
    return body.dump(-1, ' ', false, json::error_handler_t::replace);
}

/// The piece of the answer in a chunk of a completion; none if the chunk has none. Null for what is
/// no chunk.
std::optional<std::string> content_of(std::string_view data) {
    const json chunk = json::parse(data, nullptr, false);
    if (!chunk.is_object()) return std::nullopt;
    if (const auto error = chunk.find("error"); error != chunk.end() && !error->is_null())
        return std::nullopt;
    const auto choices = chunk.find("choices");
    if (choices == chunk.end() || !choices->is_array()) return std::nullopt;
    if (choices->empty() || !choices->front().is_object()) return std::string();
    const auto delta = choices->front().find("delta");
    if (delta == choices->front().end() || !delta->is_object()) return std::string();
    const auto content = delta->find("content");
    if (content == delta->end() || !content->is_string()) return std::string();
    return content->get<std::string>();
}

/// Deepest nesting of a chunk.
constexpr std::size_t chunk_depth = 64;

}  // namespace

std::string openai_backend::opening(const request& from) const {
    return response_head(from.headers);
}

/// Sends the request, and frees the handoff's. It is no coroutine: what it makes is the task's that
/// it returns, and goes with that.
task<result<http::pool_response>> openai_backend::ask(std::unique_ptr<request>& from) {
    http::pool_request asked = upstream("/chat/completions");
    add_field(asked, "Accept", sse::content_type);
    if (http1::is_field_value(from->test_pattern) && !from->test_pattern.empty())
        add_field(asked, "X-Test-Pattern", from->test_pattern);
    asked.body = completion_request(*from, options().model);
    from.reset();
    return web().send(std::move(asked));
}

task<std::string_view> openai_backend::run(relay& to, std::unique_ptr<request> from) {
    to.has_head = true;
    to.ends_by = stream_end::event;
    auto answer = co_await ask(from);
    if (!answer) co_return reason_of(answer.error());
    if (answer->status != 200) co_return "backend_status";
    answer->headers = {};
    answer->url = {};

    sse::parser parser;
    std::string_view piece;  // of the body, and not parsed
    for (;;) {
        const sse::step step = parser.parse(piece);
        const bool is_event = step.what == sse::step_kind::event;
        if (step.what == sse::step_kind::error) co_return "backend_malformed";
        if (is_event && parser.event().data == "[DONE]") co_return "";
        if (is_event) {
            const std::string& data = parser.event().data;
            if (nests_deeper(data, chunk_depth)) co_return "backend_malformed";
            const auto content = content_of(data);
            if (!content) co_return "backend_malformed";
            if (!content->empty() && !co_await send(to, content_event(*content))) co_return "";
        }
        piece.remove_prefix(step.consumed);
        if (is_event) continue;
        auto next = co_await answer->body().read();
        if (!next && next.error() == errc::timed_out) co_return "backend_stalled";
        if (!next) co_return "backend_broke_off";
        piece = *next;
    }
}

}  // namespace eddy::runtime::stream
