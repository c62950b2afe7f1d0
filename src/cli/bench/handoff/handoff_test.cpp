// Load of handoffs against a small stream runtime: what is counted, every kind of failure, the
// report, and the command line.
#include <eddy/net/descriptors.hpp>

#include "base/files/temporary_folder.hpp"
#include "cli/bench/handoff/handoff_load.hpp"
#include "cli/bench/handoff/handoff_report.hpp"
#include "cli/commands/commands.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <fstream>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace eddy::cli::bench {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr std::string_view head =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";

std::string whole_answer(int events = 3) {
    std::string made(head);
    for (int i = 0; i < events; ++i) made += fmt::format("data: {{\"content\":\"{}\"}}\n\n", i);
    return made + "data: [DONE]\n\n";
}

/// A stream runtime with one thread: `answer` gets each client, and closes it by letting it go.
class runtime {
public:
    using answer = std::function<void(unique_fd client, const std::string& data)>;

    runtime(int type, answer with) : type_(type), answer_(std::move(with)) {
        const auto at = endpoint::unix_path(path());
        listener_.reset(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
        EXPECT_EQ(::bind(listener_.get(), at->data(), at->size()), 0);
        EXPECT_EQ(::listen(listener_.get(), 64), 0);
        thread_ = std::thread([this] { serve(); });
    }
    ~runtime() {
        stops_ = true;
        thread_.join();
    }

    std::string path() const { return folder_.file("handoff.sock"); }
    /// The data of the handoffs. Once the load has ended.
    const std::vector<std::string>& received() const { return received_; }

private:
    static bool await(int fd, int milliseconds) {
        pollfd watched{fd, POLLIN, 0};
        return ::poll(&watched, 1, milliseconds) == 1;
    }

    void serve() {
        while (!stops_) {
            if (!await(listener_.get(), 5)) continue;
            const unique_fd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
            std::vector<std::byte> room(256 * 1024);
            std::string data;
            unique_fd client;
            while (await(connection.get(), 10'000)) {
                auto part = unix_socket::receive_message(connection.get(), room);
                if (!part || part->size == 0) break;
                data.append(reinterpret_cast<const char*>(room.data()), part->size);
                if (part->descriptor) client = std::move(part->descriptor);
                if (type_ == SOCK_SEQPACKET) break;
            }
            received_.push_back(data);
            answer_(std::move(client), data);
        }
    }

    testing::temporary_folder folder_;
    int type_;
    answer answer_;
    unique_fd listener_;
    std::atomic<bool> stops_{false};
    std::vector<std::string> received_;
    std::thread thread_;
};

/// Sends the same answer to all.
runtime::answer always(std::string text) {
    return [text = std::move(text)](const unique_fd& client, const std::string&) {
        EXPECT_EQ(::send(client.get(), text.data(), text.size(), MSG_NOSIGNAL),
                  static_cast<ssize_t>(text.size()));
    };
}

class bench_handoff : public ::testing::TestWithParam<io_backend_kind> {
protected:
    void SetUp() override {
        loop_options wanted;
        wanted.kind = GetParam();
        if (!loop::create(wanted)) GTEST_SKIP() << "this backend is refused here";
    }

    /// A short load of few streams.
    handoff_options options(const std::string& socket) const {
        handoff_options made;
        made.socket = socket;
        made.connections = 5;
        made.ramp_up = 5ms;
        made.io_backend = GetParam();
        return made;
    }

    static handoff_result load(const handoff_options& wanted) {
        progress_line none(false);
        return run_handoffs(wanted, none);
    }

    /// A load whose streams all fail in this way.
    handoff_counts expect_fault(handoff_fault kind, const handoff_options& wanted,
                                std::string_view text) const {
        const handoff_result made = load(wanted);
        const handoff_counts& counts = made.counts;
        EXPECT_EQ(counts.started, wanted.connections);
        EXPECT_EQ(counts.completed, 0u);
        EXPECT_EQ(counts.failed(), wanted.connections) << counts.first_fault.data();
        EXPECT_EQ(counts.faults[static_cast<std::size_t>(kind)], wanted.connections)
            << counts.first_fault.data();
        EXPECT_THAT(std::string(counts.first_fault.data()), HasSubstr(std::string(text)));
        EXPECT_FALSE((handoff_report{wanted, made}.is_right()));
        return counts;
    }
};
INSTANTIATE_TEST_SUITE_P(cli, bench_handoff,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll),
                         [](const auto& of) { return std::string(to_string(of.param)); });

TEST_P(bench_handoff, counts_whole_answers) {
    const std::string answer = whole_answer();
    for (const int type : {SOCK_STREAM, SOCK_SEQPACKET}) {
        for (const bool over_tcp : {false, true}) {
            const runtime to(type, always(answer));
            handoff_options wanted = options(to.path());
            wanted.over_tcp = over_tcp;
            wanted.messages = 3;
            const handoff_result made = load(wanted);
            EXPECT_EQ(made.counts.started, 5u);
            EXPECT_EQ(made.counts.completed, 5u) << made.counts.first_fault.data();
            EXPECT_EQ(made.counts.failed(), 0u);
            EXPECT_EQ(made.counts.bytes, 5 * answer.size());
            EXPECT_EQ(made.counts.handoff.count(), 5u);
            EXPECT_EQ(made.counts.first_byte.count(), 5u);
            EXPECT_EQ(made.counts.stream.count(), 5u);
            EXPECT_LE(made.counts.first_byte.max(), made.counts.stream.max());
            EXPECT_GE(made.peak_concurrent, 1u);
            EXPECT_EQ(made.processes, 1u);
            EXPECT_TRUE((handoff_report{wanted, made}.is_right()));
            EXPECT_EQ(to.received(), std::vector<std::string>(5, wanted.data));
        }
    }
}

TEST_P(bench_handoff, takes_the_type_of_socket_that_is_given) {
    const runtime to(SOCK_SEQPACKET, always(whole_answer()));
    handoff_options wanted = options(to.path());
    wanted.kind = handoff::socket_kind::seqpacket;
    EXPECT_EQ(load(wanted).counts.completed, 5u);
    wanted.kind = handoff::socket_kind::stream;
    expect_fault(handoff_fault::connect, wanted, "rotocol");
}

TEST_P(bench_handoff, counts_failures_by_kind) {
    const testing::temporary_folder folder;
    expect_fault(handoff_fault::connect, options(folder.file("none")), "No such file");
    {
        const runtime to(SOCK_STREAM,
                         always("HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n\r\n"));
        expect_fault(handoff_fault::rejected, options(to.path()), "503");
    }
    for (const auto& [answer, text] : std::vector<std::pair<std::string, std::string>>{
             {"HTTP/1.1 404 Not Found\r\n\r\n", "404"},
             {"hello\r\n\r\n", "status line"},
             {std::string(head) + "nonsense\n\n", "none of its fields"},
             {whole_answer() + "data: more\n\n", "behind data: [DONE]"}}) {
        const runtime to(SOCK_STREAM, always(answer));
        expect_fault(handoff_fault::receive, options(to.path()), text);
    }
    const runtime to(SOCK_STREAM, [](const unique_fd&, const std::string&) {});
    expect_fault(handoff_fault::receive, options(to.path()), "no answer");
}

TEST_P(bench_handoff, counts_resets) {
    const runtime to(SOCK_STREAM, [](const unique_fd& client, const std::string&) {
        EXPECT_EQ(::send(client.get(), head.data(), head.size(), MSG_NOSIGNAL),
                  static_cast<ssize_t>(head.size()));
        const linger at_once{1, 0};
        EXPECT_EQ(::setsockopt(client.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
    });
    handoff_options wanted = options(to.path());
    wanted.over_tcp = true;
    expect_fault(handoff_fault::receive, wanted, "");
}

TEST_P(bench_handoff, counts_handoffs_that_break_off) {
    // A listener that closes each connection before it has read all that was sent.
    const testing::temporary_folder folder;
    const std::string path = folder.file("closing.sock");
    const auto at = endpoint::unix_path(path);
    const unique_fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::bind(listener.get(), at->data(), at->size()), 0);
    ASSERT_EQ(::listen(listener.get(), 64), 0);
    std::atomic<bool> stops{false};
    std::thread closing([&] {
        pollfd watched{listener.get(), POLLIN, 0};
        while (!stops)
            if (::poll(&watched, 1, 5) == 1)
                unique_fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC)).reset();
    });
    handoff_options wanted = options(path);
    wanted.data = std::string(4 << 20, 'd');
    expect_fault(handoff_fault::send, wanted, "not sent");
    stops = true;
    closing.join();
}

