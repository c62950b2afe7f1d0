// A user's program: something of every layer of the library, with every warning an error.
#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>
#include <eddy/io/when.hpp>
#include <eddy/net/queued_writer.hpp>
#include <eddy/net/tcp.hpp>
#include <eddy/transport/transport.hpp>
#include <eddy/wire/resp.hpp>
#if __has_include(<eddy/tls/tls.hpp>)
#include <eddy/tls/tls.hpp>
#endif

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace {

using namespace eddy;
using namespace std::chrono_literals;

task<result<>> echo_once(listener& from) {
    auto peer = co_await from.accept();
    if (!peer) co_return fail(peer.error());
    auto received = co_await peer->read();
    if (!received) co_return fail(received.error());
    co_return co_await peer->write_all(received->bytes());
}

task<result<std::string>> ask(std::uint16_t port) {
    auto server = co_await tcp::connect("127.0.0.1", port);
    if (!server) co_return fail(server.error());
    if (auto sent = co_await server->write_all("*1\r\n$4\r\nPING\r\n"); !sent)
        co_return fail(sent.error());
    auto answer = co_await server->read();
    if (!answer) co_return fail(answer.error());
    co_return std::string(answer->text());
}

task<bool> talk() {
    auto listening = tcp::listen("127.0.0.1", 0);
    if (!listening) co_return false;
    const auto [served, answer] =
        co_await when_all(echo_once(*listening), with_timeout(10s, ask(listening->local().port())));
    if (!served || !answer) co_return false;
#if __has_include(<eddy/tls/tls.hpp>)
    if (!tls::context::client()) co_return false;
#endif
    resp::request_parser parser;
    co_return parser.next(*answer).request.argc == 1 &&
        transport::parse("tcp://127.0.0.1:6379").has_value();
}

}  // namespace

int main() {
    auto made = loop::create();
    const bool works = made && (*made)->run(talk());
    std::puts(works ? "it works" : "it does not work");
    return works ? 0 : 1;
}
