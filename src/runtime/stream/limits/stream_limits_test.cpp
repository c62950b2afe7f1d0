// Limits of streams and of users: what clients of each source see of them, the metrics and the
// access log.
#include "runtime/stream/sources/relay_source.hpp"
#include "runtime/stream/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace eddy::runtime::stream {
namespace {

using namespace stream::testing;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::string_view too_long = "data: {\"error\":\"stream_too_long\"}\n\n";

class limited_streams : public on_io_backend {
protected:
    /// Options of a runtime whose mock source does not end by itself.
    json options(json more) const {
        return with(std::move(more),
                    {{"handoff", "unix://" + folder_.file("handoff.sock")}, {"delay", "1h"}});
    }
    subject make(json more) const { return subject("stream", options(std::move(more))); }
    /// The same with a limit that no stream reaches yet.
    json with_long_time(json more) const {
        return options(with(std::move(more), {{"max_stream_time", "1h"}}));
    }
    /// Streams that run have had their time.
    static void end_time(subject& s, json options) {
        options["max_stream_time"] = "1ms";
        must_do(s->apply(s.parse(options)));
    }
    static double faults(subject& s, std::string_view reason = "stream_too_long") {
        return count_of(s, "stream_errors_total", reason);
    }
    static double refusals(subject& s, std::string_view reason) {
        return count_of(s, "handoff_errors_total", reason);
    }
    static task<parsed_answer> answer_of(subject& s, std::string message) {
        talker client = make_client(s, message);
        co_return parse_answer(co_await client.rest());
    }
    static task<void> read_head(talker& client) {
        while (co_await client.line() != "\r") {
        }
    }
    /// Reads up to a line that contains this.
    static task<void> read_to(talker& client, std::string text) {
        while (!(co_await client.line()).contains(text)) {
        }
    }
    std::vector<json> lines() const {
        std::vector<json> all;
        std::ifstream file(folder_.file("log"));
        for (std::string line; std::getline(file, line);) all.push_back(json::parse(line));
        return all;
    }

    temporary_folder folder_;
};

INSTANTIATE_TEST_SUITE_P(runtime, limited_streams,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll),
                         eddy::testing::io_backend_name);

// --- Time -------------------------------------------------------------------------------------

TEST_P(limited_streams, end_with_the_reason_after_their_time) {
    run([this]() -> task<void> {
        subject s = make({{"max_stream_time", "20ms"}, {"access_log", folder_.file("log")}});
        co_await s.start();
        talker client = make_client(s, R"({"user_id":7})");
        const std::string answer = co_await client.rest();
        EXPECT_THAT(answer, HasSubstr("Hello from Eddy!"));
        EXPECT_THAT(answer, EndsWith("\n\n" + std::string(too_long)));
        co_await until([&] { return faults(s) == 1; });
        EXPECT_EQ(s->count().connections_now, 0U);
        co_await s->stop(0s);
        const std::vector<json> all = lines();
        EXPECT_EQ(all.size(), 1U);
        EXPECT_EQ(all.at(0).at("reason"), "stream_too_long");
        EXPECT_EQ(all.at(0).at("user"), "7");
        EXPECT_EQ(all.at(0).at("bytes"), answer.size());
    });
}

TEST_P(limited_streams, have_the_time_that_is_set_now) {
    run([this]() -> task<void> {
        const json without = options({});
        subject s("stream", without);
        co_await s.start();
        talker before = make_client(s, "{}");
        co_await read_head(before);
        must_do(s->apply(s.parse(with_long_time({}))));
        std::vector<talker> clients;
        for (int i = 0; i < 200; ++i) clients.push_back(make_client(s, "{}"));
        clients.at(0).socket = {};
        co_await until([&] {
            return sample_of(*s, "handoffs_total") == 201 && s->count().connections_now == 200;
        });
        end_time(s, without);
        for (std::size_t i = 1; i < clients.size(); ++i)
            EXPECT_THAT(co_await clients[i].rest(), EndsWith(too_long));
        co_await until([&] { return faults(s) == 199; });
        EXPECT_EQ(s->count().connections_now, 1U) << "one began without a limit";
        must_do(s->apply(s.parse(without)));
        talker after = make_client(s, "{}");
        co_await read_head(after);
        co_await s->stop(0s);
        EXPECT_THAT(co_await after.rest(), Not(HasSubstr("error")));
    });
}

