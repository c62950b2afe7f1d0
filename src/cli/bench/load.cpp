// Load on one server: a loop a thread, a coroutine a connection, and the main thread, which shows
// the progress.
#include "cli/bench/load.hpp"

#include <eddy/io/loop_group.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/timeout.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

namespace eddy::cli::bench {
namespace {

using namespace std::chrono_literals;

/// A batch of at most this many bytes is in the sockets' buffers before the server replies; a
/// larger one is written while replies are read, or both sides would wait for each other.
constexpr std::size_t direct_batch_limit = 128 * 1024;
/// Period of the check for timeouts. It also bounds how much later a run ends.
constexpr duration watch_pause = 20ms;
/// After a connection that failed.
constexpr duration retry_pause = 10ms;

duration seconds_to_duration(double seconds) {
    return std::chrono::duration_cast<duration>(std::chrono::duration<double>(seconds));
}

/// Counts threads down; one waits for zero. Any thread.
class countdown {
public:
    explicit countdown(std::size_t count) : left_(count) {}
    void arrive() {
        const std::lock_guard lock(mutex_);
        if (--left_ == 0) changed_.notify_all();
    }
    /// True at zero, which it awaits at most until `when`.
    bool wait_until(time_point when) {
        std::unique_lock lock(mutex_);
        return changed_.wait_until(lock, when, [&] { return left_ == 0; });
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::size_t left_;
};

/// The run's plan, shared by the threads: times are set once all have connected.
class plan {
public:
    explicit plan(const load_options& of)
        : options(of), left_(of.requests), connecting_(of.threads) {}

    /// Once a thread has connected, or failed to. The last one sets the times.
    void connected() {
        if (connecting_.fetch_sub(1) != 1) return;
        // Enough for all threads to see it.
        const time_point first = steady::now() + 5ms;
        begin = first + seconds_to_duration(options.warm_up);
        end =
            options.requests > 0 ? time_point::max() : begin + seconds_to_duration(options.seconds);
        start_ns_.store(first.time_since_epoch().count(), std::memory_order_release);
    }
    bool is_set() const noexcept { return start_ns_.load(std::memory_order_acquire) != 0; }
    time_point start() const noexcept { return time_point(duration(start_ns_.load())); }

    /// Takes up to `count` of the requests to send.
    std::size_t claim(std::size_t count) noexcept {
        if (options.requests == 0) return count;
        // Exact, so that what others give back is sent, too.
        std::uint64_t left = left_.load(std::memory_order_relaxed);
        std::uint64_t taken = 0;
        do taken = std::min<std::uint64_t>(left, count);
        while (!left_.compare_exchange_weak(left, left - taken, std::memory_order_relaxed));
        return static_cast<std::size_t>(taken);
    }
    void give_back(std::size_t count) noexcept {
        if (options.requests > 0) left_.fetch_add(count, std::memory_order_relaxed);
    }

    const load_options& options;
    // Only once is_set().
    time_point begin;  // of what is measured
    time_point end;

private:
    std::atomic<std::uint64_t> left_;
    std::atomic<std::size_t> connecting_;
    std::atomic<std::int64_t> start_ns_{0};
};

/// One connection.
struct slot {
    std::unique_ptr<conversation> talk;
    stream connection;
    std::size_t number = 0;     // among those of all threads
    std::uint64_t planned = 0;  // requests of the open loop that were answered
    time_point last_byte;       // when the last byte came, or went
    bool waits = false;
    bool is_expired = false;
    bool was_used = false;        // a batch was answered on this connection
    bool ended_in_order = false;  // the last batch was cut short by an orderly close
    bool is_cancelled = false;    // the run is given up
};

/// Requests that are sent at once. The latency of the i-th counts from base + i * step.
struct batch {
    std::size_t count;
    time_point base;
    duration step;
    tally* into;
};

/// Exchange of batches over connections. One loop's thread.
class exchanger {
public:
    explicit exchanger(const load_options& of) : options_(of) {}

