// Stream runtimes: what clients that are handed over see of one, what it refuses, and its end.
#include "runtime/stream/stream_runtime.hpp"

#include "runtime/stream/answer.hpp"
#include "runtime/stream/testing.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/stat.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace eddy::runtime::stream {
namespace {

using namespace stream::testing;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::string_view head =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
    "Connection: close\r\nX-Accel-Buffering: no\r\n";

/// An answer without its Date, which it must have.
std::string without_date(std::string answer) {
    const std::size_t at = answer.find("Date: ");
    EXPECT_NE(at, std::string::npos) << answer;
    return at == std::string::npos ? answer : answer.erase(at, answer.find("\r\n", at) + 2 - at);
}

/// Text that a client reads, and the error at its end.
struct reading {
    std::string text;
    std::error_code end;

    static task<reading> of(eddy::stream& from) {
        reading made;
        while (!made.end) {
            const auto piece = co_await from.read();
            if (piece)
                made.text += piece->text();
            else
                made.end = piece.error();
        }
        co_return made;
    }
};

class stream_clients : public on_io_backend {
protected:
    subject make(json options = {}) {
        options["handoff"] = "unix://" + folder_.file("handoff.sock");
        return subject("stream", with(std::move(options), {{"delay", "1ms"}, {"messages", 3}}));
    }
    static task<void> stop(subject& s) { co_await s->stop(duration::zero()); }

    temporary_folder folder_;
};

INSTANTIATE_TEST_SUITE_P(runtime, stream_clients,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll),
                         eddy::testing::io_backend_name);

TEST_P(stream_clients, are_sent_the_events_of_the_mock_source) {
    run([this]() -> task<void> {
        subject s = make();
        co_await s.start();
        talker client = make_client(s, R"({"prompt":"say \"hi\"","user_id":7})");
        EXPECT_EQ(without_date(co_await client.rest()),
                  std::string(head) +
                      "\r\n"
                      "data: {\"content\":\"Hello from Eddy! Prompt: say \\\"hi\\\"\"}\n\n"
                      "data: {\"content\":\"User ID: 7\"}\n\n"
                      "data: {\"content\":\"This is message 3 of 3.\"}\n\n"
                      "data: [DONE]\n\n");
        co_await stop(s);
    });
}

TEST_P(stream_clients, are_taken_over_stream_sockets_in_any_pieces) {
    run([this]() -> task<void> {
        subject s = make({{"handoff_type", "stream"}, {"messages", 1}});
        co_await s.start();
        talker whole = make_client(s, R"({"prompt":"a"})", SOCK_STREAM);
        EXPECT_THAT(co_await whole.rest(), HasSubstr("Prompt: a\""));
        client_ends ends = socket_pair();
        const unique_fd sender = connect_sender(s->local(), SOCK_STREAM);
        must(unix_socket::send_descriptor(sender.get(), "{\"prom", ends.ours.get()));
        ends.ours.reset();
        for (const char each : std::string_view("pt\":\"b\"}")) {
            co_await loop::current().yield();
            EXPECT_EQ(::send(sender.get(), &each, 1, 0), 1);
        }
        // The sender need not close: the message's end is seen.
        talker client(must(loop::current().adopt(std::move(ends.theirs))));
        EXPECT_THAT(co_await client.rest(), HasSubstr("Prompt: b\""));
        co_await stop(s);
    });
}

