// Forwarder: what a backend gets of a request, and a client of a response; connections that are
// kept, requests that are repeated, and backends that misbehave.
#include "proxy/http/forwarder.hpp"

#include "proxy/testing.hpp"

#include <optional>
#include <string>

namespace eddy::proxy {
namespace {

using namespace proxy::testing;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class http_forwarder : public with_forwarding {};

INSTANTIATE_TEST_SUITE_P(proxy, http_forwarder,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         eddy::testing::io_backend_name);

constexpr std::string_view get = "GET /a?b=%zz HTTP/1.1\r\nHost: x\r\n\r\n";
const std::string ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// One request without content and its response, over a connection of a backend.
task<void> answer(text_peer& backend, std::string with = ok) {
    const std::string head = co_await backend.head();
    EXPECT_THAT(head, EndsWith("\r\n\r\n"));
    co_await backend.say(std::move(with));
}

/// The status of the next response to a client, whose content must be "ok" where it is 200.
task<int> status_of(text_peer& client) {
    const std::string head = co_await client.head();
    if (head.size() < 12) co_return 0;
    const int status = std::stoi(head.substr(9, 3));
    const std::size_t at = head.find("Content-Length: ");
    if (at == std::string::npos) co_return status;
    const std::string content = co_await client.bytes(std::stoul(head.substr(at + 16)));
    if (status == 200) EXPECT_EQ(content, "ok");
    co_return status;
}

TEST_P(http_forwarder, passes_a_request_and_its_response_on) {
    forward([](forwarding& f) -> task<void> {
        text_peer client = co_await f.client();
        co_await client.say(std::string(get));
        text_peer backend = co_await f.backend().accept();
        EXPECT_EQ(co_await backend.head(), get) << "a query that cannot be decoded, too";
        co_await backend.say(
            "HTTP/1.1 404 Gone\r\nDate: x\r\nA: b\r\nContent-Length: 5\r\n\r\nhello");
        EXPECT_EQ(co_await client.head(),
                  "HTTP/1.1 404 Not Found\r\nDate: x\r\nA: b\r\nContent-Length: 5\r\n\r\n");
        EXPECT_EQ(co_await client.bytes(5), "hello");
    });
}

TEST_P(http_forwarder, keeps_connections_to_backends_for_all_clients) {
    forward([](forwarding& f) -> task<void> {
        text_peer one = co_await f.client();
        text_peer other = co_await f.client();
        co_await one.say(std::string(get));
        text_peer backend = co_await f.backend().accept();
        co_await answer(backend);
        EXPECT_EQ(co_await status_of(one), 200);
        for (text_peer* each : {&other, &one}) {
            co_await each->say(std::string(get));
            co_await answer(backend);
            EXPECT_EQ(co_await status_of(*each), 200);
        }
        EXPECT_EQ(f.sum(&backend_counters::connections), 1U);
        EXPECT_EQ(f.sum(&backend_counters::requests), 3U);
    });
}

TEST_P(http_forwarder, answers_pipelined_requests_in_their_order) {
    forward([](forwarding& f) -> task<void> {
        text_peer client = co_await f.client();
        co_await client.say(std::string(get) +
                            "POST /2 HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc" +
                            std::string(get));
        text_peer backend = co_await f.backend().accept();
        co_await answer(backend);
        EXPECT_THAT(co_await backend.head(), StartsWith("POST /2"));
        EXPECT_EQ(co_await backend.bytes(3), "abc");
        co_await backend.say("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n");
        co_await answer(backend, "HTTP/1.1 203 x\r\nContent-Length: 0\r\n\r\n");
        for (const int status : {200, 201, 203}) EXPECT_EQ(co_await status_of(client), status);
    });
}

TEST_P(http_forwarder, drops_fields_of_one_connection_both_ways) {
    forward([](forwarding& f) -> task<void> {
        text_peer client = co_await f.client();
        co_await client.say(
            "GET / HTTP/1.1\r\nHost: x\r\nConnection: x-one, close, host\r\nX-One: 1\r\n"
            "Keep-Alive: 5\r\nProxy-Connection: a\r\nTE: gzip, trailers\r\nUpgrade: h2c\r\n"
            "Kept: 1\r\n\r\n");
        text_peer backend = co_await f.backend().accept();
        EXPECT_EQ(co_await backend.head(),
                  "GET / HTTP/1.1\r\nHost: x\r\nKept: 1\r\nTE: trailers\r\nConnection: TE\r\n\r\n");
        co_await backend.say(
            "HTTP/1.1 200 OK\r\nDate: x\r\nConnection: x-two\r\nX-Two: 1\r\nKeep-Alive: 7\r\n"
            "Kept: 2\r\nContent-Length: 0\r\n\r\n");
        EXPECT_EQ(co_await client.head(),
                  "HTTP/1.1 200 OK\r\nDate: x\r\nKept: 2\r\nConnection: close\r\n"
                  "Content-Length: 0\r\n\r\n");
    });
}

TEST_P(http_forwarder, says_who_the_client_is_and_believes_only_trusted_ones) {
    const std::string said =
        "GET / HTTP/1.1\r\nHost: x:8\r\nX-Forwarded-For: 1.1.1.1\r\nX-Forwarded-Proto: https\r\n"
        "Forwarded: for=1.1.1.1\r\nX-Forwarded-Host: y\r\nVia: 1.0 a\r\n\r\n";
    forward([&said](forwarding& f) -> task<void> {
        f.rules.says = client_fields::both;
        f.rules.via = "eddy";
        text_peer client = co_await f.client();
        co_await client.say(said);
        text_peer backend = co_await f.backend().accept();
        EXPECT_EQ(co_await backend.head(),
                  "GET / HTTP/1.1\r\nHost: x:8\r\nVia: 1.0 a\r\nX-Forwarded-For: 127.0.0.1\r\n"
                  "X-Forwarded-Host: x:8\r\nX-Forwarded-Proto: http\r\n"
                  "Forwarded: for=127.0.0.1;host=\"x:8\";proto=http\r\nVia: 1.1 eddy\r\n\r\n");
    });
    forward([&said](forwarding& f) -> task<void> {
        f.rules.says = client_fields::both;
        f.rules.trusted = {must(network::parse("127.0.0.0/8"))};
        text_peer client = co_await f.client();
        co_await client.say(said);
        text_peer backend = co_await f.backend().accept();
        EXPECT_EQ(co_await backend.head(),
                  "GET / HTTP/1.1\r\nHost: x:8\r\nVia: 1.0 a\r\n"
                  "X-Forwarded-For: 1.1.1.1, 127.0.0.1\r\nX-Forwarded-Host: y\r\n"
                  "X-Forwarded-Proto: https\r\n"
                  "Forwarded: for=1.1.1.1, for=127.0.0.1;host=\"x:8\";proto=http\r\n\r\n");
    });
}

TEST_P(http_forwarder, sets_and_removes_fields) {
    forward([](forwarding& f) -> task<void> {
        f.rules.host = "inner";
        f.rules.request_fields = {{"X-A", "1"}, {"Cookie", ""}};
        f.rules.response_fields = {{"Server", ""}, {"X-B", "2"}};
        text_peer client = co_await f.client();
        co_await client.say("GET / HTTP/1.1\r\nHost: x\r\nx-a: 0\r\ncookie: c\r\n\r\n");
        text_peer backend = co_await f.backend().accept();
        EXPECT_EQ(co_await backend.head(), "GET / HTTP/1.1\r\nHost: inner\r\nX-A: 1\r\n\r\n");
        co_await backend.say(
            "HTTP/1.1 200 OK\r\nDate: x\r\nServer: s\r\nx-b: 0\r\nContent-Length: 0\r\n\r\n");
        EXPECT_EQ(co_await client.head(),
                  "HTTP/1.1 200 OK\r\nDate: x\r\nX-B: 2\r\nContent-Length: 0\r\n\r\n");
    });
}

TEST_P(http_forwarder, the_targets_authority_is_the_host) {
    forward([](forwarding& f) -> task<void> {
        text_peer client = co_await f.client();
        co_await client.say("GET http://y:8/a?b HTTP/1.1\r\nHost: x\r\n\r\n");
        text_peer backend = co_await f.backend().accept();
        EXPECT_EQ(co_await backend.head(), "GET /a?b HTTP/1.1\r\nHost: y:8\r\n\r\n");
        co_await backend.say(ok);
        EXPECT_EQ(co_await status_of(client), 200);
        co_await client.say("GET /old HTTP/1.0\r\n\r\n");
        EXPECT_EQ(co_await backend.head(),
                  "GET /old HTTP/1.1\r\nHost: " + f.backend().name().substr(6) + "\r\n\r\n");
    });
}

TEST_P(http_forwarder, streams_content_both_ways) {
    forward([](forwarding& f) -> task<void> {
        text_peer client = co_await f.client();
        co_await client.say("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\nabc");
        text_peer backend = co_await f.backend().accept();
        EXPECT_THAT(co_await backend.head(), HasSubstr("\r\nContent-Length: 6\r\n"));
        EXPECT_EQ(co_await backend.bytes(3), "abc") << "before the rest has come";
        co_await client.say("def");
        EXPECT_EQ(co_await backend.bytes(3), "def");
        co_await backend.say("HTTP/1.1 200 OK\r\nDate: x\r\nContent-Length: 6\r\n\r\nuvw");
        EXPECT_THAT(co_await client.head(), HasSubstr("Content-Length: 6\r\n"));
        EXPECT_EQ(co_await client.bytes(3), "uvw") << "before the rest has come";
        co_await backend.say("xyz");
        EXPECT_EQ(co_await client.bytes(3), "xyz");
    });
}

TEST_P(http_forwarder, a_backend_may_answer_a_head_whose_content_is_to_come) {
    forward([](forwarding& f) -> task<void> {
        text_peer client = co_await f.client();
        const std::string post = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n";
        co_await client.say(post);
        text_peer backend = co_await f.backend().accept();
        EXPECT_EQ(co_await backend.head(), post);
        co_await backend.say("HTTP/1.1 102 Processing\r\n\r\n");
        EXPECT_THAT(co_await client.head(), StartsWith("HTTP/1.1 102"));
        co_await client.say("abc");
        EXPECT_EQ(co_await backend.bytes(3), "abc");
        co_await backend.say(ok);
        EXPECT_EQ(co_await status_of(client), 200);
    });
}

TEST_P(http_forwarder, passes_chunks_and_trailers_on) {
    forward([](forwarding& f) -> task<void> {
        text_peer client = co_await f.client();
        co_await client.say(
            "POST / HTTP/1.1\r\nHost: x\r\nTE: trailers\r\nTransfer-Encoding: chunked\r\n\r\n"
            "3;e=1\r\nabc\r\n0\r\nSum: 1\r\n\r\n");
        text_peer backend = co_await f.backend().accept();
        EXPECT_THAT(co_await backend.head(), HasSubstr("Transfer-Encoding: chunked\r\n"));
        EXPECT_EQ(co_await backend.until("\r\n\r\n"), "3\r\nabc\r\n0\r\nSum: 1\r\n\r\n");
        co_await backend.say(
            "HTTP/1.1 200 OK\r\nDate: x\r\nTransfer-Encoding: chunked\r\n\r\n"
            "2\r\nok\r\n0\r\nSum: 2\r\n\r\n");
        EXPECT_THAT(co_await client.head(), HasSubstr("Transfer-Encoding: chunked\r\n"));
        EXPECT_EQ(co_await client.until("\r\n\r\n"), "2\r\nok\r\n0\r\nSum: 2\r\n\r\n");
        co_await client.say(std::string(get));
        co_await answer(backend,
                        "HTTP/1.1 200 OK\r\nDate: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                        "2\r\nok\r\n0\r\nSum: 2\r\n\r\n");
        EXPECT_THAT(co_await client.head(), HasSubstr("chunked")) << "trailers were not asked for";
        EXPECT_EQ(co_await client.until("\r\n\r\n"), "2\r\nok\r\n0\r\n\r\n");
        co_await client.say(std::string(get));
        co_await answer(backend,
                        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                        "1\r\no\r\n1\r\nk\r\n0\r\n\r\n");
        EXPECT_EQ(co_await status_of(client), 200) << "whole, so its size is known";
    });
}

TEST_P(http_forwarder, the_backend_answers_an_expectation) {
    forward([](forwarding& f) -> task<void> {
        const std::string post =
            "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
        text_peer client = co_await f.client();
        co_await client.say(post);
        text_peer backend = co_await f.backend().accept();
        EXPECT_EQ(co_await backend.head(), post);
        co_await backend.say("HTTP/1.1 100 Continue\r\n\r\n");
        EXPECT_EQ(co_await client.head(), "HTTP/1.1 100 Continue\r\n\r\n");
        co_await client.say("abc");
        EXPECT_EQ(co_await backend.bytes(3), "abc");
        co_await backend.say(ok);
        EXPECT_EQ(co_await status_of(client), 200);

        co_await client.say(post + "abc");
        EXPECT_EQ(co_await backend.head(), post);
        EXPECT_EQ(co_await backend.bytes(3), "abc") << "a client may not wait";
        co_await backend.say(ok);
        EXPECT_EQ(co_await status_of(client), 200);

        co_await client.say(post);
        EXPECT_EQ(co_await backend.head(), post);
        co_await backend.say("HTTP/1.1 417 no\r\nContent-Length: 0\r\n\r\n");
        EXPECT_EQ(co_await status_of(client), 417);
        EXPECT_TRUE(co_await client.is_over()) << "content may still come";
        EXPECT_TRUE(co_await backend.is_over());
    });
}

TEST_P(http_forwarder, passes_interim_responses_on) {
    forward([](forwarding& f) -> task<void> {
        text_peer client = co_await f.client();
        co_await client.say(std::string(get));
        text_peer backend = co_await f.backend().accept();
        co_await answer(backend,
                        "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nConnection: c\r\nC: 1\r\n\r\n");
        EXPECT_EQ(co_await client.head(), "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
        co_await backend.say("HTTP/1.1 102 x\r\n\r\n" + ok);
        EXPECT_THAT(co_await client.head(), StartsWith("HTTP/1.1 102"));
        EXPECT_EQ(co_await status_of(client), 200);
        co_await client.say("GET / HTTP/1.0\r\nHost: x\r\n\r\n");
        co_await answer(backend, "HTTP/1.1 103 Early Hints\r\n\r\n" + ok);
        EXPECT_EQ(co_await status_of(client), 200) << "HTTP/1.0 knows no interim responses";
    });
}

TEST_P(http_forwarder, responses_without_content_keep_their_framing) {
    forward([](forwarding& f) -> task<void> {
        text_peer client = co_await f.client();
        co_await client.say("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n");
        text_peer backend = co_await f.backend().accept();
        co_await answer(backend, "HTTP/1.1 200 OK\r\nDate: x\r\nContent-Length: 70000\r\n\r\n");
        EXPECT_EQ(co_await client.head(),
                  "HTTP/1.1 200 OK\r\nDate: x\r\nContent-Length: 70000\r\n\r\n");
        for (const std::string_view status : {"204", "304"}) {
            co_await client.say(std::string(get));
            co_await answer(backend, "HTTP/1.1 " + std::string(status) + " x\r\nDate: x\r\n\r\n");
            EXPECT_THAT(co_await client.head(),
                        ::testing::AllOf(StartsWith("HTTP/1.1 " + std::string(status)),
                                         Not(HasSubstr("Content-Length")),
                                         Not(HasSubstr("Transfer-Encoding"))));
        }
        co_await client.say(std::string(get));
        co_await answer(backend);
        EXPECT_EQ(co_await status_of(client), 200);
        EXPECT_EQ(f.sum(&backend_counters::connections), 1U);
    });
}

TEST_P(http_forwarder, content_until_the_close_gets_chunks) {
    forward([](forwarding& f) -> task<void> {
        text_peer client = co_await f.client();
        co_await client.say(std::string(get));
        text_peer backend = co_await f.backend().accept();
        co_await answer(backend, "HTTP/1.0 200 OK\r\nDate: x\r\n\r\nok");
        EXPECT_THAT(co_await client.head(), HasSubstr("Transfer-Encoding: chunked\r\n"));
        EXPECT_EQ(co_await client.until("ok\r\n"), "2\r\nok\r\n");
        backend.socket.close();
        EXPECT_EQ(co_await client.until("\r\n\r\n"), "0\r\n\r\n");
    });
}

TEST_P(http_forwarder, an_early_refusal_ends_the_upload) {
    forward([](forwarding& f) -> task<void> {
        text_peer client = co_await f.client();
        co_await client.say("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nabc");
        text_peer backend = co_await f.backend().accept();
        co_await answer(backend, "HTTP/1.1 413 big\r\nContent-Length: 3\r\n\r\nbig");
        EXPECT_EQ(co_await status_of(client), 413);
        EXPECT_THAT(co_await backend.rest(), EndsWith("abc"));
    });
}

TEST_P(http_forwarder, an_upload_goes_on_beside_an_early_response) {
    forward([](forwarding& f) -> task<void> {
        text_peer client = co_await f.client();
        co_await client.say(
            "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n");
        text_peer backend = co_await f.backend().accept();
        co_await answer(backend, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nA\r\n");
        EXPECT_EQ(co_await backend.until("a\r\n"), "1\r\na\r\n");
        co_await client.head();
        EXPECT_EQ(co_await client.until("A\r\n"), "1\r\nA\r\n");
        co_await client.say("1\r\nb\r\n");
        EXPECT_EQ(co_await backend.until("b\r\n"), "1\r\nb\r\n");
        co_await backend.say("1\r\nB\r\n0\r\n\r\n");
        EXPECT_EQ(co_await client.until("B\r\n"), "1\r\nB\r\n");
        co_await client.say("0\r\n\r\n");
        EXPECT_EQ(co_await backend.until("\r\n\r\n"), "0\r\n\r\n");
        EXPECT_EQ(co_await client.until("\r\n\r\n"), "0\r\n\r\n");
    });
}

TEST_P(http_forwarder, passes_a_websocket_on) {
    forward([](forwarding& f) -> task<void> {
        text_peer client = co_await f.client();
        co_await client.say(
            "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\n"
            "Upgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\nearly");
        text_peer backend = co_await f.backend().accept();
        EXPECT_EQ(co_await backend.head(),
                  "GET /ws HTTP/1.1\r\nHost: x\r\nSec-WebSocket-Key: k\r\nUpgrade: websocket\r\n"
                  "Connection: upgrade\r\n\r\n");
        co_await backend.say(
            "HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nA: "
            "b\r\n\r\nhi");
        EXPECT_EQ(co_await client.head(),
                  "HTTP/1.1 101 Switching Protocols\r\nA: b\r\nConnection: upgrade\r\n"
                  "Upgrade: websocket\r\n\r\n");
        EXPECT_EQ(co_await client.bytes(2), "hi");
        EXPECT_EQ(co_await backend.bytes(5), "early");
        co_await client.say("one");
        EXPECT_EQ(co_await backend.bytes(3), "one");
        co_await backend.say("two");
        EXPECT_EQ(co_await client.bytes(3), "two");
        must(client.socket.shutdown_write());
        EXPECT_TRUE(co_await backend.is_over());
        EXPECT_EQ(backend.end, errc::end_of_stream);
        co_await backend.say("last");
        backend.socket.close();
        EXPECT_EQ(co_await client.rest(), "last");
    });
}

TEST_P(http_forwarder, a_refused_upgrade_is_a_response) {
    forward([](forwarding& f) -> task<void> {
        text_peer client = co_await f.client();
        co_await client.say(
            "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n"
            "Upgrade: websocket\r\n\r\n");
        text_peer backend = co_await f.backend().accept();
        co_await answer(backend);
        EXPECT_EQ(co_await status_of(client), 200);
        co_await client.say(std::string(get));
        co_await answer(backend);
        EXPECT_EQ(co_await status_of(client), 200);
    });
}

TEST_P(http_forwarder, an_upgrade_that_was_not_asked_for_is_502) {
    forward([](forwarding& f) -> task<void> {
        text_peer client = co_await f.client();
        co_await client.say(std::string(get));
        text_peer backend = co_await f.backend().accept();
        co_await answer(backend,
                        "HTTP/1.1 101 x\r\nUpgrade: a\r\nConnection: Upgrade\r\n\r\nbytes");
        EXPECT_EQ(co_await status_of(client), 502);
        EXPECT_TRUE(co_await backend.is_over());
    });
}

TEST_P(http_forwarder, connect_opens_a_tunnel) {
    forward([](forwarding& f) -> task<void> {
        text_peer client = co_await f.client();
        f.rules.connects = true;
        f.apply();
        co_await client.say("CONNECT y:443 HTTP/1.1\r\nHost: y:443\r\n\r\n");
        text_peer backend = co_await f.backend().accept();
        EXPECT_EQ(co_await backend.head(), "CONNECT y:443 HTTP/1.1\r\nHost: y:443\r\n\r\n");
        co_await backend.say("HTTP/1.1 200 Connected\r\n\r\n");
        EXPECT_EQ(co_await client.head(), "HTTP/1.1 200 OK\r\n\r\n");
        co_await client.say("one");
        EXPECT_EQ(co_await backend.bytes(3), "one");
        co_await backend.say("two");
        EXPECT_EQ(co_await client.bytes(3), "two");
    });
}

TEST_P(http_forwarder, a_request_that_no_backend_has_got_goes_to_the_next) {
    forward(
        [](forwarding& f) -> task<void> {
            text_peer client = co_await f.client();
            f.backend(0).close();
            co_await client.say("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi");
            text_peer backend = co_await f.backend(1).accept();
            EXPECT_THAT(co_await backend.head(), StartsWith("POST"));
            EXPECT_EQ(co_await backend.bytes(2), "hi");
            co_await backend.say(ok);
            EXPECT_EQ(co_await status_of(client), 200);
            EXPECT_EQ(f.sum(&backend_counters::failures), 1U);
            EXPECT_EQ(f.sum(&backend_counters::retries), 1U);
        },
        2);
}

TEST_P(http_forwarder, a_kept_connection_that_is_closed_meanwhile_costs_no_request) {
    forward([](forwarding& f) -> task<void> {
        text_peer client = co_await f.client();
        co_await client.say(std::string(get));
        {
            text_peer backend = co_await f.backend().accept();
            co_await answer(backend);
            EXPECT_EQ(co_await status_of(client), 200);
        }
        // The close is noticed before the request, or by the request: it is sent again.
        co_await client.say(std::string(get));
        text_peer next = co_await f.backend().accept();
        co_await answer(next);
        EXPECT_EQ(co_await status_of(client), 200);
        EXPECT_EQ(f.sum(&backend_counters::failed_answers), 0U);
    });
}

TEST_P(http_forwarder, idempotent_requests_without_a_response_are_repeated_others_are_not) {
    forward(
        [](forwarding& f) -> task<void> {
            text_peer client = co_await f.client();
            co_await client.say(std::string(get));
            {
                text_peer first = co_await f.backend(0).accept();
                co_await first.head();
            }
            text_peer second = co_await f.backend(1).accept();
            co_await answer(second);
            EXPECT_EQ(co_await status_of(client), 200);
            co_await client.say("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
            co_await second.head();
            second.socket.close();
            EXPECT_EQ(co_await status_of(client), 502);
        },
        2);
}

TEST_P(http_forwarder, retries_are_a_fifth_of_all_requests) {
    retry_budget budget;
    for (unsigned i = 0; i < retry_budget::most; ++i) EXPECT_TRUE(budget.take());
    EXPECT_FALSE(budget.take());
    for (int i = 0; i < 4; ++i) budget.note_request();
    EXPECT_FALSE(budget.take());
    budget.note_request();
    EXPECT_TRUE(budget.take());
    EXPECT_FALSE(budget.take());
}

TEST_P(http_forwarder, responses_that_are_no_http_are_502) {
    for (const std::string_view bad :
         {"garbage\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
          "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775808\r\n\r\n",
          "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
          "HTTP/1.1 200 OK\r\nA\r\n B: c\r\n\r\n"}) {
        forward([bad](forwarding& f) -> task<void> {
            text_peer client = co_await f.client();
            co_await client.say(std::string(get));
            text_peer backend = co_await f.backend().accept();
            co_await answer(backend, std::string(bad));
            EXPECT_EQ(co_await status_of(client), 502) << bad;
            EXPECT_TRUE(co_await backend.is_over());
            co_await client.say(std::string(get));
            text_peer next = co_await f.backend().accept();
            co_await answer(next);
            EXPECT_EQ(co_await status_of(client), 200) << "the client's connection goes on";
        });
    }
}

TEST_P(http_forwarder, a_silent_backend_is_504) {
    forward([](forwarding& f) -> task<void> {
        f.rules.limits.response_time = 50ms;
        text_peer client = co_await f.client();
        co_await client.say(std::string(get));
        text_peer backend = co_await f.backend().accept();
        EXPECT_EQ(co_await status_of(client), 504);
        EXPECT_EQ(co_await backend.head(), get);
        EXPECT_TRUE(co_await backend.is_over());
        EXPECT_THAT(f.noted, Contains("did not answer in time"));
    });
}

TEST_P(http_forwarder, without_a_backend_it_is_503_at_once) {
    forward([](forwarding& f) -> task<void> {
        text_peer client = co_await f.client();
        f.known()[0].its->set_healthy(false, loop::current().now());
        co_await client.say(std::string(get));
        const std::string head = co_await client.head();
        EXPECT_THAT(head, StartsWith("HTTP/1.1 503"));
        EXPECT_THAT(head, HasSubstr("\r\nRetry-After: 1\r\n"));
    });
}

TEST_P(http_forwarder, backends_that_refuse_connections_are_503) {
    forward(
        [](forwarding& f) -> task<void> {
            f.backend(0).close();
            f.backend(1).close();
            text_peer client = co_await f.client();
            co_await client.say("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi");
            const std::string head = co_await client.head();
            EXPECT_THAT(head, StartsWith("HTTP/1.1 503"));
            EXPECT_THAT(head, HasSubstr("\r\nRetry-After: 1\r\n"));
        },
        2);
}

TEST_P(http_forwarder, a_request_that_one_backend_has_got_is_502_where_the_next_refuses_it) {
    forward(
        [](forwarding& f) -> task<void> {
            text_peer client = co_await f.client();
            co_await client.say(std::string(get));
            text_peer backend = co_await f.backend(0).accept();
            co_await backend.head();
            f.backend(1).close();
            backend.socket.close();
            EXPECT_EQ(co_await status_of(client), 502);
        },
        2);
}

TEST_P(http_forwarder, a_backend_that_cuts_its_responses_is_ejected) {
    for (const std::size_t ahead : {std::size_t{0}, std::size_t{1000}}) {
        forward(
            [ahead](forwarding& f) -> task<void> {
                f.rules.buffered_response = ahead;
                const std::string begun = "HTTP/1.1 200 OK\r\nContent-Length: 70000\r\n\r\nabc";
                const auto cut = [&](std::string text) -> task<void> {
                    text_peer client = co_await f.client();
                    co_await client.say(std::string(get));
                    text_peer backend = co_await f.backend(0).accept();
                    co_await answer(backend, text);
                    EXPECT_THAT(co_await client.until("abc"), EndsWith("abc"));
                    backend.socket.close();
                    static_cast<void>(co_await client.rest());
                };
                const auto pass = [&](std::size_t at) -> task<void> {
                    text_peer client = co_await f.client();
                    co_await client.say(std::string(get));
                    text_peer backend = co_await f.backend(at).accept();
                    co_await answer(backend,
                                    "HTTP/1.1 200 OK\r\nConnection: close\r\n"
                                    "Content-Length: 2\r\n\r\nok");
                    EXPECT_EQ(co_await status_of(client), 200);
                };
                // In turn with the other backend.
                co_await cut(begun);
                co_await pass(1);
                co_await cut(begun);
                co_await pass(1);
                EXPECT_THAT(f.noted, Not(Contains("ejected")));
                co_await cut(begun);
                EXPECT_THAT(f.noted, Contains("ejected"));
                EXPECT_EQ(f.known()[0].its->state(), backend_state::ejected);
                for (int i = 0; i < 3; ++i) co_await pass(1);
            },
            2);
    }
}

TEST_P(http_forwarder, whole_responses_end_a_row_of_cut_ones) {
    forward(
        [](forwarding& f) -> task<void> {
            const std::string begun = "HTTP/1.1 200 OK\r\nContent-Length: 70000\r\n\r\nabc";
            for (int i = 0; i < 6; ++i) {
                for (const std::size_t at : {std::size_t{0}, std::size_t{1}}) {
                    text_peer client = co_await f.client();
                    co_await client.say(std::string(get));
                    text_peer backend = co_await f.backend(at).accept();
                    const bool is_cut = at == 0 && i % 3 < 2;
                    co_await answer(backend, is_cut ? begun
                                                    : "HTTP/1.1 200 OK\r\nConnection: close\r\n"
                                                      "Content-Length: 2\r\n\r\nok");
                    backend.socket.close();
                    static_cast<void>(co_await client.head());
                    if (is_cut) static_cast<void>(co_await client.rest());
                }
            }
            EXPECT_THAT(f.noted, Not(Contains("ejected")));
        },
        2);
}

TEST_P(http_forwarder, a_response_that_breaks_off_looks_broken) {
    for (const std::string_view begun :
         {"HTTP/1.1 200 OK\r\nContent-Length: 70000\r\n\r\nabc",
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"}) {
        forward([begun](forwarding& f) -> task<void> {
            text_peer client = co_await f.client();
            co_await client.say(std::string(get));
            text_peer backend = co_await f.backend().accept();
            co_await answer(backend, std::string(begun));
            EXPECT_THAT(co_await client.until("abc"), EndsWith("abc"));
            backend.socket.close();
            EXPECT_THAT(co_await client.rest(), Not(HasSubstr("0\r\n\r\n")));
            EXPECT_NE(client.end, errc::end_of_stream);
            EXPECT_THAT(f.noted, Contains("its response broke off"));
        });
    }
}

TEST_P(http_forwarder, bytes_behind_a_response_answer_no_other_request) {
    forward([](forwarding& f) -> task<void> {
        text_peer one = co_await f.client();
        text_peer other = co_await f.client();
        co_await one.say(std::string(get));
        text_peer bad = co_await f.backend().accept();
        co_await answer(bad, ok + "HTTP/1.1 299 stray\r\nContent-Length: 0\r\n\r\n");
        EXPECT_EQ(co_await status_of(one), 200);
        co_await other.say(std::string(get));
        text_peer good = co_await f.backend().accept();
        co_await answer(good);
        EXPECT_EQ(co_await status_of(other), 200);
        // The same, a while later.
        co_await good.say("HTTP/1.1 299 stray\r\nContent-Length: 0\r\n\r\n");
        must(co_await loop::current().sleep_for(20ms));
        co_await one.say(std::string(get));
        text_peer last = co_await f.backend().accept();
        co_await answer(last);
        EXPECT_EQ(co_await status_of(one), 200);
    });
}

TEST_P(http_forwarder, a_client_that_leaves_ends_its_request) {
    forward([](forwarding& f) -> task<void> {
        text_peer client = co_await f.client();
        co_await client.say(std::string(get));
        text_peer backend = co_await f.backend().accept();
        co_await backend.head();
        client.socket.abort();
        EXPECT_TRUE(co_await backend.is_over());
        EXPECT_EQ(f.sum(&backend_counters::failed_answers), 0U) << "it is not the backend's fault";
    });
}

TEST_P(http_forwarder, a_client_that_has_finished_sending_gets_its_response) {
    forward([](forwarding& f) -> task<void> {
        text_peer client = co_await f.client();
        co_await client.say(std::string(get));
        must(client.socket.shutdown_write());
        text_peer backend = co_await f.backend().accept();
        co_await backend.head();
        // Longer than the time after which a client is watched.
        must(co_await loop::current().sleep_for(250ms));
        co_await backend.say(ok);
        EXPECT_EQ(co_await status_of(client), 200);
    });
}

TEST_P(http_forwarder, a_client_that_leaves_in_an_upload_ends_it) {
    forward([](forwarding& f) -> task<void> {
        text_peer client = co_await f.client();
        co_await client.say("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc");
        text_peer backend = co_await f.backend().accept();
        EXPECT_THAT(co_await backend.until("abc"), EndsWith("abc"));
        client.socket.abort();
        EXPECT_TRUE(co_await backend.is_over());
        EXPECT_EQ(f.sum(&backend_counters::failed_answers), 0U);
    });
}

TEST_P(http_forwarder, content_that_is_malformed_is_the_clients_fault) {
    forward([](forwarding& f) -> task<void> {
        text_peer client = co_await f.client();
        co_await client.say(
            "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n");
        text_peer backend = co_await f.backend().accept();
        EXPECT_EQ(co_await status_of(client), 400);
        EXPECT_THAT(co_await backend.rest(), Not(EndsWith("0\r\n\r\n")));
    });
}

TEST_P(http_forwarder, requests_wait_for_a_connection_at_the_limit) {
    forward([](forwarding& f) -> task<void> {
        f.rules.backend_connections = 1;
        f.rules.queue = 1;
        text_peer one = co_await f.client();
        text_peer two = co_await f.client();
        text_peer three = co_await f.client();
        co_await one.say(std::string(get));
        text_peer backend = co_await f.backend().accept();
        co_await backend.head();
        co_await two.say(std::string(get));
        must(co_await loop::current().sleep_for(20ms));
        co_await three.say(std::string(get));
        EXPECT_EQ(co_await status_of(three), 503) << "the queue is full";
        co_await backend.say(ok);
        EXPECT_EQ(co_await status_of(one), 200);
        co_await answer(backend);
        EXPECT_EQ(co_await status_of(two), 200);
        EXPECT_EQ(f.sum(&backend_counters::connections), 1U);
    });
}

TEST_P(http_forwarder, a_backend_at_its_limit_is_left_out_while_another_has_room) {
    forward(
        [](forwarding& f) -> task<void> {
            f.rules.backend_connections = 1;
            text_peer slow = co_await f.client();
            co_await slow.say(std::string(get));
            text_peer busy = co_await f.backend(0).accept();
            co_await busy.head();
            text_peer client = co_await f.client();
            std::optional<text_peer> other;
            for (int i = 0; i < 4; ++i) {
                co_await client.say(std::string(get));
                if (!other) other = co_await f.backend(1).accept();
                co_await answer(*other);
                EXPECT_EQ(co_await status_of(client), 200);
            }
            // Both are at their limit: the one that comes free first in the order gets it.
            co_await client.say(std::string(get));
            co_await other->head();
            text_peer third = co_await f.client();
            co_await third.say(std::string(get));
            must(co_await loop::current().sleep_for(20ms));
            co_await busy.say(ok);
            co_await other->say(ok);
            for (text_peer* each : {&slow, &client}) EXPECT_EQ(co_await status_of(*each), 200);
        },
        2);
}

TEST_P(http_forwarder, an_edit_of_the_pool_reaches_requests_that_wait) {
    forward([](forwarding& f) -> task<void> {
        f.rules.backend_connections = 1;
        text_peer one = co_await f.client();
        text_peer two = co_await f.client();
        text_peer three = co_await f.client();
        co_await one.say(std::string(get));
        text_peer backend = co_await f.backend().accept();
        co_await backend.head();
        co_await two.say(std::string(get));
        co_await three.say(std::string(get));
        must(co_await loop::current().sleep_for(20ms));
        f.rules.queue_time = 3s;
        f.rules.queue = 17;
        f.rules.limits.keep_time = 7s;
        f.apply();
        co_await backend.say(ok);
        EXPECT_EQ(co_await status_of(one), 200);
        for (text_peer* each : {&two, &three}) {
            co_await answer(backend);
            EXPECT_EQ(co_await status_of(*each), 200);
        }
        // A kept connection of older limits is not used for a request of newer ones.
        co_await one.say(std::string(get));
        text_peer next = co_await f.backend().accept();
        f.rules.queue_time = 4s;
        f.apply();
        co_await answer(next);
        EXPECT_EQ(co_await status_of(one), 200);
        co_await one.say(std::string(get));
        co_await two.say(std::string(get));
        co_await next.head();
        f.rules.backend_connections = 2;
        f.apply();
        text_peer added = co_await f.backend().accept();
        co_await answer(added);
        co_await next.say(ok);
        for (text_peer* each : {&one, &two}) EXPECT_EQ(co_await status_of(*each), 200);
    });
}

TEST_P(http_forwarder, trailers_say_nothing_that_the_proxy_says) {
    forward([](forwarding& f) -> task<void> {
        f.rules.request_fields = {{"X-Secret", ""}};
        f.rules.response_fields = {{"X-Power", ""}};
        text_peer client = co_await f.client();
        co_await client.say(
            "POST / HTTP/1.1\r\nHost: x\r\nTE: trailers\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
            "X-Forwarded-For: 1.1.1.1\r\nForwarded: for=1.1.1.1\r\nKeep-Alive: 9\r\nX-Sum: 1\r\n"
            "X-Secret: 2\r\nUpgrade: a\r\n\r\n");
        text_peer backend = co_await f.backend().accept();
        co_await backend.head();
        EXPECT_EQ(co_await backend.until("\r\n\r\n"), "0\r\nX-Sum: 1\r\n\r\n");
        co_await backend.say(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Power: 1\r\nKeep-Alive: "
            "2\r\nX-Sum: 3\r\n\r\n");
        co_await client.head();
        EXPECT_EQ(co_await client.until("\r\n\r\n"), "0\r\nX-Sum: 3\r\n\r\n");
    });
}

TEST_P(http_forwarder, a_redirection_to_the_host_needs_one) {
    forward([](forwarding& f) -> task<void> {
        f.rules.https = "https://$host";
        text_peer client = co_await f.client();
        co_await client.say("GET /evil.example HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        EXPECT_EQ(co_await status_of(client), 400);
        co_await client.say("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
        EXPECT_THAT(co_await client.head(), HasSubstr("\r\nLocation: https://x/a\r\n"));
    });
}

TEST_P(http_forwarder, an_idle_connection_that_its_backend_closes_is_closed) {
    forward([](forwarding& f) -> task<void> {
        text_peer client = co_await f.client();
        co_await client.say(std::string(get));
        text_peer backend = co_await f.backend().accept();
        co_await answer(backend);
        EXPECT_EQ(co_await status_of(client), 200);
        must(backend.socket.shutdown_write());
        EXPECT_TRUE(co_await backend.is_over()) << "without a further request";
    });
}

TEST_P(http_forwarder, dead_backends_cost_no_request_and_no_retry_budget) {
    forward(
        [](forwarding& f) -> task<void> {
            f.backend(0).close();
            f.backend(1).close();
            text_peer client = co_await f.client();
            std::optional<text_peer> backend;
            for (int i = 0; i < 100; ++i) {
                co_await client.say(std::string(get));
                if (!backend) backend = co_await f.backend(2).accept();
                co_await answer(*backend);
                EXPECT_EQ(co_await status_of(client), 200);
            }
            EXPECT_EQ(f.known()[0].its->state(), backend_state::ejected);
            EXPECT_EQ(f.known()[1].its->state(), backend_state::ejected);
        },
        3);
}

TEST_P(http_forwarder, only_requests_that_were_repeated_count_as_retries) {
    forward([](forwarding& f) -> task<void> {
        f.backend().close();
        text_peer client = co_await f.client();
        for (int i = 0; i < 2; ++i) {
            co_await client.say(std::string(get));
            EXPECT_EQ(co_await status_of(client), 503);
        }
        EXPECT_EQ(f.sum(&backend_counters::retries), 0U);
        EXPECT_EQ(f.sum(&backend_counters::failures), 2U);
    });
}

TEST_P(http_forwarder, rules_take_the_place_of_the_proxys_own_fields) {
    const std::string said = "GET / HTTP/1.1\r\nHost: x\r\nX_Forwarded_For: 6.6.6.6\r\n\r\n";
    for (const bool is_trusted : {false, true})
        forward([&said, is_trusted](forwarding& f) -> task<void> {
            f.rules.says = client_fields::x_forwarded;
            f.rules.request_fields = {{"X-Forwarded-Proto", "https"}, {"X-Forwarded-Host", ""}};
            if (is_trusted) f.rules.trusted = {must(network::parse("127.0.0.0/8"))};
            text_peer client = co_await f.client();
            co_await client.say(said);
            text_peer backend = co_await f.backend().accept();
            EXPECT_EQ(co_await backend.head(),
                      "GET / HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 127.0.0.1\r\n"
                      "X-Forwarded-Proto: https\r\n\r\n");
        });
}

TEST_P(http_forwarder, response_rules_hold_in_interim_responses_and_redirections) {
    forward([](forwarding& f) -> task<void> {
        f.rules.response_fields = {{"X-Secret", ""}, {"X-Set", "1"}};
        text_peer client = co_await f.client();
        co_await client.say(std::string(get));
        text_peer backend = co_await f.backend().accept();
        co_await backend.head();
        co_await backend.say("HTTP/1.1 103 x\r\nX-Secret: 1\r\nLink: a\r\n\r\n" + ok);
        EXPECT_EQ(co_await client.head(), "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n");
        EXPECT_EQ(co_await status_of(client), 200);
        f.rules.https = "https://y";
        f.apply();
        co_await client.say(std::string(get));
        EXPECT_THAT(co_await client.head(), HasSubstr("\r\nX-Set: 1\r\n"));
    });
}

TEST_P(http_forwarder, a_first_request_that_is_an_upgrade_gets_its_cookie) {
    forward([](forwarding& f) -> task<void> {
        f.rules.sticky_cookie = "at";
        text_peer client = co_await f.client();
        co_await client.say(
            "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: a\r\n\r\n");
        text_peer backend = co_await f.backend().accept();
        co_await backend.head();
        co_await backend.say("HTTP/1.1 101 x\r\nUpgrade: a\r\nConnection: Upgrade\r\n\r\n");
        EXPECT_THAT(co_await client.head(), HasSubstr("\r\nSet-Cookie: at="));
    });
}

TEST_P(http_forwarder, a_cookie_keeps_a_client_at_its_backend) {
    forward(
        [](forwarding& f) -> task<void> {
            f.rules.sticky_cookie = "at";
            text_peer client = co_await f.client();
            co_await client.say(std::string(get));
            text_peer backend = co_await f.backend(0).accept();
            co_await answer(backend);
            const std::string head = co_await client.head();
            const std::string id = sticky_id(f.backend(0).name());
            EXPECT_THAT(head, HasSubstr("Set-Cookie: at=" + id + "; Path=/; HttpOnly\r\n"));
            EXPECT_EQ(co_await client.bytes(2), "ok");
            for (int i = 0; i < 3; ++i) {
                co_await client.say("GET / HTTP/1.1\r\nHost: x\r\nCookie: at=" + id + "\r\n\r\n");
                co_await answer(backend);
                EXPECT_THAT(co_await client.head(), Not(HasSubstr("Set-Cookie")));
                EXPECT_EQ(co_await client.bytes(2), "ok");
            }
        },
        3);
}

TEST_P(http_forwarder, routes_rewrite_redirect_and_refuse) {
    forward([](forwarding& f) -> task<void> {
        f.routes.resize(3);
        f.routes[0].path = "/api";
        f.routes[0].prefix = "/v1";
        f.routes[1].host = "old.example";
        f.routes[1].redirect = "https://new.example";
        f.routes[2].host = "x";
        f.routes[2].path = "/only";
        text_peer client = co_await f.client();
        co_await client.say("GET /api/a?b HTTP/1.1\r\nHost: y\r\n\r\n");
        text_peer backend = co_await f.backend().accept();
        EXPECT_THAT(co_await backend.head(), StartsWith("GET /v1/a?b HTTP/1.1\r\nHost: y\r\n"));
        co_await backend.say(ok);
        EXPECT_EQ(co_await status_of(client), 200);
        co_await client.say("GET /a?b HTTP/1.1\r\nHost: old.example:80\r\n\r\n");
        const std::string moved = co_await client.head();
        EXPECT_THAT(moved, StartsWith("HTTP/1.1 308"));
        EXPECT_THAT(moved, HasSubstr("\r\nLocation: https://new.example/a?b\r\n"));
        co_await client.say("GET / HTTP/1.1\r\nHost: other\r\n\r\n");
        EXPECT_EQ(co_await status_of(client), 404);
        co_await client.say("GET /x/%2e./api/a HTTP/1.1\r\nHost: y\r\n\r\n");
        EXPECT_EQ(co_await status_of(client), 400) << "its prefix cannot be replaced";
    });
}

}  // namespace
}  // namespace eddy::proxy
