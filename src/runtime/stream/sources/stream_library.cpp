// Events that scripts send, and the request as a table.
#include "runtime/stream/sources/stream_library.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/base/byte_buffer.hpp>
#include <eddy/wire/sse.hpp>

#include "runtime/stream/answer.hpp"

#include <array>
#include <string_view>
#include <utility>

namespace eddy::runtime::stream {
namespace {

using script::answer;
using script::argument_kind;
using script::invocation;

constexpr const char* too_large_text = "the text is larger than 256 KiB";

/// Null in other callbacks and in timers, which have no stream.
stream_call* caller_of(const invocation& of) noexcept {
    return dynamic_cast<stream_call*>(of.caller());
}

answer send_to_client(const invocation& of, std::string event) {
    if (stream_call* const caller = caller_of(of)) return caller->send(std::move(event));
    return answer::misused("send() and event() can be called within handle() alone");
}

answer send(invocation& of) {
    if (of.text(1).size() > max_event) return answer::misused(too_large_text);
    return send_to_client(of, content_event(of.text(1)));
}

answer event(invocation& of) {
    if (of.text(1).find_first_of("\r\n") != std::string_view::npos)
        return answer::misused("the name of an event has no line ends");
    if (of.text(1).size() + of.text(2).size() > max_event) return answer::misused(too_large_text);
    sse::event made;
    made.type = of.text(1);
    made.data = of.text(2);
    byte_buffer bytes;
    const result<> written = sse::write_event(bytes, made);
    EDDY_ASSERT(written);
    return send_to_client(of, std::string(bytes.text()));
}

constexpr std::array<script::library_function, 2> rows = {{
    {.name = "send",
     .arguments = {{{.name = "text", .kind = argument_kind::text}}},
     .takes = "a text",
     .help = "Sends the client an event with this content, and waits while the client is slower.",
     .waits = true,
     .failure = script::on_failure::ends,
     .run = send},
    {.name = "event",
     .arguments = {{{.name = "name", .kind = argument_kind::text},
                    {.name = "text", .kind = argument_kind::text}}},
     .takes = "a name and a text",
     .help = "Sends the client an event with this name and these data, as send() does.",
     .waits = true,
     .failure = script::on_failure::ends,
     .run = event},
}};

}  // namespace

int stream_call::push_arguments(lua::stack in) {
    in.getglobal("cjson");
    in.getfield(-1, "decode");
    in.remove(-2);
    in.pushstring(from_->message.empty() ? std::string_view("{}") : from_->message);
    in.call(1, 1);
    // Texts in any case, whatever the message has.
    in.set_text("user_id", from_->user_id);
    in.set_text("prompt", from_->prompt);
    in.set_text("model", from_->model);
    in.set_text("test_pattern", from_->test_pattern);
    in.set_text("request_id", from_->request_id);
    from_.reset();
    return 1;
}

script::library stream_library() { return {.functions = rows}; }

}  // namespace eddy::runtime::stream
