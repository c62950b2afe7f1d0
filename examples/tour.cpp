// The parts of the library that docs/tour.md shows first: tasks, streams, scopes, time, and what
// coroutines of one loop share. Each function runs one of them and says whether it worked.
#include <eddy/base/result.hpp>
#include <eddy/io/channel.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/frames.hpp>
#include <eddy/io/generator.hpp>
#include <eddy/io/limited_scope.hpp>
#include <eddy/io/line_reader.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/promise.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/select.hpp>
#include <eddy/io/semaphore.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/timeout.hpp>
#include <eddy/io/when.hpp>
#include <eddy/net/queued_writer.hpp>
#include <eddy/net/rate_limit.hpp>
#include <eddy/net/tcp.hpp>

#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <memory_resource>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace eddy;
using namespace std::chrono_literals;

result<int> parse_port(std::string_view text) {
    int port = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
    if (error != std::errc() || end != text.data() + text.size()) return fail(errc::malformed);
    if (port < 1 || port > 65535) return fail(errc::limit_reached);
    return port;
}

task<bool> results() {
    const result<int> port = parse_port("70000");
    co_return !port && port.error() == errc::limit_reached && parse_port("80").value_or(0) == 80;
}

task<int> add(int a, int b) { co_return a + b; }

task<int> add_three(int a, int b, int c) {
    const int sum = co_await add(a, b);
    co_return co_await add(sum, c);
}

/// Both ends of a TCP connection within the process.
struct ends {
    stream client;
    stream server;
};

task<result<ends>> connect_both() {
    auto listening = tcp::listen("127.0.0.1", 0);
    if (!listening) co_return fail(listening.error());
    auto client = co_await tcp::connect("127.0.0.1", listening->local().port());
    if (!client) co_return fail(client.error());
    auto server = co_await listening->accept();
    if (!server) co_return fail(server.error());
    co_return ends{std::move(*client), std::move(*server)};
}

task<result<std::string>> ask(stream& server, std::string question) {
    auto sent = co_await server.write_all(question);
    if (!sent) co_return fail(sent.error());
    auto received = co_await server.read();
    if (!received) co_return fail(received.error());
    co_return std::string(received->text());
}

task<> answer(stream& client) {
    auto received = co_await client.read();
    if (!received) co_return;
    static_cast<void>(co_await client.write_all(received->bytes()));
}

task<bool> streams() {
    auto both = co_await connect_both();
    if (!both) co_return false;
    auto [told, done] = co_await when_all(ask(both->client, "hello"), answer(both->server));
    static_cast<void>(done);
    co_return told.value_or("") == "hello";
}

task<result<std::uint32_t>> read_number(stream& from) {
    std::array<std::byte, 4> bytes;
    auto filled = co_await from.read_exactly(bytes);
    if (!filled) co_return fail(filled.error());
    co_return std::to_integer<std::uint32_t>(bytes[3]);
}

task<bool> at_once() {
    auto both = co_await connect_both();
    if (!both) co_return false;
    const std::string news = "no time to wait";
    const result<std::size_t> taken = both->client.try_write(as_bytes(news));
    co_return taken == news.size();
}

task<bool> pieces() {
    auto both = co_await connect_both();
    if (!both) co_return false;
    const std::string head("\0\0\0", 3);
    const std::string tail("\7", 1);
    const std::array<const_bytes, 2> message{as_bytes(head), as_bytes(tail)};
    if (!co_await both->client.write_all(message)) co_return false;
    co_return co_await read_number(both->server) == 7U;
}

/// Keeps what it needs, gives the buffer back, and only then waits.
task<result<>> echo_later(stream& peer) {
    result<lease> received = co_await peer.read();
    if (!received) co_return fail(received.error());
    const std::string kept(received->text());
    received->reset();
    if (auto slept = co_await sleep_for(1ms); !slept) co_return slept;
    co_return co_await peer.write_all(kept);
}

task<bool> lent_bytes() {
    auto both = co_await connect_both();
    if (!both) co_return false;
    auto [told, done] = co_await when_all(ask(both->client, "hello"), echo_later(both->server));
    co_return told.value_or("") == "hello" && done;
}

