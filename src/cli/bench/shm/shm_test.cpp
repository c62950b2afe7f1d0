// `eddy bench shm`: runs over each carrier, its reports, and the command line.
#include "base/files/temporary_folder.hpp"
#include "cli/bench/shm/shm_report.hpp"
#include "cli/bench/shm/shm_rounds.hpp"
#include "cli/commands/commands.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace eddy::cli::bench {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

shm_bench_options few() {
    shm_bench_options made;
    made.reps = 200;
    made.warmup = 10;
    made.client_cpu = made.server_cpu = -1;
    // Below the ports of outgoing connections (ip_local_port_range) and of the tests in tests/.
    made.port = static_cast<std::uint16_t>(10'000 + ::getpid() % 10'000);
    return made;
}

shm_report run(const shm_bench_options& wanted) {
    progress_line progress(false);
    shm_report made;
    made.wanted = wanted;
    made.result = run_shm_bench(wanted, progress);
    return made;
}

class shm_bench : public ::testing::TestWithParam<carrier> {};
INSTANTIATE_TEST_SUITE_P(bench, shm_bench,
                         ::testing::Values(carrier::shm, carrier::unix_socket, carrier::tcp));

TEST_P(shm_bench, measures_each_round_trip) {
    shm_bench_options wanted = few();
    wanted.over = GetParam();
    wanted.reply_size = 100'000;
    const shm_report made = run(wanted);
    EXPECT_EQ(made.result.latencies.size(), 200u);
    EXPECT_TRUE(std::ranges::is_sorted(made.result.latencies));
    EXPECT_GT(made.result.latencies.front(), 0u);
    EXPECT_THAT(made.text(), AllOf(HasSubstr("200 reps"), HasSubstr("50%"), HasSubstr("99.9999%")));
    const auto json = nlohmann::json::parse(to_json(std::span(&made, 1)));
    EXPECT_EQ(json["over"], to_string(GetParam()));
    EXPECT_EQ(json["messages"], 200);
    EXPECT_GT(json["latency_us"]["p50"], 0);
    const std::string lines = dump(made);
    EXPECT_EQ(std::ranges::count(lines, '\n'), 200);
    EXPECT_THAT(figure(std::span(&made, 1)), HasSubstr(std::string(to_string(GetParam()))));
}

TEST_P(shm_bench, measures_messages_one_way) {
    shm_bench_options wanted = few();
    wanted.over = GetParam();
    wanted.message_size = 1000;
    wanted.seconds = 0.05;
    const shm_report made = run(wanted);
    EXPECT_GT(made.result.messages, 0u);
    EXPECT_THAT(made.text(), HasSubstr("messages of 1000 bytes a second"));
}

TEST_P(shm_bench, measures_begin_and_end_of_connections) {
    for (const auto what : {shm_measurement::connects, shm_measurement::kills}) {
        shm_bench_options wanted = few();
        wanted.over = GetParam();
        wanted.measured = what;
        wanted.reps = 20;
        wanted.warmup = 2;
        const shm_report made = run(wanted);
        EXPECT_EQ(made.result.latencies.size(), 20u);
        EXPECT_TRUE(std::ranges::is_sorted(made.result.latencies));
        const bool is_kill = what == shm_measurement::kills;
        EXPECT_THAT(made.text(), HasSubstr(is_kill ? "SIGKILL" : "connecting and closing"));
    }
}

TEST(shm_bench_options, change_what_is_measured) {
    shm_bench_options wanted = few();
    wanted.keeps_latencies = false;
    EXPECT_TRUE(run(wanted).result.latencies.empty());
    wanted = few();
    wanted.reps = 20;
    wanted.warmup = 0;
    wanted.pause_ns = 1'000'000;
    EXPECT_GE(run(wanted).result.test_seconds, 0.02);
    wanted = few();
    wanted.wait = shm::waiting::sleep;
    wanted.is_asymmetric = true;
    EXPECT_EQ(run(wanted).result.messages, 200u);
    wanted.message_size = 300'000;  // more than the ring
    wanted.seconds = 0.05;
    wanted.in_place = true;
    EXPECT_GT(run(wanted).result.messages, 0u);
    wanted.ring_size = 1024 * 1024;
    EXPECT_GT(run(wanted).result.messages, 10u);
}

}  // namespace
}  // namespace eddy::cli::bench