TEST_P(stream_clients, get_heartbeats_between_messages_that_are_far_apart) {
    run([this]() -> task<void> {
        subject s = make({{"delay", "40ms"}, {"heartbeat", "10ms"}, {"messages", 4}});
        co_await s.start();
        std::vector<talker> clients;
        for (int i = 0; i < 10; ++i) clients.push_back(make_client(s, "{}"));
        // One that leaves is beaten for no more.
        clients.back().socket = {};
        clients.pop_back();
        for (talker& each : clients) {
            const std::string answer = co_await each.rest();
            std::string events;
            std::size_t beats = 0;
            for (std::size_t at = answer.find("data: "); at < answer.size();) {
                const std::size_t end = answer.find("\n\n", at) + 2;
                const std::string_view event = std::string_view(answer).substr(at, end - at);
                event == ": heartbeat\n\n" ? void(++beats) : void(events += event);
                at = end;
            }
            EXPECT_EQ(events,
                      "data: {\"content\":\"Hello from Eddy! Prompt: \"}\n\n"
                      "data: {\"content\":\"User ID: \"}\n\n"
                      "data: {\"content\":\"This is message 3 of 4.\"}\n\n"
                      "data: {\"content\":\"This is message 4 of 4.\"}\n\n"
                      "data: [DONE]\n\n");
            EXPECT_LE(beats, 9U) << "three in each pause at most";
        }
        co_await stop(s);
    });
}

TEST_P(stream_clients, get_heartbeats_for_as_long_as_nothing_else_comes) {
    run([this]() -> task<void> {
        subject s = make({{"delay", "1h"}, {"heartbeat", "5ms"}});
        co_await s.start();
        talker client = make_client(s, "{}");
        for (int beats = 0; beats < 5;)
            if (co_await client.line() == ": heartbeat") ++beats;
        // A client that comes meanwhile gets heartbeats before its first message, too.
        talker other = make_client(s, "{}");
        for (int beats = 0; beats < 2;)
            if (co_await other.line() == ": heartbeat") ++beats;
        EXPECT_EQ(sample_of(*s, "chunks_sent_total"), 2) << "they are no messages";
        co_await stop(s);
    });
}

TEST_P(stream_clients, get_no_heartbeats_where_messages_come_as_often) {
    run([this]() -> task<void> {
        subject s = make({{"delay", "5ms"}, {"heartbeat", "5ms"}, {"messages", 5}});
        co_await s.start();
        talker client = make_client(s, "{}");
        EXPECT_EQ((co_await client.rest()).find(": heartbeat"), std::string::npos);
        co_await stop(s);
    });
}

TEST_P(stream_clients, may_come_with_a_NUL_byte_alone) {
    run([this]() -> task<void> {
        subject s = make({{"messages", 2}});
        co_await s.start();
        talker client = make_client(s, std::string_view("\0", 1));
        EXPECT_THAT(co_await client.rest(), HasSubstr("User ID: \"}\n\ndata: [DONE]\n\n"));
        co_await stop(s);
    });
}

TEST_P(stream_clients, see_the_fields_that_the_web_server_adds) {
    run([this]() -> task<void> {
        subject s = make({{"messages", 1}});
        co_await s.start();
        talker client =
            make_client(s, R"({"response_headers":{"X-Id":"5","X-Evil":"a\r\nSet-Cookie: b"}})");
        const std::string answer = without_date(co_await client.rest());
        EXPECT_THAT(answer, StartsWith(std::string(head) + "X-Id: 5\r\n\r\ndata: "));
        EXPECT_EQ(answer.find("Set-Cookie"), std::string::npos);
        co_await stop(s);
    });
}

TEST_P(stream_clients, that_ask_for_the_head_get_no_events) {
    run([this]() -> task<void> {
        subject s = make();
        co_await s.start();
        talker client =
            make_client(s, R"({"request_method":"HEAD","response_headers":{"X-Id":"5"}})");
        const std::string answer = co_await client.rest();
        EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"));
        EXPECT_THAT(answer, EndsWith("\r\nX-Id: 5\r\n\r\n"));
        EXPECT_EQ(s->count().connections_now, 0U);
        co_await stop(s);
    });
}

TEST_P(stream_clients, see_the_end_while_the_web_server_keeps_its_copy) {
    run([this]() -> task<void> {
        subject s = make();
        co_await s.start();
        client_ends ends = socket_pair();
        const unique_fd kept(::fcntl(ends.ours.get(), F_DUPFD_CLOEXEC, 0));
        hand_over(s->local(), std::move(ends.ours), "{}");
        talker client(must(loop::current().adopt(std::move(ends.theirs))));
        EXPECT_THAT(co_await client.rest(), HasSubstr("[DONE]"));
        co_await stop(s);
    });
}