task<result<std::string>> second_line(stream& from) {
    line_reader lines(from, 1024);
    if (auto first = co_await lines.next(); !first) co_return fail(first.error());
    auto second = co_await lines.next();
    if (!second) co_return fail(second.error());
    co_return std::string(*second);
}

task<result<std::string>> head(stream& from, std::string& kept) {
    const result<std::size_t> size = co_await read_until(from, kept, "\n\n", 1024);
    if (!size) co_return fail(size.error());
    const std::string taken = kept.substr(0, *size);
    kept.erase(0, *size);
    co_return taken;
}

task<bool> delimited() {
    auto both = co_await connect_both();
    if (!both || !co_await both->client.write_all("one\r\ntwo\n")) co_return false;
    const result<std::string> line = co_await second_line(both->server);
    std::string kept;
    if (!co_await both->client.write_all("a: b\n\nbody")) co_return false;
    const result<std::string> taken = co_await head(both->server, kept);
    co_return line == "two" && taken == "a: b\n\n";
}

task<result<stream>> connect_patiently(std::string host, std::uint16_t port) {
    tcp::connect_options options;
    options.timeout = 5s;
    options.socket.keepalive = true;
    co_return co_await tcp::connect(std::move(host), port, options);
}

task<bool> connecting() {
    auto listening = tcp::listen("localhost", 0);
    if (!listening) co_return false;
    co_return (co_await connect_patiently("localhost", listening->local().port())).has_value();
}

task<> count_up(int& counter) {
    while (co_await sleep_for(1ms)) ++counter;
}

task<bool> scopes() {
    int counter = 0;
    co_await with_scope([&](scope& children) -> task<> {
        children.spawn(count_up(counter));
        children.spawn(count_up(counter));
        while (counter < 4)
            if (!co_await sleep_for(1ms)) break;
    });
    co_return counter >= 4;
}

task<> note(std::vector<int>& done, int job) {
    if (co_await sleep_for(1ms)) done.push_back(job);
}

task<bool> two_at_a_time() {
    std::vector<int> done;
    co_await join_scope(2, [&](limited_scope& children) -> task<> {
        for (int job = 0; job < 5; ++job) {
            auto spawned = co_await children.spawn(note(done, job));
            if (!spawned) co_return;
        }
    });
    co_return done.size() == 5;
}

task<result<>> sleep_long() { co_return co_await sleep_for(1h); }

task<bool> timeouts() {
    event never;
    const result<> waited = co_await with_timeout(5ms, never.wait());
    const result<> slept = co_await with_timeout(5ms, sleep_long());
    co_return !waited && waited.error() == errc::timed_out && !slept;
}

task<> reply(promise<int> to) {
    if (co_await sleep_for(1ms)) to.set(42);
}

task<bool> one_reply() {
    promise<int> answered;
    const future<int> later = answered.get_future();
    result<int> got;
    co_await join_scope([&](scope& children) -> task<> {
        children.spawn(reply(std::move(answered)));
        got = co_await later.wait();
    });
    co_return got == 42;
}

task<bool> one_deadline_for_all() {
    deadline_source limit(co_await current_source(), loop::current().after(5ms));
    const result<> first = co_await sleep_long().under(limit.source());
    const result<> second = co_await sleep_long().under(limit.source());
    co_return !first && !second && limit.expired();
}

task<bool> several() {
    auto [sum, product] = co_await when_all(add(1, 2), add_three(1, 2, 3));
    auto first = co_await when_any(add(1, 2), sleep_long());
    co_return sum == 3 && product == 6 && first.index() == 0;
}

task<bool> several_of_a_vector() {
    std::vector<task<int>> sums;
    for (int i = 0; i < 4; ++i) sums.push_back(add(i, i));
    const std::vector<int> all = co_await when_all(std::move(sums));
    std::vector<task<int>> others;
    for (int i = 1; i < 4; ++i) others.push_back(add(i, i));
    const first_value<int> first = co_await when_any(std::move(others));
    co_return all.back() == 6 && first.index == 0 && first.value == 2;
}

task<bool> selecting_one() {
    channel<int> numbers(1), others(1);
    if (!numbers.try_send(1) || !others.try_send(2)) co_return false;
    auto first = co_await select(numbers.receive(), others.receive(), sleep_for(1s));
    const result<int> kept = others.try_receive();  // the loser's value
    co_return first.index() == 0 && std::get<0>(first) == 1 && kept == 2;
}

