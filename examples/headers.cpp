// The lines in the comments of the library's headers, as parts of functions, so that the compiler
// and tools/tidy.py see that they are right. Nothing of it runs: unused inline functions are not
// even made, so what they call need not be there.
#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/log.hpp>
#include <eddy/io/blocking.hpp>
#include <eddy/io/channel.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/executor.hpp>
#include <eddy/io/file.hpp>
#include <eddy/io/frames.hpp>
#include <eddy/io/generator.hpp>
#include <eddy/io/limited_scope.hpp>
#include <eddy/io/line_reader.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/loop_group.hpp>
#include <eddy/io/process.hpp>
#include <eddy/io/promise.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/select.hpp>
#include <eddy/io/semaphore.hpp>
#include <eddy/io/signals.hpp>
#include <eddy/io/strand.hpp>
#include <eddy/io/when.hpp>
#include <eddy/net/blocking.hpp>
#include <eddy/net/queued_writer.hpp>
#include <eddy/net/tcp.hpp>
#include <eddy/wire/http1.hpp>
#include <eddy/wire/resp.hpp>

#include <fcntl.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

using namespace eddy;

int write_snapshot(std::string path);
task<int> count_lines(std::string path);
async_generator<std::string> read_lines(stream& peer);
void use(const std::string& line);
task<> accept_connections(std::uint16_t port);
task<> serve(stream peer);
task<int> withdraw(int amount);
task<std::string> fetch(std::string uri);
task<std::string> read_reply(stream& peer);
task<int> wait_for_key();
task<> work_on(int job);
void call_back(promise<int> answer);

inline task<result<int>> io_blocking(std::string path) {
    blocking_pool pool;
    result<int> written = co_await run_blocking(pool, [&] { return write_snapshot(path); });
    co_return written;
}

inline task<result<int>> io_executor(loop_group* group, std::string path) {
    executor disk_loop = group->executor(1);
    result<> posted = disk_loop.post([] { log_info("demo", "runs over there"); });
    result<int> lines = co_await resume_on(disk_loop, count_lines(path));
    // and we are back here
    co_return posted ? lines : fail(posted.error());
}

inline task<result<>> io_file(std::string text) {
    result<file> log = co_await file::open("/var/log/demo", O_WRONLY | O_CREAT);
    if (!log) co_return fail(log.error());
    result<> written = co_await log->write_at(0, as_bytes(text));
    if (written) written = co_await log->sync();
    co_return written;
}

inline task<std::string> io_frames(std::string uri) {
    std::pmr::monotonic_buffer_resource arena;
    std::string page = co_await with_frames(arena, [&] { return fetch(uri); });
    co_return page;
}

inline task<> io_generator(stream& peer) {
    async_generator<std::string> lines = read_lines(peer);
    while (std::optional<std::string> line = co_await lines.next()) use(*line);
}

void parse(const_bytes bytes);

inline task<result<>> io_leases(stream& peer) {
    auto incoming = leases(peer);
    while (auto received = co_await incoming.next()) {
        if (!*received) co_return fail(received->error());
        parse((*received)->bytes());
    }
    co_return result<>();
}

inline task<> io_limited_scope(std::vector<int> jobs) {
    co_await join_scope(2, [&](limited_scope& children) -> task<> {
        for (const int job : jobs) {
            auto spawned = co_await children.spawn(work_on(job));
            if (!spawned) co_return;  // cancelled
        }
    });  // all children have ended here
}

inline task<> io_line_reader(stream& peer) {
    line_reader lines(peer);
    for (;;) {
        auto line = co_await lines.next();
        if (!line) break;  // the end of the stream, or a line that is too long
        use(std::string(*line));
    }
}

inline task<result<std::string>> io_read_until(stream& peer, std::string& kept) {
    result<std::size_t> size = co_await read_until(peer, kept, "\r\n\r\n");
    if (!size) co_return fail(size.error());
    const std::string head = kept.substr(0, *size);
    kept.erase(0, *size);
    co_return head;
}

inline void io_loop_group(std::uint16_t port) {
    auto group = loop_group::start({});
    for (std::size_t i = 0; i < (*group)->size(); ++i)
        if (!(*group)->post(i, accept_connections(port))) return;
}