TEST_P(bench_handoff, gives_up_streams_that_take_too_long) {
    std::vector<unique_fd> silent;
    const runtime to(SOCK_STREAM, [&](unique_fd client, const std::string&) {
        silent.push_back(std::move(client));
    });
    handoff_options wanted = options(to.path());
    wanted.stream_timeout = 50ms;
    expect_fault(handoff_fault::timeout, wanted, "no end of the answer");
}

TEST_P(bench_handoff, gives_up_handoffs_that_are_not_taken) {
    // It has room for one connection, and accepts none.
    const testing::temporary_folder folder;
    const std::string path = folder.file("full.sock");
    const auto at = endpoint::unix_path(path);
    const unique_fd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::bind(listener.get(), at->data(), at->size()), 0);
    ASSERT_EQ(::listen(listener.get(), 0), 0);
    handoff_options wanted = options(path);
    wanted.hold = 50ms;
    wanted.stream_timeout = 200ms;
    const handoff_result made = load(wanted);
    const auto& faults = made.counts.faults;
    EXPECT_EQ(faults[static_cast<std::size_t>(handoff_fault::connect)], 4u);
    EXPECT_EQ(faults[static_cast<std::size_t>(handoff_fault::timeout)], 1u);
    EXPECT_EQ(made.counts.handoff.count(), 1u) << "of those that were made";
}

