// The part of docs/tour.md on handoffs: two clients' sockets passed on through a Unix socket. What
// plays the stream runtime here takes the messages from its queue, and answers none.
#include <eddy/handoff/sender.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/net/tcp.hpp>
#include <eddy/net/unix.hpp>

#include <unistd.h>

#include <cstdio>
#include <string>

namespace {

using namespace eddy;

task<bool> hands_over(std::string receiver, const stream& client) {
    const std::string data = R"({"prompt":"a question","user_id":7})";
    const result<> handed = co_await handoff::hand_over(receiver, data, client.native_handle());
    co_return handed.has_value();
}

bool hands_over_without_a_loop(const std::string& receiver, int client) {
    const std::string data = R"({"prompt":"a question","user_id":8})";
    const result<> handed = handoff::hand_over_blocking(receiver, data, client);
    return handed.has_value();
}

task<bool> both() {
    const std::string receiver = "@eddy-tour-" + std::to_string(::getpid());
    auto runtime = unix_socket::listen(receiver);
    auto port = tcp::listen("127.0.0.1", 0);
    if (!runtime || !port) co_return false;
    auto browser = co_await tcp::connect("127.0.0.1", port->local().port());
    auto client = co_await port->accept();
    if (!browser || !client) co_return false;
    if (!co_await hands_over(receiver, *client)) co_return false;
    co_return hands_over_without_a_loop(receiver, client->native_handle());
}

}  // namespace

int main() {
    auto made = loop::create();
    if (!made || !(*made)->run(both())) return 1;
    std::puts("both were handed over");
}