    /// Connects and makes the protocol's handshake; false after counting the fault.
    task<bool> connect(slot& s, tally& into) {
        const tcp::connect_options usual;
        auto opened = co_await with_timeout(patience(), transport::connect(options_.server, usual));
        if (!opened) {
            into.count(fault::connect,
                       transport::explain(options_.server.to_string(), opened.error()));
            co_return false;
        }
        s.connection = std::move(*opened);
        s.was_used = s.is_expired = false;
        s.last_byte = steady::now();
        const std::string_view opening = s.talk->open();
        if (opening.empty()) co_return true;
        // Here, not by the watch, which begins once all have connected.
        auto sent = co_await with_timeout(patience(), s.connection.write_all(opening));
        if (!sent) {
            lose(s, sent.error(), into);
            co_return false;
        }
        while (!s.talk->is_open()) {
            auto received = co_await with_timeout(patience(), s.connection.read());
            if (!received) {
                s.is_expired = received.error() == errc::timed_out;
                lose(s, received.error(), into);
                co_return false;
            }
            if (s.talk->scan(received->text(), 0, into).then != scan_result::state::open) {
                drop(s);
                co_return false;
            }
        }
        co_return true;
    }

    /// Sends a batch and awaits its replies; yields how many came. Connects before it if need be.
    task<std::size_t> exchange(slot& s, batch wanted) {
        s.ended_in_order = false;
        if (!s.connection && !co_await connect(s, *wanted.into)) {
            if (!co_await loop::current().sleep_for(retry_pause)) s.is_cancelled = true;
            co_return 0;
        }
        s.last_byte = steady::now();
        s.waits = true;
        const std::string answers = s.talk->take_answers();
        if (!answers.empty()) {
            // If it fails, so does what follows.
            static_cast<void>(co_await s.connection.write_all(answers));
        }
        const std::string_view bytes = s.talk->requests(wanted.count);
        std::size_t got = 0;
        if (bytes.size() <= direct_batch_limit) {
            // Replies may have come before the server closed, so they are read in any case.
            static_cast<void>(co_await s.connection.write_all(bytes));
            got = co_await read_replies(s, wanted);
        } else {
            co_await join_scope([&](scope& children) -> task<void> {
                children.spawn(write(s, bytes));
                got = co_await read_replies(s, wanted);
            });
        }
        s.waits = false;
        s.was_used = true;
        if (options_.closes) drop(s);
        co_return got;
    }

    std::uint64_t done() const noexcept { return done_.load(std::memory_order_relaxed); }
    time_point last_reply() const noexcept { return last_; }
    duration patience() const { return std::chrono::seconds(options_.timeout_s); }

protected:
    const load_options& options_;

private:
    static void drop(slot& s) noexcept {
        s.connection.close();
        s.waits = false;
    }

    /// The connection has failed.
    void lose(slot& s, std::error_code error, tally& into) {
        if (s.is_expired)
            into.count(fault::timeout,
                       fmt::format("no byte came for {} s; --timeout makes the wait longer",
                                   options_.timeout_s));
        else
            into.count(fault::closed, "a connection ended: " + error.message());
        drop(s);
    }

    static task<void> write(slot& s, std::string_view bytes) {
        static_cast<void>(co_await s.connection.write_all(bytes));
    }

    task<std::size_t> read_replies(slot& s, batch wanted) {
        tally& into = *wanted.into;
        std::size_t got = 0;
        bool came = false;
        while (got < wanted.count) {
            auto received = co_await s.connection.read();
            if (!received) {
                if (received.error() != errc::end_of_stream) {
                    // A reset, as an end, may meet a connection that the server kept for long
                    // enough; the requests are sent again then (RFC 9112, 9.3.1).
                    if (!came && s.was_used && !s.is_expired) {
                        end_in_order(s, into);
                    } else {
                        lose(s, received.error(), into);
                    }
                    co_return got;
                }
                const scan_result last = s.talk->finish(into);
                record(wanted, got, last.replies);
                got += last.replies;
                if (got == wanted.count || (last.replies > 0 && got > 0) || (!came && s.was_used)) {
                    end_in_order(s, into);
                } else if (last.then == scan_result::state::broken) {
                    drop(s);
                } else {
                    lose(s, received.error(), into);
                }
                co_return got;
            }
            came = true;
            const std::string_view text = received->text();
            into.bytes += text.size();
            const scan_result found = s.talk->scan(text, wanted.count - got, into);
            s.last_byte = steady::now();
            if (found.replies > 0) record(wanted, got, found.replies, s.last_byte);
            got += found.replies;
            if (found.then == scan_result::state::closes) end_in_order(s, into);
            if (found.then == scan_result::state::broken) drop(s);
            if (found.then != scan_result::state::open) co_return got;
        }
        co_return got;
    }