TEST_P(bench_handoff, incomplete_answers_are_failures) {
    for (const auto& [answer, messages] :
         std::vector<std::pair<std::string, std::uint64_t>>{{std::string(head) + "data: a\n\n", 0},
                                                            {std::string(head), 0},
                                                            {whole_answer(3), 4}}) {
        const runtime to(SOCK_STREAM, always(answer));
        handoff_options wanted = options(to.path());
        wanted.messages = messages;
        const handoff_result made = load(wanted);
        EXPECT_EQ(made.counts.incomplete, 5u) << made.counts.first_fault.data();
        EXPECT_EQ(made.counts.failed(), 5u);
        EXPECT_EQ(made.counts.completed, 0u);
        EXPECT_EQ(made.counts.stream.count(), 0u) << "durations are those of whole answers";
    }
}

TEST_P(bench_handoff, spreads_streams_over_processes) {
    // All are answered once all are there.
    std::vector<unique_fd> waiting;
    const std::string answer = whole_answer();
    const runtime to(SOCK_SEQPACKET, [&](unique_fd client, const std::string& data) {
        waiting.push_back(std::move(client));
        if (waiting.size() < 10) return;
        for (unique_fd& each : std::exchange(waiting, {})) always(answer)(std::move(each), data);
    });
    handoff_options wanted = options(to.path());
    wanted.connections = 10;
    wanted.processes = 3;
    wanted.interval = 1ms;
    const handoff_result made = load(wanted);
    EXPECT_EQ(made.processes, 3u);
    EXPECT_EQ(made.counts.completed, 10u) << made.counts.first_fault.data();
    EXPECT_EQ(made.counts.stream.count(), 10u);
    EXPECT_EQ(made.counts.drift.count(), 10u);
    EXPECT_EQ(made.peak_concurrent, 10u);
}

