// Stream worker: what it receives of its supervisor, its runtime, and its responses to requests for
// metrics.
#include "daemon/stream_daemon/stream_worker.hpp"

#include <eddy/io/blocking.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/net/descriptors.hpp>

#include "daemon/control/metrics.hpp"
#include "daemon/idle_memory.hpp"
#include "daemon/process_setup.hpp"
#include "daemon/stream_daemon/stream_process.hpp"
#include "runtime/stream/options.hpp"
#include "runtime/stream/stream_runtime.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <span>
#include <string>
#include <utility>

namespace eddy::daemon {
namespace {

using runtime::stream::worker_place;

/// Descriptor 0 as one that children do not inherit; /dev/null takes its place.
unique_fd take_channel() {
    unique_fd channel(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
    const unique_fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    if (!null || ::dup2(null.get(), STDIN_FILENO) < 0) channel.reset();
    return channel;
}

/// The descriptor that the supervisor has sent as `name`, before this process began.
result<unique_fd> receive_descriptor(int channel, std::string_view name) {
    std::array<char, 64> text{};
    auto received = unix_socket::receive_message(channel, std::as_writable_bytes(std::span(text)));
    if (!received) return fail(received.error());
    if (std::string_view(text.data(), received->size) != name || !received->descriptor)
        return fail(errc::malformed);
    return std::move(received->descriptor);
}

result<worker_place> receive_place(int channel, std::size_t number, const std::string& path) {
    worker_place place;
    place.number = number;
    auto memory = receive_descriptor(channel, "board");
    if (!memory) return fail(memory.error());
    auto board = runtime::stream::worker_board::open(std::move(*memory));
    if (!board) return fail(board.error());
    place.board = std::move(*board);
    auto listening = receive_descriptor(channel, "listener");
    if (!listening) return fail(listening.error());
    const auto local = endpoint::unix_path(path);
    if (!local) return fail(local.error());
    place.from.socket.socket = std::move(*listening);
    place.from.local = *local;
    return place;
}

class stream_worker {
public:
    stream_worker(const stream_daemon_options& options, worker_identity self, unique_fd channel,
                  signal_set signals)
        : options_(options),
          self_(self),
          channel_(std::move(channel)),
          signals_(std::move(signals)),
          journal_(fmt::format("worker {}: ", self.number + 1)) {}

    task<int> run() {
        auto read = runtime::stream::read_config(options_.runtime);
        if (!read) co_return fail_with(read.error().message);
        auto place = receive_place(channel_.get(), self_.number, read->path);
        if (!place) co_return fail_with(fmt::format("cannot begin: {}", place.error().message()));
        runtime::creation how{"stream", options_.runtime, &journal_};
        runtime::stream::stream_runtime streams(std::move(how), std::move(*place));
        if (auto started = co_await streams.start(); !started)
            co_return fail_with(started.error().message);
        static_cast<void>(send_worker_message(channel_.get(), "ready"));
        blocking_pool threads;
        scope services(co_await current_source());
        services.spawn(respond(streams));
        services.spawn(return_idle_memory(threads));
        while (const auto signal = co_await signals_.next())
            if (*signal != SIGHUP) break;
        services.cancel();
        co_await services.join();
        co_await streams.stop(options_.drain);
        co_return 0;
    }

private:
    int fail_with(std::string_view reason) {
        journal_.complain(reason);
        return exit_fatal;
    }

    task<void> respond(const runtime::instance& of) {
        for (;;) {
            const auto message = co_await receive_worker_message(channel_.get());
            if (!message || message->empty()) co_return;
            const auto asked = parse_page(*message);
            if (!asked) continue;
            // A supervisor that does not read asks again.
            static_cast<void>(send_worker_message(channel_.get(),
                                                  fmt::format("{}\n{}", page_request(asked->number),
                                                              render_stream_metrics(of.count()))));
        }
    }

    const stream_daemon_options& options_;
    worker_identity self_;
    unique_fd channel_;
    signal_set signals_;
    stderr_journal journal_;
};

}  // namespace

std::optional<worker_identity> take_worker_identity() {
    const char* const text = std::getenv(worker_variable);
    if (text == nullptr) return {};
    const auto self = parse_worker_identity(text);
    ::unsetenv(worker_variable);
    return self;
}

int run_stream_worker(const stream_daemon_options& options, worker_identity self) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::prctl(PR_SET_NAME, "eddy-worker");
    // A supervisor that was gone before sends no signal any more.
    if (::getppid() != self.parent) return exit_fatal;
    unique_fd channel = take_channel();
    auto signals = set_up_process();
    stderr_journal journal;
    if (!channel || !signals) {
        journal.complain("cannot begin as a worker");
        return exit_fatal;
    }
    const auto here = make_stream_loop(options.io_backend, journal);
    if (!here) return exit_fatal;
    return here->run(stream_worker(options, self, std::move(channel), std::move(*signals)).run());
}

}  // namespace eddy::daemon