    void end_in_order(slot& s, tally& into) noexcept {
        s.ended_in_order = true;
        if (!options_.closes) ++into.reconnects;
        drop(s);
    }

    void record(const batch& of, std::size_t first, std::size_t count,
                time_point now = steady::now()) {
        tally& into = *of.into;
        into.replies += count;
        for (std::size_t i = 0; i < count; ++i) {
            const auto waited = now - (of.base + static_cast<std::int64_t>(first + i) * of.step);
            into.latency.record(
                static_cast<std::uint64_t>(std::max<std::int64_t>(0, waited.count())));
        }
        last_ = now;
        // One thread writes it.
        done_.store(done_.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
    }

    std::atomic<std::uint64_t> done_{0};
    time_point last_{};
};

/// The connections of one thread.
class loader : public exchanger {
public:
    loader(plan& of, const protocol& speaks, std::size_t first, std::size_t count)
        : exchanger(of.options), plan_(of) {
        for (std::size_t i = 0; i < count; ++i) {
            slots_.push_back({});
            slots_.back().talk = speaks.make();
            slots_.back().number = first + i;
        }
    }

    task<void> run(countdown& done) {
        try {
            co_await connect_all();
        } catch (const std::exception& error) {
            failure_ = error.what();
        }
        plan_.connected();
        try {
            if (failure_.empty()) co_await drive_all();
        } catch (const std::exception& error) {
            failure_ = error.what();
        }
        slots_.clear();  // connections end on their loop
        done.arrive();
    }

    tally take() {
        measured_.merge_faults(warm_);
        return std::move(measured_);
    }
    const std::string& failure() const noexcept { return failure_; }

private:
    task<void> connect_all() {
        if (options_.closes) co_return;
        for (slot& each : slots_) {
            const bool is_connected = co_await connect(each, warm_);
            // The others would fail in the same way, each after its timeout.
            if (!is_connected) co_return;
        }
    }

    task<void> drive_all() {
        while (!plan_.is_set())
            if (!co_await loop::current().sleep_for(1ms)) co_return;
        static_cast<void>(co_await loop::current().sleep_until(plan_.start()));
        co_await join_scope([&](scope& children) -> task<void> {
            for (slot& each : slots_) children.spawn(drive(each));
            while (children.children() > 0) {
                static_cast<void>(co_await loop::current().sleep_for(watch_pause));
                end_silent();
            }
        });
    }

    void end_silent() {
        const auto now = steady::now();
        for (slot& each : slots_) {
            if (!each.waits || now - each.last_byte < patience()) continue;
            each.is_expired = true;
            each.connection.close();
        }
    }

    bool is_open_loop() const noexcept { return options_.rate > 0; }

    /// When the open loop's request of that number is due: the connections take turns.
    time_point due(const slot& s) const {
        const double number =
            static_cast<double>(s.number) +
            static_cast<double>(s.planned) * static_cast<double>(options_.connections);
        return plan_.start() + seconds_to_duration(number / options_.rate);
    }

