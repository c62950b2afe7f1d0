// A user's program: something of every layer of the library, with every warning an error.
#include <eddy/http/client.hpp>
#include <eddy/http/session.hpp>
#include <eddy/io/executor.hpp>
#include <eddy/io/generator.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/loop_group.hpp>
#include <eddy/io/timeout.hpp>
#include <eddy/io/when.hpp>
#include <eddy/net/queued_writer.hpp>
#include <eddy/net/tcp.hpp>
#include <eddy/net/udp.hpp>
#include <eddy/transport/transport.hpp>
#include <eddy/wire/resp.hpp>
#if __has_include(<eddy/tls/tls.hpp>)
#include <eddy/tls/tls.hpp>
#endif

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

namespace {

using namespace eddy;
using namespace std::chrono_literals;

constexpr std::string_view ping = "*1\r\n$4\r\nPING\r\n";

// Sends back what comes, until the peer has finished.
task<result<>> echo_one(listener& from) {
    auto peer = co_await from.accept();
    if (!peer) co_return fail(peer.error());
    auto incoming = leases(*peer);
    while (auto received = co_await incoming.next()) {
        if (!*received) co_return fail(received->error());
        if (auto sent = co_await peer->write_all((*received)->bytes()); !sent)
            co_return fail(sent.error());
    }
    co_return result<>{};
}

task<result<std::string>> ask(std::uint16_t port) {
    auto server = co_await tcp::connect("127.0.0.1", port);
    if (!server) co_return fail(server.error());
    if (auto sent = co_await server->write_all(ping); !sent) co_return fail(sent.error());
    std::array<std::byte, ping.size()> answer{};
    if (auto got = co_await server->read_exactly(answer); !got) co_return fail(got.error());
    co_return std::string(reinterpret_cast<const char*>(answer.data()), answer.size());
}

task<bool> talk_over_tcp() {
    auto listening = tcp::listen("127.0.0.1", 0);
    if (!listening) co_return false;
    const auto [served, answer] =
        co_await when_all(echo_one(*listening), with_timeout(10s, ask(listening->local().port())));
    if (!served || !answer) co_return false;
    resp::request_parser parser;
    co_return parser.next(*answer).request.argc == 1 &&
        transport::parse("tcp://127.0.0.1:6379").has_value();
}

class site final : public http::request_handler {
public:
    task<http::response> handle(http::request& incoming) override {
        co_return http::response(200, "text/plain", std::string(incoming.path()));
    }
    http::response reject(int status, std::string_view what) override {
        return http::response(status, "text/plain", std::string(what));
    }
};

task<bool> serve_one(listener& from, site& its) {
    auto peer = co_await from.accept();
    if (!peer) co_return false;
    co_await http::serve(std::move(*peer), its, http::session_limits());
    co_return true;
}

task<bool> fetch(std::string uri) {
    auto where = transport::parse(uri);
    if (!where) co_return false;
    http::client server(std::move(*where));
    http::client_request question;
    question.target = "/here";
    auto answer = co_await server.send(std::move(question));
    if (!answer) co_return false;
    const auto text = co_await answer->body().whole(100);
    co_return text && *text == "/here";
}

task<bool> talk_over_http() {
    auto listening = tcp::listen("127.0.0.1", 0);
    if (!listening) co_return false;
    const std::string uri = "tcp://" + listening->local().to_string();
    site its;
    const auto [served, answered] = co_await when_all(serve_one(*listening, its), fetch(uri));
    co_return served&& answered;
}

task<bool> talk_over_udp() {
    auto server = udp::bind("127.0.0.1", 0);
    if (!server) co_return false;
    auto client = co_await udp::connect("127.0.0.1", server->local().port());
    if (!client || !co_await client->send(as_bytes(ping))) co_return false;
    auto message = co_await server->receive();
    co_return message && message->payload.text() == ping;
}

task<int> add(int left, int right) { co_return left + right; }

task<bool> visit_another_loop() {
    auto group = loop_group::start({.threads = 1, .loop = {}});
    if (!group) co_return false;
    auto sum = co_await resume_on((*group)->executor(0), add(20, 22));
    co_return sum && *sum == 42;
}

// The server sends back what a client of TLS says first, which is no answer of TLS.
task<bool> refuse_what_is_no_tls() {
#if __has_include(<eddy/tls/tls.hpp>)
    auto trust = tls::context::client();
    auto listening = tcp::listen("127.0.0.1", 0);
    if (!trust || !listening) co_return false;
    auto plain = co_await tcp::connect("127.0.0.1", listening->local().port());
    if (!plain) co_return false;
    const auto [served, secure] = co_await when_all(
        echo_one(*listening), tls::connect(std::move(*plain), *trust, "example.org"));
    co_return !secure;
#else
    co_return true;
#endif
}

task<bool> everything() {
    const bool tcp = co_await talk_over_tcp();
    const bool udp = co_await talk_over_udp();
    const bool http = co_await talk_over_http();
    const bool executors = co_await visit_another_loop();
    const bool tls = co_await refuse_what_is_no_tls();
    std::printf("tcp %d, udp %d, http %d, executors %d, tls %d\n", tcp, udp, http, executors, tls);
    co_return tcp&& udp&& http&& executors&& tls;
}

}  // namespace

int main() {
    auto made = loop::create();
    const bool works = made && (*made)->run(everything());
    std::puts(works ? "it works" : "it does not work");
    return works ? 0 : 1;
}
