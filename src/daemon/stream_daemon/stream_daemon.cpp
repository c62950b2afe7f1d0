// Stream daemon: the choice of one process or several, and the one around its runtime.
#include "daemon/stream_daemon/stream_daemon.hpp"

#include <eddy/io/blocking.hpp>
#include <eddy/io/scope.hpp>

#include "daemon/control/metrics.hpp"
#include "daemon/idle_memory.hpp"
#include "daemon/process_setup.hpp"
#include "daemon/stream_daemon/stream_process.hpp"
#include "daemon/stream_daemon/stream_supervisor.hpp"
#include "daemon/stream_daemon/stream_worker.hpp"
#include "runtime/instance.hpp"
#include "runtime/stream/options.hpp"
#include "runtime/stream/worker_share.hpp"
#include "runtime/type.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <utility>

namespace eddy::daemon {
namespace {

/// Open files of a supervisor for each worker, its channel and its handle, and something to spare.
constexpr std::uint64_t supervisor_files_each = 3;

/// Page of the one runtime.
class runtime_status final : public status_source {
public:
    explicit runtime_status(const runtime::instance& of) : of_(of) {}
    task<std::string> metrics_text() override { co_return render_stream_metrics(of_.count()); }

private:
    const runtime::instance& of_;
};

class stream_daemon {
public:
    stream_daemon(const stream_daemon_options& options, signal_set signals)
        : options_(options), signals_(std::move(signals)) {}

    task<int> run() {
        const std::size_t workers = options_.workers > 0 ? options_.workers : needed_workers();
        if (workers > 1)
            co_return co_await supervise_stream_workers(options_, workers, std::move(signals_));
        runtime::creation how{"stream", options_.runtime, &journal_};
        const auto instance = runtime::find_type("stream")->make(std::move(how));
        if (auto started = co_await instance->start(); !started) {
            journal_.complain(started.error().message);
            co_return exit_fatal;
        }
        const int status = co_await serve(*instance);
        co_await instance->stop(status == 0 ? options_.drain : duration::zero());
        hurry_.cancel();
        co_await hurry_.join();
        co_return status;
    }

private:
    /// On epoll, as many processes as have an open file for each stream.
    std::size_t needed_workers() {
        rlimit limit{};
        const auto read = runtime::stream::read_config(options_.runtime);
        if (loop::current().kind() != io_backend_kind::epoll || !read ||
            ::getrlimit(RLIMIT_NOFILE, &limit) < 0)
            return 1;
        const std::uint64_t each = runtime::stream::streams_within(*read, limit.rlim_cur);
        const std::uint64_t needed = (read->max_connections + each - 1) / each;
        const std::uint64_t workers =
            std::min({needed, std::uint64_t{runtime::stream::max_workers},
                      std::max<std::uint64_t>(limit.rlim_cur / supervisor_files_each, 1)});
        if (needed > 1)
            journal_.write(
                fmt::format("{} workers, since on epoll each stream is an open file, of which a "
                            "process may have {}: room for about {} streams",
                            workers, limit.rlim_cur, workers * each));
        if (needed > workers)
            journal_.write(
                fmt::format("warning: {} streams would need {} workers; further clients "
                            "wait without an answer. Lower -max-connections, or raise "
                            "the limit of open files",
                            read->max_connections, needed));
        return workers;
    }

    task<int> serve(runtime::instance& of) {
        runtime_status source(of);
        status_server status(source);
        blocking_pool threads;
        scope services(co_await current_source());
        if (!status.open(options_.metrics, journal_, services)) co_return exit_fatal;
        services.spawn(return_idle_memory(threads));
        journal_.write(fmt::format("eddy stream-daemon ready: {}, pid {}", of.local().to_string(),
                                   ::getpid()));
        co_await await_end();
        services.cancel();
        co_await services.join();
        hurry_.spawn(end_at_next_signal());
        co_return 0;
    }
    task<void> await_end() {
        for (;;) {
            const auto signal = co_await signals_.next();
            if (!signal || *signal != SIGHUP) co_return;
        }
    }
    task<void> end_at_next_signal() {
        co_await await_end();
        if ((co_await current_source())->requested()) co_return;
        std::_Exit(exit_fatal);
    }

    const stream_daemon_options& options_;
    signal_set signals_;
    stderr_journal journal_;
    scope hurry_;
};

}  // namespace

int run_stream_daemon(const stream_daemon_options& options) {
    if (const auto self = take_worker_identity()) return run_stream_worker(options, *self);
    auto signals = set_up_process();
    stderr_journal journal;
    if (!signals) {
        journal.complain(fmt::format("cannot receive signals: {}", signals.error().message()));
        return exit_fatal;
    }
    const auto here = make_stream_loop(options.io_backend, journal);
    if (!here) return exit_fatal;
    return here->run(stream_daemon(options, std::move(*signals)).run());
}

}  // namespace eddy::daemon
