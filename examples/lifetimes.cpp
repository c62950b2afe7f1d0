// The programs' parts that docs/lifetimes.md quotes: ownership while a coroutine waits.
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/timeout.hpp>
#include <eddy/io/when.hpp>
#include <eddy/net/tcp.hpp>

#include <array>
#include <chrono>
#include <cstdio>
#include <string>
#include <tuple>
#include <utility>

namespace {

using namespace eddy;
using namespace std::chrono_literals;

task<result<>> greet(stream& peer, std::string name) {
    const std::string greeting = "hello, " + name + "\n";
    co_return co_await peer.write_all(greeting);
}

task<result<std::string>> first_bytes(stream& peer) {
    auto received = co_await peer.read();
    if (!received) co_return fail(received.error());
    std::string kept(received->text());
    received->reset();
    co_await loop::current().yield();
    co_return kept;
}

task<> serve_one(stream peer) {
    std::array<std::byte, 512> buffer;
    auto size = co_await peer.read_some(buffer);
    if (!size) co_return;
    static_cast<void>(co_await peer.write_all(const_bytes(buffer).first(*size)));
}

class session {
public:
    explicit session(stream peer) : peer_(std::move(peer)) {}

    task<> run() {
        co_await with_scope([this](scope& children) -> task<> {
            children.spawn(beat());
            while (auto received = co_await peer_.read()) seen_ += received->size();
        });
    }
    std::size_t seen() const noexcept { return seen_; }

private:
    task<> beat() {
        while (co_await loop::current().sleep_for(1s))
            if (!co_await peer_.write_all("beat\n")) co_return;
    }

    stream peer_;
    std::size_t seen_ = 0;
};

task<result<std::string>> line_within(stream& peer, std::string& rest, duration limit) {
    struct reading {
        static task<result<std::string>> line(stream& from, std::string& kept) {
            constexpr std::size_t longest_line = 1024;  // or a peer could fill the memory
            std::size_t end = kept.find('\n');
            while (end == std::string::npos && kept.size() <= longest_line) {
                const std::size_t searched = kept.size();
                auto received = co_await from.read();
                if (!received) co_return fail(received.error());
                kept += received->text();
                end = kept.find('\n', searched);
            }
            if (end > longest_line) co_return fail(errc::limit_reached);
            std::string found = kept.substr(0, end);
            kept.erase(0, end + 1);
            co_return found;
        }
    };
    return with_timeout(limit, reading::line(peer, rest));
}

task<result<>> say_farewell(stream& peer) {
    cancel_source own;
    co_return co_await with_timeout(1s, greet(peer, "and farewell").under(own));
}

task<int> demonstrate() {
    auto listening = tcp::listen("127.0.0.1", 0);
    if (!listening) co_return 1;
    auto client = co_await tcp::connect("127.0.0.1", listening->local().port());
    auto server = co_await listening->accept();
    if (!client || !server) co_return 1;

    if (!co_await greet(*client, "server")) co_return 1;
    const auto greeting = co_await first_bytes(*server);
    if (greeting.value_or("") != "hello, server\n") co_return 1;

    std::string rest;
    const auto late = co_await line_within(*server, rest, 10ms);
    if (late || late.error() != errc::timed_out) co_return 1;
    if (!co_await client->write_all("half a ")) co_return 1;
    static_cast<void>(co_await line_within(*server, rest, 10ms));
    if (!co_await client->write_all("line\n")) co_return 1;
    const auto line = co_await line_within(*server, rest, 5s);
    if (line.value_or("") != "half a line") co_return 1;
    const std::string no_end(2000, 'x');
    if (!co_await client->write_all(no_end)) co_return 1;
    const auto endless = co_await line_within(*server, rest, 5s);
    if (endless || endless.error() != errc::limit_reached) co_return 1;

    cancel_source gone;
    gone.request();
    if (!co_await say_farewell(*server).under(gone)) co_return 1;
    const auto farewell = co_await first_bytes(*client);
    if (farewell.value_or("") != "hello, and farewell\n") co_return 1;

    if (!co_await client->write_all("ping")) co_return 1;
    const auto both = co_await when_all(serve_one(std::move(*server)), first_bytes(*client));
    co_return std::get<1>(both).value_or("") == "ping" ? 0 : 1;
}

task<int> demonstrate_session() {
    auto listening = tcp::listen("127.0.0.1", 0);
    if (!listening) co_return 1;
    auto client = co_await tcp::connect("127.0.0.1", listening->local().port());
    auto server = co_await listening->accept();
    if (!client || !server) co_return 1;
    session held(std::move(*server));
    if (!co_await client->write_all("12345")) co_return 1;
    client->close();
    co_await held.run();
    co_return held.seen() == 5 ? 0 : 1;
}

}  // namespace

int main() {
    auto made = loop::create();
    if (!made) return 1;
    const bool good = (*made)->run(demonstrate()) == 0 && (*made)->run(demonstrate_session()) == 0;
    std::puts(good ? "nothing outlived its owner" : "it does not work");
    return good ? 0 : 1;
}
