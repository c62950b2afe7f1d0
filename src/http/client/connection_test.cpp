// Exchanges over one connection, step by step, against a server that the test plays.
#include "http/client/connection.hpp"

#include <eddy/io/scope.hpp>

#include "http/client/testing.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace eddy::http {
namespace {

using namespace std::chrono_literals;
using http1::body_framing;
using testing::error_of;
using testing::must;

using http_connection = testing::with_connection;
EDDY_HTTP_ON_EVERY_BACKEND(http_connection);

const std::string one = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na";

TEST_P(http_connection, writes_a_request_from_views_and_reads_its_response) {
    with([](client_connection& over, stream& server) -> task<void> {
        http1::header_list fields;
        must(fields.add("X-Mine", "1"));
        must(fields.add("Content-Length", "77"));  // framing is begin()'s alone
        must(over.begin("PUT", "/p", body_framing::sized(7),
                        [&](http1::head_writer& head) { head.field("Host", "h").fields(fields); }));
        must(co_await over.content().write("con"));
        EXPECT_FALSE(over.is_sent());
        must(co_await over.content().write("tent"));
        must(co_await over.finish());
        EXPECT_TRUE(over.is_sent());
        std::string got;
        EXPECT_TRUE(co_await read_until(server, got, "content"));
        EXPECT_EQ(got,
                  "PUT /p HTTP/1.1\r\nHost: h\r\nX-Mine: 1\r\nContent-Length: 7\r\n\r\ncontent");
        const std::string_view answer =
            "HTTP/1.1 201 Made\r\nX-Served: yes\r\nContent-Length: 2\r\n\r\nok";
        must(co_await server.write_all(answer));
        EXPECT_EQ(co_await response(over), "201 X-Served=yes Content-Length=2|ok|");
        EXPECT_TRUE(over.is_reusable());
        EXPECT_EQ(over.counted().out, got.size());
        EXPECT_EQ(over.counted().in, answer.size());
    });
}

TEST_P(http_connection, any_split_of_the_responses_is_the_same) {
    const std::string text =
        "HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n"
        "HTTP/1.1 100 Continue\r\n\r\n"
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX: y\r\n\r\n"
        "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nX-Sum: 5\r\n\r\n";
    with([&](client_connection& over, stream& server) -> task<void> {
        for (std::size_t at = 0; at <= text.size(); ++at) {
            co_await ask(over, server);
            std::string got;
            co_await join_scope([&](scope& both) -> task<void> {
                both.spawn(write_split(server, text, at));
                got = co_await response(over);
            });
            EXPECT_EQ(got, "103 Link=<a>|100|200 Transfer-Encoding=chunked X=y|abcde| X-Sum=5")
                << "split at " << at;
            EXPECT_TRUE(over.is_reusable());
            EXPECT_EQ(over.exchanges(), at + 1);
        }
    });
}

TEST_P(http_connection, content_in_chunks_has_trailers) {
    with([](client_connection& over, stream& server) -> task<void> {
        must(begin(over, "POST", body_framing::chunked()));
        must(co_await over.content().write("abc"));
        must(co_await over.content().write(""));
        must(co_await over.content().write("de"));
        {
            http1::header_list trailers;
            must(trailers.add("X-Sum", "5"));
            auto finishing = over.finish(trailers);
            trailers.clear();  // they are copied
            must(co_await std::move(finishing));
        }
        std::string got;
        EXPECT_TRUE(co_await read_until(server, got, "X-Sum: 5\r\n\r\n"));
        EXPECT_TRUE(
            got.ends_with("Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n"
                          "X-Sum: 5\r\n\r\n"))
            << got;
    });
}

TEST_P(http_connection, content_must_have_the_length_that_was_declared) {
    with([](client_connection& over, stream&) -> task<void> {
        must(begin(over, "POST", body_framing::sized(3)));
        EXPECT_EQ(error_of(co_await over.content().write("four")), errc::limit_reached);
        must(co_await over.content().write("ab"));
        EXPECT_EQ(error_of(co_await over.finish()), errc::truncated);
        EXPECT_FALSE(over.is_sent());
        EXPECT_FALSE(over.is_reusable());
    });
}

TEST_P(http_connection, a_head_that_cannot_be_written_begins_nothing) {
    with([](client_connection& over, stream& server) -> task<void> {
        const auto bad = over.begin("GET", "/a b", body_framing::none(), [](auto&) {});
        EXPECT_EQ(error_of(bad), errc::malformed);
        EXPECT_EQ(over.exchanges(), 0U);
        EXPECT_TRUE(over.is_reusable());
        co_await ask(over, server);
        must(co_await server.write_all(one));
        EXPECT_EQ(co_await response(over), "200 Content-Length=1|a|");
    });
}

TEST_P(http_connection, interim_responses_have_a_limit) {
    limits_.interim_responses = 2;
    const std::string interim = "HTTP/1.1 102 Processing\r\n\r\n";
    with([&](client_connection& over, stream& server) -> task<void> {
        co_await ask(over, server);
        must(co_await server.write_all(interim));
        must(co_await server.write_all(interim));
        must(co_await server.write_all(one));
        EXPECT_EQ(co_await response(over), "102|102|200 Content-Length=1|a|");
        // Each exchange has the limit anew.
        co_await ask(over, server);
        for (int i = 0; i < 3; ++i) must(co_await server.write_all(interim));
        EXPECT_EQ(co_await response(over), "102|102|" + failure(errc::limit_reached));
        EXPECT_FALSE(over.is_reusable());
    });
}

TEST_P(http_connection, content_may_wait_for_an_interim_response) {
    with([](client_connection& over, stream& server) -> task<void> {
        must(over.begin("POST", "/", body_framing::sized(2), [](http1::head_writer& head) {
            head.field("Host", "x").field("Expect", "100-continue");
        }));
        must(co_await over.flush());
        std::string got;
        EXPECT_TRUE(co_await read_until(server, got, "\r\n\r\n"));
        const std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
        must(co_await server.write_all(go_on));
        must(co_await over.read_head());
        EXPECT_EQ(over.head().status, 100);
        EXPECT_FALSE(over.has_final_head());
        must(co_await over.content().write("ok"));
        must(co_await over.finish());
        EXPECT_TRUE(co_await read_until(server, got, "ok"));
        must(co_await server.write_all(one));
        EXPECT_EQ(co_await response(over), "200 Content-Length=1|a|");
        EXPECT_TRUE(over.is_reusable());
    });
}

/// Writes more content than the connection holds, and notes how that ended.
task<void> send_much(client_connection& over, std::size_t pieces, std::error_code& end) {
    const std::string piece(100'000, 'x');
    result<> sent;
    for (std::size_t i = 0; i < pieces && sent; ++i) sent = co_await over.content().write(piece);
    if (sent) sent = co_await over.finish();
    if (!sent) end = sent.error();
    over.give_up_sending();
}

TEST_P(http_connection, a_response_is_read_while_its_request_is_being_sent) {
    constexpr std::size_t pieces = 100;
    socket_buffer_ = 16 * 1024;
    with([&](client_connection& over, stream& server) -> task<void> {
        must(begin(over, "POST", body_framing::sized(pieces * 100'000)));
        std::error_code sending;
        co_await join_scope([&](scope& both) -> task<void> {
            both.spawn(send_much(over, pieces, sending));
            std::string got;
            EXPECT_TRUE(co_await read_until(server, got, "\r\n\r\n"));
            must(co_await server.write_all(one));
            EXPECT_EQ(co_await response(over), "200 Content-Length=1|a|");
            EXPECT_FALSE(over.is_sent());
            EXPECT_FALSE(over.is_reusable());
            // This server takes the rest.
            std::size_t left = pieces * 100'000 - (got.size() - got.find("\r\n\r\n") - 4);
            while (left > 0) left -= must(co_await server.read()).bytes().size();
        });
        EXPECT_FALSE(sending) << sending.message();
        EXPECT_TRUE(over.is_sent());
        EXPECT_TRUE(over.is_reusable());
        co_await ask(over, server);
        must(co_await server.write_all(one));
        EXPECT_EQ(co_await response(over), "200 Content-Length=1|a|");
    });
}

TEST_P(http_connection, a_refusal_may_end_the_sending) {
    socket_buffer_ = 16 * 1024;
    with([&](client_connection& over, stream& server) -> task<void> {
        must(begin(over, "POST", body_framing::chunked()));
        std::error_code sending;
        co_await with_scope([&](scope& children) -> task<void> {
            children.spawn(send_much(over, SIZE_MAX, sending));
            std::string got;
            EXPECT_TRUE(co_await read_until(server, got, "\r\n\r\n"));
            const std::string_view refusal = "HTTP/1.1 413 No\r\nContent-Length: 0\r\n\r\n";
            must(co_await server.write_all(refusal));
            EXPECT_EQ(co_await response(over), "413 Content-Length=0||");
        });
        EXPECT_EQ(sending, errc::cancelled);
        EXPECT_FALSE(over.is_reusable());
        over.close();
        EXPECT_EQ(error_of(co_await over.response_body().read()), errc::end_of_stream);
    });
}

TEST_P(http_connection, a_response_is_read_after_sending_has_failed) {
    socket_buffer_ = 16 * 1024;
    limits_.write_time = 20ms;
    with([&](client_connection& over, stream& server) -> task<void> {
        must(begin(over, "POST", body_framing::chunked()));
        std::error_code sending;
        co_await send_much(over, SIZE_MAX, sending);  // the server reads nothing
        EXPECT_EQ(sending, errc::timed_out);
        EXPECT_EQ(over.write_failure(), errc::timed_out);
        must(co_await server.write_all(one));
        EXPECT_EQ(co_await response(over), "200 Content-Length=1|a|");
        EXPECT_FALSE(over.is_reusable());
    });
}

TEST_P(http_connection, a_kept_connection_that_closes_before_a_byte_is_no_answer) {
    with([](client_connection& over, stream& server) -> task<void> {
        co_await ask(over, server);
        must(co_await server.write_all(one));
        EXPECT_EQ(co_await response(over), "200 Content-Length=1|a|");
        EXPECT_TRUE(over.is_reusable());
        EXPECT_TRUE(co_await over.is_quiet());
        co_await ask(over, server);
        server.close();
        EXPECT_EQ(co_await response(over), failure(errc::end_of_stream));
        EXPECT_TRUE(over.was_closed_unanswered());
        EXPECT_FALSE(over.is_reusable());
    });
}

TEST_P(http_connection, one_that_closes_after_a_byte_or_is_new_has_failed) {
    with([](client_connection& over, stream& server) -> task<void> {
        co_await ask(over, server);
        must(co_await server.write_all(one));
        EXPECT_EQ(co_await response(over), "200 Content-Length=1|a|");
        co_await ask(over, server);
        const std::string_view part = "H";
        must(co_await server.write_all(part));
        server.close();
        EXPECT_EQ(co_await response(over), failure(errc::end_of_stream));
        EXPECT_FALSE(over.was_closed_unanswered());
    });
    with([](client_connection& over, stream& server) -> task<void> {
        co_await ask(over, server);
        server.close();
        EXPECT_EQ(co_await response(over), failure(errc::end_of_stream));
        EXPECT_FALSE(over.was_closed_unanswered());
    });
}

TEST_P(http_connection, what_comes_unasked_shows_before_the_next_exchange) {
    for (const bool closes : {true, false}) {
        with([closes](client_connection& over, stream& server) -> task<void> {
            co_await ask(over, server);
            must(co_await server.write_all(one));
            EXPECT_EQ(co_await response(over), "200 Content-Length=1|a|");
            EXPECT_TRUE(over.is_reusable());
            if (closes)
                server.close();
            else
                must(co_await server.write_all(one));
            bool is_quiet = true;
            for (int i = 0; i < 1000 && is_quiet; ++i) {
                is_quiet = co_await over.is_quiet();
                if (is_quiet) must(co_await loop::current().sleep_for(1ms));
            }
            EXPECT_FALSE(is_quiet);
        });
    }
    // With the response already.
    with([](client_connection& over, stream& server) -> task<void> {
        co_await ask(over, server);
        const std::string twice = one + one;
        must(co_await server.write_all(twice));
        EXPECT_EQ(co_await response(over), "200 Content-Length=1|a|");
        EXPECT_FALSE(over.is_reusable());
    });
}

TEST_P(http_connection, goes_to_another_protocol_with_what_came_behind_the_head) {
    with([](client_connection& over, stream& server) -> task<void> {
        co_await ask(over, server);
        const std::string_view answer =
            "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\nfirst";
        must(co_await server.write_all(answer));
        must(co_await over.read_head());
        EXPECT_TRUE(over.has_final_head());
        EXPECT_EQ(over.head().status, 101);
        EXPECT_FALSE(over.is_reusable());
        client_connection::taken other = over.take_over();
        std::string got(other.received.text());
        EXPECT_TRUE(got == "first" || co_await read_until(other.peer, got, "first")) << got;
        const std::string_view text = "back";
        must(co_await other.peer.write_all(text));
        std::string echoed;
        EXPECT_TRUE(co_await read_until(server, echoed, "back"));
        EXPECT_FALSE(over.is_reusable());
    });
}

TEST_P(http_connection, a_line_that_ends_in_a_bare_lf_is_malformed) {
    for (const std::string_view head : {"HTTP/1.1 200 OK\nContent-Length: 0\n\n",
                                        "HTTP/1.1 200 OK\r\nX: a\nContent-Length: 0\r\n\r\n"}) {
        with([&](client_connection& over, stream& server) -> task<void> {
            co_await ask(over, server);
            must(co_await server.write_all(head));
            EXPECT_EQ(co_await response(over), failure(errc::malformed)) << head;
            EXPECT_FALSE(over.is_reusable());
        });
    }
}

TEST_P(http_connection, limits_on_heads) {
    limits_.start_line = 100;
    limits_.header_bytes = 100;
    limits_.header_count = 2;
    const std::string line = "HTTP/1.1 200 ";
    for (const std::string& head :
         {line + std::string(100, 'x') + "\r\n\r\n",
          line + "OK\r\nX: " + std::string(100, 'x') + "\r\n\r\n",
          line + "OK\r\nA: 1\r\nB: 2\r\nC: 3\r\n\r\n", std::string("+PONG\r\n")}) {
        with([&](client_connection& over, stream& server) -> task<void> {
            co_await ask(over, server);
            must(co_await server.write_all(head));
            EXPECT_EQ(co_await response(over), failure(errc::malformed)) << head;
            EXPECT_FALSE(over.is_reusable());
        });
    }
    with([&](client_connection& over, stream& server) -> task<void> {
        co_await ask(over, server);
        const std::string_view fits = "HTTP/1.1 200 OK\r\nA: 1\r\nContent-Length: 0\r\n\r\n";
        must(co_await server.write_all(fits));
        EXPECT_EQ(co_await response(over), "200 A=1 Content-Length=0||");
    });
}

TEST_P(http_connection, the_time_for_a_response_ends) {
    limits_.response_time = 20ms;
    with([](client_connection& over, stream& server) -> task<void> {
        co_await ask(over, server);
        EXPECT_EQ(co_await response(over), failure(errc::timed_out));
        EXPECT_FALSE(over.was_closed_unanswered());
    });
    // Interim responses do not begin it anew.
    with([](client_connection& over, stream& server) -> task<void> {
        co_await ask(over, server);
        const std::string_view interim = "HTTP/1.1 102 Processing\r\n\r\n";
        must(co_await server.write_all(interim));
        EXPECT_EQ(co_await response(over), "102|" + failure(errc::timed_out));
    });
}

TEST_P(http_connection, the_time_for_a_response_begins_when_the_request_is_sent) {
    limits_.response_time = 20ms;
    with([](client_connection& over, stream& server) -> task<void> {
        must(begin(over, "POST", body_framing::sized(1)));
        must(co_await over.flush());
        co_await join_scope([&](scope& both) -> task<void> {
            both.spawn([](client_connection& to) -> task<void> {
                must(co_await loop::current().sleep_for(60ms));
                EXPECT_FALSE(to.has_final_head());
                must(co_await to.content().write("a"));
                must(co_await to.finish());
            }(over));
            std::string got;
            both.spawn([](stream& from) -> task<void> {
                std::string all;
                EXPECT_TRUE(co_await read_until(from, all, "\r\n\r\na"));
            }(server));
            // The wait began before the time did.
            EXPECT_EQ(co_await response(over), failure(errc::timed_out));
            EXPECT_TRUE(over.is_sent());
        });
    });
}

TEST_P(http_connection, a_content_that_pauses_has_a_time) {
    limits_.read_time = 20ms;
    with([](client_connection& over, stream& server) -> task<void> {
        co_await ask(over, server);
        const std::string_view part = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc";
        must(co_await server.write_all(part));
        EXPECT_EQ(co_await response(over), "200 Content-Length=9|abc|" + failure(errc::timed_out));
        EXPECT_FALSE(over.is_reusable());
    });
}

TEST_P(http_connection, responses_without_content_leave_the_connection) {
    with([](client_connection& over, stream& server) -> task<void> {
        const auto is_empty = [&](std::string method, std::string head) -> task<void> {
            co_await ask(over, server, method);
            must(co_await server.write_all(head));
            must(co_await over.read_head());
            EXPECT_TRUE(over.has_final_head());
            EXPECT_TRUE(over.response_body().ended());
            EXPECT_TRUE(over.is_reusable());
        };
        co_await is_empty("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
        co_await is_empty("GET", "HTTP/1.1 204 No Content\r\n\r\n");
        co_await is_empty("GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n");
        co_await is_empty("HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        co_await ask(over, server);
        must(co_await server.write_all(one));
        EXPECT_EQ(co_await response(over), "200 Content-Length=1|a|");
        EXPECT_EQ(over.exchanges(), 5U);
    });
}

TEST_P(http_connection, content_may_run_until_the_close) {
    for (const std::string_view version : {"1.0", "1.1"}) {
        with([version](client_connection& over, stream& server) -> task<void> {
            co_await ask(over, server);
            const std::string answer = "HTTP/" + std::string(version) + " 200 OK\r\n\r\nall of it";
            must(co_await server.write_all(answer));
            server.close();
            EXPECT_EQ(co_await response(over), "200|all of it|");
            EXPECT_FALSE(over.is_reusable());
        });
    }
    with([](client_connection& over, stream& server) -> task<void> {
        co_await ask(over, server);
        const std::string_view part = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc";
        must(co_await server.write_all(part));
        server.close();
        EXPECT_EQ(co_await response(over), "200 Content-Length=9|abc|" + failure(errc::truncated));
    });
}

TEST_P(http_connection, a_server_of_http_1_0_keeps_only_what_it_says) {
    with([](client_connection& over, stream& server) -> task<void> {
        co_await ask(over, server);
        const std::string_view kept =
            "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\na";
        must(co_await server.write_all(kept));
        EXPECT_EQ(co_await response(over), "200 Connection=keep-alive Content-Length=1|a|");
        EXPECT_TRUE(over.is_reusable());
        co_await ask(over, server);
        const std::string_view once = "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na";
        must(co_await server.write_all(once));
        EXPECT_EQ(co_await response(over), "200 Content-Length=1|a|");
        EXPECT_FALSE(over.is_reusable());
    });
    with([](client_connection& over, stream& server) -> task<void> {
        co_await ask(over, server);
        const std::string_view closed =
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\na";
        must(co_await server.write_all(closed));
        EXPECT_EQ(co_await response(over), "200 Connection=close Content-Length=1|a|");
        EXPECT_FALSE(over.is_reusable());
    });
}

TEST_P(http_connection, content_that_was_received_is_dropped_for_the_next_exchange) {
    with([](client_connection& over, stream& server) -> task<void> {
        co_await ask(over, server);
        must(co_await server.write_all(one));
        must(co_await over.read_head());
        EXPECT_TRUE(over.is_reusable());
        co_await ask(over, server);
        const std::string_view part = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc";
        must(co_await server.write_all(part));
        must(co_await over.read_head());
        EXPECT_FALSE(over.is_reusable());
    });
}

TEST_P(http_connection, pieces_that_were_received_need_no_wait) {
    with([](client_connection& over, stream& server) -> task<void> {
        co_await ask(over, server);
        const std::string_view answer =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n";
        must(co_await server.write_all(answer));
        must(co_await over.read_head());
        EXPECT_EQ(must(co_await over.response_body().read()), "abc");
        EXPECT_FALSE(over.try_read());
        const std::string_view rest = "2\r\nde\r\n1\r\nf\r\n0\r\n\r\n";
        must(co_await server.write_all(rest));
        std::string got(must(co_await over.response_body().read()));
        for (;;) {
            auto piece = over.try_read();
            if (!piece) piece = co_await over.response_body().read();
            if (!*piece) {
                EXPECT_EQ(error_of(*piece), errc::end_of_stream);
                break;
            }
            got += **piece;
        }
        EXPECT_EQ(got, "def");
        EXPECT_EQ(error_of(*over.try_read()), errc::end_of_stream);
    });
}

TEST_P(http_connection, a_wait_for_a_head_can_be_cancelled_and_goes_on) {
    with([](client_connection& over, stream& server) -> task<void> {
        for (const bool is_sent : {false, true}) {
            must(begin(over, "POST", body_framing::sized(0)));
            must(co_await over.flush());
            if (is_sent) must(co_await over.finish());
            EXPECT_EQ(co_await eddy::testing::cancelled_during(over.read_head()), errc::cancelled);
            EXPECT_EQ(co_await eddy::testing::cancelled_before(over.read_head()), errc::cancelled);
            if (!is_sent) must(co_await over.finish());
            must(co_await server.write_all(one));
            EXPECT_EQ(co_await response(over), "200 Content-Length=1|a|");
        }
    });
}

}  // namespace
}  // namespace eddy::http
