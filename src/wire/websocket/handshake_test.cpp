// The handshake of both ends: what is refused, subprotocols, and the terms of compression.
#include <eddy/wire/websocket/handshake.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace eddy::websocket {
namespace {

constexpr std::string_view sample_key = "dGhlIHNhbXBsZSBub25jZQ==";
constexpr std::string_view sample_accept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

http1::request_head request_of(const std::string& text) {
    http1::request_parser parser;
    const http1::step step = parser.parse(text);
    EXPECT_EQ(step.what, http1::event::head) << text << parser.error().what;
    return parser.head();
}

http1::response_head response_of(const std::string& text) {
    http1::response_parser parser;
    EXPECT_EQ(parser.parse(text).what, http1::event::head) << text << parser.error().what;
    return parser.head();
}

std::string request_text(const std::string& more = {}) {
    return "GET /chat HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
           "Sec-WebSocket-Key: " +
           std::string(sample_key) + "\r\nSec-WebSocket-Version: 13\r\n" + more + "\r\n";
}

// The same with one text replaced.
std::string request_with(std::string_view part, std::string_view by) {
    std::string text = request_text();
    const std::size_t at = text.find(part);
    EXPECT_NE(at, std::string::npos) << part;
    return text.replace(at, part.size(), by);
}

int status_of(const std::string& text, const server_policy& policy = {}) {
    const auto agreed = check_request(request_of(text), policy);
    if (agreed) return 0;
    EXPECT_FALSE(agreed.error().what.empty());
    return agreed.error().status;
}

agreement agree(const std::string& text, const server_policy& policy = {}) {
    auto agreed = check_request(request_of(text), policy);
    EXPECT_TRUE(agreed) << text << agreed.error().what;
    return agreed ? *agreed : agreement();
}

bool allows(const std::string& fields, const std::vector<std::string>& origins = {},
            bool is_secure = false) {
    return is_origin_allowed(request_of("GET / HTTP/1.1\r\n" + fields + "\r\n"), origins,
                             is_secure);
}

/// The same by TLS.
bool allows_by_tls(const std::string& fields, const std::vector<std::string>& origins = {}) {
    return allows(fields, origins, true);
}

TEST(websocket_handshake, pages_of_other_hosts_may_not_connect) {
    EXPECT_TRUE(allows("Host: h\r\n")) << "no page sends it";
    EXPECT_TRUE(allows("Host: h\r\nOrigin: http://h\r\n"));
    EXPECT_TRUE(allows("Host: h\r\nOrigin: https://h\r\n"));
    EXPECT_TRUE(allows("Host: H:9000\r\norigin: HTTP://h:9000\r\n"));
    EXPECT_TRUE(allows("Host: h:443\r\nOrigin: https://h\r\n"));
    EXPECT_TRUE(allows("Host: h\r\nOrigin: http://h:80\r\n"));
    EXPECT_TRUE(allows("Host: [::1]:9000\r\nOrigin: http://[::1]:9000\r\n"));
    for (const std::string origin :
         {"http://evil", "http://h:9000", "https://h:80", "null", "h", "", "http://", "ws://h",
          "http://h.evil", "http://evil.h", "http://h/", "http://h http://evil", "*"})
        EXPECT_FALSE(allows("Host: h\r\nOrigin: " + origin + "\r\n")) << origin;
    EXPECT_FALSE(allows("Host: h\r\nOrigin: http://h\r\nOrigin: http://evil\r\n"));
    EXPECT_FALSE(
        is_origin_allowed(request_of("GET / HTTP/1.0\r\nOrigin: http://\r\n\r\n"), {}, false));
}

TEST(websocket_handshake, a_page_of_http_is_of_another_origin_than_a_server_of_tls) {
    EXPECT_TRUE(allows_by_tls("Host: h\r\n"));
    EXPECT_TRUE(allows_by_tls("Host: h\r\nOrigin: https://h\r\n"));
    EXPECT_TRUE(allows_by_tls("Host: h:443\r\nOrigin: https://h\r\n"));
    EXPECT_TRUE(allows_by_tls("Host: h\r\nOrigin: https://h:443\r\n"));
    EXPECT_TRUE(allows_by_tls("Host: h:9000\r\nOrigin: HTTPS://h:9000\r\n"));
    for (const std::string origin : {"http://h", "http://h:443", "http://h:80", "HTTP://h",
                                     "https://h:80", "https://h:9000", "https://evil"})
        EXPECT_FALSE(allows_by_tls("Host: h\r\nOrigin: " + origin + "\r\n")) << origin;
    EXPECT_FALSE(allows_by_tls("Host: h:80\r\nOrigin: http://h\r\n"));
    EXPECT_FALSE(allows_by_tls("Host: h:80\r\nOrigin: https://h\r\n"));
    EXPECT_FALSE(allows_by_tls("Host: h:9000\r\nOrigin: http://h:9000\r\n"));
    EXPECT_TRUE(allows_by_tls("Host: h\r\nOrigin: http://h\r\n", {"http://h"}));
}

TEST(websocket_handshake, a_page_of_a_proxy_with_tls_may_connect_without) {
    EXPECT_TRUE(allows("Host: h\r\nOrigin: https://h\r\n"));
    EXPECT_TRUE(allows("Host: h:8443\r\nOrigin: https://h:8443\r\n"));
    EXPECT_FALSE(allows("Host: h:80\r\nOrigin: https://h\r\n"));
    EXPECT_FALSE(allows("Host: h:443\r\nOrigin: http://h\r\n"));
    EXPECT_FALSE(allows("Host: h:8443\r\nOrigin: https://h\r\n"));
}

TEST(websocket_handshake, pages_of_listed_origins_may_connect) {
    const std::vector<std::string> some{"https://a.example", "null"};
    EXPECT_TRUE(allows("Host: h\r\nOrigin: https://A.example\r\n", some));
    EXPECT_TRUE(allows("Host: h\r\nOrigin: null\r\n", some));
    EXPECT_TRUE(allows("Host: h\r\nOrigin: http://h\r\n", some));
    EXPECT_FALSE(allows("Host: h\r\nOrigin: http://a.example\r\n", some));
    EXPECT_FALSE(allows("Host: h\r\nOrigin: https://a.example:8443\r\n", some));
    EXPECT_TRUE(allows("Host: h\r\nOrigin: http://evil\r\n", {"*"}));
}

TEST(websocket_handshake, answers_the_key_of_the_standard) {
    EXPECT_EQ(accept_of(sample_key), sample_accept);
    EXPECT_EQ(
        make_key({'t', 'h', 'e', ' ', 's', 'a', 'm', 'p', 'l', 'e', ' ', 'n', 'o', 'n', 'c', 'e'}),
        sample_key);
    const agreement agreed = agree(request_text());
    EXPECT_EQ(agreed.accept, sample_accept);
    http1::header_list fields;
    ASSERT_TRUE(add_response_fields(fields, agreed));
    EXPECT_EQ(fields.find("upgrade"), "websocket");
    EXPECT_EQ(fields.find("connection"), "Upgrade");
    EXPECT_EQ(fields.find("sec-websocket-accept"), sample_accept);
    EXPECT_EQ(fields.size(), 3u) << "nothing that was not offered";
}

TEST(websocket_handshake, ignores_the_case_of_names_and_tokens) {
    EXPECT_EQ(status_of(request_with("Upgrade: websocket", "uPGRADE: WebSocket")), 0);
    EXPECT_EQ(status_of(request_with("Connection: Upgrade", "connection: keep-alive, UPGRADE")), 0);
    EXPECT_EQ(status_of(request_with("Upgrade: websocket", "Upgrade: h2c, WEBSOCKET")), 0);
    EXPECT_EQ(status_of(request_with("Sec-WebSocket-Key", "SEC-WEBSOCKET-KEY")), 0);
}

TEST(websocket_handshake, tells_other_requests_apart) {
    EXPECT_TRUE(is_upgrade(request_of(request_text())));
    EXPECT_FALSE(is_upgrade(request_of("GET / HTTP/1.1\r\nHost: h\r\n\r\n")));
    EXPECT_FALSE(is_upgrade(request_of(request_with("Upgrade: websocket", "Upgrade: h2c"))));
    EXPECT_FALSE(is_upgrade(request_of(request_with("Connection: Upgrade", "Connection: close"))));
}

TEST(websocket_handshake, refuses_what_is_no_upgrade_with_426) {
    EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: h\r\n\r\n"), 426);
    EXPECT_EQ(status_of(request_with("Upgrade: websocket", "Upgrade: websockets")), 426);
    EXPECT_EQ(status_of(request_with("Connection: Upgrade", "Connection: keep-alive")), 426);
    EXPECT_EQ(status_of(request_with("Version: 13", "Version: 8")), 426);
    EXPECT_EQ(status_of(request_with("Version: 13", "Version: 13, 8")), 426);
    EXPECT_EQ(status_of(request_with("Version: 13", "Version: 013")), 426);
    EXPECT_EQ(status_of(request_with("Sec-WebSocket-Version: 13\r\n", "")), 426);
    EXPECT_EQ(status_of(request_text("Sec-WebSocket-Version: 13\r\n")), 426);
    http1::header_list fields;
    ASSERT_TRUE(add_error_fields(fields, {426, "x"}));
    EXPECT_EQ(fields.find("sec-websocket-version"), "13");
    EXPECT_EQ(fields.find("upgrade"), "websocket");
    EXPECT_EQ(fields.find("connection"), "Upgrade");
    http1::header_list none;
    ASSERT_TRUE(add_error_fields(none, {400, "x"}));
    EXPECT_TRUE(none.empty());
}

TEST(websocket_handshake, refuses_malformed_requests_with_400) {
    EXPECT_EQ(status_of(request_with("GET", "POST")), 400);
    EXPECT_EQ(status_of(request_text("Content-Length: 3\r\n")), 400);
    EXPECT_EQ(status_of(request_text("Content-Length: 0\r\n")), 0);
    EXPECT_EQ(status_of(request_text("Transfer-Encoding: chunked\r\n")), 400);
    EXPECT_EQ(status_of(request_text("Sec-WebSocket-Key: " + std::string(sample_key) + "\r\n")),
              400)
        << "two keys";
    for (const char* key : {"", "x", "dGhlIHNhbXBsZSBub25jZQ=", "dGhlIHNhbXBsZSBub25jZQ===",
                            "dGhlIHNhbXBsZSBub25jZQA=", "dGhlIHNhbXBsZSBub25jZQAA",
                            "dGhlIHNhbXBsZSBub25j!Q==", "dGhlIHNhbXBsZSBub25jZQ==, x"}) {
        EXPECT_EQ(status_of(request_with(sample_key, key)), 400) << key;
    }
    EXPECT_EQ(status_of(request_with("Sec-WebSocket-Key: " + std::string(sample_key) + "\r\n", "")),
              400);
}

std::string protocol_of(const std::string& fields) {
    return agree(request_text(fields), {.protocols = {"chat", "superchat"}}).protocol;
}

TEST(websocket_handshake, chooses_the_subprotocol_that_the_client_prefers) {
    EXPECT_EQ(protocol_of(""), "");
    EXPECT_EQ(protocol_of("Sec-WebSocket-Protocol: superchat, chat\r\n"), "superchat");
    EXPECT_EQ(protocol_of("Sec-WebSocket-Protocol: x\r\nsec-websocket-protocol: y,chat\r\n"),
              "chat");
    EXPECT_EQ(protocol_of("Sec-WebSocket-Protocol: CHAT\r\n"), "") << "names have a case";
    EXPECT_EQ(status_of(request_text("Sec-WebSocket-Protocol: a b\r\n")), 400);
    EXPECT_EQ(status_of(request_text("Sec-WebSocket-Protocol: a, a\r\n")), 400);
    http1::header_list fields;
    ASSERT_TRUE(add_response_fields(fields, {.accept = "a", .protocol = "chat"}));
    EXPECT_EQ(fields.find("Sec-WebSocket-Protocol"), "chat");
}

TEST(websocket_handshake, limits_what_a_request_offers) {
    std::string protocols = "Sec-WebSocket-Protocol: p0";
    for (std::size_t i = 1; i < protocol_limit; ++i) protocols += ", p" + std::to_string(i);
    EXPECT_EQ(status_of(request_text(protocols + "\r\n")), 0);
    EXPECT_EQ(status_of(request_text(protocols + ", more\r\n")), 400);
    std::string extensions = "Sec-WebSocket-Extensions: x";
    for (std::size_t i = 1; i < extension_limit; ++i) extensions += ", x";
    EXPECT_EQ(status_of(request_text(extensions + "\r\n")), 0);
    EXPECT_EQ(status_of(request_text(extensions + ", x\r\n")), 400);
}

// The server's answer to this field; empty when it declines.
std::string answer_to(const std::string& offers, const deflate_policy& policy = {}) {
    const agreement agreed =
        agree(request_text("Sec-WebSocket-Extensions: " + offers + "\r\n"), {.deflate = policy});
    EXPECT_EQ(agreed.deflate.has_value(), !agreed.extensions.empty());
    return agreed.extensions;
}

TEST(websocket_deflate, answers_offers) {
    EXPECT_EQ(answer_to("permessage-deflate"), "permessage-deflate");
    EXPECT_EQ(answer_to("permessage-deflate; client_max_window_bits"), "permessage-deflate");
    EXPECT_EQ(answer_to("permessage-deflate; client_max_window_bits=10"),
              "permessage-deflate; client_max_window_bits=10");
    EXPECT_EQ(answer_to("permessage-deflate; server_max_window_bits=10"),
              "permessage-deflate; server_max_window_bits=10");
    EXPECT_EQ(answer_to("permessage-deflate; server_max_window_bits=15"),
              "permessage-deflate; server_max_window_bits=15");
    EXPECT_EQ(
        answer_to("permessage-deflate;server_no_context_takeover ; client_no_context_takeover"),
        "permessage-deflate; server_no_context_takeover; client_no_context_takeover");
    EXPECT_EQ(answer_to("permessage-deflate; server_max_window_bits=\"1\\0\""),
              "permessage-deflate; server_max_window_bits=10");
    EXPECT_EQ(agree(request_text("Sec-WebSocket-Extensions: permessage-deflate\r\n")).extensions,
              "")
        << "without a policy";
}

TEST(websocket_deflate, bounds_its_memory_by_the_answer) {
    const deflate_policy small{.resets_own_context = true,
                               .resets_peer_context = true,
                               .own_window_bits = 9,
                               .peer_window_bits = 10};
    EXPECT_EQ(answer_to("permessage-deflate; client_max_window_bits", small),
              "permessage-deflate; server_no_context_takeover; client_no_context_takeover; "
              "server_max_window_bits=9; client_max_window_bits=10");
    EXPECT_EQ(
        answer_to("permessage-deflate; client_max_window_bits=8; server_max_window_bits=8", small),
        "permessage-deflate; server_no_context_takeover; client_no_context_takeover; "
        "server_max_window_bits=8; client_max_window_bits=8");
    EXPECT_EQ(answer_to("permessage-deflate", small), "") << "the client cannot bound its window";
}

TEST(websocket_deflate, declines_offers_that_are_wrong_and_takes_the_next) {
    for (const char* const offer :
         {"server_no_context_takeover=1", "client_no_context_takeover=\"x\"",
          "server_max_window_bits", "server_max_window_bits=7", "server_max_window_bits=16",
          "server_max_window_bits=08", "server_max_window_bits=9x", "server_max_window_bits=100",
          "client_max_window_bits=7", "client_max_window_bits=16", "client_max_window_bits=0",
          "unknown", "unknown=3", "server_no_context_takeover; server_no_context_takeover",
          "client_max_window_bits; client_max_window_bits=10",
          "server_max_window_bits=9; server_max_window_bits=9"}) {
        const std::string wrong = "permessage-deflate; " + std::string(offer);
        EXPECT_EQ(answer_to(wrong), "") << offer;
        EXPECT_EQ(answer_to(wrong + ", permessage-deflate; server_no_context_takeover"),
                  "permessage-deflate; server_no_context_takeover")
            << offer;
    }
    EXPECT_EQ(answer_to("x-webkit-deflate-frame; a=b; c=\"d\", , permessage-deflate, "
                        "permessage-deflate; unknown"),
              "permessage-deflate");
    EXPECT_EQ(answer_to("permessage-bzip2"), "");
}

TEST(websocket_deflate, refuses_malformed_fields) {
    for (const char* const field :
         {"permessage-deflate foo", "permessage-deflate;", "permessage-deflate; =1",
          "permessage-deflate; a=", "permessage-deflate; a=\"b", "permessage-deflate; a=\"b c\"",
          "permessage-deflate; a=\"\"", "permessage-deflate; a=\"b\\", ";", "=", "a, \"b\"",
          "permessage-deflate; a==b"}) {
        EXPECT_EQ(
            status_of(request_text("Sec-WebSocket-Extensions: " + std::string(field) + "\r\n")),
            400)
            << field;
    }
    EXPECT_EQ(status_of(request_text("Sec-WebSocket-Extensions:\r\n")), 0);
}

std::string response_text(const std::string& more = {}) {
    return "HTTP/1.1 101 Switching Protocols\r\nupgrade: WebSocket\r\nconnection: upgrade\r\n"
           "Sec-WebSocket-Accept: " +
           std::string(sample_accept) + "\r\n" + more + "\r\n";
}

client_offer sample_offer() {
    client_offer offer;
    offer.key = sample_key;
    return offer;
}

std::string refusal_of(const std::string& text, const client_offer& offer = sample_offer()) {
    const auto agreed = check_response(response_of(text), offer);
    return agreed ? "" : std::string(agreed.error().what);
}

TEST(websocket_client_handshake, writes_a_request_that_a_server_takes) {
    client_offer offer = sample_offer();
    offer.protocols = {"b", "a"};
    offer.deflate = deflate_policy{.resets_peer_context = true, .own_window_bits = 12};
    http1::header_list fields;
    ASSERT_TRUE(add_request_fields(fields, offer));
    byte_buffer out;
    http1::head_writer writer(out);
    writer.request("GET", "/").field("Host", "h").fields(fields);
    ASSERT_TRUE(writer.end(http1::body_framing::none()));
    const agreement agreed =
        agree(std::string(out.text()), {.protocols = {"a", "b"}, .deflate = deflate_policy()});
    EXPECT_EQ(agreed.protocol, "b");
    const deflate_terms terms{.server_no_context_takeover = true, .client_max_window_bits = 12};
    EXPECT_EQ(agreed.deflate, terms);

    http1::header_list answer;
    ASSERT_TRUE(add_response_fields(answer, agreed));
    http1::response_head response;
    response.status = 101;
    response.upgrade = true;
    response.headers = answer;
    const auto confirmed = check_response(response, offer);
    ASSERT_TRUE(confirmed) << confirmed.error().what;
    EXPECT_EQ(confirmed->protocol, "b");
    EXPECT_EQ(confirmed->deflate, terms);
}

TEST(websocket_client_handshake, refuses_offers_that_cannot_be_sent) {
    http1::header_list fields;
    client_offer offer = sample_offer();
    offer.key = "short";
    EXPECT_EQ(add_request_fields(fields, offer), fail(errc::malformed));
    offer = sample_offer();
    offer.protocols = {"a b"};
    EXPECT_EQ(add_request_fields(fields, offer), fail(errc::malformed));
    offer.protocols = {"a", "b", "a"};
    EXPECT_EQ(add_request_fields(fields, offer), fail(errc::malformed));
    offer.protocols.assign(protocol_limit + 1, "a");
    EXPECT_EQ(add_request_fields(fields, offer), fail(errc::limit_reached));
    EXPECT_TRUE(fields.empty());
}

TEST(websocket_client_handshake, accepts_a_plain_answer) {
    EXPECT_EQ(refusal_of(response_text()), "");
}

TEST(websocket_client_handshake, refuses_answers_that_do_not_fit) {
    const std::string good = response_text();
    const auto with = [&good](std::string_view part, std::string_view by) {
        std::string text = good;
        return text.replace(text.find(part), part.size(), by);
    };
    EXPECT_NE(refusal_of("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"), "");
    EXPECT_EQ(check_response(response_of("HTTP/1.1 404 Not Found\r\n\r\n"), sample_offer())
                  .error()
                  .status,
              404);
    EXPECT_NE(refusal_of(with("WebSocket", "h2c")), "");
    EXPECT_NE(refusal_of(with("connection: upgrade", "connection: close")), "");
    EXPECT_NE(refusal_of(with("s3pP", "S3pP")), "");
    EXPECT_NE(refusal_of(response_text("Sec-WebSocket-Accept: x\r\n")), "") << "two answers";
    EXPECT_NE(refusal_of(response_text("Sec-WebSocket-Protocol: chat\r\n")), "");
    EXPECT_NE(refusal_of(response_text("Sec-WebSocket-Extensions: permessage-deflate\r\n")), "");
    client_offer offer = sample_offer();
    offer.protocols = {"chat", "other"};
    EXPECT_EQ(refusal_of(good, offer), "") << "a server may choose none";
    EXPECT_EQ(refusal_of(response_text("Sec-WebSocket-Protocol: other\r\n"), offer), "");
    EXPECT_NE(refusal_of(response_text("Sec-WebSocket-Protocol: Chat\r\n"), offer), "");
    EXPECT_NE(refusal_of(response_text("Sec-WebSocket-Protocol: chat, other\r\n"), offer), "");
    EXPECT_NE(refusal_of(response_text("Sec-WebSocket-Protocol:\r\n"), offer), "");
}

// The terms that a client takes from an answer, as text; "refused" for none.
std::string terms_of(const std::string& answer, const deflate_policy& policy = {}) {
    client_offer offer = sample_offer();
    offer.deflate = policy;
    const auto agreed = check_response(
        response_of(response_text("Sec-WebSocket-Extensions: " + answer + "\r\n")), offer);
    if (!agreed) return "refused";
    if (!agreed->deflate) return "none";
    const deflate_terms& terms = *agreed->deflate;
    return std::to_string(terms.server_max_window_bits) +
           (terms.server_no_context_takeover ? " alone, " : ", ") +
           std::to_string(terms.client_max_window_bits) +
           (terms.client_no_context_takeover ? " alone" : "");
}

TEST(websocket_client_handshake, takes_terms_that_fit_its_offer) {
    EXPECT_EQ(terms_of("permessage-deflate"), "15, 15");
    EXPECT_EQ(terms_of("permessage-deflate; server_max_window_bits=9; client_max_window_bits=10"),
              "9, 10");
    EXPECT_EQ(
        terms_of("permessage-deflate; client_no_context_takeover; server_no_context_takeover"),
        "15 alone, 15 alone");
    EXPECT_EQ(terms_of("permessage-deflate; client_max_window_bits"), "refused");
    EXPECT_EQ(terms_of("permessage-deflate; unknown"), "refused");
    EXPECT_EQ(terms_of("permessage-deflate, permessage-deflate"), "refused");
    EXPECT_EQ(terms_of("permessage-bzip2"), "refused");
    EXPECT_EQ(terms_of("permessage-deflate; server_max_window_bits=\"9"), "refused");
    EXPECT_EQ(terms_of(""), "none");
    const deflate_policy small{.resets_own_context = true,
                               .resets_peer_context = true,
                               .own_window_bits = 11,
                               .peer_window_bits = 12};
    EXPECT_EQ(terms_of("permessage-deflate", small), "refused") << "the server keeps its context";
    EXPECT_EQ(terms_of("permessage-deflate; server_no_context_takeover", small), "refused")
        << "its window is too large";
    EXPECT_EQ(terms_of("permessage-deflate; server_no_context_takeover; server_max_window_bits=12",
                       small),
              "12 alone, 11 alone");
    EXPECT_EQ(terms_of("permessage-deflate; server_no_context_takeover; server_max_window_bits=13",
                       small),
              "refused");
    EXPECT_EQ(terms_of("permessage-deflate; server_no_context_takeover; server_max_window_bits=8; "
                       "client_max_window_bits=12",
                       small),
              "refused")
        << "larger than offered";
}

}  // namespace
}  // namespace eddy::websocket