TEST_P(bench_handoff, drift_is_the_distance_from_the_ideal_end) {
    // Three events at once, where two intervals of a second should lie between them.
    const runtime to(SOCK_SEQPACKET, always(whole_answer(3)));
    handoff_options wanted = options(to.path());
    wanted.interval = 1s;
    const handoff_result made = load(wanted);
    ASSERT_EQ(made.counts.drift.count(), 5u);
    EXPECT_LE(made.counts.drift.max(), 2'000'000'000u);
    EXPECT_GT(made.counts.drift.max(), 0u);
}

TEST(bench_handoff_processes, have_a_limit_of_streams) {
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    if (before.rlim_max < 20'000) GTEST_SKIP() << "so many open files are not allowed here";
    handoff_options wanted;
    for (const auto& [streams, processes] : std::vector<std::pair<std::size_t, std::size_t>>{
             {1, 1}, {17'000, 1}, {17'001, 2}, {102'000, 6}}) {
        wanted.connections = streams;
        EXPECT_EQ(processes_for(wanted), processes) << streams;
    }
    wanted.connections = streams_a_process * process_limit;
    EXPECT_EQ(processes_for(wanted), process_limit);
    ++wanted.connections;
    EXPECT_THROW(processes_for(wanted), std::runtime_error);
    wanted.processes = 3;
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    if (before.rlim_max >= wanted.connections / 3) return;
    EXPECT_THROW(processes_for(wanted), std::runtime_error) << "too many for each";
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST(bench_handoff_report, json_has_the_form_of_other_load_generators) {
    handoff_report made;
    made.result.counts.started = made.wanted.connections = 3;
    made.result.counts.completed = 2;
    made.result.counts.count(handoff_fault::timeout, "late");
    made.result.counts.handoff.record(20'000);
    const auto report = nlohmann::json::parse(made.json());
    EXPECT_EQ(report["connections_started"], 3);
    EXPECT_EQ(report["connections_completed"], 2);
    EXPECT_EQ(report["connections_failed"], 1);
    EXPECT_EQ(report["bytes_received"], 0);
    EXPECT_EQ(report["incomplete_responses"], 0);
    EXPECT_EQ(report["peak_concurrent"], 0);
    EXPECT_EQ(
        report["errors"],
        nlohmann::json::parse(R"({"connect":0,"send":0,"receive":0,"timeout":1,"rejected":0})"));
    for (const char* key : {"handoff_latency_ms", "ttfb_latency_ms", "stream_duration_ms"}) {
        ASSERT_TRUE(report.contains(key)) << key;
        for (const char* each : {"p50", "p95", "p99", "p999"})
            EXPECT_TRUE(report[key][each].is_number()) << key << each;
    }
    EXPECT_EQ(report["handoff_latency_ms"]["p50"], 0.02);
    EXPECT_FALSE(report.contains("drift_ms"));
    EXPECT_EQ(report["first_error"], "late");
    made.wanted.interval = 1ms;
    EXPECT_TRUE(nlohmann::json::parse(made.json()).contains("drift_ms"));
    // The keys stand in this order, for readers.
    EXPECT_LT(made.json().find("connections_started"), made.json().find("bytes_received"));
}

TEST(bench_handoff_report, says_when_the_generator_was_the_limit) {
    handoff_report made;
    made.wanted.connections = made.result.counts.started = made.result.counts.completed = 100;
    EXPECT_EQ(made.verdict(), "ok");
    made.result.generator_peak = 0.95;
    EXPECT_TRUE(made.is_limited());
    EXPECT_THAT(made.verdict(), HasSubstr("may have been the limit"));
    made.result.generator_cores = 2;
    EXPECT_FALSE(made.is_limited());
    for (int i = 0; i < 3; ++i) made.result.counts.lateness.record(10'000'000);
    EXPECT_TRUE(made.is_limited());
    made.result.counts.count(handoff_fault::send, "x");
    EXPECT_THAT(made.verdict(), HasSubstr("1 of 100 streams failed"));
}

/// `eddy bench handoff WORDS`, and what it printed.
struct run_result {
    int status;
    std::string out;
    std::string err;
};
run_result run(std::vector<std::string> words) {
    words.insert(words.begin(), {"bench", "handoff"});
    context with{};
    const std::array<command, 1> commands = {bench_command()};
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int status = run_program(with, commands, words);
    std::string out = ::testing::internal::GetCapturedStdout();
    return {status, std::move(out), ::testing::internal::GetCapturedStderr()};
}

TEST(bench_handoff_command, takes_flags_with_one_dash_and_with_two) {
    const testing::temporary_folder folder;
    const std::string file = folder.file("result.json");
    for (const std::string dash : {"-", "--"}) {
        const runtime to(SOCK_STREAM, always(whole_answer()));
        const run_result made =
            run({dash + "socket", to.path(), dash + "connections", "3", dash + "ramp-up", "3ms",
                 dash + "hold", "1m30s", dash + "stream-timeout=60s", dash + "data", "{\"a\":1}",
                 dash + "output", file, dash + "verbose"});
        EXPECT_EQ(made.status, 0) << made.err;
        EXPECT_THAT(made.out, HasSubstr("3 started, 3 completed, 0 failed"));
        EXPECT_THAT(made.out, HasSubstr("Unix clients, stream sockets"));
        EXPECT_THAT(made.out, HasSubstr("verdict"));
        EXPECT_THAT(made.err, HasSubstr("stream 2: first byte after"));
        EXPECT_EQ(to.received(), std::vector<std::string>(3, "{\"a\":1}"));
        std::ostringstream written;
        written << std::ifstream(file).rdbuf();
        EXPECT_EQ(nlohmann::json::parse(written.str())["connections_completed"], 3);
    }
}

TEST(bench_handoff_command, takes_the_other_flags) {
    const testing::temporary_folder folder;
    const std::string figure = folder.file("figure.svg");
    const runtime to(SOCK_SEQPACKET, always(whole_answer(3)));
    const run_result made = run({"--socket",
                                 to.path(),
                                 "-c",
                                 "4",
                                 "--ramp-up",
                                 "0",
                                 "--socket-type",
                                 "seqpacket",
                                 "--tcp",
                                 "--messages",
                                 "3",
                                 "--interval",
                                 "50ms",
                                 "--processes",
                                 "2",
                                 "--server-pid",
                                 std::to_string(::getpid()),
                                 "--io-backend",
                                 "epoll",
                                 "--svg",
                                 figure,
                                 "--no-progress",
                                 "--json"});
    EXPECT_EQ(made.status, 0) << made.err << made.out;
    const auto report = nlohmann::json::parse(made.out);
    EXPECT_EQ(report["connections_completed"], 4);
    EXPECT_EQ(report["processes"], 2);
    EXPECT_EQ(report["socket_type"], "seqpacket");
    EXPECT_EQ(report["late_starts_ms"]["p99"], 0);
    EXPECT_GT(report["server_cpu"], 0);
    EXPECT_TRUE(report.contains("drift_ms"));
    std::ostringstream drawn;
    drawn << std::ifstream(figure).rdbuf();
    EXPECT_THAT(drawn.str(), HasSubstr("Time to the first byte by percentile"));
    EXPECT_THAT(drawn.str(), HasSubstr("percentile of 4 streams"));
}

TEST(bench_handoff_command, fails_when_a_stream_failed) {
    const testing::temporary_folder folder;
    const run_result made =
        run({"-socket", folder.file("none"), "-connections", "2", "-ramp-up", "0s"});
    EXPECT_EQ(made.status, 1);
    EXPECT_THAT(made.out, HasSubstr("connect 2; the first: "));
    EXPECT_THAT(made.out, HasSubstr("2 of 2 streams failed"));
}

TEST(bench_handoff_command, refuses_wrong_values) {
    for (const auto& [words, text] : std::vector<std::pair<std::vector<std::string>, std::string>>{
             {{"-connections", "0"}, "--connections takes a whole number"},
             {{"-ramp-up", "soon"}, "--ramp-up takes a time"},
             {{"-hold", "10 s"}, "--hold takes a time"},
             {{"-hold", "-1s"}, "--hold takes a time"},
             {{"-stream-timeout", "25h"}, "--stream-timeout takes a time"},
             {{"--interval", "1s5"}, "--interval takes a time"},
             {{"--socket-type", "dgram"}, "--socket-type cannot be"},
             {{"--processes", "65"}, "--processes takes"},
             {{"-connections", "2", "--processes", "3"}, "3 processes have no use for 2 streams"},
             {{"-socket", std::string(108, 'x')}, "at most 107 bytes"},
             {{"-socket", ""}, "is no path"},
             {{"--io-backend", "sim"}, "--io-backend cannot be"},
             {{"-conections", "5"}, "there is no flag"}}) {
        const run_result made = run(words);
        EXPECT_EQ(made.status, 1) << words[0];
        EXPECT_EQ(made.out, "");
        EXPECT_THAT(made.err, HasSubstr(text));
    }
    const run_result made =
        run({"--output", "/none/of/this", "-c", "1", "-ramp-up", "0", "-socket", "/none"});
    EXPECT_EQ(made.status, 2);
    EXPECT_THAT(made.err, HasSubstr("/none/of/this"));
}

TEST(bench_handoff_command, help_explains_each_flag_and_has_examples) {
    for (const std::string word : {"--help", "-help", "-h"}) {
        const run_result made = run({word});
        EXPECT_EQ(made.status, 0);
        for (const char* name :
             {"--socket PATH", "--connections N", "--ramp-up TIME", "--hold TIME",
              "--stream-timeout TIME", "--data JSON", "--output FILE", "--verbose",
              "Examples:", "eddy bench handoff -socket /run/eddy/llm.sock -connections 1000"})
            EXPECT_THAT(made.out, HasSubstr(name));
    }
}

}  // namespace
}  // namespace eddy::cli::bench
