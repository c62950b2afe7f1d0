// The last part of what docs/tour.md shows: the codecs, and the helpers below everything. Each
// function runs one of them and says whether it worked; none of them needs a loop.
#include <eddy/base/assert.hpp>
#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/bytes.hpp>
#include <eddy/base/frame_pool.hpp>
#include <eddy/base/glob.hpp>
#include <eddy/base/histogram.hpp>
#include <eddy/base/intrusive_list.hpp>
#include <eddy/base/log.hpp>
#include <eddy/base/nearest.hpp>
#include <eddy/base/random.hpp>
#include <eddy/base/unique_fd.hpp>
#include <eddy/base/utf8.hpp>
#include <eddy/wire/http1.hpp>
#include <eddy/wire/resp.hpp>
#include <eddy/wire/websocket.hpp>

#include <fcntl.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

namespace {

using namespace eddy;

bool http_requests() {
    http1::request_parser parser;
    std::string_view input = "GET /a%20b?x=1 HTTP/1.1\r\nHost: example.org\r\n\r\n";
    http1::step step = parser.parse(input);
    if (step.what != http1::event::head) return false;
    const auto parts = http1::split_target(parser.head().method, parser.head().target);
    const auto path = parts ? http1::percent_decode(parts->path) : fail(parts.error());
    return path == "/a b" && parser.head().headers.find("host") == "example.org";
}

bool http_responses() {
    byte_buffer out;
    http1::head_writer writer(out);
    writer.response(200).field("Content-Type", "text/plain");
    const result<> written = writer.end(http1::body_framing::sized(2));
    out.append("ok");
    return written && out.text().ends_with("\r\n\r\nok");
}

/// The content of a response, in whichever pieces it came; its trailers, too.
result<std::string> content_of(std::string_view input) {
    http1::response_parser parser;
    parser.expect_response_to("GET");
    byte_buffer content;
    for (;;) {
        const http1::step step = parser.collect(input, content);
        input.remove_prefix(step.consumed);
        if (step.what == http1::event::error) return fail(errc::malformed);
        if (step.what == http1::event::need_more) return fail(errc::truncated);
        if (step.what != http1::event::end) continue;
        const auto sum = parser.trailers().find("digest").value_or("none");
        return std::string(content.text()).append(" ").append(sum);
    }
}

bool http_chunks() {
    byte_buffer out;
    http1::head_writer head(out);
    if (!head.response(200).end(http1::body_framing::chunked())) return false;
    http1::write_chunk(out, "piece ");
    http1::write_chunk(out, "by piece");
    http1::header_list trailers;
    if (!trailers.add("Digest", "abc")) return false;
    http1::write_last_chunk(out, trailers);
    return content_of(out.text()) == "piece by piece abc";
}

bool http_queries() {
    int seen = 0;
    http1::query_reader reader("name=a%20b&more=1");
    while (auto parameter = reader.next()) seen += parameter->value.empty() ? 0 : 1;
    return seen == 2 && !reader.malformed();
}

/// The server's end of a connection that echoes messages: `input` has the received bytes, `out` the
/// ones to send. False at the connection's end.
bool echo_messages(websocket::parser& parser, byte_buffer& input, byte_buffer& message,
                   byte_buffer& out) {
    using websocket::opcode;
    for (;;) {
        websocket::step step = parser.collect(input.text(), message);
        input.consume(step.consumed);
        switch (step.what) {
            case websocket::event::message_end:
                websocket::write_frame(out, {.kind = parser.message().kind}, message.text());
                message.clear();
                break;
            case websocket::event::ping:
                if (!websocket::write_control(out, opcode::pong, step.data)) return false;
                break;
            case websocket::event::close:
                static_cast<void>(websocket::write_close(out, step.code));
                return false;
            case websocket::event::error:
                static_cast<void>(websocket::write_close(out, parser.error().code));
                return false;
            case websocket::event::need_more: return true;
            default: break;
        }
    }
}

bool websocket_messages() {
    constexpr websocket::mask_key mask{1, 2, 3, 4};  // random ones in a client
    byte_buffer sent;
    websocket::write_frame(sent, {.mask = mask}, "hello");
    if (!websocket::write_close(sent, websocket::close_code::normal, "bye", mask)) return false;
    websocket::parser parser(websocket::role::server);
    byte_buffer message;
    byte_buffer out;
    const bool goes_on = echo_messages(parser, sent, message, out);
    return !goes_on && parser.finish() && out.text() == "\x81\x05hello\x88\x02\x03\xe8";
}

bool websocket_handshakes() {
    websocket::client_offer offer{.key = websocket::make_key({}), .protocols = {"chat"}};
    http1::header_list fields;
    if (!websocket::add_request_fields(fields, offer)) return false;
    byte_buffer out;
    http1::head_writer writer(out);
    writer.request("GET", "/").field("Host", "example.org").fields(fields);
    if (!writer.end(http1::body_framing::none())) return false;

    http1::request_parser requests;
    if (requests.parse(out.text()).what != http1::event::head) return false;
    const websocket::server_policy policy{.protocols = {"chat"},
                                          .deflate = websocket::deflate_policy()};
    const auto agreed = websocket::check_request(requests.head(), policy);
    if (!agreed) return false;  // answer agreed.error().status, with add_error_fields()
    http1::header_list answer;
    if (!websocket::add_response_fields(answer, *agreed)) return false;

    http1::response_head response;
    response.status = 101;
    response.upgrade = true;
    response.headers = answer;
    const auto confirmed = websocket::check_response(response, offer);
    return confirmed && confirmed->protocol == "chat" && !confirmed->deflate;
}

bool resp_pipelines() {
    byte_buffer sent;
    constexpr std::array<std::string_view, 2> get{"GET", "a"};
    resp::write_command(sent, get);
    resp::write_command(sent, get);
    resp::request_parser parser;
    const auto batch = std::make_unique<resp::request_batch>();
    const resp::batch_outcome found = batch->parse(parser, sent.text());
    byte_buffer out;
    resp::reply_writer replies(out, 3);
    for (const resp::command& one : found.commands) {
        replies.array(2);
        replies.bulk(one.name());
        replies.null();
    }
    resp::reply_counter counter;
    return counter.count(out.text()) == 2;
}

bool resp_commands() {
    resp::request_parser parser;
    byte_buffer out;
    resp::reply_writer replies(out, 2);
    const resp::request_outcome found = parser.next("*2\r\n$3\r\nGET\r\n$1\r\na\r\n");
    if (found.status == resp::parse_status::complete && found.request.name() == "GET")
        replies.bulk("the value");
    return out.text() == "$9\r\nthe value\r\n";
}

bool resp_replies() {
    resp::reply_parser parser;
    const resp::reply_outcome found = parser.next(":7\r\n");
    return found.status == resp::parse_status::complete && found.event.integer == 7;
}

bool buffers() {
    byte_buffer input;
    input.append("one two");
    char* room = input.reserve(6);
    std::string_view(" three").copy(room, 6);
    input.commit(6);
    input.consume(4);
    return input.text() == "two three" && as_text(input.bytes()).size() == 9;
}

bool logs() {
    std::string seen;
    set_log_sink([&seen](log_level, std::string_view line) { seen += line; });
    set_log_level(log_level::warn);
    log_info("tour", "too quiet to be written");
    log_warn("tour", "a line\nthat cannot be forged");
    set_log_sink({});
    return seen.ends_with("tour  a line\\nthat cannot be forged\n");
}

bool histograms() {
    histogram latencies;
    for (std::uint64_t i = 1; i <= 1000; ++i) latencies.record(i * 1000);
    const auto p99 = static_cast<double>(latencies.percentile(99));
    return latencies.count() == 1000 && p99 > 980e3 && p99 < 1000e3;
}

bool numbers() {
    random_generator dice(entropy_seed());
    const std::uint64_t eyes = 1 + dice.below(6);
    return eyes >= 1 && eyes <= 6 && !dice.chance(0);
}

bool texts() {
    constexpr std::array<std::string_view, 3> commands{"create", "start", "stop"};
    return glob_match("user:[0-9]*", "user:42") && nearest_word("craete", commands) == "create";
}

struct job : list_link<> {
    int number = 0;
};

bool lists() {
    job first;
    job second;
    intrusive_list<job> waiting;
    waiting.push_back(first);
    waiting.push_back(second);
    first.unlink();
    return &waiting.pop_front() == &second && waiting.empty();
}

bool descriptors() {
    unique_fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    unique_fd owner = std::move(null);
    return owner && owner.get() >= 0;
}

bool characters() {
    utf8_validator validator;
    const bool is_valid = validator.check("10 \xe2\x82") == 5 && !validator.is_complete() &&
                          validator.check("\xac") == 1 && validator.is_complete();
    return is_valid && !is_utf8("\xff");
}

bool frames() {
    void* frame = frame_allocate(200);
    frame_free(frame, 200);
    const std::uint64_t before = frame_allocations();
    frame_free(frame_allocate(200), 200);
    EDDY_ASSERT(!frame_pool_recycles() || frame_allocations() == before);
    return true;
}

int check(const char* what, bool good) {
    if (!good) std::printf("%s: does not work\n", what);
    return good ? 0 : 1;
}

}  // namespace

int main() {
    int failed = 0;
    failed += check("http_requests", http_requests());
    failed += check("http_responses", http_responses());
    failed += check("http_chunks", http_chunks());
    failed += check("http_queries", http_queries());
    failed += check("websocket_messages", websocket_messages());
    failed += check("websocket_handshakes", websocket_handshakes());
    failed += check("resp_pipelines", resp_pipelines());
    failed += check("resp_commands", resp_commands());
    failed += check("resp_replies", resp_replies());
    failed += check("buffers", buffers());
    failed += check("logs", logs());
    failed += check("histograms", histograms());
    failed += check("numbers", numbers());
    failed += check("texts", texts());
    failed += check("lists", lists());
    failed += check("descriptors", descriptors());
    failed += check("characters", characters());
    failed += check("frames", frames());
    if (failed == 0) std::puts("all of it works");
    return failed;
}
