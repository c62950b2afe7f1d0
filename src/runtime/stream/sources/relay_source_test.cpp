// Sources that relay: an API of chat completions, ours, and what clients see of it and of its
// failures.
#include "runtime/stream/sources/relay_source.hpp"

#include <eddy/base/frame_pool.hpp>
#include <eddy/net/unix.hpp>

#include "http/session/pausing_server.hpp"
#include "runtime/stream/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace eddy::runtime::stream {
namespace {

using namespace stream::testing;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class relayed_streams : public on_io_backend {
protected:
    subject make(const std::string& url, json options = {}) {
        options["handoff"] = "unix://" + folder_.file("handoff.sock");
        options["source_url"] = url;
        return subject("stream", with(std::move(options), {{"source", "openai"}}));
    }
    /// All bytes that a client of the runtime gets.
    static task<std::string> answer_of(subject& s, std::string message) {
        talker client = make_client(s, message);
        co_return co_await client.rest();
    }
    static double faults(subject& s, std::string_view reason) {
        return count_of(s, "stream_errors_total", reason);
    }

    temporary_folder folder_;
};

INSTANTIATE_TEST_SUITE_P(runtime, relayed_streams,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll),
                         eddy::testing::io_backend_name);

TEST_P(relayed_streams, have_an_event_for_each_piece_of_a_completion) {
    run([this]() -> task<void> {
        const std::string answer = chunk("Good") + chunk(" day\n\"you\"") +
                                   "data: {\"choices\":[{\"delta\":{}}]}\n\n"
                                   "data: {\"choices\":[]}\n\n"
                                   ": comment\n\ndata: [DONE]\n\n";
        std::vector<std::string> bytes;
        for (const char each : answer) bytes.emplace_back(1, each);
        for (const auto& pieces : {std::vector{answer}, bytes}) {
            chat_api model(pieces);
            subject s = make(model.url());
            co_await s.start();
            EXPECT_THAT(co_await answer_of(s, R"({"prompt":"hi","max_tokens":5,"top_p":0.5})"),
                        EndsWith("\r\n\r\n"
                                 "data: {\"content\":\"Good\"}\n\n"
                                 "data: {\"content\":\" day\\n\\\"you\\\"\"}\n\n"
                                 "data: [DONE]\n\n"));
            EXPECT_EQ(sample_of(*s, "streams_total"), 1);
            EXPECT_EQ(model.requests.size(), 1U);
            const std::string asked = model.requests.at(0);
            EXPECT_THAT(asked, StartsWith("POST /v1/chat/completions HTTP/1.1\r\n"));
            const json body = json::parse(asked.substr(asked.find("\r\n\r\n")));
            EXPECT_EQ(body, json({{"max_tokens", 5},
                                  {"messages", {{{"content", "hi"}, {"role", "user"}}}},
                                  {"model", "gpt-4o-mini"},
                                  {"stream", true},
                                  {"top_p", 0.5}}));
            co_await s->stop(0s);
            co_await model.close();
        }
    });
}

TEST_P(relayed_streams, send_a_key_and_a_model) {
    run([this]() -> task<void> {
        std::ofstream(folder_.file("key")) << "sk-1\n";
        chat_api model({"data: [DONE]\n\n"});
        subject s = make(model.url(), {{"key_file", folder_.file("key")}, {"model", "small"}});
        co_await s.start();
        EXPECT_THAT(co_await answer_of(s, R"({"messages":[{"role":"user","content":"x"}]})"),
                    EndsWith("[DONE]\n\n"));
        EXPECT_THAT(co_await answer_of(s, R"({"model":"large"})"), EndsWith("[DONE]\n\n"));
        EXPECT_THAT(model.requests.at(0), HasSubstr("Authorization: Bearer sk-1\r\n"));
        EXPECT_THAT(model.requests.at(0), HasSubstr("\"model\":\"small\""));
        EXPECT_THAT(model.requests.at(1), HasSubstr("\"model\":\"large\""));
        co_await s->stop(0s);
        co_await model.close();
    });
}

