// The rival: Asio's synchronous sockets, and io_context::poll(), under the tests that program.hpp
// describes. Error codes instead of exceptions, the context's own executor instead of the
// type-erased one, and a context for each thread, so that they share no lock.
//
//     blocking_asio --test echo|churn|idle --port N ...
//
// In the test idle a wait is a call of poll().
#include "../echo/asio_program.hpp"
#include "program.hpp"

#include <array>
#include <chrono>
#include <system_error>

namespace {

using asio::ip::tcp;
using namespace std::chrono_literals;

void check(const std::error_code& error, const char* what) {
    if (!error) return;
    std::fprintf(stderr, "blocking_asio: %s: %s\n", what, error.message().c_str());
    std::exit(1);
}

class sockets {
public:
    using acceptor = asio::basic_socket_acceptor<tcp, executor>;
    using connection = asio::basic_stream_socket<tcp, executor>;

    explicit sockets(long port)
        : address_(asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(port)) {}

    /// Accepted sockets inherit TCP_NODELAY.
    acceptor listen() {
        std::error_code error;
        acceptor made(context_.get_executor(), address_);
        made.set_option(tcp::no_delay(true), error);
        check(error, "TCP_NODELAY");
        made.listen(4096, error);
        check(error, "listen");
        return made;
    }

    connection accept(acceptor& from) {
        std::error_code error;
        connection accepted = from.accept(error);
        check(error, "accept");
        return accepted;
    }

    connection connect() {
        std::error_code error;
        connection made(context_.get_executor());
        made.open(tcp::v4(), error);
        check(error, "open");
        made.set_option(tcp::no_delay(true), error);
        check(error, "TCP_NODELAY");
        made.connect(address_, error);
        check(error, "connect");
        return made;
    }

    void close(connection& which) {
        std::error_code error;
        which.close(error);
        check(error, "close");
    }

    void write_all(connection& to, std::span<const char> bytes) {
        std::error_code error;
        asio::write(to, asio::buffer(bytes.data(), bytes.size()), error);
        check(error, "write");
    }

    /// False at the end of the stream.
    bool read_exactly(connection& from, std::span<char> into) {
        std::error_code error;
        asio::read(from, asio::buffer(into.data(), into.size()), error);
        if (error == asio::error::eof) return false;
        check(error, "read");
        return true;
    }

    static void wait_for_nothing(int, char**, int silent, idle_waits& waits) {
        asio::io_context context(1);
        asio::steady_timer far(context, 1h);
        far.async_wait([](std::error_code) {});
        connection peer(context.get_executor(), tcp::v4(), silent);
        std::array<char, 64> bytes{};
        peer.async_read_some(asio::buffer(bytes), [](std::error_code, std::size_t) {});
        do {
            for (std::uint64_t i = 0; i < idle_waits::batch; ++i)
                if (context.poll() != 0) waits.found();
        } while (waits.go_on());
    }

private:
    asio::io_context context_{1};
    tcp::endpoint address_;
};

}  // namespace

int main(int argc, char** argv) { return blocking_run<sockets>(argc, argv).run(argc, argv); }
