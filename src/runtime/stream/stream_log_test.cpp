// The access log of streams, and metrics of backends.
#include "runtime/stream/stream_log.hpp"

#include "runtime/stream/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

namespace eddy::runtime::stream {
namespace {

using namespace stream::testing;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class logged_streams : public on_io_backend {
protected:
    subject make(json options) {
        options["handoff"] = "unix://" + folder_.file("handoff.sock");
        options["access_log"] = folder_.file("log");
        return subject("stream", std::move(options));
    }
    std::vector<json> lines() const {
        std::vector<json> all;
        std::ifstream file(folder_.file("log"));
        for (std::string line; std::getline(file, line);) all.push_back(json::parse(line));
        return all;
    }
    static task<std::string> answer_of(subject& s, std::string message) {
        talker client = make_client(s, message);
        co_return co_await client.rest();
    }

    temporary_folder folder_;
};

INSTANTIATE_TEST_SUITE_P(runtime, logged_streams,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll),
                         eddy::testing::io_backend_name);

TEST_P(logged_streams, have_a_line_at_their_end) {
    run([this]() -> task<void> {
        subject s = make({{"delay", "1ms"}, {"messages", 2}});
        co_await s.start();
        const std::string answer = co_await answer_of(s, R"({"user_id":7,"request_id":"r\n1"})");
        co_await until([&] { return sample_of(*s, "streams_total") == 1; });
        co_await s->stop(0s);
        const std::vector<json> all = lines();
        EXPECT_EQ(all.size(), 1U);
        const json line = all.at(0);
        EXPECT_EQ(line.at("user"), "7");
        EXPECT_EQ(line.at("request"), "r\n1");
        EXPECT_EQ(line.at("client"), "unix:");
        EXPECT_EQ(line.at("bytes"), answer.size());
        EXPECT_EQ(line.at("reason"), "done");
        EXPECT_THAT(line.at("time").get<std::string>(), StartsWith("20"));
        EXPECT_GE(line.at("first_seconds"), 0);
        EXPECT_GE(line.at("seconds"), line.at("first_seconds"));
        EXPECT_FALSE(line.contains("status"));
        EXPECT_FALSE(line.contains("backend"));
    });
}

TEST_P(logged_streams, have_the_reason_of_their_end) {
    run([this]() -> task<void> {
        subject s = make({{"delay", "1h"}, {"max_message", 40}, {"max_connections", 2}});
        co_await s.start();
        {
            talker leaves = make_client(s, R"({"user_id":"leaves"})");
            co_await leaves.line();
        }
        co_await until([&] { return count_of(s, "stream_errors_total", "client_hung_up") == 1; });
        talker stays = make_client(s, R"({"user_id":"stays"})");
        talker other = make_client(s, "{}");
        co_await answer_of(s, R"({"user_id":"one too many"})");
        co_await answer_of(s, R"({"user_id":)");
        co_await answer_of(s, R"({"user_id":"a","prompt":")" + std::string(50, 'x') + "\"}");
        co_await s->stop(0s);
        std::vector<std::string> seen;
        for (const json& each : lines())
            seen.push_back(each.value("user", "-") + " " + std::to_string(each.value("status", 0)) +
                           " " + each.at("reason").get<std::string>());
        std::ranges::sort(seen);
        EXPECT_THAT(seen,
                    ::testing::ElementsAre("- 0 stopped", "- 400 malformed_message",
                                           "- 413 message_too_large", "leaves 0 client_hung_up",
                                           "one too many 503 too_many_streams", "stays 0 stopped"));
    });
}