TEST_P(relayed_streams, end_with_the_reason_when_their_source_fails) {
    run([this]() -> task<void> {
        struct failing {
            std::vector<std::string> pieces;
            std::string head;
            bool closes;
            std::string reason;
        };
        const std::vector<failing> all = {
            {{}, "500 Internal Server Error", true, "backend_status"},
            {{chunk("a")}, "200 OK", true, "backend_broke_off"},
            {{chunk("a"), "data: {\"error\":{}}\n\n"}, "200 OK", true, "backend_error"},
            {{"data: garbage\n\n"}, "200 OK", true, "backend_malformed"},
            {{"data: " + std::string(100, '[') + "\n\n"}, "200 OK", true, "backend_malformed"},
            {{"data: " + std::string(2'000'000, 'x')}, "200 OK", true, "backend_malformed"},
            {{chunk("a"), "data: {\"cut"}, "200 OK", true, "backend_broke_off"},
            {{chunk("a")}, "200 OK", false, "backend_stalled"},
        };
        for (const failing& each : all) {
            chat_api model(each.pieces, each.head, each.closes);
            subject s = make(model.url(), {{"source_timeout", "100ms"}, {"heartbeat", "20ms"}});
            co_await s.start();
            const std::string answer = co_await answer_of(s, "{}");
            EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
            EXPECT_THAT(answer, EndsWith("data: {\"error\":\"" + each.reason + "\"}\n\n"));
            EXPECT_EQ(answer.find("[DONE]"), std::string::npos);
            if (each.reason == "backend_stalled") EXPECT_THAT(answer, HasSubstr(": heartbeat\n\n"));
            EXPECT_EQ(faults(s, each.reason), 1) << each.reason;
            co_await s->stop(0s);
            co_await model.close();
        }
        subject s = make("http://127.0.0.1:1/v1");
        co_await s.start();
        EXPECT_THAT(co_await answer_of(s, "{}"), HasSubstr("backend_unreachable"));
        co_await s->stop(0s);
    });
}

TEST_P(relayed_streams, cancel_their_request_when_the_client_leaves) {
    run([this]() -> task<void> {
        chat_api model({chunk("a")}, "200 OK", false);
        subject s = make(model.url());
        co_await s.start();
        {
            talker client = make_client(s, "{}");
            while (!(co_await client.line()).starts_with("data: ")) {
            }
            EXPECT_EQ(model.open, 1);
        }
        co_await until([&] { return model.open == 0; });
        EXPECT_EQ(faults(s, "client_hung_up"), 1);
        EXPECT_EQ(s->count().connections_now, 0U);
        co_await s->stop(0s);
        co_await model.close();
    });
}

TEST_P(relayed_streams, are_ended_by_a_stop) {
    run([this]() -> task<void> {
        chat_api model({chunk("a")}, "200 OK", false);
        subject s = make(model.url());
        co_await s.start();
        std::vector<talker> clients;
        for (int i = 0; i < 50; ++i) clients.push_back(make_client(s, "{}"));
        co_await until([&] { return model.open == 50; });
        co_await s->stop(0s);
        for (talker& each : clients) EXPECT_THAT(co_await each.rest(), StartsWith("HTTP/1.1 200"));
        co_await until([&] { return model.open == 0; });
        co_await model.close();
    });
}

TEST_P(relayed_streams, of_servers_that_name_no_error_are_whole) {
    run([this]() -> task<void> {
        chat_api model({"data: {\"error\":null,\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n",
                        "data: [DONE]\n\n"});
        subject s = make(model.url());
        co_await s.start();
        EXPECT_THAT(co_await answer_of(s, "{}"),
                    EndsWith("\r\n\r\ndata: {\"content\":\"a\"}\n\ndata: [DONE]\n\n"));
        co_await s->stop(0s);
        co_await model.close();
    });
}

