// Failures of sources: their reasons, what the journal and the metrics have of them, and what
// stays out of the journal.
#include <eddy/transport/transport.hpp>

#include "runtime/logs/failure_log.hpp"
#include "runtime/stream/sources/provider_text.hpp"
#include "runtime/stream/testing.hpp"
#include "transport/test_certificates.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::runtime::stream {
namespace {

using namespace stream::testing;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class failing_streams : public on_io_backend {
protected:
    subject make(const std::string& url, json options = {}) {
        options["handoff"] = "unix://" + folder_.file("handoff.sock");
        options["source_url"] = url;
        return subject("stream", with(std::move(options), {{"source", "openai"}}));
    }
    static task<std::string> answer_of(subject& s, std::string message = "{}") {
        talker client = make_client(s, message);
        co_return co_await client.rest();
    }
    static double faults(subject& s, std::string_view reason) {
        return count_of(s, "stream_errors_total", reason);
    }
    /// Lines of the journal about failed streams.
    static std::vector<std::string> lines_of(const subject& s) {
        std::vector<std::string> found;
        std::ranges::copy_if(s.events.lines, std::back_inserter(found),
                             [](const std::string& each) { return each.contains("failed"); });
        return found;
    }
    /// The line that is logged for an answer of this source; there must be one.
    task<std::string> line_of_failure(std::vector<std::string> pieces, std::string head,
                                      std::string_view reason, json options = {}) {
        chat_api model(std::move(pieces), std::move(head));
        subject s = make(model.url(), std::move(options));
        co_await s.start();
        EXPECT_THAT(co_await answer_of(s),
                    HasSubstr("{\"error\":\"" + std::string(reason) + "\"}"));
        EXPECT_EQ(faults(s, reason), 1) << reason;
        const std::vector<std::string> lines = lines_of(s);
        EXPECT_EQ(lines.size(), 1U) << reason;
        co_await s->stop(0s);
        co_await model.close();
        co_return lines.empty() ? "" : lines.front();
    }

    temporary_folder folder_;
};

INSTANTIATE_TEST_SUITE_P(runtime, failing_streams,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll),
                         eddy::testing::io_backend_name);

TEST_P(failing_streams, say_why_in_the_journal) {
    run([this]() -> task<void> {
        EXPECT_EQ(co_await line_of_failure({R"({"error":{"message":"Slow down.","type":"limit"}})"},
                                           "429 Too Many Requests", "backend_status"),
                  "a stream failed: the source answered 429 Too Many Requests: Slow down. (limit)");
        EXPECT_EQ(co_await line_of_failure({"<h1>\x1b[2J\nforged"}, "502 Bad", "backend_status"),
                  "a stream failed: the source answered 502 Bad Gateway: <h1>\\x1b[2J\\x0aforged");
        EXPECT_EQ(co_await line_of_failure({}, "500 No", "backend_status"),
                  "a stream failed: the source answered 500 Internal Server Error");
        EXPECT_EQ(co_await line_of_failure(
                      {chunk("a"), "data: {\"error\":{\"message\":\"overloaded\"}}\n\n"}, "200 OK",
                      "backend_error"),
                  "a stream failed: the source reports: overloaded");
        EXPECT_EQ(co_await line_of_failure({"event: error\ndata: {\"message\":\"gone\"}\n\n"},
                                           "200 OK", "backend_error"),
                  "a stream failed: the source reports: gone");
        EXPECT_EQ(co_await line_of_failure({"data: garbage\n\n"}, "200 OK", "backend_malformed"),
                  "a stream failed: the source's answer cannot be read: an event of it is no "
                  "JSON: garbage");
        EXPECT_EQ(co_await line_of_failure({chunk("a")}, "200 OK", "backend_broke_off"),
                  "a stream failed: the source's answer ended without a finish_reason and "
                  "without [DONE]");
        EXPECT_EQ(
            co_await line_of_failure({"<h1>Log", " in</h1>"}, "200 OK\r\nContent-Type: text/html",
                                     "backend_malformed"),
            "a stream failed: the source's answer is no event stream: <h1>Log in</h1>");
        EXPECT_THAT(co_await line_of_failure({": ping\n\n"}, "200 OK", "backend_broke_off"),
                    HasSubstr("without a finish_reason"));
        EXPECT_THAT(co_await line_of_failure({chunk("a")}, "200 OK\r\nContent-Length: 999",
                                             "backend_broke_off"),
                    StartsWith("a stream failed: the source's answer broke off: "));
        EXPECT_THAT(co_await line_of_failure({}, "200 OK\r\nBad\x01: x", "backend_malformed_head"),
                    StartsWith("a stream failed: the source gave no response: "));
        EXPECT_EQ(co_await line_of_failure({"x"}, "200 OK\r\nContent-Encoding: gzip",
                                           "backend_malformed"),
                  "a stream failed: the source's answer has a content coding, gzip: x");
    });
}

