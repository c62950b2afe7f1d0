// Fuzz target of the HTTP/1.1 parsers: no input may crash them, and the way it is cut may not
// change what they say. What they accept is written again and must read the same.
//
// The first byte chooses parser, method, limits and close; the second how the rest is cut.
#include "cuts.hpp"
#include "wire/http1/transcript.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace {

using namespace eddy;
using namespace eddy::http1;

constexpr std::uint8_t as_response = 1;
constexpr std::uint8_t to_head = 2;
constexpr std::uint8_t to_connect = 4;
constexpr std::uint8_t tight_limits = 8;
constexpr std::uint8_t peer_closes = 16;

limits choose_limits(std::uint8_t flags) {
    limits l;
    if (flags & tight_limits) {
        l.start_line = 24;
        l.header_bytes = 64;
        l.header_count = 3;
        l.chunk_line = 8;
        l.body = 16;
    }
    return l;
}

std::string run_request(std::string_view input, std::uint8_t flags, std::uint8_t how) {
    request_parser parser(choose_limits(flags));
    return transcript(parser, input, cut(input.size(), how), (flags & peer_closes) != 0);
}

std::string run_response(std::string_view input, std::uint8_t flags, std::uint8_t how) {
    response_parser parser(choose_limits(flags));
    if (flags & to_head) parser.expect_response_to("HEAD");
    if (flags & to_connect) parser.expect_response_to("CONNECT");
    return transcript(parser, input, cut(input.size(), how), (flags & peer_closes) != 0);
}

// A request that was accepted can be passed on, and the next parser sees the same one.
void pass_on(std::string_view input) {
    request_parser first;
    byte_buffer body;
    step one = first.collect(input, body);
    if (one.what != event::head) return;
    one = first.collect(input.substr(one.consumed), body);
    if (one.what != event::end) return;
    byte_buffer out;
    const request_head& head = first.head();
    head_writer writer(out);
    writer.request(head.method, head.target).fields(head.headers);
    if (!head.headers.contains("host")) writer.field("Host", "");
    EDDY_ASSERT(writer.end(body_framing::sized(body.size())));
    out.append(body.bytes());

    limits roomy;
    roomy.header_bytes *= 2;
    roomy.header_count += 2;
    request_parser second(roomy);
    byte_buffer again;
    one = second.collect(out.text(), again);
    EDDY_ASSERT(one.what == event::head);
    const std::size_t used = one.consumed;
    one = second.collect(out.text().substr(used), again);
    EDDY_ASSERT(one.what == event::end && used + one.consumed == out.size());
    EDDY_ASSERT(second.head().method == head.method && second.head().target == head.target);
    EDDY_ASSERT(again.text() == body.text());
    EDDY_ASSERT(second.head().content_length == body.size());
}

void read_target(std::string_view text) {
    if (const auto parts = split_target("GET", text)) {
        query_reader reader(parts->query);
        while (reader.next()) {
        }
    }
    static_cast<void>(split_target("CONNECT", text));
    if (const auto decoded = percent_decode(text)) {
        EDDY_ASSERT(percent_decode(percent_encode(*decoded)) == *decoded);
    }
    query_reader reader(text);
    while (reader.next()) {
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    const std::uint8_t flags = data[0];
    const std::uint8_t how = data[1];
    const std::string_view input(reinterpret_cast<const char*>(data) + 2, size - 2);
    const auto run = (flags & as_response) ? run_response : run_request;
    const std::string whole = run(input, flags, 0);
    EDDY_ASSERT(run(input, flags, how) == whole);
    EDDY_ASSERT(run(input, flags, 1) == whole);
    if (!(flags & as_response)) pass_on(input);
    read_target(input);
    return 0;
}
