// Forwarding under random requests, backends that misbehave in random ways, and a simulated network
// with faults: each client gets its own response or an error, never another's bytes.
#include <eddy/base/random.hpp>
#include <eddy/http/session.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>

#include "base/test_seed.hpp"
#include "proxy/http/forwarder.hpp"
#include "proxy/testing.hpp"

#include <array>
#include <charconv>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace eddy::proxy {
namespace {

using namespace proxy::testing;

constexpr std::size_t backend_count = 3;
constexpr std::size_t client_count = 8;
constexpr int requests_a_client = 12;

/// State of a run, which all of its parts share.
struct world {
    explicit world(std::uint64_t seed) : dice(seed) {}

    random_generator dice;
    std::vector<std::string> wrong;
    int answered = 0;
};

std::string hexadecimal(std::size_t number) {
    std::array<char, 16> digits;
    const auto written = std::to_chars(digits.data(), digits.data() + digits.size(), number, 16);
    return {digits.data(), written.ptr};
}

/// Content that belongs to one request alone.
std::string content_of(std::string_view tag, std::size_t size) {
    std::string made;
    while (made.size() < size) made.append(tag).append(",");
    made.resize(size);
    return made;
}

/// A backend's application: echoes target and content, or fails in one of many ways.
class moody final : public http::request_handler {
public:
    explicit moody(world& of) : of_(of) {}