inline task<> io_process() {
    auto sort = process::start({"sort", "-n"}, {.input = stdio::stream, .output = stdio::stream});
    if (!co_await sort->input.write_all("2\n1\n")) co_return;
    sort->input.close();
    auto line = co_await sort->output.read();
    auto status = co_await sort->wait();
    static_cast<void>(line);
    static_cast<void>(status);
}

inline task<int> io_promise() {
    promise<int> answer;
    future<int> later = answer.get_future();
    std::thread library(call_back, std::move(answer));  // it calls answer.set(42)
    const result<int> got = co_await later.wait();
    library.join();
    co_return got.value_or(0);
}

inline task<> io_scope(listener listener) {
    co_await with_scope([&](scope& children) -> task<> {
        for (;;) {
            auto peer = co_await listener.accept();
            if (!peer) break;
            children.spawn(serve(std::move(*peer)));
        }
    });  // the children are cancelled and awaited here
}

inline task<int> io_select(channel<int>& jobs, event& stopped) {
    auto first = co_await select(jobs.receive(), stopped.wait());
    if (first.index() == 1) co_return 0;  // stopped
    result<int> next = std::get<0>(first);
    co_return next.value_or(0);
}

inline task<> io_semaphore(semaphore& connections, stream peer) {
    result<permit> inside = co_await connections.acquire();
    if (!inside) co_return;           // cancelled
    co_await serve(std::move(peer));  // at most that many of these at once
}

inline task<int> io_signals() {
    auto signals = signal_set::take({SIGINT, SIGTERM});
    auto number = co_await signals->next();
    co_return number.value_or(0);
}

inline task<result<int>> io_strand(loop_group* group) {
    strand account(group->executor(0));
    result<int> left = co_await account.run(withdraw(20));  // from any loop
    co_return left;
}

inline task<std::size_t> io_when(std::string page_uri, std::string ad_uri, stream& peer) {
    auto [page, ad] = co_await when_all(fetch(page_uri), fetch(ad_uri));
    auto winner = co_await when_any(read_reply(peer), wait_for_key());  // a std::variant
    co_return page.size() + ad.size() + winner.index();
}

inline std::error_code net_blocking() {
    std::array<std::byte, 4096> buffer;
    auto peer = blocking::connect("example.org", 80);
    if (!peer) return peer.error();
    peer->set_timeout(std::chrono::seconds(5));
    auto sent = peer->write_all("GET / HTTP/1.0\r\n\r\n");
    auto size = peer->read_some(buffer);
    return !sent ? sent.error() : !size ? size.error() : std::error_code();
}

inline task<> net_queued_writer(stream& connection, scope& connections,
                                queued_writer_options options, std::string_view reply) {
    queued_writer out(connection, connections, options);
    if (auto sent = out.enqueue(reply); !sent) co_return;  // limit reached, or the peer is gone
    if (!co_await out.ready()) co_return;                  // below the low watermark again
}

inline void wire_http1(http1::request_parser& parser, byte_buffer& input) {
    http1::step step = parser.parse(input.text());
    switch (step.what) {
        case http1::event::head: break;
        case http1::event::body: break;
        case http1::event::end: break;
        case http1::event::error: break;
        case http1::event::need_more: break;
    }
    input.consume(step.consumed);
}

inline result<> wire_head_writer(byte_buffer& out, std::string_view text) {
    http1::head_writer writer(out);
    writer.response(200).field("Content-Type", "application/json");
    result<> written = writer.end(http1::body_framing::sized(text.size()));
    out.append(text);
    return written;
}

int bad_request();
void use(const std::string& name, const std::string& value);

inline int wire_query_reader(const http1::target_parts& parts) {
    http1::query_reader reader(parts.query);
    while (auto parameter = reader.next()) use(parameter->name, parameter->value);
    if (reader.malformed()) return bad_request();
    return 0;
}

inline void wire_reply_parser(std::string_view input) {
    using namespace resp;
    reply_parser parser;
    for (;;) {
        reply_outcome o = parser.next(input);  // one event, or why there is none
        if (o.consumed == 0) break;
        input.remove_prefix(o.consumed);
    }
}

int main() { return 0; }
