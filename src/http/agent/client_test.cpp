// Clients against sessions, and against servers that misbehave.
#include <eddy/http/client.hpp>

#include <eddy/net/unix.hpp>

#include "http/testing.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace eddy::http {
namespace {

using namespace std::chrono_literals;
using testing::error_of;
using testing::must;

class http_client : public testing::with_server {
protected:
    http_client() {
        limits_ = session_limits();
        handler_.answer = [](request& incoming) { return echo(incoming); };
    }

    /// Answers with the request as text.
    static task<response> echo(request& incoming) {
        const auto body = co_await incoming.collect();
        if (!body) co_return response();
        std::string text = std::string(incoming.method()) + " " + std::string(incoming.target());
        for (const http1::header field : incoming.headers())
            text += "|" + std::string(field.name) + "=" + std::string(field.value);
        response answer(200, "text/plain", text + "|" + incoming.content());
        answer.add("X-Served", "yes");
        co_return answer;
    }

    using steps = std::function<task<void>(client& from)>;

    /// Runs `body` with a client of the server, whose sessions end afterwards.
    void with_client(steps body) {
        run([&]() -> task<void> {
            listener accepting = must(here().listen(loopback()));
            client from(address_of(accepting), options_);
            co_await with_scope([&](scope& serving) {
                serving.spawn(accept_all(accepting, serving));
                return body(from);
            });
        });
    }

    task<void> accept_all(listener& from, scope& serving) {
        for (;;) {
            auto accepted = co_await from.accept();
            if (!accepted) co_return;
            ++connections_;
            serving.spawn(serve(std::move(*accepted), handler_, limits_));
        }
    }

    /// Runs `body` with a client of a server that sends `answers`, one after each read, and closes.
    void with_script(std::vector<std::string> answers, steps body) {
        run([&]() -> task<void> {
            listener accepting = must(here().listen(loopback()));
            client from(address_of(accepting), options_);
            co_await with_scope([&](scope& serving) {
                serving.spawn(play(accepting, answers));
                return body(from);
            });
        });
    }

    task<void> play(listener& from, const std::vector<std::string>& answers) {
        for (;;) {
            auto accepted = co_await from.accept();
            if (!accepted) co_return;
            ++connections_;
            for (const std::string& each : answers) {
                auto received = co_await accepted->read();
                if (!received) break;
                received_ += received->text();
                static_cast<void>(co_await accepted->write_all(each));
            }
        }
    }

    static transport::address address_of(const listener& from) {
        transport::address made;
        made.host = "127.0.0.1";
        made.port = from.local().port();
        return made;
    }

    static client_request get(std::string target) {
        client_request made;
        made.target = std::move(target);
        return made;
    }

    /// The body of the response, or "error: ..." where there is none.
    static task<std::string> fetch(client& from, client_request request) {
        auto answered = co_await from.send(std::move(request));
        if (!answered) co_return "error: " + answered.error().message();
        auto text = co_await answered->body().whole(1 << 20);
        if (!text) co_return "error: " + text.error().message();
        co_return *text;
    }