TEST_P(relayed_streams, take_what_clients_of_such_apis_take) {
    run([this]() -> task<void> {
        const std::string stop = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}";
        const std::string long_text(200'000, 'x');
        struct taken {
            std::vector<std::string> pieces;
            std::string content;
        };
        const std::vector<taken> all = {
            {{"data: {\"type\":\"ping\"}\n\ndata: {\"id\":\"x\"}\n\n", chunk("a"),
              "data: {\"choices\":null}\n\ndata: [DONE]\n\n"},
             "a"},
            {{chunk("a"), stop + "\n\n"}, "a"},
            {{chunk("a"), stop}, "a"},
            {{chunk("a"), stop + "\n\n", "data: {\"cut"}, "a"},
            {{chunk("a"), "data: [DONE] \n\n"}, "a"},
            {{chunk("a"), "data: [DONE]"}, "a"},
            {{"\xEF\xBB\xBF", chunk("a"), "data:[DONE]\r\r"}, "a"},
            {{chunk(long_text), "data: [DONE]\n\n"}, long_text},
            {{"data: {\"choices\":[{\"delta\":{\"content\":\"\\ud83d\"}}]}\n\n",
              "data: {\"choices\":[{\"delta\":{\"content\":\"\\ude00\"}}]}\n\ndata: [DONE]\n\n"},
             "😀"},
            {{"data: {\"choices\":[{\"delta\":{\"content\":\"\xF0\x9F\"}}]}\n\n",
              "data: {\"choices\":[{\"delta\":{\"content\":\"\x98\x80\xFF\"}}]}\n\n"
              "data: [DONE]\n\n"},
             "😀\uFFFD"},
        };
        for (const taken& each : all) {
            chat_api model(each.pieces);
            subject s = make(model.url(), {{"events", "content"}});
            co_await s.start();
            EXPECT_THAT(co_await answer_of(s, "{}"),
                        EndsWith("\r\n\r\ndata: {\"content\":\"" + each.content +
                                 "\"}\n\ndata: [DONE]\n\n"));
            EXPECT_EQ(sample_of(*s, "streams_total"), 1);
            EXPECT_THAT(model.requests.at(0), HasSubstr("\r\nAccept-Encoding: identity\r\n"));
            co_await s->stop(0s);
            co_await model.close();
        }
    });
}

TEST_P(relayed_streams, may_have_the_type_of_one_object) {
    run([this]() -> task<void> {
        chat_api model({"\n" + chunk("a"), "data: [DONE]\n\n"},
                       "200 OK\r\nContent-Type: application/json; charset=utf-8");
        subject s = make(model.url());
        co_await s.start();
        EXPECT_THAT(co_await answer_of(s, "{}"),
                    EndsWith("\r\n\r\ndata: {\"content\":\"a\"}\n\ndata: [DONE]\n\n"));
        co_await s->stop(0s);
        co_await model.close();
        chat_api cut({}, "200 OK\r\nContent-Type: application/json");
        subject other = make(cut.url());
        co_await other.start();
        EXPECT_THAT(co_await answer_of(other, "{}"), HasSubstr("backend_broke_off"));
        co_await other->stop(0s);
        co_await cut.close();
    });
}

TEST_P(relayed_streams, have_more_than_the_content) {
    run([this]() -> task<void> {
        chat_api model(
            {"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0}]},"
             "\"finish_reason\":\"tool_calls\"}]}\n\n",
             "data: {\"choices\":[],\"usage\":{\"total_tokens\":5}}\n\n"});
        subject s = make(model.url());
        co_await s.start();
        EXPECT_THAT(co_await answer_of(s, R"({"http_version":"1.1","request_method":"GET"})"),
                    EndsWith("\r\n\r\n"
                             "event: tool_calls\ndata: {\"tool_calls\":[{\"index\":0}]}\n\n"
                             "event: finish_reason\ndata: {\"finish_reason\":\"tool_calls\"}\n\n"
                             "event: usage\ndata: {\"usage\":{\"total_tokens\":5}}\n\n"
                             "data: [DONE]\n\n"));
        EXPECT_EQ(model.requests.at(0).find("http_version"), std::string::npos);
        EXPECT_EQ(model.requests.at(0).find("request_method"), std::string::npos);
        co_await s->stop(0s);
        co_await model.close();
    });
}