TEST_P(failing_streams, whose_source_sends_one_object_say_so) {
    run([this]() -> task<void> {
        struct whole {
            std::string content;
            std::string reason;
            std::string line;
        };
        const std::vector<whole> all = {
            {R"({"error":{"message":"no such model"}})", "backend_error", "no such model"},
            {R"({"choices":[]})", "backend_malformed", R"({"choices":[]})"},
        };
        for (const whole& each : all) {
            listener api = must(loop::current().listen(must(endpoint::ip("127.0.0.1", 0))));
            subject s = make("http://" + api.local().to_string());
            co_await s.start();
            talker client = make_client(s, "{}");
            talker server(must(co_await api.accept()));
            co_await server.say(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                "Content-Length: " +
                std::to_string(each.content.size()) + "\r\n\r\n" + each.content);
            EXPECT_THAT(co_await client.rest(), HasSubstr(each.reason));
            EXPECT_THAT(lines_of(s).at(0), EndsWith("no event stream: " + each.line));
            co_await s->stop(0s);
        }
    });
}

TEST_P(failing_streams, without_a_connection_say_why) {
    run([this]() -> task<void> {
        for (const std::string_view source : {"openai", "proxy"}) {
            subject s = make("http://127.0.0.1:1/v1", {{"source", source}});
            co_await s.start();
            EXPECT_THAT(co_await answer_of(s), HasSubstr("backend_unreachable"));
            EXPECT_EQ(lines_of(s).at(0), "a stream failed: the source gave no response: " +
                                             errno_code(ECONNREFUSED).message());
            co_await s->stop(0s);
        }
    });
}

/// Reads what each client says, and answers it.
task<void> answer_all(listener& from, std::string_view answer) {
    while (auto peer = co_await from.accept()) {
        static_cast<void>(co_await peer->read());
        static_cast<void>(co_await peer->write_all(answer));
    }
}

TEST_P(failing_streams, whose_source_has_a_bad_certificate_say_so) {
    run([this]() -> task<void> {
        transport::write_test_certificates(folder_);
        auto secure = transport::listen("tls://127.0.0.1:0?cert=" + folder_.file("both.pem"));
        if (!secure) co_return;  // built without TLS
        listener plain = must(loop::current().listen(must(endpoint::ip("127.0.0.1", 0))));
        scope serving;
        serving.spawn(answer_all(*secure, ""));
        serving.spawn(answer_all(plain, "HTTP/1.1 400 Bad Request\r\n\r\n"));
        const auto expect = [&](const listener& at, std::string_view reason,
                                std::string_view why) -> task<void> {
            for (const std::string_view source : {"openai", "proxy"}) {
                subject s = make("https://" + at.local().to_string() + "/v1", {{"source", source}});
                co_await s.start();
                const std::string answer = co_await answer_of(s);
                EXPECT_THAT(answer, HasSubstr("{\"error\":\"" + std::string(reason) + "\"}"));
                if (source == "proxy") EXPECT_THAT(answer, StartsWith("HTTP/1.1 502 "));
                EXPECT_EQ(faults(s, reason), 1) << reason;
                EXPECT_THAT(lines_of(s).at(0), HasSubstr(std::string(why)));
                co_await s->stop(0s);
            }
        };
        co_await expect(*secure, "backend_certificate", "the peer's certificate is not signed");
        co_await expect(plain, "backend_tls", "TLS");
        serving.cancel();
        co_await serving.join();
    });
}

TEST_P(failing_streams, whose_source_does_not_shake_hands_end_after_the_source_s_time) {
    run([this]() -> task<void> {
        transport::write_test_certificates(folder_);
        // Only to see whether this is built with TLS.
        if (!transport::listen("tls://127.0.0.1:0?cert=" + folder_.file("both.pem"))) co_return;
        // The kernel connects for it, and it says nothing.
        const listener silent = must(loop::current().listen(must(endpoint::ip("127.0.0.1", 0))));
        subject s = make("https://" + silent.local().to_string() + "/v1",
                         {{"source_timeout", "100ms"}, {"heartbeat", "5s"}});
        co_await s.start();
        const std::string answer = co_await answer_of(s);
        EXPECT_THAT(answer, HasSubstr("{\"error\":\"backend_stalled\"}"));
        EXPECT_EQ(answer.find(": heartbeat"), std::string::npos) << "which is due much later";
        co_await s->stop(0s);
    });
}

TEST_P(failing_streams, are_logged_once_a_kind_and_interval) {
    run([this]() -> task<void> {
        chat_api busy({"busy"}, "429 Too Many Requests");
        subject s = make(busy.url());
        co_await s.start();
        const time_point begun = loop::current().now();
        for (int i = 0; i < 20; ++i)
            EXPECT_THAT(co_await answer_of(s), EndsWith("{\"error\":\"backend_status\"}\n\n"));
        const auto most =
            1 + static_cast<std::size_t>((loop::current().now() - begun) / failure_log_interval);
        EXPECT_LE(lines_of(s).size(), most);
        EXPECT_EQ(count_of(s, "backend_responses_total", "429"), 20);
        co_await s->stop(0s);
        EXPECT_THAT(lines_of(s).back(), HasSubstr("streams failed by backend_status 429"));
        co_await busy.close();
    });
}