    task<void> drive(slot& s) {
        const double step_s =
            is_open_loop() ? static_cast<double>(options_.connections) / options_.rate : 0;
        const duration step = seconds_to_duration(step_s);
        for (;;) {
            batch next{options_.pipeline, steady::now(), step, nullptr};
            if (is_open_loop()) {
                const time_point when = due(s);
                if (when >= plan_.end) break;
                if (next.base < when) {
                    if (!co_await loop::current().sleep_until(when)) break;
                    next.base = steady::now();
                }
                const double late = std::chrono::duration<double>(next.base - when).count();
                next.count = static_cast<std::size_t>(std::min(
                    static_cast<double>(options_.pipeline), 1 + std::floor(late / step_s)));
                if (next.base >= plan_.end) break;
                next.base = when;
            } else if (next.base >= plan_.end) {
                break;
            }
            const bool is_measured = next.base >= plan_.begin;
            if (is_measured) next.count = plan_.claim(next.count);
            if (next.count == 0) break;
            next.into = is_measured ? &measured_ : &warm_;
            const std::size_t got = co_await exchange(s, next);
            s.planned += got;
            if (s.is_cancelled) break;
            if (is_measured && s.ended_in_order) plan_.give_back(next.count - got);
        }
        if (!is_open_loop() || plan_.end == time_point::max()) co_return;
        const double missed = std::chrono::duration<double>(plan_.end - due(s)).count() / step_s;
        if (missed > 0) measured_.unsent += static_cast<std::uint64_t>(std::ceil(missed));
    }

    plan& plan_;
    std::vector<slot> slots_;
    tally measured_;
    tally warm_;
    std::string failure_;
};

/// The first pass: replies that are checked, one by one and in a pipeline.
class first_pass : public exchanger {
public:
    first_pass(const load_options& of, protocol& speaks) : exchanger(of) {
        slot_.talk = speaks.make_first();
    }

    task<void> run(countdown& done) {
        try {
            co_await join_scope([&](scope& children) -> task<void> {
                children.spawn(check());
                while (children.children() > 0) {
                    static_cast<void>(co_await loop::current().sleep_for(1ms));
                    if (!slot_.waits || steady::now() - slot_.last_byte < patience()) continue;
                    slot_.is_expired = true;
                    slot_.connection.close();
                }
            });
        } catch (const std::exception& error) {
            counts_.count(fault::connect, error.what());
        }
        slot_ = {};
        done.arrive();
    }

    const tally& counts() const noexcept { return counts_; }

private:
    task<void> check() {
        // A server may close at each reply, so a pipeline may need as many connections.
        for (const std::size_t count : {std::size_t{1}, std::size_t{1}, options_.pipeline}) {
            for (std::size_t left = count; left > 0 && counts_.errors() == 0;) {
                const std::size_t got =
                    co_await exchange(slot_, {left, steady::now(), {}, &counts_});
                left -= got;
            }
        }
    }