TEST_P(relayed_streams, wait_for_clients_that_read_more_slowly_than_the_source_sends) {
    run([this]() -> task<void> {
        const std::string large(3'000'000, 'x');
        chat_api site({large});
        subject proxied = make(site.url(), {{"source", "proxy"}});
        co_await proxied.start();
        const parsed_answer passed = parse_answer(co_await answer_of(proxied, "{}"));
        EXPECT_TRUE(passed.content == large && passed.is_whole);
        co_await proxied->stop(0s);
        co_await site.close();

        std::string tokens;
        for (int i = 0; i < 20'000; ++i) tokens += chunk("token ");
        chat_api model({tokens + "data: [DONE]\n\n"});
        subject s = make(model.url());
        co_await s.start();
        const std::string answer = co_await answer_of(s, "{}");
        EXPECT_EQ(std::ranges::count(answer, '}'), 20'000);
        EXPECT_THAT(answer, EndsWith("data: [DONE]\n\n"));
        co_await s->stop(0s);
        co_await model.close();
    });
}

TEST_P(relayed_streams, end_when_their_client_takes_nothing) {
    run([this]() -> task<void> {
        chat_api site({std::string(3'000'000, 'x')});
        subject s = make(site.url(), {{"source", "proxy"}, {"source_timeout", "50ms"}});
        co_await s.start();
        client_ends ends = socket_pair();
        hand_over(s->local(), std::move(ends.ours), "{}");
        co_await until([&] { return faults(s, "client_too_slow") == 1; });
        EXPECT_EQ(s->count().connections_now, 0U);
        co_await s->stop(0s);
        co_await site.close();
    });
}

// Else it would show late, or not within --source-timeout, that a slow client takes some.
TEST_P(relayed_streams, are_not_far_ahead_of_a_client_that_takes_nothing) {
    run([this]() -> task<void> {
        chat_api site({std::string(20'000'000, 'x')});
        subject s = make(site.url(), {{"source", "proxy"}, {"source_timeout", "300ms"}});
        co_await s.start();
        const kept_client made = co_await make_kept_client(s, "{}");
        co_await until([&] { return faults(s, "client_too_slow") == 1; });
        EXPECT_LT(s->count().bytes_out, 1'000'000U);
        co_await s->stop(0s);
        co_await site.close();
    });
}

TEST_P(relayed_streams, have_signs_of_life_whatever_the_source_does) {
    run([this]() -> task<void> {
        // One that reads the request, and says nothing.
        listener silent = must(unix_socket::listen(folder_.file("api.sock")));
        subject s = make("http://model/v1",
                         {{"source_socket", folder_.file("api.sock")}, {"heartbeat", "10ms"}});
        co_await s.start();
        talker client = make_client(s, "{}");
        talker server(must(co_await silent.accept()));
        const auto await_comment = [&]() -> task<void> {
            while (co_await line_of(client) != ": heartbeat") {
            }
        };
        co_await await_comment();
        co_await server.say("HTTP/1.1 200 OK\r\n\r\n");
        co_await await_comment();
        co_await server.say(": comment\n\ndata: {\"choices\":[]}\n\n");
        co_await await_comment();
        co_await s->stop(0s);
    });
}

TEST_P(relayed_streams, have_signs_of_life_while_others_come_and_go) {
    run([this]() -> task<void> {
        chat_api model({chunk("a")}, "200 OK", false);
        subject s = make(model.url(), {{"heartbeat", "10ms"}});
        co_await s.start();
        std::vector<talker> clients;
        for (int i = 0; i < 5; ++i) clients.push_back(make_client(s, "{}"));
        for (int left = 5; left > 0; --left) {
            for (talker& each : clients) {
                while (co_await line_of(each) != ": heartbeat") {
                }
            }
            clients.erase(clients.begin() + left / 2);
            const auto gone = static_cast<unsigned>(left - 1);
            co_await until([&] { return s->count().connections_now == gone; });
        }
        // A stream that begins when no other is there.
        talker late = make_client(s, "{}");
        while (co_await line_of(late) != ": heartbeat") {
        }
        co_await s->stop(0s);
        co_await model.close();
    });
}

TEST_P(relayed_streams, may_become_more_while_the_runtime_runs) {
    run([this]() -> task<void> {
        chat_api model({chunk("a")}, "200 OK", false);
        subject s = make(model.url(), {{"max_connections", 1}});
        co_await s.start();
        json more = {{"max_connections", 20},
                     {"source", "openai"},
                     {"source_url", model.url()},
                     {"handoff", "unix://" + folder_.file("handoff.sock")}};
        must_do(s->apply(s.parse(more)));
        std::vector<talker> clients;
        for (int i = 0; i < 20; ++i) clients.push_back(make_client(s, "{}"));
        co_await until([&] { return model.open == 20; });
        co_await s->stop(0s);
        co_await model.close();
    });
}

TEST_P(relayed_streams, reach_a_source_at_a_Unix_socket) {
    run([this]() -> task<void> {
        listener listening = must(unix_socket::listen(folder_.file("api.sock")));
        subject s = make("http://model/v1", {{"source_socket", folder_.file("api.sock")}});
        co_await s.start();
        talker client = make_client(s, "{}");
        talker server(must(co_await listening.accept()));
        EXPECT_EQ(co_await line_of(server), "POST /v1/chat/completions HTTP/1.1");
        std::string fields;
        for (std::string line = co_await line_of(server); !line.empty();
             line = co_await line_of(server))
            fields += line + "\n";
        EXPECT_THAT(fields, HasSubstr("Host: model\n"));
        co_await server.say("HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\ndata: [DONE]\n\n");
        EXPECT_THAT(co_await client.rest(), EndsWith("data: [DONE]\n\n"));
        co_await s->stop(0s);
    });
}

TEST_P(relayed_streams, go_to_the_next_backend_before_the_first_byte) {
    run([this]() -> task<void> {
        chat_api good({chunk("from b"), "data: [DONE]\n\n"});
        for (const char* const status :
             {"429 Too Many Requests", "500 Internal Server Error", "503 Service Unavailable"}) {
            chat_api bad({R"({"error":{"message":"no more"}})"}, status);
            subject s = make(bad.url(), {{"source_backend", {"b=" + good.url()}}});
            co_await s.start();
            EXPECT_THAT(co_await answer_of(s, R"({"prompt":"hi"})"),
                        EndsWith("\r\n\r\ndata: {\"content\":\"from b\"}\n\ndata: [DONE]\n\n"));
            EXPECT_EQ(bad.requests.size(), 1U);
            EXPECT_THAT(good.requests.back(), HasSubstr("\"content\":\"hi\""));
            EXPECT_EQ(count_of(s, "backend_fallbacks_total", "default"), 1);
            EXPECT_EQ(count_of(s, "backend_responses_total", std::string(status, 3)), 1);
            EXPECT_EQ(count_of(s, "backend_responses_total", "200"), 1);
            EXPECT_EQ(sample_of(*s, "streams_total"), 1);
            EXPECT_TRUE(s.events.has("default failed: it answered " + std::string(status)));
            co_await s->stop(0s);
            co_await bad.close();
        }
        subject s = make("http://127.0.0.1:1/v1", {{"source_backend", {"b=" + good.url()}}});
        co_await s.start();
        EXPECT_THAT(co_await answer_of(s, "{}"), HasSubstr("from b"));
        EXPECT_EQ(count_of(s, "backend_fallbacks_total", "default"), 1);
        co_await s->stop(0s);
        co_await good.close();
    });
}

TEST_P(relayed_streams, stay_at_a_backend_that_has_begun_or_refused_the_request) {
    run([this]() -> task<void> {
        struct final_answer {
            std::string head;
            std::string reason;
        };
        chat_api other({chunk("from b"), "data: [DONE]\n\n"});
        for (const final_answer& each : std::vector<final_answer>{
                 {"200 OK", "backend_broke_off"}, {"400 Bad Request", "backend_status"}}) {
            chat_api model({chunk("a")}, each.head);
            subject s = make(model.url(), {{"source_backend", {"b=" + other.url()}}});
            co_await s.start();
            EXPECT_THAT(co_await answer_of(s, "{}"), HasSubstr(each.reason));
            EXPECT_EQ(count_of(s, "backend_fallbacks_total", "default"), 0);
            co_await s->stop(0s);
            co_await model.close();
        }
        EXPECT_EQ(other.requests.size(), 0U);
        // The last failure is the stream's.
        chat_api last({}, "502 Bad Gateway");
        subject s = make("http://127.0.0.1:1/v1", {{"source_backend", {"b=" + last.url()}}});
        co_await s.start();
        EXPECT_THAT(co_await answer_of(s, "{}"), HasSubstr("backend_status"));
        EXPECT_EQ(faults(s, "backend_status"), 1);
        co_await s->stop(0s);
        co_await last.close();
        co_await other.close();
    });
}

TEST_P(relayed_streams, go_to_the_backend_that_the_handoff_names) {
    run([this]() -> task<void> {
        std::ofstream(folder_.file("first")) << "sk-1\n";
        std::ofstream(folder_.file("second")) << "sk-2\n";
        chat_api a({chunk("from a"), "data: [DONE]\n\n"});
        chat_api b({chunk("from b"), "data: [DONE]\n\n"});
        subject s = make(a.url(), {{"key_file", folder_.file("first")},
                                   {"source_backend",
                                    {"b=" + b.url() + "?version=3 key-field=api-key model=large " +
                                     "key-file=" + folder_.file("second")}}});
        co_await s.start();
        EXPECT_THAT(co_await answer_of(s, R"({"backend":"b"})"), HasSubstr("from b"));
        EXPECT_THAT(co_await answer_of(s, R"({"backend":"default"})"), HasSubstr("from a"));
        EXPECT_THAT(co_await answer_of(s, R"({"backend":"b,default"})"), HasSubstr("from b"));
        EXPECT_THAT(co_await answer_of(s, "{}"), HasSubstr("from a"));
        EXPECT_EQ(b.requests.size(), 2U);
        EXPECT_THAT(b.requests.at(0),
                    StartsWith("POST /v1/chat/completions?version=3 HTTP/1.1\r\n"));
        EXPECT_THAT(b.requests.at(0), HasSubstr("\r\napi-key: sk-2\r\n"));
        EXPECT_THAT(b.requests.at(0), Not(HasSubstr("Authorization")));
        EXPECT_THAT(b.requests.at(0), HasSubstr("\"model\":\"large\""));
        EXPECT_THAT(b.requests.at(0), Not(HasSubstr("backend")));
        EXPECT_THAT(a.requests.at(0), HasSubstr("\r\nAuthorization: Bearer sk-1\r\n"));
        const std::string unknown = co_await answer_of(s, R"({"backend":"c"})");
        EXPECT_THAT(unknown, StartsWith("HTTP/1.1 400 "));
        EXPECT_THAT(unknown, HasSubstr("no such backend"));
        EXPECT_EQ(count_of(s, "handoff_errors_total", "unknown_backend"), 1);
        co_await s->stop(0s);
        co_await a.close();
        co_await b.close();
    });
}

TEST_P(relayed_streams, send_a_users_key_to_the_first_backend_alone) {
    run([this]() -> task<void> {
        std::ofstream(folder_.file("key")) << "sk-own\n";
        chat_api a({R"({"error":{"message":"wrong key sk-users"}})"}, "429 Too Many Requests");
        chat_api b({chunk("from b"), "data: [DONE]\n\n"});
        const std::string asked = R"({"prompt":"hi","api_key":"sk-users"})";
        json options = {{"key_file", folder_.file("key")},
                        {"handoff_key", true},
                        {"source_backend", {"b=" + b.url()}}};
        {
            subject s = make(a.url(), options);
            co_await s.start();
            EXPECT_THAT(co_await answer_of(s, asked), HasSubstr("backend_status"));
            EXPECT_EQ(b.requests.size(), 0U) << "a user's key is for one backend";
            EXPECT_THAT(a.requests.at(0), HasSubstr("\r\nAuthorization: Bearer sk-users\r\n"));
            EXPECT_THAT(a.requests.at(0), Not(HasSubstr("api_key")));
            EXPECT_TRUE(s.events.has("wrong key ***"));
            EXPECT_THAT(co_await answer_of(s, "{}"), HasSubstr("from b"));
            EXPECT_THAT(a.requests.at(1), HasSubstr("\r\nAuthorization: Bearer sk-own\r\n"));
            EXPECT_THAT(co_await answer_of(s, R"({"api_key":"a\nb"})"),
                        StartsWith("HTTP/1.1 400 "));
            EXPECT_THAT(co_await answer_of(s, R"({"api_key":7})"), StartsWith("HTTP/1.1 400 "));
            co_await s->stop(0s);
        }
        options.erase("handoff_key");
        subject s = make(a.url(), options);
        co_await s.start();
        EXPECT_THAT(co_await answer_of(s, asked), HasSubstr("from b"));
        for (const chat_api* each : {&a, &b})
            EXPECT_THAT(each->requests.back(), Not(HasSubstr("sk-users")));
        co_await s->stop(0s);
        co_await a.close();
        co_await b.close();
    });
}

/// A server that keeps each connection after its first answer, and ends it at the next request.
task<void> end_kept_connections(listener& at, int& requests) {
    const std::string content = chunk("Good") + "data: [DONE]\n\n";
    const std::string answer =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
        "Content-Length: " +
        std::to_string(content.size()) + "\r\n\r\n" + content;
    while (auto peer = co_await at.accept()) {
        for (const bool is_first : {true, false}) {
            std::string got;
            while (!got.ends_with('}')) {
                auto piece = co_await peer->read();
                if (!piece) break;
                got += piece->text();
            }
            if (got.empty()) break;
            ++requests;
            if (is_first) static_cast<void>(co_await peer->write_all(answer));
        }
    }
}

TEST_P(relayed_streams, are_requested_again_where_a_kept_connection_has_ended) {
    run([this]() -> task<void> {
        listener model = must(loop::current().listen(must(endpoint::ip("127.0.0.1", 0))));
        int requests = 0;
        scope serving;
        serving.spawn(end_kept_connections(model, requests));
        subject s = make("http://" + model.local().to_string());
        co_await s.start();
        for (int i = 0; i < 2; ++i) {
            EXPECT_THAT(co_await answer_of(s, "{}"), HasSubstr("Good"));
            co_await until([&] { return sample_of(*s, "streams_total") == i + 1; });
        }
        EXPECT_EQ(requests, 3) << "the second one met the kept connection first";
        co_await s->stop(0s);
        serving.cancel();
        co_await serving.join();
    });
}

TEST_P(relayed_streams, send_fields_of_the_operator) {
    run([this]() -> task<void> {
        std::ofstream(folder_.file("key")) << "sk-1\n";
        chat_api model({R"({"error":"org-1 has no rights"})"}, "403 Forbidden");
        subject s =
            make(model.url(),
                 {{"key_file", folder_.file("key")},
                  {"source_header", {"OpenAI-Organization: org-1", "authorization: Basic abcd"}}});
        co_await s.start();
        EXPECT_THAT(co_await answer_of(s, "{}"), HasSubstr("backend_status"));
        EXPECT_THAT(model.requests.at(0), HasSubstr("\r\nOpenAI-Organization: org-1\r\n"));
        EXPECT_THAT(model.requests.at(0), HasSubstr("\r\nauthorization: Basic abcd\r\n"));
        EXPECT_THAT(model.requests.at(0), Not(HasSubstr("sk-1")));
        EXPECT_TRUE(s.events.has("403 Forbidden: *** has no rights"));
        co_await s->stop(0s);
        co_await model.close();
    });
}

/// Bytes that malloc has given out.
std::size_t bytes_in_use() {
    const struct mallinfo2 now = mallinfo2();
    return now.uordblks + now.hblkhd;
}

TEST_P(relayed_streams, cost_3400_bytes_each_at_most) {
    if (!frame_pool_recycles()) GTEST_SKIP() << "the sanitizer's allocator counts otherwise";
    run([this]() -> task<void> {
        constexpr std::size_t streams = 1000;
        http::testing::pausing_server model(folder_.file("api.sock"), chunk("A piece of it."));
        subject s = make("http://model/v1", {{"source_socket", folder_.file("api.sock")}});
        co_await s.start();
        const auto messages = [&] { return s->count().messages_out; };
        std::vector<unique_fd> clients;
        clients.reserve(2 * streams);
        std::size_t before = 0;
        while (clients.size() < 2 * streams) {
            client_ends ends = socket_pair();
            hand_over(s->local(), std::move(ends.ours), R"({"prompt":"Why?","user_id":1})");
            clients.push_back(std::move(ends.theirs));
            if (clients.size() % 50 != 0) continue;
            while (messages() < clients.size()) {
                model.serve();
                must(co_await loop::current().sleep_for(100us));
            }
            // As many before: what pools keep for later streams is none's.
            if (clients.size() == streams) before = bytes_in_use();
        }
        const std::size_t each = (bytes_in_use() - before) / streams;
        RecordProperty("bytes_each", std::to_string(each));
        std::printf("%zu bytes for each stream of openai\n", each);
        EXPECT_LE(each, 3400U);
        co_await s->stop(0s);
    });
}

}  // namespace
}  // namespace eddy::runtime::stream
