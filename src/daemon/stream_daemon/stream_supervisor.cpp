// Supervision of stream workers: start, death and restart of each, the sum of their metrics, and
// the end of all.
#include "daemon/stream_daemon/stream_supervisor.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/process.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/timeout.hpp>
#include <eddy/net/descriptors.hpp>

#include "base/environment.hpp"
#include "daemon/control/metrics.hpp"
#include "daemon/control/metrics_sum.hpp"
#include "daemon/stream_daemon/stream_process.hpp"
#include "daemon/stream_daemon/worker_channel.hpp"
#include "handoff/receiver.hpp"
#include "runtime/listening.hpp"
#include "runtime/options/units.hpp"
#include "runtime/stream/metrics.hpp"
#include "runtime/stream/options.hpp"
#include "runtime/stream/worker_share.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace eddy::daemon {
namespace {

using runtime::stream::worker_board;

/// The program that runs, whatever its file is by now.
constexpr const char* own_program = "/proc/self/exe";

/// Process that streams, and what the supervisor has of it.
struct worker {
    std::size_t number = 0;  ///< its slot of the board
    std::optional<process> program;
    unique_fd channel;
    std::string page;               ///< its last metrics
    std::uint64_t last_asked = 0;   ///< number of the last request for them
    std::uint64_t last_answer = 0;  ///< of the one that `page` responds to
    bool is_ready = false;          ///< it accepts clients

    bool is_asked(std::uint64_t request) const noexcept {
        return is_ready && last_asked >= request && last_answer < request;
    }
};

std::string describe(const result<exit_status>& end) {
    if (!end) return fmt::format("was lost ({})", end.error().message());
    if (end->signal != 0) return fmt::format("was killed by signal {}", end->signal);
    return fmt::format("ended with status {}", end->code);
}

class stream_supervisor final : status_source {
public:
    stream_supervisor(const stream_daemon_options& options, std::size_t workers, signal_set signals)
        : options_(options), signals_(std::move(signals)) {
        for (std::size_t i = 0; i < workers; ++i) {
            workers_.push_back(std::make_unique<worker>());
            workers_.back()->number = i;
        }
    }

    task<int> run() {
        if (!open()) co_return exit_fatal;
        scope watching;
        watching.spawn(watch_signals());
        scope keepers;
        for (const auto& each : workers_) keepers.spawn(keep(*each));
        while (ready_workers() < workers_.size() && !is_ending_ && !is_hopeless_)
            co_await await_change();
        const int status = is_hopeless_ ? exit_fatal : co_await serve();
        co_await end(keepers);
        watching.cancel();
        co_await watching.join();
        if (status == 0)
            journal_.write(fmt::format("Peak concurrent streams: {}", board_->peak_streams()));
        co_return status;
    }

private:
    bool open() {
        auto read = runtime::stream::read_config(options_.runtime);
        if (!read) {
            journal_.complain(read.error().message);
            return false;
        }
        auto board = worker_board::make();
        if (!board) {
            journal_.complain(fmt::format("cannot count streams: {}", board.error().message()));
            return false;
        }
        board_ = std::move(*board);
        auto opened = handoff::listen_for_handoffs(read->path, receiving_of(*read));
        if (!opened) {
            journal_.complain(
                runtime::stream::explain_receiver_failure(*read, opened.error(), nullptr).message);
            return false;
        }
        handoffs_ = std::move(*opened);
        return true;
    }

    task<int> serve() {
        status_server status(*this);
        scope services(co_await current_source());
        if (!status.open(options_.metrics, journal_, services)) co_return exit_fatal;
        if (!is_ending_)
            journal_.write(fmt::format("eddy stream-daemon ready: {}, pid {}, {} workers",
                                       handoffs_.local.to_string(), ::getpid(), workers_.size()));
        while (!is_ending_) co_await await_change();
        services.cancel();
        co_await services.join();
        co_return 0;
    }