TEST_P(limited_streams, of_a_model_end_its_request) {
    run([this]() -> task<void> {
        chat_api model({chunk("Good")}, "200 OK", false);
        const json chosen = with_long_time({{"source", "openai"}, {"source_url", model.url()}});
        subject s("stream", chosen);
        co_await s.start();
        talker client = make_client(s, "{}");
        co_await read_to(client, "Good");
        end_time(s, chosen);
        EXPECT_EQ(co_await client.rest(), "\n" + std::string(too_long));
        co_await until([&] { return model.open == 0; });
        EXPECT_EQ(faults(s), 1);
        for (const std::string& each : s.events.lines) EXPECT_THAT(each, Not(HasSubstr("failed")));
        co_await s->stop(0s);
        co_await model.close();
    });
}

TEST_P(limited_streams, that_wait_for_a_backend_are_not_sent_to_the_next) {
    run([this]() -> task<void> {
        listener silent = must(loop::current().listen(must(endpoint::ip("127.0.0.1", 0))));
        chat_api model({chunk("Good"), "data: [DONE]\n\n"});
        for (const std::string_view source : {"openai", "proxy"}) {
            const json chosen =
                with_long_time({{"source", source},
                                {"source_url", "http://" + silent.local().to_string()},
                                {"source_backend", {"b=" + model.url()}}});
            subject s("stream", chosen);
            co_await s.start();
            talker client = make_client(s, "{}");
            talker server(must(co_await silent.accept()));
            co_await server.line();
            end_time(s, chosen);
            const parsed_answer got = parse_answer(co_await client.rest());
            EXPECT_EQ(got.status, source == "openai" ? 200 : 502);
            EXPECT_THAT(got.content, HasSubstr("{\"error\":\"stream_too_long\"}"));
            EXPECT_TRUE(got.is_whole);
            EXPECT_EQ(count_of(s, "backend_fallbacks_total", "default"), 0);
            EXPECT_TRUE(model.requests.empty());
            co_await s->stop(0s);
        }
        co_await model.close();
    });
}

TEST_P(limited_streams, that_are_proxied_look_cut_off) {
    run([this]() -> task<void> {
        chat_api site({"half"}, "200 OK", false);
        const json chosen = with_long_time({{"source", "proxy"}, {"source_url", site.url()}});
        subject s("stream", chosen);
        co_await s.start();
        talker client = make_client(s, "{}");
        std::string answer;
        while (!answer.contains("half")) answer += co_await client.line() + "\n";
        end_time(s, chosen);
        const parsed_answer got = parse_answer(answer + co_await client.rest());
        EXPECT_EQ(got.status, 200);
        EXPECT_FALSE(got.is_whole);
        EXPECT_EQ(faults(s), 1);
        co_await s->stop(0s);
        co_await site.close();
    });
}

TEST_P(limited_streams, of_a_script_end_its_call) {
    run([this]() -> task<void> {
        std::ofstream(folder_.file("a.lua")) << "function handle() send('Good') sleep(1e6) end";
        const json chosen = with_long_time({{"source", "lua"}, {"lua", folder_.file("a.lua")}});
        subject s("stream", chosen);
        if (const auto started = co_await s->start(); !started) {
            EXPECT_THAT(started.error().message, HasSubstr("without scripts"));
            co_return;
        }
        talker client = make_client(s, "{}");
        co_await read_to(client, "Good");
        end_time(s, chosen);
        EXPECT_EQ(co_await client.rest(), "\n" + std::string(too_long));
        co_await until([&] { return sample_of(*s, "script_calls") == 0; });
        EXPECT_EQ(faults(s), 1);
        co_await s->stop(0s);
    });
}

TEST_P(limited_streams, of_a_program_end_it) {
    run([this]() -> task<void> {
        // The second one ends its answer itself.
        for (const bool ends_itself : {false, true}) {
            const std::string trap = ends_itself ? "trap 'echo end; exit 0' TERM; " : "";
            const json chosen =
                with_long_time({{"source", "exec"},
                                {"exec", trap + "echo Good; while :; do sleep 0.01; done"},
                                {"access_log", folder_.file("log")}});
            subject s("stream", chosen);
            co_await s.start();
            kept_client made = co_await make_kept_client(s, "{}");
            made.copy.close();
            EXPECT_EQ(co_await made.client.line(), "Good");
            end_time(s, chosen);
            EXPECT_EQ(co_await made.client.rest(), ends_itself ? "end\n" : "");
            co_await until([&] { return faults(s) == 1; });
            EXPECT_EQ(s->count().connections_now, 0U);
            co_await s->stop(0s);
            EXPECT_EQ(lines().back().at("reason"), "stream_too_long");
        }
    });
}