TEST_P(logged_streams, name_the_backend_that_has_answered) {
    run([this]() -> task<void> {
        chat_api bad({}, "503 Service Unavailable");
        chat_api good({chunk("a"), "data: [DONE]\n\n"});
        subject s = make({{"source", "openai"},
                          {"source_url", bad.url()},
                          {"source_backend", {"b=" + good.url()}}});
        co_await s.start();
        const std::string answer = co_await answer_of(s, R"({"user_id":7})");
        EXPECT_THAT(answer, HasSubstr("[DONE]"));
        EXPECT_EQ(sample_of(*s, "backend_requests"), 0);
        co_await s->stop(0s);
        const std::vector<json> all = lines();
        EXPECT_EQ(all.size(), 1U);
        EXPECT_EQ(all.at(0).at("backend"), "b");
        EXPECT_EQ(all.at(0).at("backend_status"), 200);
        EXPECT_EQ(all.at(0).at("bytes"), answer.size());
        EXPECT_GE(all.at(0).at("first_seconds"), all.at(0).at("backend_seconds"));
        co_await bad.close();
        co_await good.close();
    });
}

TEST_P(logged_streams, may_be_of_programs) {
    run([this]() -> task<void> {
        subject s = make({{"source", "exec"}, {"exec", "echo x; test \"$HANDOFF_DATA\" != '{}'"}});
        co_await s.start();
        EXPECT_EQ(co_await answer_of(s, R"({"user_id":7})"), "x\n");
        EXPECT_EQ(co_await answer_of(s, "{}"), "x\n");
        co_await until([&] { return count_of(s, "stream_errors_total", "program_failed") == 1; });
        co_await s->stop(0s);
        const std::vector<json> all = lines();
        EXPECT_EQ(all.size(), 2U);
        EXPECT_EQ(all.at(0).at("user"), "7");
        EXPECT_EQ(all.at(0).at("reason"), "done");
        EXPECT_FALSE(all.at(0).contains("bytes")) << "the program sends them itself";
        EXPECT_EQ(all.at(1).at("reason"), "program_failed");
    });
}

TEST_P(logged_streams, are_written_to_a_file_that_was_renamed_until_it_is_read_again) {
    run([this]() -> task<void> {
        subject s = make({{"delay", "1ms"}, {"messages", 1}});
        co_await s.start();
        co_await answer_of(s, R"({"user_id":1})");
        co_await until([&] { return lines().size() == 1; });
        std::filesystem::rename(folder_.file("log"), folder_.file("old"));
        EXPECT_TRUE(must_do(co_await s->reread()));
        co_await answer_of(s, R"({"user_id":2})");
        co_await s->stop(0s);
        EXPECT_EQ(lines().at(0).at("user"), "2");
    });
}

TEST_P(logged_streams, need_a_file_that_can_be_written) {
    run([this]() -> task<void> {
        subject s = make({{"delay", "1h"}});
        std::filesystem::create_directory(folder_.file("log"));
        const auto started = co_await s->start();
        EXPECT_FALSE(started);
        if (!started) EXPECT_THAT(started.error().message, HasSubstr(folder_.file("log")));
        std::filesystem::remove(folder_.file("log"));
        co_await s.start();
        co_await s->stop(0s);
    });
}

TEST_P(logged_streams, count_requests_to_backends_while_they_run) {
    run([this]() -> task<void> {
        chat_api model({chunk("a")}, "200 OK", false);
        subject s = make({{"source", "openai"}, {"source_url", model.url()}});
        co_await s.start();
        talker client = make_client(s, "{}");
        co_await until([&] { return sample_of(*s, "backend_requests") == 1; });
        co_await until([&] { return count_of(s, "backend_responses_total", "200") == 1; });
        std::uint64_t responses = 0;
        for (const metric_sample& each : s->count().samples)
            if (each.of->name == "backend_first_byte_seconds")
                responses = std::get<std::shared_ptr<const histogram>>(each.value)->count();
        EXPECT_EQ(responses, 1U);
        client.socket = {};
        co_await until([&] { return sample_of(*s, "backend_requests") == 0; });
        co_await s->stop(0s);
        co_await model.close();
    });
}

}  // namespace
}  // namespace eddy::runtime::stream