    task<http::response> handle(http::request& incoming) override {
        const std::uint64_t mood = of_.dice.below(12);
        if (mood == 0) co_return http::response(413, "text/plain", std::string("early"));
        if (mood == 1) co_return broken(incoming);
        const auto read = co_await incoming.collect();
        if (!read) co_return http::response(500);
        std::string text(incoming.target());
        text += ' ';
        text += incoming.content();
        if (mood == 2) static_cast<void>(co_await loop::current().sleep_for(5ms));
        http::response made;
        if (mood < 6)
            made.body = http::body::streamed(
                [text = std::move(text)](http::body_writer& to) -> task<result<>> {
                    return written(to, text);
                });
        else
            made.body = std::move(text);
        if (mood == 7) made.add("Connection", "close");
        co_return made;
    }
    http::response reject(int status, std::string_view) override { return http::response(status); }

private:
    static task<result<>> written(http::body_writer& to, std::string text) {
        std::string_view rest = text;
        while (!rest.empty()) {
            const std::string_view piece = rest.substr(0, 1000);
            rest.remove_prefix(piece.size());
            const result<> sent = co_await to.write(piece);
            if (!sent) co_return sent;
        }
        co_return result<>();
    }
    /// A response that breaks off in its content.
    static http::response broken(const http::request& incoming) {
        http::response made;
        made.body = http::body::streamed(
            [text = std::string(incoming.target())](http::body_writer& to) -> task<result<>> {
                return half(to, text);
            },
            100'000);
        return made;
    }
    static task<result<>> half(http::body_writer& to, std::string text) {
        const result<> sent = co_await to.write(text);
        if (!sent) co_return sent;
        co_return fail(errc::truncated);
    }

    world& of_;
};

/// Serves a backend until it is cancelled.
task<void> serve_backend(listener& at, moody& handler, http::session_limits limits) {
    scope sessions(co_await current_source());
    for (;;) {
        auto peer = co_await at.accept();
        if (!peer) break;
        sessions.spawn(http::serve(std::move(*peer), handler, limits));
    }
    sessions.cancel();
    co_await sessions.join();
}

/// One client: requests one after another, each of which must get its own response, or an error.
task<void> talk(world& of, endpoint front, std::size_t number) {
    auto made = co_await loop::current().connect(front);
    for (int i = 0; made && i < requests_a_client; ++i) {
        text_peer peer(std::move(*made));
        const std::string tag = "c" + std::to_string(number) + "r" + std::to_string(i);
        const std::size_t size = of.dice.below(3) == 0 ? of.dice.below(60'000) : of.dice.below(50);
        const std::string content = content_of(tag, size);
        std::string text = of.dice.below(2) == 0 ? "POST /" : "PUT /";
        text += tag + " HTTP/1.1\r\nHost: x\r\n";
        if (of.dice.below(2) == 0)
            text += "Content-Length: " + std::to_string(size) + "\r\n\r\n" + content;
        else if (size > 0)
            text += "Transfer-Encoding: chunked\r\n\r\n" + hexadecimal(size) + "\r\n" + content +
                    "\r\n0\r\n\r\n";
        else
            text += "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
        const auto sent = co_await peer.socket.write_all(text);
        const std::string head = sent ? co_await peer.head() : std::string();
        const bool is_good = head.starts_with("HTTP/1.1 200");
        bool is_kept = is_good && head.find("Connection: close") == std::string::npos;
        if (is_good) {
            const std::string wanted = "/" + tag + " " + content;
            std::string got;
            if (const std::size_t at = head.find("Content-Length: "); at != std::string::npos) {
                got = co_await peer.bytes(std::stoul(head.substr(at + 16)));
            } else {
                for (;;) {
                    const std::string line = co_await peer.until("\r\n");
                    const std::size_t piece = line.empty() ? 0 : std::stoul(line, nullptr, 16);
                    is_kept = is_kept && line.ends_with("\r\n");
                    got += co_await peer.bytes(piece);
                    co_await peer.until("\r\n");
                    if (piece == 0) break;
                }
            }
            if (peer.end) is_kept = false;
            // A response that breaks off has the beginning of its own content.
            if (got == wanted)
                ++of.answered;
            else if (is_kept || !wanted.starts_with(got))
                of.wrong.push_back(tag + " got " + got.substr(0, 60));
        }
        if (is_kept)
            made = std::move(peer.socket);
        else
            made = co_await loop::current().connect(front);
    }
}

task<void> accept_clients(listener& front, forwarder& by, http::session_limits limits) {
    scope sessions(co_await current_source());
    for (;;) {
        auto peer = co_await front.accept();
        if (!peer) break;
        sessions.spawn(http::serve(std::move(*peer), by, limits));
    }
    sessions.cancel();
    co_await sessions.join();
}

class silent_observer final : public forwarding_observer {
    void note_failed_backend(const backend&, std::string_view) noexcept override {}
    void note_unanswered(int, std::string_view) noexcept override {}
    void note_ejected(const backend&) noexcept override {}
    void note_returned(const backend&) noexcept override {}
    void note_slow(const slow_backend&) noexcept override {}
    void note_no_memory() noexcept override {}
};

task<void> round(world& of) {
    http::session_limits limits;
    limits.parser.body = UINT64_MAX;
    limits.linger_time = 50ms;
    std::vector<listener> listening;
    std::vector<wanted_backend> wanted;
    moody handler(of);
    for (std::size_t i = 0; i < backend_count; ++i) {
        listening.push_back(must(loop::current().listen(must(endpoint::ip("127.0.0.1", 0)))));
        wanted_backend one;
        one.where.host = "127.0.0.1";
        one.where.port = listening.back().local().port();
        wanted.push_back(one);
    }
    listener front = must(loop::current().listen(must(endpoint::ip("127.0.0.1", 0))));
    serving::counters counted;
    silent_observer observer;
    const auto budget = std::make_shared<buffer_budget>(of.dice.below(200'000));
    forwarder by(0, counted, observer, budget);
    route all;
    all.to = std::make_shared<balancer>(balancing(), update_backends({}, wanted, 1));
    auto rules = std::make_shared<forwarding_rules>();
    rules->limits.response_time = 2s;
    rules->backend_connections = 1 + of.dice.below(10);
    for (std::size_t* const each : {&rules->buffered_request, &rules->buffered_response})
        if (of.dice.below(3) > 0) *each = 1 + of.dice.below(80'000);
    if (of.dice.below(3) == 0) rules->total_time = 20ms + of.dice.below(100) * 1ms;
    by.set_rules(rules, std::make_shared<route_table>(std::vector<route>{all}));
    scope servers;
    for (listener& each : listening) servers.spawn(serve_backend(each, handler, limits));
    servers.spawn(accept_clients(front, by, limits));
    scope clients;
    for (std::size_t i = 0; i < client_count; ++i) clients.spawn(talk(of, front.local(), i));
    co_await clients.join();
    servers.cancel();
    co_await servers.join();
    by.close();
    if (budget->taken() != 0) of.wrong.emplace_back("buffered bytes were not given back");
}

TEST(forwarding_chaos, each_client_gets_its_own_response_or_an_error) {
    const std::uint64_t first = eddy::testing::seed_of_this_run();
    for (std::uint64_t i = 0; i < 40; ++i) {
        const std::uint64_t seed = first + i;
        SCOPED_TRACE("seed " + std::to_string(seed));
        loop_options options;
        options.kind = io_backend_kind::sim;
        options.sim.seed = seed;
        options.sim.short_read = 0.2;
        options.sim.reset = i % 2 == 0 ? 0 : 0.002;
        options.sim.max_delay = 2ms;
        options.sim.shuffle = true;
        const auto here = must(loop::create(options));
        world of(seed);
        here->run(round(of));
        EXPECT_EQ(of.wrong, std::vector<std::string>());
        EXPECT_GT(of.answered, static_cast<int>(client_count));
    }
}

TEST(forwarding_chaos, the_same_over_the_kernel) {
    for (const io_backend_kind kind : {io_backend_kind::uring, io_backend_kind::epoll}) {
        loop_options options;
        options.kind = kind;
        const auto here = must(loop::create(options));
        world of(eddy::testing::seed_of_this_run());
        here->run(round(of));
        EXPECT_EQ(of.wrong, std::vector<std::string>());
        EXPECT_GT(of.answered, static_cast<int>(client_count));
    }
}

}  // namespace
}  // namespace eddy::proxy