    slot slot_;
    tally counts_;
};

std::string describe_progress(const plan& of, std::uint64_t done, double rate) {
    const auto now = steady::now();
    const char* phase = now < of.begin ? "warm-up, " : "";
    if (of.options.requests > 0)
        return fmt::format("{}{} of {} requests, {:.0f}/s", phase, done, of.options.requests, rate);
    const double left = std::chrono::duration<double>(of.end - now).count();
    return fmt::format("{}{} requests, {:.0f}/s, {:.0f} s left", phase, done, rate,
                       std::max(left, 0.0));
}

/// Processor seconds a second, from the plan's begin.
struct processor_share {
    double own = 0;
    double server = 0;
};

/// Shows progress until the loaders are done, and measures the processor time meanwhile.
processor_share watch(const plan& of, const std::vector<std::unique_ptr<loader>>& loaders,
                      countdown& done, progress_line& progress) {
    processor_share before;
    bool has_begun = false;
    std::uint64_t shown = 0;
    time_point shown_at = steady::now();
    for (;;) {
        const auto now = steady::now();
        time_point until = now + 100ms;
        if (!has_begun && of.is_set()) {
            if (now >= of.begin) {
                before = {own_cpu_seconds(), process_cpu_seconds(of.options.server_pid)};
                has_begun = true;
            } else {
                until = std::min(until, of.begin);
            }
        } else if (!has_begun) {
            until = now + 1ms;
        }
        if (done.wait_until(until)) break;
        if (!of.is_set()) continue;
        std::uint64_t replies = 0;
        for (const auto& each : loaders) replies += each->done();
        const auto seen = steady::now();
        const double spent = std::chrono::duration<double>(seen - shown_at).count();
        if (spent < 0.1) continue;
        progress.show(describe_progress(of, replies, static_cast<double>(replies - shown) / spent));
        shown = replies;
        shown_at = seen;
    }
    if (!has_begun) return {};
    const double own = own_cpu_seconds() - before.own;
    const double server = process_cpu_seconds(of.options.server_pid) - before.server;
    const double counted = std::chrono::duration<double>(steady::now() - of.begin).count();
    return {own / counted, server / counted};
}

load_result sum_of(const std::vector<std::unique_ptr<loader>>& loaders, const plan& of,
                   processor_share used) {
    load_result made;
    time_point last = of.begin;
    for (const auto& each : loaders) {
        if (!each->failure().empty()) give_up(each->failure());
        made.counts.merge(each->take());
        last = std::max(last, each->last_reply());
    }
    made.seconds = std::max(std::chrono::duration<double>(last - of.begin).count(), 1e-9);
    made.generator_cpu = used.own;
    made.server_cpu = used.server;
    return made;
}

}  // namespace

void tally::count(fault kind, std::string_view what, std::uint64_t times) {
    faults[static_cast<std::size_t>(kind)] += times;
    if (first_fault.empty()) first_fault = what;
}

std::uint64_t tally::errors() const noexcept {
    std::uint64_t sum = 0;
    for (const std::uint64_t each : faults) sum += each;
    return sum;
}

void tally::merge_faults(const tally& other) {
    for (std::size_t i = 0; i < faults.size(); ++i) faults[i] += other.faults[i];
    if (first_fault.empty()) first_fault = other.first_fault;
}

void tally::merge(const tally& other) {
    replies += other.replies;
    bytes += other.bytes;
    reconnects += other.reconnects;
    unsent += other.unsent;
    for (std::size_t i = 0; i < statuses.size(); ++i) statuses[i] += other.statuses[i];
    merge_faults(other);
    latency.merge(other.latency);
}

load_result run_load(const load_options& wanted, protocol& speaks, progress_line& progress) {
    const std::size_t needed = wanted.connections + 64;
    if (const std::size_t allowed = raise_descriptor_limit(needed); allowed < needed)
        give_up(fmt::format("{} connections need {} open files, and {} are allowed (ulimit -n)",
                            wanted.connections, needed, allowed));
    static_cast<void>(process_cpu_seconds(wanted.server_pid));  // that it is there

    // The threads end before what they use.
    first_pass check(wanted, speaks);
    countdown is_checked(1);
    plan the_plan(wanted);
    std::vector<std::unique_ptr<loader>> loaders;
    countdown done(wanted.threads);

    loop_group_options choices;
    choices.threads = wanted.threads;
    choices.name = "eddy-bench";
    choices.loop.kind = wanted.io_backend;
    auto group = loop_group::start(choices);
    if (!group) give_up("could not make an event loop: " + group.error().message());
    const auto post = [&](std::size_t index, task<void> work) {
        if (auto posted = (*group)->post(index, std::move(work)); !posted)
            give_up("cannot post to the event loop: " + posted.error().message());
    };

    post(0, check.run(is_checked));
    while (!is_checked.wait_until(steady::now() + 1h)) {
    }
    if (check.counts().errors() > 0) give_up(check.counts().first_fault);

    for (std::size_t i = 0, first = 0; i < wanted.threads; ++i) {
        const std::size_t count =
            wanted.connections / wanted.threads + (i < wanted.connections % wanted.threads ? 1 : 0);
        loaders.push_back(std::make_unique<loader>(the_plan, speaks, first, count));
        first += count;
    }
    for (std::size_t i = 0; i < wanted.threads; ++i) post(i, loaders[i]->run(done));
    const processor_share used = watch(the_plan, loaders, done, progress);
    return sum_of(loaders, the_plan, used);
}

}  // namespace eddy::cli::bench