    /// Lets the workers drain, and waits for them.
    task<void> end(scope& keepers) {
        request_end();
        remove_socket_file(handoffs_.local, handoffs_.socket.file);
        // For all workers: they accept the senders that wait in its queue, and then end.
        ::shutdown(handoffs_.socket.socket.get(), SHUT_RDWR);
        handoffs_.socket.socket.reset();
        for (const auto& each : workers_)
            if (each->program) static_cast<void>(each->program->kill(SIGTERM));
        scope limit;
        limit.spawn(cut_off(keepers));
        co_await keepers.join();
        limit.cancel();
        co_await limit.join();
    }
    task<void> cut_off(scope& keepers) {
        for (const duration each : {options_.drain, end_grace})
            if (auto slept = co_await loop::current().sleep_for(each); !slept) co_return;
        journal_.write("workers that do not end are killed");
        keepers.cancel();
    }

    void request_end() noexcept {
        is_ending_ = true;
        ending_.set();
        changed_.set();
    }
    task<void> watch_signals() {
        bool is_second = false;
        for (;;) {
            const auto signal = co_await signals_.next();
            if (!signal) co_return;
            if (*signal == SIGHUP) continue;
            if (is_second) std::_Exit(exit_fatal);
            is_second = true;
            request_end();
        }
    }
    task<void> await_change() {
        changed_.reset();
        static_cast<void>(co_await changed_.wait());
    }

    std::size_t ready_workers() const noexcept {
        return static_cast<std::size_t>(
            std::ranges::count_if(workers_, [](const auto& each) { return each->is_ready; }));
    }

    /// Runs a worker, and another one in its place when it dies.
    task<void> keep(worker& its) {
        duration pause = first_restart_pause;
        for (;;) {
            const time_point begun = loop::current().now();
            const std::string end = co_await run_once(its);
            if (is_ending_) co_return;
            if (!has_begun_) {
                // The others would fail as well.
                if (!is_hopeless_)
                    journal_.complain(
                        fmt::format("worker {} {} before it was ready", its.number + 1, end));
                is_hopeless_ = true;
                changed_.set();
                co_return;
            }
            const std::uint32_t lost = board_->clear(its.number);
            lost_streams_ += lost;
            ++restarts_;
            if (loop::current().now() - begun >= longest_restart_pause) pause = first_restart_pause;
            journal_.write(fmt::format("worker {} {}: {} streams are lost; it starts again in {}",
                                       its.number + 1, end, lost,
                                       runtime::format_duration(pause.count())));
            static_cast<void>(co_await with_timeout(pause, ending_.wait()));
            if (is_ending_) co_return;
            pause = std::min(pause * 2, longest_restart_pause);
        }
    }

    /// Runs a worker to its end; yields what that was.
    task<std::string> run_once(worker& its) {
        if (auto started = start(its); !started)
            co_return fmt::format("cannot be started ({})", started.error().message());
        const int pid = its.program->pid();
        scope reading(co_await current_source());
        reading.spawn(read_messages(its));
        const result<exit_status> status = co_await its.program->wait();
        reading.cancel();
        co_await reading.join();
        its.program.reset();
        its.channel.reset();
        its.is_ready = false;
        its.last_asked = its.last_answer = 0;
        ended_.add_what_stays(std::exchange(its.page, {}));
        pages_.set();
        changed_.set();
        co_return fmt::format("(pid {}) {}", pid, describe(status));
    }

