// Cost of a timer beside few others and beside a million, in Eddy and in Asio: the number after a
// benchmark's name is that of the others. `items_per_second` is arms with their cancellations, or
// timers fired; its inverse is the figure to quote.
#include <eddy/base/random.hpp>
#include <eddy/io/loop.hpp>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

namespace {

using namespace eddy;
using namespace std::chrono_literals;

constexpr std::size_t few_timers = 10;
constexpr std::size_t most_timers = 1'000'000;

std::size_t size_of(const benchmark::State& state) {
    return static_cast<std::size_t>(state.range(0));
}

class counting_timer final : public timer {
public:
    std::uint64_t* fired = nullptr;

private:
    void fire() noexcept override { ++*fired; }
};

/// A loop with timers whose deadlines are spread, as those of connections' timeouts are.
class crowd {
public:
    crowd(std::size_t size, duration from, duration spread)
        : timers(size), from_(from), spread_(spread) {
        for (counting_timer& each : timers) {
            each.fired = &fired;
            owner->arm(each, deadline());
        }
    }
    /// As many as a benchmark's argument says, over an hour.
    explicit crowd(const benchmark::State& state) : crowd(size_of(state), 1h, 1h) {}
    ~crowd() {
        for (counting_timer& each : timers) owner->disarm(each);
    }

    time_point deadline() {
        const auto away = random.below(static_cast<std::uint64_t>(spread_.count()));
        return begin_ + from_ + duration(static_cast<duration::rep>(away));
    }
    counting_timer& any() { return timers[random.below(timers.size())]; }

    random_generator random{42};
    std::uint64_t fired = 0;
    std::unique_ptr<loop> owner = std::move(*loop::create({}));
    std::vector<counting_timer> timers;

private:
    duration from_;
    duration spread_;
    time_point begin_ = owner->now();
};

/// A timeout that is armed before an operation and cancelled after it.
void arm_and_cancel(benchmark::State& state) {
    crowd others(state);
    counting_timer mine;
    for (auto _ : state) {
        others.owner->arm(mine, others.deadline());
        others.owner->disarm(mine);
    }
    state.SetItemsProcessed(state.iterations());
}

/// The same for the timers of 64 operations at once.
void arm_and_cancel_64(benchmark::State& state) {
    crowd others(state);
    std::vector<counting_timer> mine(64);
    for (auto _ : state) {
        for (counting_timer& each : mine) others.owner->arm(each, others.deadline());
        for (counting_timer& each : mine) others.owner->disarm(each);
    }
    state.SetItemsProcessed(state.iterations() * 64);
}

/// Any of the others is put off, as an idle connection's timeout is when something comes. Of a
/// million, nothing of it is in the processor's caches.
void put_off_any(benchmark::State& state) {
    crowd others(state);
    for (auto _ : state) {
        counting_timer& one = others.any();
        others.owner->disarm(one);
        others.owner->arm(one, others.deadline());
    }
    state.SetItemsProcessed(state.iterations());
}

/// The million fire within a second of a loop's time. `longest_ms` is the longest turn: what a
/// connection of that loop may have to wait.
void fire_all(benchmark::State& state) {
    double longest_ms = 0;
    for (auto _ : state) {
        state.PauseTiming();
        auto others = std::make_unique<crowd>(most_timers, 10ms, 1s);
        state.ResumeTiming();
        others->owner->run([](crowd& all, double& longest) -> task<void> {
            auto last = std::chrono::steady_clock::now();
            while (all.fired < most_timers) {
                co_await loop::current().yield();
                const auto present = std::chrono::steady_clock::now();
                longest = std::max(
                    longest, std::chrono::duration<double, std::milli>(present - last).count());
                last = present;
            }
        }(*others, longest_ms));
        state.PauseTiming();
        others.reset();
        state.ResumeTiming();
    }
    state.counters["longest_ms"] = longest_ms;
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(most_timers));
}

/// The same crowd as steady_timers. A cancelled wait of Asio's ends in a handler that a loop has to
/// run, so that belongs to its cost.
class asio_crowd {
public:
    explicit asio_crowd(std::size_t size) {
        timers.reserve(size);
        for (std::size_t i = 0; i < size; ++i) {
            timers.emplace_back(context);
            arm(timers.back());
        }
    }
    void arm(asio::steady_timer& one) {
        const auto away = random.below(static_cast<std::uint64_t>(duration(1h).count()));
        one.expires_at(begin_ + 1h + duration(static_cast<duration::rep>(away)));
        one.async_wait([](std::error_code) {});
    }

    random_generator random{42};
    asio::io_context context{1};
    std::vector<asio::steady_timer> timers;

private:
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

void asio_arm_and_cancel(benchmark::State& state) {
    asio_crowd others(size_of(state));
    asio::steady_timer mine(others.context);
    for (auto _ : state) {
        others.arm(mine);
        mine.cancel();
        others.context.poll();
    }
    state.SetItemsProcessed(state.iterations());
}

void asio_arm_and_cancel_64(benchmark::State& state) {
    asio_crowd others(size_of(state));
    std::vector<asio::steady_timer> mine;
    for (int i = 0; i < 64; ++i) mine.emplace_back(others.context);
    for (auto _ : state) {
        for (asio::steady_timer& each : mine) others.arm(each);
        for (asio::steady_timer& each : mine) each.cancel();
        others.context.poll();
    }
    state.SetItemsProcessed(state.iterations() * 64);
}

void asio_put_off_any(benchmark::State& state) {
    asio_crowd others(size_of(state));
    for (auto _ : state) {
        others.arm(
            others.timers[others.random.below(others.timers.size())]);  // which cancels it before
        others.context.poll();
    }
    state.SetItemsProcessed(state.iterations());
}

BENCHMARK(asio_arm_and_cancel)->Arg(few_timers)->Arg(most_timers);
BENCHMARK(asio_arm_and_cancel_64)->Arg(few_timers)->Arg(most_timers);
BENCHMARK(asio_put_off_any)->Arg(few_timers)->Arg(most_timers);
BENCHMARK(arm_and_cancel)->Arg(few_timers)->Arg(most_timers);
BENCHMARK(arm_and_cancel_64)->Arg(few_timers)->Arg(most_timers);
BENCHMARK(put_off_any)->Arg(few_timers)->Arg(most_timers);
BENCHMARK(fire_all)->Iterations(2)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
