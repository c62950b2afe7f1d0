// A whole test with the simulator, as a user would write it; docs/simulator.md explains it. An echo
// server and its clients run in one process, in virtual time, once a seed.
//
//     simulated_test            tries many seeds, and names the first one that fails
//     simulated_test 17         repeats that seed, and prints its events with their times
//     simulated_test 17 hasty   the same with a server that is wrong
#include <eddy/base/random.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/timeout.hpp>
#include <eddy/io/when.hpp>
#include <eddy/net/tcp.hpp>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace {

using namespace eddy;
using namespace std::chrono_literals;

// ---- the program that is tested: it sends back each message, two bytes of length and a body

constexpr std::size_t head_size = 2;

std::string with_head(std::string_view body) {
    std::string message;
    message += static_cast<char>(body.size() >> 8);
    message += static_cast<char>(body.size());
    message += body;
    return message;
}

task<result<std::string>> receive_message(stream& from) {
    std::array<std::byte, head_size> head;
    if (auto got = co_await from.read_exactly(head); !got) co_return fail(got.error());
    const auto high = std::to_integer<std::size_t>(head[0]);
    std::vector<std::byte> body(high << 8 | std::to_integer<std::size_t>(head[1]));
    if (auto got = co_await from.read_exactly(body); !got) co_return fail(got.error());
    co_return std::string(as_text(body));
}

task<> answer_client(stream peer) {
    while (auto body = co_await receive_message(peer)) {
        const std::string reply = with_head(*body);
        if (!co_await peer.write_all(reply)) co_return;
    }
}

/// The same with a bug: it takes one read for one message.
task<> answer_hastily(stream peer) {
    while (auto received = co_await peer.read()) {
        if (received->size() < head_size) co_return;
        const std::string reply = with_head(received->text().substr(head_size));
        received->reset();
        if (!co_await peer.write_all(reply)) co_return;
    }
}

using server = task<> (*)(stream);

task<> serve(listener& listening, server answer) {
    co_await with_scope([&](scope& clients) -> task<> {
        for (;;) {
            auto peer = co_await listening.accept();
            if (peer)
                clients.spawn(answer(std::move(*peer)));
            else if (!co_await loop::current().sleep_for(10ms))
                co_return;
        }
    });
}

// ---- the test

/// Log of a run's events by the loop's clock. The same seed gives the same log.
class story {
public:
    void tell(std::string_view what) {
        text_ += std::to_string((loop::current().now() - begin_) / 1us) + " us: ";
        text_ += what;
        text_ += '\n';
    }
    const std::string& text() const noexcept { return text_; }

private:
    time_point begin_ = loop::current().now();
    std::string text_;
};

task<result<std::string>> ask(stream& to, std::string body) {
    const std::string question = with_head(body);
    if (auto sent = co_await to.write_all(question); !sent) co_return fail(sent.error());
    co_return co_await receive_message(to);
}

bool was_reset(std::error_code error) {
    return error == errno_code(ECONNRESET) || error == errno_code(EPIPE);
}

/// One client, which wants ten right answers. A reset is no fault of the server's: it connects
/// again. All else is.
task<result<>> talk(endpoint to, std::uint64_t seed, std::string name, story& log) {
    random_generator dice(seed);
    stream connection;
    for (int right = 0; right < 10;) {
        if (!connection) {
            auto made = co_await loop::current().connect(to);
            if (!made) co_return fail(made.error());
            connection = std::move(*made);
        }
        const std::string question(dice.below(200), 'x');
        const result<std::string> answer = co_await ask(connection, question);
        log.tell(name + " sent " + std::to_string(question.size()) + " bytes, and got " +
                 (answer ? std::to_string(answer->size()) + " back" : answer.error().message()));
        if (answer && *answer != question) co_return fail(errc::malformed);
        if (answer) {
            ++right;
        } else {
            if (!was_reset(answer.error())) co_return fail(answer.error());
            connection.close();
        }
    }
    co_return result<>();
}

task<result<>> scenario(server answer, std::uint64_t seed, story& log) {
    auto listening = tcp::listen("127.0.0.1", 7000);
    if (!listening) co_return fail(listening.error());
    const endpoint where = listening->local();
    result<> outcome;
    co_await with_scope([&](scope& servers) -> task<> {
        servers.spawn(serve(*listening, answer));
        const auto [ada, bob] =
            co_await when_all(talk(where, seed, "Ada", log), talk(where, ~seed, "Bob", log));
        outcome = ada ? bob : ada;
    });
    co_return outcome;
}

task<result<>> bounded(server answer, std::uint64_t seed, story& log) {
    co_return co_await with_timeout(1min, scenario(answer, seed, log));
}

sim_options rough(std::uint64_t seed) {
    sim_options options;
    options.seed = seed;
    options.short_read = 0.02;
    options.reset = 0.002;
    options.no_buffers = 0.05;
    options.min_delay = 100us;
    options.max_delay = 5ms;
    options.shuffle = true;
    return options;
}

/// Outcome of a run, and its log.
struct trial {
    result<> outcome;
    std::string happened;
};

trial run(server answer, const sim_options& world) {
    loop_options options;
    options.kind = io_backend_kind::sim;
    options.sim = world;
    auto made = loop::create(options);
    if (!made) return {fail(made.error()), "there is no loop\n"};
    story log;
    const result<> outcome = (*made)->run(bounded(answer, world.seed, log));
    return {outcome, log.text()};
}

std::optional<std::uint64_t> first_failure(server answer) {
    for (std::uint64_t seed = 1; seed <= 300; ++seed)
        if (!run(answer, rough(seed)).outcome) return seed;
    return std::nullopt;
}

int repeat(server answer, std::uint64_t seed) {
    const trial one = run(answer, rough(seed));
    std::fputs(one.happened.c_str(), stdout);
    std::puts(one.outcome ? "It worked." : one.outcome.error().message().c_str());
    return one.outcome ? 0 : 1;
}

/// True if the test is effective: it finds a faulty server, which a network without faults does
/// not, and finds it again.
bool finds_the_hasty_server() {
    if (!run(answer_hastily, sim_options()).outcome) return false;
    const auto seed = first_failure(answer_hastily);
    if (!seed) return false;
    std::printf("seed %llu shows what is wrong with the hasty server\n",
                static_cast<unsigned long long>(*seed));
    const trial one = run(answer_hastily, rough(*seed));
    const trial again = run(answer_hastily, rough(*seed));
    return !one.outcome && one.happened == again.happened;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc > 1) {
        const bool hasty = argc > 2 && std::string_view(argv[2]) == "hasty";
        return repeat(hasty ? answer_hastily : answer_client, std::strtoull(argv[1], nullptr, 10));
    }
    if (const auto seed = first_failure(answer_client)) {
        const auto number = static_cast<unsigned long long>(*seed);
        std::printf("seed %llu fails; repeat it with: %s %llu\n", number, argv[0], number);
        return 1;
    }
    if (!finds_the_hasty_server()) {
        std::puts("the test does not see a server that is wrong, or not twice in the same way");
        return 1;
    }
    std::puts("no seed of 300 failed");
    return 0;
}