    result<> start(worker& its) {
        EDDY_ASSERT(!its.program && !its.is_ready);
        auto ends = make_worker_channel();
        if (!ends) return fail(ends.error());
        if (auto sent =
                unix_socket::send_descriptor(ends->supervisor.get(), "board", board_->descriptor());
            !sent)
            return fail(sent.error());
        if (auto sent = unix_socket::send_descriptor(ends->supervisor.get(), "listener",
                                                     handoffs_.socket.socket.get());
            !sent)
            return fail(sent.error());
        process_options how;
        how.input = stdio::shared;
        how.descriptor = ends->worker.get();
        how.output = stdio::null;
        how.own_group = true;  // a terminal's Ctrl-C is for the supervisor
        how.environment =
            environment_with(worker_variable, to_text({its.number, static_cast<int>(::getpid())}));
        std::vector<std::string> words = {own_program};
        words.insert(words.end(), options_.worker_arguments.begin(),
                     options_.worker_arguments.end());
        words.push_back(fmt::format("-io-backend={}", to_string(loop::current().kind())));
        auto started = process::start(words, how);
        if (!started) return fail(started.error());
        its.program.emplace(std::move(*started));
        its.channel = std::move(ends->supervisor);
        return {};
    }

    task<void> read_messages(worker& its) {
        for (;;) {
            const auto message = co_await receive_worker_message(its.channel.get());
            if (!message || message->empty()) co_return;
            if (*message == "ready") {
                its.is_ready = true;
                if (ready_workers() == workers_.size()) has_begun_ = true;
                changed_.set();
            } else if (const auto read = parse_page(*message)) {
                its.page = read->page;
                its.last_answer = read->number;
                pages_.set();
            }
        }
    }

    task<std::string> metrics_text() override {
        const std::uint64_t request = ++last_request_;
        for (const auto& each : workers_)
            if (each->is_ready && send_worker_message(each->channel.get(), page_request(request)))
                each->last_asked = request;
        const time_point until = loop::current().after(page_time);
        while (std::ranges::any_of(workers_,
                                   [&](const auto& each) { return each->is_asked(request); })) {
            pages_.reset();
            if (auto come = co_await with_deadline(until, pages_.wait()); !come) break;
        }
        metrics_sum sum = ended_;
        for (const auto& each : workers_) sum.add(each->page);
        // Each worker has the peak of all.
        const runtime::metric& peak = runtime::stream::peak_streams_metric;
        sum.set_sample(stream_metric_name(peak), to_string(peak.kind), peak.help,
                       static_cast<double>(board_->peak_streams()));
        const runtime::metric& errors = runtime::stream::stream_errors_total;
        if (lost_streams_ > 0)
            sum.add_sample(stream_metric_name(errors) + "{reason=\"worker_died\"}",
                           to_string(errors.kind), errors.help, static_cast<double>(lost_streams_));
        sum.set_sample("daemon_workers", "gauge", "Worker processes that accept clients.",
                       static_cast<double>(ready_workers()));
        sum.set_sample("daemon_worker_restarts_total", "counter",
                       "Worker processes that died and were started again.",
                       static_cast<double>(restarts_));
        co_return sum.render();
    }
    std::string_view fault() const noexcept override {
        return ready_workers() == 0 ? "no worker lives" : "";
    }

    const stream_daemon_options& options_;
    signal_set signals_;
    stderr_journal journal_;
    std::shared_ptr<worker_board> board_;
    handoff::handoff_socket handoffs_;
    std::vector<std::unique_ptr<worker>> workers_;

    event changed_;  // of a worker, or the end has begun
    event ending_;
    event pages_;  // a page has come, or a worker has gone
    bool is_ending_ = false;
    bool has_begun_ = false;    // all workers were ready
    bool is_hopeless_ = false;  // one ended before
    std::uint64_t last_request_ = 0;
    std::uint64_t restarts_ = 0;
    std::uint64_t lost_streams_ = 0;
    metrics_sum ended_;  // of workers that have ended
};

}  // namespace

task<int> supervise_stream_workers(const stream_daemon_options& options, std::size_t workers,
                                   signal_set signals) {
    EDDY_ASSERT(workers >= 1 && workers <= runtime::stream::max_workers);
    stream_supervisor all(options, workers, std::move(signals));
    co_return co_await all.run();
}

}  // namespace eddy::daemon