TEST_P(limited_streams, without_their_client_end_as_well) {
    run([this]() -> task<void> {
        const json chosen = with_long_time({{"replay_memory", "1M"}});
        subject s("stream", chosen);
        co_await s.start();
        const std::string named = R"({"user_id":"u","request_id":"r")";
        talker client = make_client(s, named + "}");
        co_await read_to(client, "Hello");
        client.socket = {};
        co_await until([&] { return sample_of(*s, "detached_streams") == 1; });
        end_time(s, chosen);
        co_await until([&] { return faults(s) == 1; });
        const parsed_answer got = co_await answer_of(s, named + R"(,"last_event_id":"1"})");
        EXPECT_EQ(got.content, "id: 2\n" + std::string(too_long));
        co_await s->stop(0s);
    });
}

// --- Users ------------------------------------------------------------------------------------

TEST_P(limited_streams, of_one_user_are_refused_beyond_their_number) {
    run([this]() -> task<void> {
        subject s = make({{"max_streams_per_user", 2}, {"access_log", folder_.file("log")}});
        co_await s.start();
        const std::string user = R"({"user_id":7,"response_headers":{"X-Id":"5"}})";
        talker first = make_client(s, user);
        talker second = make_client(s, R"({"user_id":"7"})");
        const parsed_answer got = co_await answer_of(s, user);
        EXPECT_EQ(got.status, 429);
        EXPECT_EQ(got.field("Retry-After"), "1");
        EXPECT_EQ(got.field("X-Id"), "5");
        EXPECT_EQ(got.content, "{\"error\":\"too many streams of this user\"}\n");
        EXPECT_EQ(refusals(s, "too_many_user_streams"), 1);
        EXPECT_EQ(s->count().connections_refused, 1U);
        for (const std::string_view other : {R"({"user_id":8})", "{}", "{}", "{}"}) {
            talker client = make_client(s, other);
            EXPECT_THAT(co_await client.line(), StartsWith("HTTP/1.1 200"));
        }
        EXPECT_GE(sample_of(*s, "limited_users").value(), 1);
        first.socket = {};
        co_await until([&] { return s->count().connections_now == 1; });
        EXPECT_EQ(sample_of(*s, "limited_users"), 1);
        talker third = make_client(s, user);
        EXPECT_THAT(co_await third.line(), StartsWith("HTTP/1.1 200"));
        co_await s->stop(0s);
        const std::vector<json> all = lines();
        const auto refused = std::ranges::find_if(
            all, [](const json& each) { return each.value("status", 0) == 429; });
        EXPECT_NE(refused, all.end());
        if (refused == all.end()) co_return;
        EXPECT_EQ(refused->at("reason"), "too_many_user_streams");
        EXPECT_EQ(refused->at("user"), "7");
    });
}

TEST_P(limited_streams, of_one_user_may_be_programs) {
    run([this]() -> task<void> {
        const json chosen =
            options({{"source", "exec"}, {"exec", "echo x; cat"}, {"max_streams_per_user", 1}});
        subject s("stream", chosen);
        co_await s.start();
        for (int i = 0; i < 3; ++i) {
            talker client = make_client(s, R"({"user_id":7})");
            EXPECT_EQ(co_await client.line(), "x");
            EXPECT_EQ((co_await answer_of(s, R"({"user_id":7})")).status, 429);
            talker other = make_client(s, R"({"user_id":8})");
            EXPECT_EQ(co_await other.line(), "x");
            client.socket = {};
            other.socket = {};
            co_await until([&] { return s->count().connections_now == 0; });
        }
        EXPECT_EQ(sample_of(*s, "limited_users"), 0);
        co_await s->stop(0s);
    });
}

TEST_P(limited_streams, of_one_user_have_the_number_that_is_set_now) {
    run([this]() -> task<void> {
        subject s = make({});
        co_await s.start();
        const std::string user = R"({"user_id":7})";
        talker uncounted = make_client(s, user);
        co_await read_head(uncounted);
        must_do(s->apply(s.parse(options({{"max_streams_per_user", 1}}))));
        talker first = make_client(s, user);
        EXPECT_THAT(co_await first.line(), StartsWith("HTTP/1.1 200"));
        EXPECT_EQ((co_await answer_of(s, user)).status, 429);
        must_do(s->apply(s.parse(options({{"max_streams_per_user", 2}}))));
        talker second = make_client(s, user);
        EXPECT_THAT(co_await second.line(), StartsWith("HTTP/1.1 200"));
        EXPECT_EQ((co_await answer_of(s, user)).status, 429);
        must_do(s->apply(s.parse(options({}))));
        talker third = make_client(s, user);
        EXPECT_THAT(co_await third.line(), StartsWith("HTTP/1.1 200"));
        co_await s->stop(0s);
    });
}

