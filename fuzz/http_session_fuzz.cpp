// Fuzz target of HTTP sessions, in the simulator: whatever a client sends, and however it is cut,
// the session neither crashes nor hangs, and all that it sends are whole responses, in as large a
// number as it has observed.
//
// The input is a session_input, with pauses between the pieces by choice.
#include <eddy/base/assert.hpp>
#include <eddy/http/form.hpp>
#include <eddy/http/multipart.hpp>
#include <eddy/http/router.hpp>
#include <eddy/http/session.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/wire/http1.hpp>

#include "simulated_client.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace {

using namespace eddy;
using namespace std::chrono_literals;

constexpr std::uint8_t pauses = 4;  // of the flags: between the pieces

task<http::response> wait_a_moment(http::request&) {
    static_cast<void>(co_await loop::current().sleep_for(1ms));
    co_return http::text("waited");
}

task<http::response> echo_body(http::request& incoming) {
    if (!co_await incoming.collect()) co_return http::response();
    co_return http::text(std::move(incoming.content()));
}

task<result<>> write_pieces(http::body_writer& to) {
    for (int i = 0; i < 3; ++i) {
        const auto sent = co_await to.write("piece");
        if (!sent) co_return sent;
    }
    co_return result<>();
}

task<http::response> stream_pieces(http::request&) {
    http::response made;
    made.body = http::body::streamed(write_pieces);
    co_return made;
}

task<http::response> close(http::request&) {
    http::response made = http::text("good-bye");
    made.add("Connection", "close");
    co_return made;
}

task<http::response> count_fields(http::request& incoming) {
    const auto form = co_await http::read_form(incoming);
    if (!form) co_return http::response();
    co_return http::text(std::to_string(form->fields().size()));
}

task<http::response> count_parts(http::request& incoming) {
    http::multipart_reader form(incoming);
    std::size_t bytes = 0;
    while (auto part = co_await form.next()) {
        const auto content = co_await part->whole(64);
        if (content) bytes += content->size();
    }
    if (!form.is_whole()) co_return http::response();
    co_return http::text(std::to_string(bytes));
}

http::router routes() {
    http::router made;
    made.get("/wait", wait_a_moment)
        .post("/echo", echo_body)
        .get("/stream", stream_pieces)
        .get("/close", close)
        .post("/form", count_fields)
        .post("/parts", count_parts)
        .get("/{id:int}", wait_a_moment);
    return made;
}

/// Counts the responses that the session reports as sent, and keeps the parts of requests that the
/// check needs.
class observer final : public http::session_observer {
public:
    void enter(http::session_state) noexcept override {}
    void note(const http::exchange_record& what) override {
        if (!what.is_whole) return;
        ++count;
        // The last request's head is gone by the time its response is read.
        methods += what.request == nullptr ? '?' : what.request->method == "HEAD" ? 'H' : 'G';
    }
    bool is_ending() const noexcept override { return false; }

    std::size_t count = 0;
    std::string methods;
};

/// Everything that was sent must be responses.
void check(std::string_view sent, const observer& seen) {
    http1::limits limits;
    limits.body = UINT64_MAX;
    http1::response_parser parser(limits);
    std::size_t finals = 0;
    const auto expect_next = [&] {
        const bool is_head = finals < seen.methods.size() && seen.methods[finals] == 'H';
        parser.expect_response_to(is_head ? "HEAD" : "GET");
    };
    expect_next();
    for (;;) {
        const http1::step step = parser.parse(sent);
        EDDY_ASSERT(step.what != http1::event::error);
        if (step.what == http1::event::need_more) break;
        // An invalid request may have begun as HEAD; it was the last one.
        const bool is_head = step.what == http1::event::head && parser.head().status >= 200;
        if (is_head && finals < seen.methods.size() && seen.methods[finals] == '?') {
            EDDY_ASSERT(finals + 1 == seen.count);
            return;
        }
        if (step.what == http1::event::end && parser.head().status >= 200) {
            ++finals;
            expect_next();
        }
        sent.remove_prefix(step.consumed);
    }
    if (parser.finish() == http1::event::end) ++finals;
    EDDY_ASSERT(finals >= seen.count);
}

task<void> talk(fuzz::session_input what) {
    fuzz::connected_pair ends = co_await fuzz::connect_pair();
    http::router answers = routes();
    http::session_limits limits;
    limits.parser.header_bytes = 1024;
    limits.parser.start_line = 512;
    limits.parser.body = 4096;
    observer seen;
    std::string all;
    co_await join_scope([&](scope& both) -> task<void> {
        const auto pause = (what.flags & pauses) != 0 ? 1us : 0us;
        both.spawn(fuzz::send_pieces(ends.client, what, pause));
        both.spawn(fuzz::receive_all(ends.client, all));
        // Time passes at once here: silent clients are closed.
        co_await http::serve_observed(ends.server, answers, limits, seen);
        ends.server.close();
    });
    check(all, seen);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    return fuzz::run_session(data, size, talk);
}
