// Clients that lost their connection: what they get when they are handed over again, for how long,
// and that it is theirs alone.
#include "runtime/stream/replay/replay_sessions.hpp"
#include "runtime/stream/stream_runtime.hpp"
#include "runtime/stream/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime::stream {
namespace {

using namespace stream::testing;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::string_view ours = R"({"user_id":"u","request_id":"r"})";

std::string again_behind(int id, std::string_view user = "u") {
    return json({{"user_id", user}, {"request_id", "r"}, {"last_event_id", id}}).dump();
}

std::string events_of(std::string_view answer) {
    return std::string(answer.substr(std::min(answer.find("\r\n\r\n") + 4, answer.size())));
}

class replayed_streams : public on_io_backend {
protected:
    json options(json more) {
        return with(std::move(more), {{"handoff", "unix://" + folder_.file("handoff.sock")},
                                      {"replay_memory", "1MiB"}});
    }
    subject make(json more = {}) {
        return subject("stream",
                       options(with(std::move(more), {{"delay", "1ms"}, {"messages", 4}})));
    }
    static task<std::string> answer_of(subject& s, std::string message) {
        talker client = make_client(s, message);
        co_return events_of(co_await client.rest());
    }
    /// Head and content.
    static task<std::string> response_of(instance& of, std::string message) {
        client_ends ends = socket_pair();
        hand_over(of.local(), std::move(ends.ours), message, SOCK_SEQPACKET);
        talker client(must(loop::current().adopt(std::move(ends.theirs))));
        co_return co_await client.rest();
    }
    /// Reads until the event of that id has come, and hangs up.
    static task<void> leave_behind(talker& client, int id) {
        const std::string line = "id: " + std::to_string(id);
        while (co_await client.line() != line) {
        }
        while (co_await client.line() != "") {
        }
        client.socket = {};
    }
    static client_ends slow_client() {
        client_ends ends = socket_pair();
        const int small = 1;
        ::setsockopt(ends.ours.get(), SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
        return ends;
    }
    static double detached(subject& s) { return sample_of(*s, "detached_streams").value(); }

    temporary_folder folder_;
};

INSTANTIATE_TEST_SUITE_P(runtime, replayed_streams,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll),
                         eddy::testing::io_backend_name);

const std::string whole =
    "id: 1\ndata: {\"content\":\"Hello from Eddy! Prompt: \"}\n\n"
    "id: 2\ndata: {\"content\":\"User ID: u\"}\n\n"
    "id: 3\ndata: {\"content\":\"This is message 3 of 4.\"}\n\n"
    "id: 4\ndata: {\"content\":\"This is message 4 of 4.\"}\n\n"
    "id: 5\ndata: [DONE]\n\n";

TEST_P(replayed_streams, have_ids_where_they_have_a_name) {
    run([this]() -> task<void> {
        subject s = make();
        co_await s.start();
        EXPECT_EQ(co_await answer_of(s, std::string(ours)), whole);
        for (const std::string_view unnamed : {"{}", R"({"user_id":"u"})", R"({"request_id":"r"})",
                                               R"({"user_id":"u","last_event_id":"3"})"}) {
            const std::string answer = co_await answer_of(s, std::string(unnamed));
            EXPECT_THAT(answer, Not(HasSubstr("id: ")));
            EXPECT_THAT(answer, StartsWith("data: {\"content\":\"Hello"));
            EXPECT_THAT(answer, EndsWith("data: [DONE]\n\n"));
        }
        co_await s->stop(0s);
        subject one = make({{"messages", 1}});
        co_await one.start();
        EXPECT_THAT(co_await answer_of(one, std::string(ours)),
                    EndsWith("Prompt: \"}\n\nid: 2\ndata: [DONE]\n\n"));
        co_await one->stop(0s);
    });
}

TEST_P(replayed_streams, go_on_for_a_client_that_comes_again) {
    run([this]() -> task<void> {
        subject s = make({{"delay", "20ms"}, {"messages", 40}});
        co_await s.start();
        std::string all;
        talker client = make_client(s, ours);
        int last = 0;
        for (const int wanted : {1, 2, 7, 20}) {
            while (last < wanted) {
                const std::string line = co_await client.line();
                if (line.starts_with("id: ")) last = std::stoi(line.substr(4));
                if (last > 0) all += line + "\n";
            }
            // The end of that event.
            for (int i = 0; i < 2; ++i) all += co_await client.line() + "\n";
            client.socket = {};
            // Else the runtime has not noticed yet that the client is gone.
            if (wanted % 2 == 0) co_await until([&] { return detached(s) == 1; });
            client = make_client(s, again_behind(wanted));
            while (co_await client.line() != "\r") {
            }
        }
        EXPECT_THAT(all, EndsWith("id: 20\ndata: {\"content\":\"This is message 20 of 40.\"}\n\n"));
        const std::string rest = co_await client.rest();
        EXPECT_THAT(rest, StartsWith("id: 21\n"));
        EXPECT_THAT(rest, EndsWith("This is message 40 of 40.\"}\n\nid: 41\ndata: [DONE]\n\n"));
        std::size_t begins = 0;
        for (std::size_t at = 0; (at = all.find("id: ", at)) != std::string::npos; ++at) ++begins;
        EXPECT_EQ(begins, 20U) << "none twice, none missing";
        EXPECT_EQ(sample_of(*s, "resumed_streams_total"), 4);
        EXPECT_EQ(sample_of(*s, "streams_total"), 1);
        EXPECT_EQ(sample_of(*s, "chunks_sent_total"), 40);
        co_await s->stop(0s);
    });
}

TEST_P(replayed_streams, end_without_their_client_and_are_passed_on_later) {
    run([this]() -> task<void> {
        subject s = make();
        co_await s.start();
        talker client = make_client(s, ours);
        co_await leave_behind(client, 1);
        co_await until([&] { return sample_of(*s, "streams_total") == 1; });
        EXPECT_EQ(s->count().connections_now, 0U);
        EXPECT_EQ(co_await answer_of(s, again_behind(1)), whole.substr(whole.find("id: 2")));
        EXPECT_EQ(co_await answer_of(s, again_behind(0)), whole);
        EXPECT_EQ(co_await answer_of(s, again_behind(4)), "id: 5\ndata: [DONE]\n\n");
        EXPECT_EQ(sample_of(*s, "streams_total"), 1);
        EXPECT_EQ(s->count().connections_now, 0U);
        // Without an id it is a new request.
        EXPECT_EQ(co_await answer_of(s, std::string(ours)), whole);
        EXPECT_EQ(sample_of(*s, "streams_total"), 2);
        co_await s->stop(0s);
    });
}

TEST_P(replayed_streams, that_a_client_has_whole_end_its_reconnecting) {
    run([this]() -> task<void> {
        subject s = make({{"max_connections", 1}});
        co_await s.start();
        EXPECT_EQ(co_await answer_of(s, std::string(ours)), whole);
        talker other = make_client(s, R"({"user_id":"v","request_id":"r"})");
        const std::string behind_the_end =
            R"({"user_id":"u","request_id":"r","last_event_id":"5",)"
            R"("response_headers":{"Access-Control-Allow-Origin":"*"}})";
        // Again and again, and also while no further stream could begin.
        for (int i = 0; i < 3; ++i) {
            talker client = make_client(s, behind_the_end);
            const parsed_answer got = parse_answer(co_await client.rest());
            EXPECT_EQ(got.status, 204);
            EXPECT_EQ(got.field("Access-Control-Allow-Origin"), "*");
            EXPECT_THAT(got.field("Date"), EndsWith(" GMT"));
            EXPECT_EQ(got.field("Content-Type"), "(none)");
            EXPECT_EQ(got.content, "");
        }
        co_await until([&] { return sample_of(*s, "streams_total") == 2; });
        // For another user's stream, and for a stream that still runs, it is no end.
        EXPECT_THAT(co_await answer_of(s, again_behind(5, "w")), StartsWith("event: reset\n"));
        EXPECT_EQ(sample_of(*s, "resumed_streams_total"), 0);
        co_await s->stop(0s);
    });
}

TEST_P(replayed_streams, are_their_users_alone) {
    run([this]() -> task<void> {
        subject s = make({{"messages", 2}});
        co_await s.start();
        EXPECT_THAT(co_await answer_of(s, R"({"user_id":"u","request_id":"r","prompt":"secret"})"),
                    HasSubstr("secret"));
        for (const std::string_view user : {"other", "", "U", "u ", "1:u"}) {
            const std::string answer = co_await answer_of(s, again_behind(0, user));
            EXPECT_THAT(answer, Not(HasSubstr("secret"))) << user;
            EXPECT_THAT(answer, EndsWith("data: [DONE]\n\n"));
        }
        EXPECT_EQ(sample_of(*s, "resumed_streams_total"), 0);
        EXPECT_THAT(co_await answer_of(s, again_behind(0)), HasSubstr("secret"));
        co_await s->stop(0s);
    });
}

TEST_P(replayed_streams, begin_anew_where_what_was_missed_is_not_kept) {
    run([this]() -> task<void> {
        subject s = make();
        co_await s.start();
        const std::string anew = "event: reset\nid: 0\ndata: {}\n\n" + whole;
        EXPECT_EQ(co_await answer_of(s, again_behind(3)), anew) << "it never was";
        EXPECT_EQ(co_await answer_of(s, again_behind(6)), anew) << "an id to come";
        EXPECT_EQ(co_await answer_of(s, R"({"user_id":"u","request_id":"r","last_event_id":"x"})"),
                  anew);
        EXPECT_EQ(co_await answer_of(s, again_behind(0)), whole) << "as reset says";
        EXPECT_EQ(sample_of(*s, "reset_streams_total"), 3);
        co_await s->stop(0s);
    });
}

TEST_P(replayed_streams, are_continued_over_a_restart) {
    run([this]() -> task<void> {
        const json slow = {{"delay", "5ms"}, {"messages", 40}};
        subject before = make(slow);
        co_await before.start();
        talker client = make_client(before, ours);
        co_await leave_behind(client, 3);
        successor next("stream", options(with(slow, {{"max_message", "1MiB"}})),
                       co_await before->hand_over_listeners());
        must_do(co_await next->start());
        scope stopping;
        stopping.spawn(before->stop(std::chrono::hours(1)));
        const std::string rest = events_of(co_await response_of(*next.made, again_behind(3)));
        EXPECT_THAT(rest, StartsWith("id: 4\n"));
        EXPECT_THAT(rest, EndsWith("id: 41\ndata: [DONE]\n\n"));
        EXPECT_THAT(co_await response_of(*next.made, again_behind(41)), StartsWith("HTTP/1.1 204"));
        EXPECT_EQ(events_of(co_await response_of(*next.made, again_behind(40))),
                  "id: 41\ndata: [DONE]\n\n")
            << "it has ended";
        EXPECT_EQ(sample_of(*before, "resumed_streams_total"), 2);
        EXPECT_EQ(next->count().connections_now, 0U);
        // Others are the next one's.
        EXPECT_THAT(co_await response_of(*next.made, again_behind(1, "another")),
                    HasSubstr("event: reset"));
        EXPECT_EQ(sample_of(*next.made, "reset_streams_total"), 1);
        // The stop of the next one ends the wait for clients of the one before.
        co_await next->stop(0s);
        co_await stopping.join();
    });
}

TEST_P(replayed_streams, are_continued_over_two_restarts) {
    run([this]() -> task<void> {
        const json slow = {{"delay", "5ms"}, {"messages", 40}};
        subject first = make(slow);
        co_await first.start();
        talker client = make_client(first, ours);
        co_await leave_behind(client, 3);
        scope stopping;
        successor second("stream", options(slow), co_await first->hand_over_listeners());
        must_do(co_await second->start());
        stopping.spawn(first->stop(std::chrono::hours(1)));
        // One of the second's own, so that its stop waits, too.
        EXPECT_THAT(co_await response_of(*second.made, again_behind(1, "another")),
                    HasSubstr("event: reset"));
        successor third("stream", options(slow), co_await second->hand_over_listeners());
        must_do(co_await third->start());
        stopping.spawn(second->stop(std::chrono::hours(1)));
        const std::string rest = events_of(co_await response_of(*third.made, again_behind(3)));
        EXPECT_THAT(rest, StartsWith("id: 4\n"));
        EXPECT_THAT(rest, EndsWith("id: 41\ndata: [DONE]\n\n"));
        co_await third->stop(0s);
        co_await stopping.join();
    });
}

TEST_P(replayed_streams, are_kept_for_a_while) {
    run([this]() -> task<void> {
        subject s = make({{"delay", "1h"}, {"replay_time", "20ms"}});
        co_await s.start();
        std::vector<talker> clients;
        for (int i = 0; i < 5; ++i)
            clients.push_back(make_client(s, json({{"user_id", i}, {"request_id", "r"}}).dump()));
        for (talker& each : clients) co_await leave_behind(each, 1);
        co_await until([&] { return count_of(s, "stream_errors_total", "client_hung_up") == 5; });
        co_await until([&] { return s->count().connections_now == 0; });
        EXPECT_EQ(detached(s), 0);
        EXPECT_EQ(sample_of(*s, "replay_bytes"), 0);
        talker late = make_client(s, again_behind(1, "1"));
        while (co_await late.line() != "event: reset") {
        }
        co_await s->stop(0s);
        // The same of what has ended.
        subject ended = make({{"replay_time", "20ms"}});
        co_await ended.start();
        co_await answer_of(ended, std::string(ours));
        co_await until([&] { return sample_of(*ended, "replay_bytes") == 0; });
        EXPECT_THAT(co_await answer_of(ended, again_behind(4)), StartsWith("event: reset"));
        co_await ended->stop(0s);
    });
}

TEST_P(replayed_streams, take_no_more_memory_than_they_may) {
    run([this]() -> task<void> {
        subject s = make({{"replay_memory", "2000"}, {"messages", 100}});
        co_await s.start();
        talker client = make_client(s, ours);
        co_await leave_behind(client, 1);
        co_await until([&] { return sample_of(*s, "streams_total") == 1; });
        EXPECT_LE(sample_of(*s, "replay_bytes").value(), 2000);
        EXPECT_GT(sample_of(*s, "replay_bytes").value(), 1000);
        EXPECT_THAT(co_await answer_of(s, again_behind(95)), StartsWith("id: 96\n"));
        EXPECT_THAT(co_await answer_of(s, again_behind(2)), StartsWith("event: reset\n"));
        EXPECT_LE(sample_of(*s, "replay_bytes").value(), 2000);
        co_await s->stop(0s);
        // Without room for a log there are answers without replay.
        subject none = make({{"replay_memory", "100"}});
        co_await none.start();
        const std::string answer = co_await answer_of(none, std::string(ours));
        EXPECT_THAT(answer, Not(HasSubstr("id: ")));
        EXPECT_THAT(answer, EndsWith("data: [DONE]\n\n"));
        co_await none->stop(0s);
    });
}

TEST_P(replayed_streams, count_as_streams_and_come_again_at_the_limit) {
    run([this]() -> task<void> {
        subject s = make({{"delay", "1h"}, {"max_connections", 1}});
        co_await s.start();
        talker client = make_client(s, ours);
        co_await leave_behind(client, 1);
        co_await until([&] { return detached(s) == 1; });
        EXPECT_EQ(s->count().connections_now, 1U);
        talker other = make_client(s, "{}");
        EXPECT_THAT(co_await other.rest(), StartsWith("HTTP/1.1 503"));
        talker again = make_client(s, again_behind(1));
        EXPECT_THAT(co_await again.line(), StartsWith("HTTP/1.1 200"));
        EXPECT_EQ(detached(s), 0);
        EXPECT_EQ(s->count().connections_now, 1U);
        co_await s->stop(0s);
        EXPECT_TRUE(s.events.has("1 streams were cut off"));
    });
}

TEST_P(replayed_streams, have_one_client_at_a_time) {
    run([this]() -> task<void> {
        subject s = make({{"delay", "1h"}});
        co_await s.start();
        talker first = make_client(s, ours);
        EXPECT_THAT(co_await first.line(), StartsWith("HTTP/1.1 200"));
        talker second = make_client(s, again_behind(0));
        EXPECT_THAT(co_await first.rest(), EndsWith("Prompt: \"}\n\n")) << "it is closed";
        while (co_await second.line() != "id: 1") {
        }
        EXPECT_EQ(count_of(s, "stream_errors_total", "client_replaced"), 1);
        EXPECT_EQ(s->count().connections_now, 1U);
        // One of the same name that asks for nothing begins another stream.
        talker third = make_client(s, ours);
        while (co_await third.line() != "id: 1") {
        }
        EXPECT_EQ(s->count().connections_now, 2U);
        co_await s->stop(0s);
    });
}

TEST_P(replayed_streams, that_are_over_wait_for_one_slow_client_each) {
    run([this]() -> task<void> {
        subject s = make({{"messages", 1000}});
        co_await s.start();
        talker client = make_client(s, ours);
        co_await leave_behind(client, 1);
        std::vector<client_ends> slow;
        co_await until([&] { return sample_of(*s, "streams_total") == 1; });
        for (int i = 0; i < 5; ++i) {
            slow.push_back(slow_client());
            hand_over(s->local(), std::move(slow.back().ours), again_behind(1));
            co_await until([&] { return sample_of(*s, "resumed_streams_total") == i + 1; });
            EXPECT_EQ(s->count().connections_now, 1U);
        }
        EXPECT_EQ(count_of(s, "stream_errors_total", "client_replaced"), 4);
        talker last(must(loop::current().adopt(std::move(slow.back().theirs))));
        EXPECT_THAT(co_await last.rest(),
                    EndsWith("1000 of 1000.\"}\n\nid: 1001\ndata: [DONE]\n\n"));
        co_await until([&] { return s->count().connections_now == 0; });
        co_await s->stop(0s);
    });
}

TEST_P(replayed_streams, that_are_over_do_not_wait_for_long) {
    run([this]() -> task<void> {
        subject s = make({{"messages", 500}, {"source_timeout", "50ms"}});
        co_await s.start();
        talker client = make_client(s, ours);
        co_await leave_behind(client, 1);
        co_await until([&] { return sample_of(*s, "streams_total") == 1; });
        client_ends unread = slow_client();
        hand_over(s->local(), std::move(unread.ours), again_behind(1));
        co_await until([&] { return count_of(s, "stream_errors_total", "client_too_slow") == 1; });
        EXPECT_EQ(s->count().connections_now, 0U);
        EXPECT_THAT(co_await answer_of(s, again_behind(1)), EndsWith("data: [DONE]\n\n"));
        co_await s->stop(0s);
    });
}

TEST_P(replayed_streams, that_are_over_are_no_more_once_their_name_begins_anew) {
    run([this]() -> task<void> {
        subject s = make({{"messages", 500}});
        co_await s.start();
        talker client = make_client(s, ours);
        co_await leave_behind(client, 1);
        co_await until([&] { return sample_of(*s, "streams_total") == 1; });
        for (int i = 1; i <= 3; ++i) {
            client_ends unread = slow_client();
            hand_over(s->local(), std::move(unread.ours), again_behind(1));
            co_await until([&] { return sample_of(*s, "resumed_streams_total") == i; });
            EXPECT_EQ(s->count().connections_now, 1U);
            EXPECT_THAT(co_await answer_of(s, std::string(ours)), EndsWith("data: [DONE]\n\n"));
            EXPECT_EQ(s->count().connections_now, 0U) << "no client of before is held";
            EXPECT_EQ(count_of(s, "stream_errors_total", "client_replaced"), i);
        }
        co_await s->stop(0s);
    });
}

TEST_P(replayed_streams, of_clients_that_read_too_slowly_go_on) {
    run([this]() -> task<void> {
        subject s = make({{"messages", 500}, {"max_queue", "100"}});
        co_await s.start();
        client_ends ends = slow_client();
        hand_over(s->local(), std::move(ends.ours), ours);
        co_await until([&] { return count_of(s, "stream_errors_total", "client_too_slow") == 1; });
        co_await until([&] { return sample_of(*s, "streams_total") == 1; });
        const std::string rest = co_await answer_of(s, again_behind(0));
        EXPECT_THAT(rest, StartsWith("id: 1\n"));
        EXPECT_THAT(rest, EndsWith("500 of 500.\"}\n\nid: 501\ndata: [DONE]\n\n"));
        co_await s->stop(0s);
    });
}

TEST_P(replayed_streams, of_a_worker_count_until_their_end) {
    run([this]() -> task<void> {
        const auto board = must(worker_board::make());
        recorder events;
        const auto make_worker = [&](json more) {
            json chosen = options(std::move(more));
            handoff::handoff_socket at =
                must(handoff::listen_for_handoffs(folder_.file("handoff.sock"), {}));
            at.socket.file = {};
            return std::make_unique<stream_runtime>(
                creation{"stream", must_do(settings::parse(find_type("stream")->options, chosen)),
                         &events},
                worker_place{std::move(at), board, 0});
        };
        const auto join = [](const instance& of, std::string_view message, client_ends ends) {
            hand_over(of.local(), std::move(ends.ours), message);
            return std::move(ends.theirs);
        };
        const auto value = [](const instance& of, std::string_view name) {
            return sample_of(of, name).value();
        };

        auto lasting = make_worker({{"delay", "1h"}});
        EXPECT_TRUE(co_await lasting->start());
        unique_fd client = join(*lasting, ours, socket_pair());
        co_await until([&] { return board->streams() == 1; });
        client.reset();
        co_await until([&] { return value(*lasting, "detached_streams") == 1; });
        EXPECT_EQ(board->streams(), 1U) << "it goes on";
        client = join(*lasting, again_behind(1), socket_pair());
        co_await until([&] { return value(*lasting, "resumed_streams_total") == 1; });
        EXPECT_EQ(board->streams(), 1U) << "it is the same stream";
        client.reset();
        co_await until([&] { return value(*lasting, "detached_streams") == 1; });
        client = join(*lasting, ours, socket_pair());
        co_await until([&] { return value(*lasting, "handoffs_total") == 3; });
        EXPECT_EQ(board->streams(), 1U) << "another one in place of it";
        co_await lasting->stop(0s);
        EXPECT_EQ(board->streams(), 0U);
        lasting.reset();

        auto brief = make_worker({{"delay", "1h"}, {"replay_time", "20ms"}});
        EXPECT_TRUE(co_await brief->start());
        client = join(*brief, ours, socket_pair());
        co_await until([&] { return board->streams() == 1; });
        client.reset();
        co_await until([&] { return board->streams() == 0; });
        co_await brief->stop(0s);
        brief.reset();

        auto ended = make_worker({{"delay", "1ms"}, {"messages", 500}, {"max_queue", "100"}});
        EXPECT_TRUE(co_await ended->start());
        // It is too slow, and its stream ends without it.
        client = join(*ended, ours, slow_client());
        co_await until([&] { return value(*ended, "streams_total") == 1; });
        EXPECT_EQ(board->streams(), 0U);
        for (int i = 1; i <= 3; ++i) {
            client = join(*ended, again_behind(0), slow_client());
            co_await until([&] { return value(*ended, "resumed_streams_total") == i; });
            EXPECT_EQ(board->streams(), 1U) << "it is passed the events still";
        }
        client.reset();
        co_await until([&] { return board->streams() == 0; });
        client = join(*ended, again_behind(0), slow_client());
        talker reader(must(loop::current().adopt(std::move(client))));
        EXPECT_THAT(co_await reader.rest(), EndsWith("data: [DONE]\n\n"));
        co_await until([&] { return board->streams() == 0; });
        co_await ended->stop(0s);
    });
}

TEST_P(replayed_streams, of_a_model_are_asked_for_once) {
    run([this]() -> task<void> {
        chat_api model({chunk("a"), chunk("b"), chunk("c"), "data: [DONE]\n\n"});
        subject s = make({{"source", "openai"}, {"source_url", model.url()}});
        co_await s.start();
        const std::string all =
            "id: 1\ndata: {\"content\":\"a\"}\n\nid: 2\ndata: {\"content\":\"b\"}\n\n"
            "id: 3\ndata: {\"content\":\"c\"}\n\nid: 4\ndata: [DONE]\n\n";
        talker client = make_client(s, ours);
        EXPECT_THAT(co_await client.line(), StartsWith("HTTP/1.1 200"));
        client.socket = {};
        co_await until([&] { return sample_of(*s, "streams_total") == 1; });
        EXPECT_EQ(co_await answer_of(s, again_behind(0)), all);
        EXPECT_EQ(co_await answer_of(s, again_behind(2)), all.substr(all.find("id: 3")));
        EXPECT_EQ(model.requests.size(), 1U);
        EXPECT_THAT(model.requests.at(0), Not(HasSubstr("request_id")));
        co_await s->stop(0s);
        co_await model.close();
    });
}

TEST_P(replayed_streams, that_failed_have_ended_too) {
    run([this]() -> task<void> {
        subject s = make({{"source", "openai"}, {"source_url", "http://127.0.0.1:1/v1"}});
        co_await s.start();
        const std::string failed = "id: 1\ndata: {\"error\":\"backend_unreachable\"}\n\n";
        EXPECT_EQ(co_await answer_of(s, std::string(ours)), failed);
        EXPECT_EQ(co_await answer_of(s, again_behind(0)), failed);
        talker has_it = make_client(s, again_behind(1));
        EXPECT_THAT(co_await has_it.rest(), StartsWith("HTTP/1.1 204 "));
        EXPECT_EQ(count_of(s, "stream_errors_total", "backend_unreachable"), 1);
        co_await s->stop(0s);
    });
}

TEST_P(replayed_streams, whose_client_does_not_come_again_are_cancelled) {
    run([this]() -> task<void> {
        chat_api model({chunk("a")}, "200 OK", false);
        subject s = make({{"source", "openai"},
                          {"source_url", model.url()},
                          {"heartbeat", "5ms"},
                          {"replay_time", "200ms"}});
        co_await s.start();
        talker client = make_client(s, ours);
        co_await leave_behind(client, 1);
        co_await until([&] { return detached(s) == 1; });
        EXPECT_EQ(model.open, 1);
        talker again = make_client(s, again_behind(0));
        while (co_await again.line() != "id: 1") {
        }
        while (co_await again.line() != ": heartbeat") {
        }
        again.socket = {};
        co_await until([&] { return model.open == 0; });
        EXPECT_EQ(s->count().connections_now, 0U);
        // One that is there as the runtime stops.
        talker cut = make_client(s, ours);
        co_await leave_behind(cut, 1);
        co_await s->stop(0s);
        co_await model.close();
    });
}

}  // namespace
}  // namespace eddy::runtime::stream