task<> stop_after(cancel_source& source, duration time) {
    if (co_await sleep_for(time)) source.request();
}

task<bool> cancelling() {
    cancel_source source(co_await current_source());
    auto [slept, done] = co_await when_all(sleep_long().under(source), stop_after(source, 2ms));
    static_cast<void>(done);
    co_return !slept && slept.error() == errc::cancelled;
}

/// Counts what the coroutines of a connection take.
class counted final : public std::pmr::memory_resource {
public:
    std::size_t bytes() const noexcept { return bytes_; }

private:
    void* do_allocate(std::size_t size, std::size_t alignment) override {
        void* const frame = std::pmr::new_delete_resource()->allocate(size, alignment);
        bytes_ += size;
        return frame;
    }
    void do_deallocate(void* frame, std::size_t size, std::size_t alignment) override {
        bytes_ -= size;
        std::pmr::new_delete_resource()->deallocate(frame, size, alignment);
    }
    bool do_is_equal(const memory_resource& other) const noexcept override {
        return this == &other;
    }

    std::size_t bytes_ = 0;
};

task<> serve_counted(stream& peer, counted& memory) {
    co_await with_frames(memory, [&] { return answer(peer); });
}

task<bool> counting() {
    auto both = co_await connect_both();
    if (!both) co_return false;
    counted memory;
    bool good = false;
    co_await with_scope([&](scope& clients) -> task<> {
        clients.spawn(serve_counted(both->server, memory));
        good = memory.bytes() > 0;  // it waits for a question
        good = (co_await ask(both->client, "who?")).has_value() && good;
    });
    co_return good&& memory.bytes() == 0;
}

task<bool> arenas() {
    std::array<std::byte, 4096> room;
    std::pmr::monotonic_buffer_resource arena(room.data(), room.size());
    const int sum = co_await with_frames(arena, [] { return add_three(1, 2, 3); });
    co_return sum == 6 && frame_memory() == nullptr;
}

task<bool> writers() {
    auto both = co_await connect_both();
    if (!both) co_return false;
    bool good = false;
    co_await with_scope([&](scope& tasks) -> task<> {
        queued_writer_options limits;
        limits.max_queued_bytes = 64 * 1024;
        limits.policy = slow_reader_policy::drop_oldest;
        queued_writer out(both->client, tasks, limits);
        const auto news = std::make_shared<const std::vector<std::byte>>(1000);
        for (int i = 0; i < 3; ++i) static_cast<void>(out.enqueue(news));
        good = (co_await out.graceful_shutdown(1s)).has_value();
    });
    co_return good;
}

task<bool> flushing() {
    auto both = co_await connect_both();
    if (!both) co_return false;
    bool good = false;
    co_await with_scope([&](scope& tasks) -> task<> {
        queued_writer out(both->client, tasks);
        const result<> taken = out.enqueue("the last news");
        if (!co_await out.flush_within(1s)) out.abort();
        good = taken && out.queued_bytes() == 0 && out.dropped() == 0;
    });
    co_return good;
}

task<> produce(channel<int>& numbers) {
    for (int i = 1; i <= 10; ++i)
        if (!co_await numbers.send(i)) co_return;
    numbers.close();
}

task<bool> channels() {
    channel<int> numbers(4);
    int sum = 0;
    co_await with_scope([&](scope& children) -> task<> {
        children.spawn(produce(numbers));
        while (auto number = co_await numbers.receive()) sum += *number;
    });
    co_return sum == 55;
}

task<bool> channels_at_once() {
    channel<std::string> lines(1);
    const result<> first = lines.try_send("one");
    const result<> second = lines.try_send("two");
    co_return first && !second && second.error() == errc::limit_reached;
}

task<> set_later(event& ready) {
    co_await loop::current().yield();
    ready.set();
}

task<bool> events() {
    event ready;
    result<> waited;
    co_await with_scope([&](scope& children) -> task<> {
        children.spawn(set_later(ready));
        waited = co_await ready.wait();
    });
    co_return waited.has_value() && ready.is_set();
}

task<result<std::string>> request(async_mutex& turn, stream& server, std::string question) {
    result<permit> mine = co_await turn.lock();
    if (!mine) co_return fail(mine.error());
    co_return co_await ask(server, std::move(question));
}