    client_options options_;
    int connections_ = 0;
    std::string received_;
};

TEST_P(http_client, sends_fields_and_a_body_and_gets_those_of_the_response) {
    with_client([](client& from) -> task<void> {
        client_request asked;
        asked.method = "POST";
        asked.target = "/a?b=c";
        must(asked.headers.add("X-Mine", "1"));
        asked.body = "content";
        auto answered = must(co_await from.send(std::move(asked)));
        EXPECT_EQ(answered.status, 200);
        EXPECT_EQ(answered.headers.find("x-served"), "yes");
        const std::string text = must(co_await answered.body().whole(1 << 20));
        EXPECT_TRUE(text.starts_with("POST /a?b=c|Host=127.0.0.1:")) << text;
        EXPECT_TRUE(text.ends_with("|X-Mine=1|Content-Length=7|content")) << text;
    });
}

TEST_P(http_client, keeps_the_connection) {
    with_client([this](client& from) -> task<void> {
        for (int i = 0; i < 3; ++i)
            EXPECT_TRUE((co_await fetch(from, get("/" + std::to_string(i)))).starts_with("GET /"));
        EXPECT_EQ(connections_, 1);
        client_request last = get("/");
        must(last.headers.add("Connection", "close"));
        co_await fetch(from, std::move(last));
        EXPECT_EQ(connections_, 1);
        co_await fetch(from, get("/"));
        EXPECT_EQ(connections_, 2);
    });
}

TEST_P(http_client, a_connection_that_idled_for_too_long_is_not_used_again) {
    options_.limits.keep_time = 10ms;
    with_client([this](client& from) -> task<void> {
        co_await fetch(from, get("/"));
        must(co_await here().sleep_for(20ms));
        co_await fetch(from, get("/"));
        EXPECT_EQ(connections_, 2);
    });
}

TEST_P(http_client, repeats_what_is_idempotent_when_a_kept_connection_is_gone) {
    // The second request is read before the connection ends.
    with_script({"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", ""},
                [this](client& from) -> task<void> {
                    EXPECT_EQ(co_await fetch(from, get("/")), "a");
                    EXPECT_EQ(co_await fetch(from, get("/")), "a");
                    EXPECT_EQ(connections_, 2);
                    client_request post = get("/");
                    post.method = "POST";
                    EXPECT_TRUE((co_await fetch(from, std::move(post))).starts_with("error"));
                    EXPECT_EQ(connections_, 2);
                    // By option every method.
                    EXPECT_EQ(co_await fetch(from, get("/")), "a");
                    post = get("/");
                    post.method = "POST";
                    post.may_repeat = true;
                    EXPECT_EQ(co_await fetch(from, std::move(post)), "a");
                    EXPECT_EQ(connections_, 4);
                });
}

TEST_P(http_client, bytes_behind_a_response_are_no_answer_to_the_next_request) {
    const std::string one = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n";
    with_script({one + "a" + one + "b"}, [this](client& from) -> task<void> {
        EXPECT_EQ(co_await fetch(from, get("/")), "a");
        EXPECT_EQ(co_await fetch(from, get("/")), "a");
        EXPECT_EQ(connections_, 2);
    });
}

// They would be taken for the answer to it, and each answer for that of the request behind.
TEST_P(http_client, bytes_that_come_while_nothing_is_asked_cost_the_connection) {
    const std::string one = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n";
    run([&]() -> task<void> {
        listener accepting = must(here().listen(loopback()));
        client from(address_of(accepting), options_);
        co_await join_scope([&](scope& both) -> task<void> {
            both.spawn([](listener& of, std::string text) -> task<void> {
                for (const char each : {'a', 'b'}) {
                    stream peer = must(co_await of.accept());
                    must(co_await peer.read());
                    const std::string answer = text + each;
                    must(co_await peer.write_all(answer));
                    if (each == 'b') continue;
                    must(co_await loop::current().sleep_for(20ms));
                    must(co_await peer.write_all(answer));
                    must(co_await loop::current().sleep_for(20ms));
                    // The client does not use it again.
                    EXPECT_EQ(error_of(co_await peer.read()), errc::end_of_stream);
                }
            }(accepting, one));
            EXPECT_EQ(co_await fetch(from, get("/")), "a");
            must(co_await here().sleep_for(60ms));
            EXPECT_EQ(co_await fetch(from, get("/")), "b");
        });
    });
}

TEST_P(http_client, a_connection_that_the_server_has_closed_is_not_used_again) {
    with_script({"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na"},
                [this](client& from) -> task<void> {
                    EXPECT_EQ(co_await fetch(from, get("/")), "a");
                    must(co_await here().sleep_for(20ms));
                    client_request post = get("/");
                    post.method = "POST";
                    EXPECT_EQ(co_await fetch(from, std::move(post)), "a");
                    EXPECT_EQ(connections_, 2);
                });
}

TEST_P(http_client, an_unread_response_costs_its_connection) {
    handler_.answer = [](request&) -> task<response> {
        co_return response(200, "text/plain", std::string(1 << 20, 'x'));
    };
    with_client([this](client& from) -> task<void> {
        auto first = must(co_await from.send(get("/")));
        EXPECT_FALSE(must(co_await first.body().read()).empty());
        auto second = must(co_await from.send(get("/")));
        EXPECT_EQ(connections_, 2);
        EXPECT_EQ(must(co_await second.body().whole(1 << 20)).size(), 1U << 20);
        std::error_code ended;
        while (!ended) ended = error_of(co_await first.body().read());
        EXPECT_EQ(ended, errc::closed);
    });
}

TEST_P(http_client, a_response_without_a_body_leaves_the_connection) {
    handler_.answer = [](request& incoming) -> task<response> {
        if (incoming.path() == "/204") co_return response(204);
        co_return response(200, "text/plain", "text");
    };
    with_client([this](client& from) -> task<void> {
        auto nothing = must(co_await from.send(get("/204")));
        EXPECT_EQ(nothing.status, 204);
        EXPECT_TRUE(nothing.body().ended());
        client_request head = get("/");
        head.method = "HEAD";
        auto fields = must(co_await from.send(std::move(head)));
        EXPECT_EQ(fields.headers.find("Content-Length"), "4");
        EXPECT_TRUE(fields.body().ended());
        EXPECT_EQ(co_await fetch(from, get("/")), "text");
        EXPECT_EQ(connections_, 1);
    });
}

TEST_P(http_client, streams_a_request_and_its_response) {
    static constexpr std::size_t size = 1024 * 1024;
    limits_.parser.body = size;
    handler_.answer = [](request& incoming) -> task<response> {
        eddy::testing::pattern expected(3);
        bool is_same = true;
        for (;;) {
            auto piece = co_await incoming.body().read();
            if (!piece) break;
            is_same = is_same && expected.continues_with(as_bytes(*piece));
        }
        response answer(is_same && expected.position() == size ? 200 : 400);
        answer.body = http::body::streamed([](body_writer& to) -> task<result<>> {
            eddy::testing::pattern content(4);
            while (content.position() < size) {
                const auto piece = content.next(128 * 1024);
                const auto sent = co_await to.write(as_text(piece));
                if (!sent) co_return sent;
            }
            co_return result<>();
        });
        co_return answer;
    };
    with_client([](client& from) -> task<void> {
        client_request asked;
        asked.method = "PUT";
        asked.body = http::body::streamed([](body_writer& to) -> task<result<>> {
            eddy::testing::pattern content(3);
            while (content.position() < size) {
                const auto piece = content.next(100 * 1024 + 1);
                const std::size_t over = content.position() > size ? content.position() - size : 0;
                const auto sent = co_await to.write(as_text(piece).substr(0, piece.size() - over));
                if (!sent) co_return sent;
            }
            co_return result<>();
        });
        auto answered = must(co_await from.send(std::move(asked)));
        EXPECT_EQ(answered.status, 200);
        eddy::testing::pattern expected(4);
        for (;;) {
            auto piece = co_await answered.body().read();
            if (!piece) {
                EXPECT_EQ(piece.error(), errc::end_of_stream);
                break;
            }
            EXPECT_TRUE(expected.continues_with(as_bytes(*piece)));
        }
        EXPECT_EQ(expected.position(), size);
    });
}

TEST_P(http_client, a_producer_that_fails_ends_the_request) {
    with_client([this](client& from) -> task<void> {
        client_request asked;
        asked.method = "POST";
        asked.body = http::body::streamed([](body_writer& to) -> task<result<>> {
            const auto sent = co_await to.write("some");
            if (!sent) co_return sent;
            co_return fail(errc::no_buffers);
        });
        EXPECT_EQ(error_of(co_await from.send(std::move(asked))), errc::no_buffers);
        EXPECT_TRUE((co_await fetch(from, get("/"))).starts_with("GET /"));
        EXPECT_EQ(connections_, 2);
    });
}

TEST_P(http_client, gets_the_refusal_of_a_request_that_is_still_being_sent) {
    handler_.answer = [](request&) -> task<response> { co_return response(403); };
    limits_.linger_time = 1h;
    with_client([this](client& from) -> task<void> {
        client_request asked;
        asked.method = "POST";
        asked.body = http::body::streamed([this](body_writer& to) -> task<result<>> {
            const std::string piece(1000, 'x');
            for (;;) {
                const auto sent = co_await to.write(piece);
                if (!sent) co_return sent;
                co_await here().yield();
            }
        });
        const auto answered = must(co_await from.send(std::move(asked)));
        EXPECT_EQ(answered.status, 403);
        handler_.answer = [](request& incoming) { return echo(incoming); };
        co_await fetch(from, get("/"));
        EXPECT_EQ(connections_, 2);
    });
}

TEST_P(http_client, sends_the_rest_of_a_request_that_is_accepted_early) {
    std::size_t taken = 0;
    handler_.answer = [&](request& incoming) -> task<response> {
        // The response's head goes out before the body has been read.
        co_return response(200, "text/plain",
                           http::body::streamed([&](body_writer& to) -> task<result<>> {
                               must(co_await to.write("early "));
                               while (auto piece = co_await incoming.body().read())
                                   taken += piece->size();
                               co_return co_await to.write("late");
                           }));
    };
    limits_.parser.body = 10'000'000;
    with_client([&](client& from) -> task<void> {
        client_request asked = get("/");
        asked.method = "POST";
        asked.body = std::string(5'000'000, 'x');
        EXPECT_EQ(co_await fetch(from, std::move(asked)), "early late");
        EXPECT_EQ(taken, 5'000'000U);
    });
}

TEST_P(http_client, checks_each_connection_before_it_sends) {
    options_.check = [](const stream&) -> result<> { return fail(errno_code(EPERM)); };
    with_script({"HTTP/1.1 200 OK\r\n\r\n"}, [this](client& from) -> task<void> {
        EXPECT_EQ(error_of(co_await from.send(get("/"))), errno_code(EPERM));
        EXPECT_EQ(received_, "");
    });
}

TEST_P(http_client, connects_by_any_address) {
    transport::address gone;
    gone.host = "127.0.0.1";
    run([&]() -> task<void> {
        listener accepting = must(here().listen(loopback()));
        gone.port = accepting.local().port();
        accepting.close();
        client to_nowhere(gone);
        EXPECT_EQ(error_of(co_await to_nowhere.send(get("/"))), std::errc::connection_refused);

        transport::address named;
        named.kind = transport::scheme::unix_socket;
        named.path = "@eddy-http-client-" + std::to_string(::getpid());
        listener other = must(unix_socket::listen(named.path));
        client from(named);
        co_await with_scope([&](scope& serving) -> task<void> {
            serving.spawn(accept_all(other, serving));
            const std::string text = co_await fetch(from, get("/"));
            EXPECT_EQ(text, "GET /|Host=localhost|");
        });
    });
}

TEST_P(http_client, a_response_in_time_or_none) {
    options_.limits.response_time = 20ms;
    with_script({""}, [](client& from) -> task<void> {
        client_request asked = get("/");
        EXPECT_EQ(error_of(co_await from.send(std::move(asked))), errc::end_of_stream);
    });
    handler_.answer = [this](request&) -> task<response> {
        static_cast<void>(co_await here().sleep_for(1h));
        co_return response();
    };
    with_client([](client& from) -> task<void> {
        EXPECT_EQ(error_of(co_await from.send(get("/"))), errc::timed_out);
    });
}

TEST_P(http_client, a_body_that_pauses_is_given_up) {
    options_.limits.read_time = 20ms;
    handler_.answer = [this](request&) -> task<response> {
        response answer;
        answer.body = http::body::streamed([this](body_writer& to) -> task<result<>> {
            const auto sent = co_await to.write("some");
            if (!sent) co_return sent;
            co_return co_await here().sleep_for(1h);
        });
        co_return answer;
    };
    with_client([](client& from) -> task<void> {
        auto answered = must(co_await from.send(get("/")));
        EXPECT_EQ(must(co_await answered.body().read()), "some");
        EXPECT_EQ(error_of(co_await answered.body().read()), errc::timed_out);
        EXPECT_EQ(error_of(co_await answered.body().read()), errc::timed_out);
    });
}

TEST_P(http_client, a_server_that_reads_nothing_is_given_up) {
    options_.limits.write_time = 20ms;
    options_.limits.response_time = 20ms;
    handler_.answer = [this](request&) -> task<response> {
        static_cast<void>(co_await here().sleep_for(1h));
        co_return response();
    };
    with_client([](client& from) -> task<void> {
        client_request asked;
        asked.method = "POST";
        asked.body = std::string(16 * 1024 * 1024, 'x');
        EXPECT_EQ(error_of(co_await from.send(std::move(asked))), errc::timed_out);
    });
}

TEST_P(http_client, a_whole_body_has_a_limit) {
    with_script({"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n01234567890"},
                [](client& from) -> task<void> {
                    auto answered = must(co_await from.send(get("/")));
                    EXPECT_EQ(error_of(co_await answered.body().whole(10)), errc::limit_reached);
                    EXPECT_EQ(error_of(co_await answered.body().read()), errc::limit_reached);
                });
}

TEST_P(http_client, a_body_that_was_cut_off_is_truncated) {
    with_script({"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n0123"},
                [](client& from) -> task<void> {
                    auto answered = must(co_await from.send(get("/")));
                    EXPECT_EQ(error_of(co_await answered.body().whole(100)), errc::truncated);
                });
}

TEST_P(http_client, a_body_may_run_until_the_close) {
    with_script({"HTTP/1.0 200 OK\r\n\r\nall of it"}, [](client& from) -> task<void> {
        EXPECT_EQ(co_await fetch(from, get("/")), "all of it");
    });
}

TEST_P(http_client, what_is_no_http_is_malformed) {
    with_script({"+PONG\r\n"}, [](client& from) -> task<void> {
        EXPECT_EQ(error_of(co_await from.send(get("/"))), errc::malformed);
    });
    options_.limits.header_bytes = 100;
    with_script({"HTTP/1.1 200 OK\r\nX: " + std::string(100, 'x') + "\r\n\r\n"},
                [](client& from) -> task<void> {
                    EXPECT_EQ(error_of(co_await from.send(get("/"))), errc::malformed);
                });
    with_script({}, [](client& from) -> task<void> {
        EXPECT_EQ(error_of(co_await from.send(get("/a b"))), errc::malformed);
    });
}

TEST_P(http_client, skips_interim_responses_up_to_a_limit) {
    const std::string interim = "HTTP/1.1 102 Processing\r\n\r\n";
    options_.limits.interim_responses = 2;
    with_script({interim + interim + "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na"},
                [](client& from) -> task<void> { EXPECT_EQ(co_await fetch(from, get("/")), "a"); });
    with_script({interim + interim + interim}, [](client& from) -> task<void> {
        EXPECT_EQ(error_of(co_await from.send(get("/"))), errc::limit_reached);
    });
}

EDDY_HTTP_ON_EVERY_BACKEND(http_client);

}  // namespace
}  // namespace eddy::http