TEST_P(stream_clients, beyond_the_limit_get_503) {
    run([this]() -> task<void> {
        subject s = make({{"max_connections", 2}, {"delay", "1h"}});
        co_await s.start();
        talker first = make_client(s, "{}");
        talker second = make_client(s, "{}");
        talker third = make_client(s, "{}");
        EXPECT_THAT(co_await third.rest(), StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
        EXPECT_EQ(s->count().connections_refused, 1U);
        first.socket = {};
        co_await until([&] { return s->count().connections_now == 1; });
        talker fourth = make_client(s, "{}");
        EXPECT_THAT(co_await fourth.line(), StartsWith("HTTP/1.1 200"));
        co_await stop(s);
    });
}

TEST_P(stream_clients, of_bad_messages_get_400_and_of_large_ones_413) {
    run([this]() -> task<void> {
        subject s = make({{"max_message", "1000"}, {"messages", 1}});
        co_await s.start();
        talker bad = make_client(s, "{\"prompt\":");
        EXPECT_THAT(co_await bad.rest(), StartsWith("HTTP/1.1 400 Bad Request\r\n"));
        const auto sized = [](std::size_t size) {
            return "{\"x\":\"" + std::string(size - 8, 'x') + "\"}";
        };
        talker fits = make_client(s, sized(1000));
        EXPECT_THAT(co_await fits.rest(), StartsWith("HTTP/1.1 200 OK\r\n"));
        talker large = make_client(s, sized(1001));
        EXPECT_THAT(co_await large.rest(), StartsWith("HTTP/1.1 413 Content Too Large\r\n"));
        talker huge = make_client(s, sized(150'000));
        EXPECT_THAT(co_await huge.rest(), StartsWith("HTTP/1.1 413 Content Too Large\r\n"));
        EXPECT_EQ(count_of(s, "handoff_errors_total", "malformed_message"), 1);
        EXPECT_EQ(count_of(s, "handoff_errors_total", "message_too_large"), 2);
        co_await stop(s);
    });
}

TEST_P(stream_clients, that_are_refused_get_the_web_servers_fields) {
    run([this]() -> task<void> {
        subject s = make({{"max_message", "1000"}, {"max_connections", 1}, {"delay", "1h"}});
        co_await s.start();
        const std::string cors = R"({"response_headers":{"Access-Control-Allow-Origin":"*"},)";
        talker first = make_client(s, "{}");
        const std::vector<std::pair<std::string, int>> all = {
            {cors + R"("x":1})", 503},
            {cors + R"("x":")" + std::string(1000, 'x') + "\"}", 413},
            {cors + "garbage", 400},
            {cors + R"("prompt":7})", 400},
        };
        for (const auto& [message, status] : all) {
            talker client = make_client(s, message);
            const parsed_answer got = parse_answer(co_await client.rest());
            EXPECT_EQ(got.status, status);
            EXPECT_EQ(got.field("Access-Control-Allow-Origin"), "*") << status;
            EXPECT_THAT(got.field("Date"), EndsWith(" GMT"));
            EXPECT_EQ(got.field("Retry-After"), status == 503 ? "1" : "(none)");
            EXPECT_THAT(got.content, StartsWith("{\"error\":"));
            talker asks_head = make_client(s, R"({"request_method":"HEAD",)" + message.substr(1));
            if (status != 503) EXPECT_THAT(co_await asks_head.rest(), EndsWith("\r\n\r\n"));
        }
        // A field beyond the limit is left out, and the answer is whole.
        talker large = make_client(
            s, R"({"response_headers":{"A":")" + std::string(max_refusal_fields, 'a') + "\"}}");
        const parsed_answer got = parse_answer(co_await large.rest());
        EXPECT_EQ(got.status, 413);
        EXPECT_EQ(got.field("A"), "(none)");
        EXPECT_TRUE(got.is_whole);
        co_await stop(s);
    });
}

TEST_P(stream_clients, that_are_refused_while_they_send_get_their_answer) {
    run([this]() -> task<void> {
        subject s = make();
        co_await s.start();
        kept_client made = co_await make_kept_client(s, "garbage");
        made.copy.close();
        struct sending {
            static task<void> much(eddy::stream& by) {
                const std::string piece(std::size_t{64} << 10, 'x');
                for (int i = 0; i < 64; ++i)
                    if (!co_await by.write_all(piece)) co_return;
            }
        };
        scope beside(co_await current_source());
        beside.spawn(sending::much(made.client.socket));
        const reading got = co_await reading::of(made.client.socket);
        EXPECT_THAT(got.text, StartsWith("HTTP/1.1 400 Bad Request\r\n"));
        EXPECT_EQ(got.end, errc::end_of_stream);
        co_await beside.join();
        co_await stop(s);
    });
}

TEST_P(stream_clients, of_a_program_that_was_killed_see_a_reset) {
    run([]() -> task<void> {
        const temporary_folder folder;
        subject s("stream", {{"handoff", "unix://" + folder.file("handoff.sock")},
                             {"source", "exec"},
                             {"exec", "printf half; kill -9 $$"}});
        co_await s.start();
        kept_client made = co_await make_kept_client(s, "{}");
        made.copy.close();
        const reading got = co_await reading::of(made.client.socket);
        EXPECT_EQ(got.end, errno_code(ECONNRESET)) << "an answer that broke off looks whole";
        co_await stop(s);
    });
}

TEST_P(stream_clients, that_leave_are_noticed_before_the_next_message) {
    run([this]() -> task<void> {
        subject s = make({{"delay", "1h"}});
        co_await s.start();
        talker client = make_client(s, "{}");
        EXPECT_THAT(co_await client.line(), StartsWith("HTTP/1.1 200"));
        EXPECT_EQ(s->count().connections_now, 1U);
        client.socket = {};
        co_await until([&] { return s->count().connections_now == 0; });
        EXPECT_EQ(count_of(s, "stream_errors_total", "client_hung_up"), 1);
        co_await stop(s);
    });
}

TEST_P(stream_clients, that_never_read_lose_their_stream_at_the_limit) {
    run([this]() -> task<void> {
        subject s = make({{"messages", 10'000}, {"max_queue", "100"}});
        co_await s.start();
        client_ends ends = socket_pair();
        const int small = 1;
        ::setsockopt(ends.ours.get(), SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
        hand_over(s->local(), std::move(ends.ours), "{}");
        co_await until([&] { return count_of(s, "stream_errors_total", "client_too_slow") == 1; });
        EXPECT_EQ(s->count().connections_now, 0U);
        talker late(must(loop::current().adopt(std::move(ends.theirs))));
        EXPECT_THAT(co_await late.rest(), StartsWith(head));
        co_await stop(s);
    });
}

TEST_P(stream_clients, whose_socket_is_none_are_counted) {
    run([this]() -> task<void> {
        subject s = make();
        co_await s.start();
        int pipe_ends[2];
        EXPECT_EQ(::pipe2(pipe_ends, O_CLOEXEC), 0);
        const unique_fd read_end(pipe_ends[0]);
        hand_over(s->local(), unique_fd(pipe_ends[1]), "{}");
        unique_fd listening(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        EXPECT_EQ(::listen(listening.get(), 1), 0);
        hand_over(s->local(), std::move(listening), "{}");
        hand_over(s->local(), unique_fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), "{}");
        hand_over(s->local(), unique_fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)), "{}");
        {
            const unique_fd sender = connect_sender(s->local(), SOCK_SEQPACKET);
            EXPECT_EQ(::send(sender.get(), "{}", 2, 0), 2);
            const unique_fd silent = connect_sender(s->local(), SOCK_SEQPACKET);
        }
        co_await until([&] { return s->count().errors == 6; });
        for (const std::string_view reason :
             {"not_a_socket", "listening_socket", "not_connected", "not_a_stream_socket",
              "no_descriptor", "incomplete_message"})
            EXPECT_EQ(count_of(s, "handoff_errors_total", reason), 1) << reason;
        talker client = make_client(s, "{}");
        EXPECT_THAT(co_await client.rest(), HasSubstr("[DONE]")) << "it serves on";
        co_await stop(s);
    });
}

TEST_P(stream_clients, end_before_the_runtime_does) {
    run([this]() -> task<void> {
        subject s = make({{"messages", 5}, {"delay", "20ms"}});
        co_await s.start();
        std::vector<talker> clients;
        for (int i = 0; i < 100; ++i) clients.push_back(make_client(s, "{}"));
        co_await until([&] { return s->count().connections_now == 100; });
        co_await s->stop(60s);
        for (talker& each : clients) EXPECT_THAT(co_await each.rest(), HasSubstr("[DONE]"));
        EXPECT_TRUE(s.events.has("Peak concurrent streams: 100"));
        EXPECT_EQ(sample_of(*s, "streams_total"), 100);
    });
}

TEST_P(stream_clients, are_cut_off_when_the_drain_is_over) {
    run([this]() -> task<void> {
        subject s = make({{"delay", "1h"}});
        co_await s.start();
        talker client = make_client(s, "{}");
        EXPECT_THAT(co_await client.line(), StartsWith("HTTP/1.1 200"));
        co_await stop(s);
        co_await client.rest();
        EXPECT_TRUE(s.events.has("1 streams were cut off"));
        EXPECT_EQ(s->lost(), "1 streams that had not ended");
        co_await s.start();
        co_await stop(s);
        EXPECT_EQ(s->lost(), "") << "of the last stop";
    });
}

TEST_P(stream_clients, a_thousand_at_once_are_all_served) {
    run([this]() -> task<void> {
        subject s = make({{"messages", 18}});
        co_await s.start();
        std::vector<talker> clients;
        for (int i = 0; i < 1000; ++i)
            clients.push_back(make_client(s, "{\"user_id\":" + std::to_string(i) + "}"));
        for (int i = 0; i < 1000; ++i) {
            const std::string answer = co_await clients[static_cast<std::size_t>(i)].rest();
            EXPECT_THAT(answer, HasSubstr("User ID: " + std::to_string(i) + "\""));
            EXPECT_THAT(answer, HasSubstr("18 of 18.\"}\n\ndata: [DONE]\n\n"));
        }
        EXPECT_EQ(sample_of(*s, "handoffs_total"), 1000);
        EXPECT_EQ(sample_of(*s, "chunks_sent_total"), 18'000);
        co_await stop(s);
    });
}

TEST_P(stream_clients, see_the_end_of_a_stop_though_the_web_server_keeps_their_socket) {
    run([this]() -> task<void> {
        for (const json& options : {json::object(), json::object({{"replay_memory", "1MiB"}})}) {
            subject s = make(with(options, {{"delay", "1h"}}));
            co_await s.start();
            std::vector<kept_client> all;
            for (int i = 0; i < 10; ++i) {
                const std::string number = std::to_string(i);
                all.push_back(
                    co_await make_kept_client(s, R"({"user_id":1,"request_id":)" + number + "}"));
            }
            co_await until([&] { return s->count().connections_now == 10; });
            co_await stop(s);
            for (kept_client& each : all) {
                const last_bytes got = co_await rest_of(each.client);
                EXPECT_THAT(got.text, HasSubstr("Hello from Eddy!"));
                EXPECT_EQ(got.end, errc::end_of_stream);
            }
        }
    });
}

TEST_P(stream_clients, the_socket_has_the_mode_that_was_asked_for) {
    run([this]() -> task<void> {
        subject s = make({{"mode", "0606"}});
        co_await s.start();
        struct stat info;
        EXPECT_EQ(::stat(folder_.file("handoff.sock").c_str(), &info), 0);
        EXPECT_EQ(info.st_mode & 0777U, 0606U);
        co_await stop(s);
        EXPECT_NE(::stat(folder_.file("handoff.sock").c_str(), &info), 0) << "it goes at the end";
    });
}

TEST_P(stream_clients, of_other_users_are_refused_where_a_list_says_so) {
    run([this]() -> task<void> {
        subject s = make({{"allow_users", std::to_string(::getuid() + 1)}});
        co_await s.start();
        talker client = make_client(s, "{}");
        EXPECT_EQ(co_await client.rest(), "");
        EXPECT_EQ(count_of(s, "handoff_errors_total", "peer_not_allowed"), 1);
        co_await stop(s);
        subject open = make({{"allow_users", "root," + std::to_string(::getuid())}});
        co_await open.start();
        talker allowed = make_client(open, "{}");
        EXPECT_THAT(co_await allowed.rest(), HasSubstr("[DONE]"));
        co_await stop(open);
    });
}

TEST_P(stream_clients, a_second_runtime_cannot_take_the_socket) {
    run([this]() -> task<void> {
        subject s = make();
        co_await s.start();
        subject other = make();
        EXPECT_THAT(co_await other.failure_to_start(), HasSubstr("handoff.sock"));
        co_await stop(s);
    });
}

TEST_P(stream_clients, of_several_workers_have_one_limit) {
    run([this]() -> task<void> {
        const auto board = must(worker_board::make());
        const handoff::handoff_socket listening =
            must(handoff::listen_for_handoffs(folder_.file("handoff.sock"), {}));
        const auto options = [&](int messages) {
            return must_do(settings::parse(find_type("stream")->options,
                                           {{"handoff", "unix://" + folder_.file("handoff.sock")},
                                            {"max_connections", 3},
                                            {"delay", "1h"},
                                            {"messages", messages}}));
        };
        recorder events;
        const auto make_worker = [&](std::size_t number, int messages) {
            const int fd = ::fcntl(listening.socket.socket.get(), F_DUPFD_CLOEXEC, 0);
            return std::make_unique<stream_runtime>(
                creation{"stream", options(messages), &events},
                worker_place{{{unique_fd(fd), {}, {}}, listening.local}, board, number});
        };
        const auto a = make_worker(0, 2);
        const auto b = make_worker(1, 2);
        EXPECT_TRUE(co_await a->start());
        EXPECT_TRUE(co_await b->start());
        std::vector<unique_fd> clients;
        for (int i = 0; i < 5; ++i) {
            client_ends ends = socket_pair();
            hand_over(a->local(), std::move(ends.ours), "{}");
            clients.push_back(std::move(ends.theirs));
        }
        const auto refused = [&] {
            return a->count().connections_refused + b->count().connections_refused;
        };
        co_await until([&] { return refused() == 2; });
        EXPECT_EQ(board->streams(), 3U);
        EXPECT_EQ(board->peak_streams(), 3U);
        // Clients that leave make room for others.
        clients.clear();
        co_await until([&] { return board->streams() == 0; });
        co_await a->stop(0s);
        co_await b->stop(0s);
        // Streams that end are no longer counted.
        const auto c = make_worker(2, 1);
        EXPECT_TRUE(co_await c->start());
        for (int i = 0; i < 10; ++i) {
            client_ends ends = socket_pair();
            hand_over(c->local(), std::move(ends.ours), "{}");
            talker client(must(loop::current().adopt(std::move(ends.theirs))));
            EXPECT_THAT(co_await client.rest(), HasSubstr("[DONE]"));
        }
        EXPECT_EQ(board->streams(), 0U);
        co_await c->stop(0s);
        EXPECT_FALSE(events.has("Peak concurrent streams")) << "that is the supervisor's";
        remove_socket_file(listening.local, listening.socket.file);
    });
}

TEST_P(stream_clients, beyond_the_limit_of_open_files_are_warned_of_on_epoll) {
    run([this]() -> task<void> {
        subject s = make({{"max_connections", 1'000'000}});
        co_await s.start();
        EXPECT_EQ(s.events.has("open files"), loop::current().kind() == io_backend_kind::epoll);
        co_await stop(s);
        subject small = make({{"max_connections", 10}});
        co_await small.start();
        EXPECT_FALSE(small.events.has("open files"));
        co_await stop(small);
    });
}

}  // namespace
}  // namespace eddy::runtime::stream