task<> answer_twice(stream& client) {
    co_await answer(client);
    co_await answer(client);
}

task<bool> turns() {
    auto both = co_await connect_both();
    if (!both) co_return false;
    async_mutex turn;
    auto [first, second, done] =
        co_await when_all(request(turn, both->client, "one"), request(turn, both->client, "two"),
                          answer_twice(both->server));
    static_cast<void>(done);
    co_return first.value_or("") == "one" && second.value_or("") == "two";
}

task<> work(semaphore& places, int& most, int& inside) {
    const result<permit> place = co_await places.acquire();
    if (!place) co_return;
    most = std::max(most, ++inside);
    co_await loop::current().yield();
    --inside;
}

task<bool> semaphores() {
    semaphore places(2);
    int most = 0;
    int inside = 0;
    co_await join_scope([&](scope& children) -> task<> {
        for (int i = 0; i < 6; ++i) children.spawn(work(places, most, inside));
        co_return;
    });
    co_return most == 2;
}

async_generator<std::string> lines(stream& from) {
    std::string rest;
    auto incoming = leases(from);
    while (auto received = co_await incoming.next()) {
        if (!*received) co_return;
        rest += (*received)->text();
        received->value().reset();
        for (std::size_t end; (end = rest.find('\n')) != std::string::npos; rest.erase(0, end + 1))
            co_yield rest.substr(0, end);
    }
}

task<bool> generators() {
    auto both = co_await connect_both();
    if (!both || !co_await both->client.write_all("one\ntwo\nthree\n")) co_return false;
    both->client.close();
    int count = 0;
    auto incoming = lines(both->server);
    while (std::optional<std::string> line = co_await incoming.next()) ++count;
    co_return count == 3;
}

task<bool> rates() {
    rate_limiter limit(1000, 10, loop::current().now());
    const bool at_once = limit.try_take(10, loop::current().now());
    const result<> later = co_await limit.take(5);
    co_return at_once&& later.has_value();
}

/// Fires once, unless it is disarmed; nothing is allocated for it.
class reminder final : public timer {
public:
    event fired;
    void arm(duration after) { loop::current().arm(*this, loop::current().after(after)); }

private:
    void fire() noexcept override { fired.set(); }
};

task<bool> timers() {
    reminder bell;
    bell.arm(1ms);
    co_return (co_await bell.fired.wait()).has_value();
}

task<int> everything() {
    const auto check = [](const char* what, bool good) {
        if (!good) std::printf("%s: does not work\n", what);
        return good ? 0 : 1;
    };
    int failed = 0;
    failed += check("results", co_await results());
    failed += check("tasks", co_await add_three(1, 2, 3) == 6);
    failed += check("streams", co_await streams());
    failed += check("at_once", co_await at_once());
    failed += check("pieces", co_await pieces());
    failed += check("lent_bytes", co_await lent_bytes());
    failed += check("delimited", co_await delimited());
    failed += check("connecting", co_await connecting());
    failed += check("scopes", co_await scopes());
    failed += check("two_at_a_time", co_await two_at_a_time());
    failed += check("one_reply", co_await one_reply());
    failed += check("timeouts", co_await timeouts());
    failed += check("one_deadline_for_all", co_await one_deadline_for_all());
    failed += check("several", co_await several());
    failed += check("cancelling", co_await cancelling());
    failed += check("counting", co_await counting());
    failed += check("arenas", co_await arenas());
    failed += check("writers", co_await writers());
    failed += check("flushing", co_await flushing());
    failed += check("several_of_a_vector", co_await several_of_a_vector());
    failed += check("selecting_one", co_await selecting_one());
    failed += check("channels_at_once", co_await channels_at_once());
    failed += check("channels", co_await channels());
    failed += check("events", co_await events());
    failed += check("turns", co_await turns());
    failed += check("semaphores", co_await semaphores());
    failed += check("generators", co_await generators());
    failed += check("rates", co_await rates());
    failed += check("timers", co_await timers());
    co_return failed;
}

}  // namespace

int main() {
    auto made = loop::create();
    if (!made) return 1;
    const int failed = (*made)->run(everything());
    if (failed == 0) std::puts("all of it works");
    return failed;
}