TEST_P(limited_streams, that_are_refused_for_another_reason_are_not_the_users) {
    run([this]() -> task<void> {
        subject s = make({{"max_streams_per_user", 1}, {"max_connections", 1}});
        co_await s.start();
        talker other = make_client(s, "{}");
        co_await read_head(other);
        for (int i = 0; i < 2; ++i)
            EXPECT_EQ((co_await answer_of(s, R"({"user_id":7})")).status, 503);
        other.socket = {};
        co_await until([&] { return s->count().connections_now == 0; });
        talker client = make_client(s, R"({"user_id":7})");
        EXPECT_THAT(co_await client.line(), StartsWith("HTTP/1.1 200"));
        co_await s->stop(0s);
    });
}

TEST_P(limited_streams, are_continued_by_a_user_beyond_its_limits) {
    run([this]() -> task<void> {
        subject s = make({{"replay_memory", "1M"}, {"max_streams_per_user", 1}});
        co_await s.start();
        const std::string named = R"({"user_id":"u","request_id":"r")";
        talker client = make_client(s, named + "}");
        co_await read_to(client, "Hello");
        client.socket = {};
        co_await until([&] { return sample_of(*s, "detached_streams") == 1; });
        EXPECT_EQ((co_await answer_of(s, R"({"user_id":"u","request_id":"other"})")).status, 429)
            << "a stream without its client counts";
        talker again = make_client(s, named + R"(,"last_event_id":"1"})");
        EXPECT_THAT(co_await again.line(), StartsWith("HTTP/1.1 200"));
        co_await s->stop(0s);
    });
}

/// Answer to a user that has been sent enough events in this minute: the first that is none of a
/// stream, since a new minute may begin at any time.
task<parsed_answer> refusal_of_events(subject& s, std::string message) {
    for (;;) {
        talker client = make_client(s, message);
        parsed_answer got = parse_answer(co_await client.rest());
        if (got.status != 200) co_return got;
    }
}

TEST_P(limited_streams, of_a_user_that_was_sent_enough_are_refused_until_the_next_minute) {
    run([this]() -> task<void> {
        const json chosen = {{"delay", "1ms"}, {"messages", 3}, {"events_per_minute", 3}};
        subject s = make(chosen);
        co_await s.start();
        EXPECT_THAT((co_await answer_of(s, R"({"user_id":7})")).content, EndsWith("[DONE]\n\n"));
        const parsed_answer got = co_await refusal_of_events(s, R"({"user_id":7})");
        EXPECT_EQ(got.status, 429);
        EXPECT_EQ(got.content, "{\"error\":\"too many events of this user in this minute\"}\n");
        const int seconds = std::stoi(got.field("Retry-After"));
        EXPECT_TRUE(seconds >= 1 && seconds <= 60) << seconds;
        EXPECT_EQ(refusals(s, "too_many_user_events"), 1);
        EXPECT_EQ((co_await answer_of(s, R"({"user_id":8})")).status, 200);
        EXPECT_EQ((co_await answer_of(s, "{}")).status, 200);
        must_do(s->apply(s.parse(options(with({{"events_per_minute", 0}}, chosen)))));
        EXPECT_EQ((co_await answer_of(s, R"({"user_id":7})")).status, 200);
        co_await s->stop(0s);
    });
}

TEST_P(limited_streams, are_events_of_each_source) {
    run([this]() -> task<void> {
        const std::string events = "data: 1\n\ndata: 2\n\n: no event\n\ndata: 3\n\n";
        chat_api model({chunk("a") + chunk("b"), chunk("c"), "data: [DONE]\n\n"});
        chat_api site({events.substr(0, 12), events.substr(12)});
        std::ofstream(folder_.file("a.lua"))
            << "function handle() send('a') event('b', 'b') send('c') end";
        const std::vector<json> all = {
            {{"source", "openai"}, {"source_url", model.url()}},
            {{"source", "proxy"}, {"source_url", site.url()}},
            {{"source", "lua"}, {"lua", folder_.file("a.lua")}},
        };
        for (const json& each : all) {
            SCOPED_TRACE(each.dump());
            subject s = make(with({{"events_per_minute", 3}}, each));
            if (!co_await s->start()) continue;  // built without scripts
            EXPECT_EQ((co_await answer_of(s, R"({"user_id":7})")).status, 200);
            EXPECT_EQ((co_await refusal_of_events(s, R"({"user_id":7})")).status, 429);
            must_do(s->apply(s.parse(options(with({{"events_per_minute", 4}}, each)))));
            EXPECT_EQ((co_await answer_of(s, R"({"user_id":8})")).status, 200);
            EXPECT_EQ((co_await answer_of(s, R"({"user_id":8})")).status, 200) << "three are few";
            EXPECT_EQ((co_await refusal_of_events(s, R"({"user_id":8})")).status, 429);
            co_await s->stop(0s);
        }
        co_await model.close();
        co_await site.close();
    });
}

}  // namespace
}  // namespace eddy::runtime::stream
