// Eddy's blocking sockets, and a turn of its loop, under the tests that program.hpp describes.
//
//     blocking_eddy --test echo|churn|idle --port N [--backend auto|uring|epoll] ...
//
// In the test idle a wait is a turn of the loop in which one coroutine yields.
#include <eddy/io/scope.hpp>
#include <eddy/net/blocking.hpp>

#include "../echo/eddy_program.hpp"
#include "program.hpp"

#include <chrono>
#include <system_error>
#include <utility>

namespace {

using namespace eddy;
using namespace std::chrono_literals;

[[noreturn]] void give_up(const char* what, std::error_code error) {
    std::fprintf(stderr, "blocking_eddy: %s: %s\n", what, error.message().c_str());
    std::exit(1);
}

task<> await_timer(idle_waits* waits) {
    if (co_await loop::current().sleep_for(1h)) waits->found();
}

task<> await_bytes(stream silent, idle_waits* waits) {
    const auto received = co_await silent.read();
    if (received || received.error() != errc::cancelled) waits->found();
}

task<> find_nothing(stream silent, idle_waits* waits) {
    co_await with_scope([&](scope& pending) -> task<> {
        pending.spawn(await_timer(waits));
        pending.spawn(await_bytes(std::move(silent), waits));
        do {
            for (std::uint64_t i = 0; i < idle_waits::batch; ++i) co_await loop::current().yield();
        } while (waits->go_on());
    });
}

class sockets {
public:
    using acceptor = blocking::listener;
    using connection = blocking::stream;

    explicit sockets(long port)
        : address_(
              must(endpoint::ip("127.0.0.1", static_cast<std::uint16_t>(port)), "the address")) {}

    acceptor listen() { return must(blocking::listen(address_), "listen"); }
    connection accept(acceptor& from) { return must(from.accept(), "accept"); }
    connection connect() { return must(blocking::connect(address_), "connect"); }
    void close(connection& which) { which.close(); }

    void write_all(connection& to, std::span<const char> bytes) {
        if (auto wrote = to.write_all(std::as_bytes(bytes)); !wrote)
            give_up("write", wrote.error());
    }

    /// False at the end of the stream.
    bool read_exactly(connection& from, std::span<char> into) {
        auto filled = from.read_exactly(std::as_writable_bytes(into));
        if (!filled && filled.error() != errc::end_of_stream) give_up("read", filled.error());
        return filled.has_value();
    }

    static void wait_for_nothing(int argc, char** argv, int silent, idle_waits& waits) {
        const auto where = make_loop(argc, argv);
        stream peer = must(where->adopt(unique_fd(silent)), "the idle connection");
        where->run(find_nothing(std::move(peer), &waits));
    }

private:
    endpoint address_;
};

}  // namespace

int main(int argc, char** argv) { return blocking_run<sockets>(argc, argv).run(argc, argv); }