TEST_P(failing_streams, are_counted_by_status) {
    run([this]() -> task<void> {
        for (const std::string_view source : {"openai", "proxy"}) {
            chat_api site({"data: [DONE]\n\n"}, "503 Busy");
            subject s = make(site.url(), {{"source", source}});
            co_await s.start();
            co_await answer_of(s);
            EXPECT_EQ(count_of(s, "backend_responses_total", "503"), 1) << source;
            EXPECT_EQ(count_of(s, "backend_responses_total", "200"), 0) << source;
            // The client of a proxy has the response: the stream is whole.
            EXPECT_EQ(lines_of(s).size(), source == "openai" ? 1U : 0U);
            co_await s->stop(0s);
            co_await site.close();
        }
    });
}

TEST_P(failing_streams, have_no_key_in_the_journal) {
    run([this]() -> task<void> {
        const std::string key = "sk-0123456789abcdef";
        std::ofstream(folder_.file("key")) << key << "\n";
        const json options = {{"key_file", folder_.file("key")}};
        const std::string far(8 * 1024 - key.size() / 2, 'x');
        const std::vector<std::pair<std::string, std::string>> all = {
            {"401 No", R"({"error":{"message":"Incorrect API key: )" + key + "\"}}"},
            {"400 No", "Authorization: Bearer " + key},
            {"403 No", key + std::string(100'000, 'x')},
            {"404 No", far + key},  // it is cut off within the key
        };
        for (const auto& [head, content] : all) {
            const std::string line =
                co_await line_of_failure({content}, head, "backend_status", options);
            EXPECT_EQ(line.find("sk-0"), std::string::npos) << line;
            EXPECT_LE(line.size(), max_shown_text + 100);
        }
        EXPECT_THAT(co_await line_of_failure({"data: {\"error\":\"bad key " + key + "\"}\n\n"},
                                             "200 OK", "backend_error", options),
                    EndsWith("the source reports: bad key ***"));
        EXPECT_THAT(co_await line_of_failure({"data: " + key + "\n\n"}, "200 OK",
                                             "backend_malformed", options),
                    EndsWith("no JSON: ***"));
    });
}

TEST_P(failing_streams, do_not_wait_for_texts_that_do_not_come) {
    run([this]() -> task<void> {
        chat_api slow({"the beginning"}, "500 No", false);
        subject s = make(slow.url());
        co_await s.start();
        EXPECT_THAT(co_await answer_of(s), EndsWith("{\"error\":\"backend_status\"}\n\n"));
        EXPECT_THAT(lines_of(s).at(0), EndsWith("500 Internal Server Error: the beginning"));
        co_await s->stop(0s);
        co_await slow.close();
    });
}

TEST_P(failing_streams, that_their_client_left_are_no_failures_of_the_source) {
    run([this]() -> task<void> {
        chat_api model({chunk("a")}, "200 OK", false);
        subject s = make(model.url());
        co_await s.start();
        {
            talker client = make_client(s, "{}");
            while (!(co_await client.line()).starts_with("data: ")) {
            }
        }
        co_await until([&] { return model.open == 0; });
        EXPECT_THAT(lines_of(s), ::testing::IsEmpty());
        co_await s->stop(0s);
        EXPECT_THAT(lines_of(s), ::testing::IsEmpty());
        co_await model.close();
    });
}

TEST_P(failing_streams, of_a_proxy_can_be_read_by_a_page) {
    run([this]() -> task<void> {
        subject s = make("http://127.0.0.1:1/", {{"source", "proxy"}});
        co_await s.start();
        const std::string cors =
            R"("response_headers":{"Access-Control-Allow-Origin":"https://a","X-A":"1"})";
        const parsed_answer got = parse_answer(co_await answer_of(s, "{" + cors + "}"));
        EXPECT_EQ(got.status, 502);
        EXPECT_EQ(got.field("Access-Control-Allow-Origin"), "https://a");
        EXPECT_THAT(got.field("Date"), EndsWith(" GMT"));
        EXPECT_EQ(got.content, "{\"error\":\"backend_unreachable\"}\n");
        const std::string head = co_await answer_of(s, R"({"request_method":"HEAD",)" + cors + "}");
        EXPECT_THAT(head, StartsWith("HTTP/1.1 502 "));
        EXPECT_THAT(head, EndsWith("\r\n\r\n"));
        co_await s->stop(0s);
    });
}

}  // namespace
}  // namespace eddy::runtime::stream
