// The part of docs/tour.md on shared memory: streams of a loop, and connections for threads.
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/shm/connection.hpp>
#include <eddy/shm/shm.hpp>

#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>

namespace {

using namespace eddy;

task<result<std::string>> ask(std::string where) {
    auto server = co_await shm::connect(where);
    if (!server) co_return fail(server.error());
    const auto sent = co_await server->write_all("a question");
    if (!sent) co_return fail(sent.error());
    auto answer = co_await server->read();
    if (!answer) co_return fail(answer.error());
    co_return std::string(answer->text());
}

task<void> answer(listener* accepting) {
    auto client = co_await accepting->accept();
    if (!client) co_return;
    const auto question = co_await client->read();
    if (question) static_cast<void>(co_await client->write_all("an answer"));
}

task<bool> asks_and_answers(std::string where) {
    auto accepting = shm::listen(where);
    if (!accepting) co_return false;
    bool answered = false;
    co_await with_scope([&](scope& children) -> task<> {
        children.spawn(answer(&*accepting));
        answered = (co_await ask(where)).value_or("") == "an answer";
    });
    co_return answered;
}

bool plays_ping_pong() {
    auto ends = shm::connection::pair();
    if (!ends) return false;
    std::thread other([pong = std::move(ends->second)]() mutable {
        std::array<std::byte, 4> ping;
        while (pong.read_exactly(ping)) static_cast<void>(pong.write_all(ping));
    });
    std::array<std::byte, 4> reply;
    const auto sent = ends->first.write_all(as_bytes("ping"));
    const auto got = ends->first.read_exactly(reply);
    ends->first.close();
    other.join();
    return sent && got && as_text(reply) == "ping";
}

}  // namespace

int main() {
    auto made = loop::create();
    const std::string where = "@eddy-tour-shm-" + std::to_string(::getpid());
    if (!made || !(*made)->run(asks_and_answers(where)) || !plays_ping_pong()) return 1;
    std::puts("both were answered");
}
