// Loops: turns, fairness, work from other threads, absence of allocations.
#include <eddy/base/frame_pool.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/scope.hpp>

#include "io/testing.hpp"

#include <sys/resource.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace eddy::testing {
namespace {

EDDY_ON_EVERY_IO_BACKEND(loop_io);
EDDY_ON_EVERY_KERNEL_IO_BACKEND(loop_kernel_io);

TEST(loop_options_test, backend_names_are_read_back) {
    for (const io_backend_kind kind : {io_backend_kind::automatic, io_backend_kind::uring,
                                       io_backend_kind::epoll, io_backend_kind::sim})
        EXPECT_EQ(must(parse_io_backend_kind(to_string(kind))), kind);
    EXPECT_EQ(error_of(parse_io_backend_kind("kqueue")), errc::malformed);
    EXPECT_EQ(error_of(parse_io_backend_kind("")), errc::malformed);
}

TEST(loop_options_test, automatic_chooses_a_backend_of_the_kernel) {
    auto made = loop::create();
    ASSERT_TRUE(made) << made.error().message();
    EXPECT_TRUE((*made)->kind() == io_backend_kind::uring ||
                (*made)->kind() == io_backend_kind::epoll);
}

TEST_P(loop_io, options_out_of_their_ranges_are_refused) {
    make_loop({});
    const auto create = [this](auto change) {
        end_loop();
        loop_options options;
        options.kind = GetParam();
        change(options);
        return error_of(loop::create(options));
    };
    const std::error_code refused = errno_code(EINVAL);
    const std::error_code none;
    EXPECT_EQ(create([](loop_options& o) { o.file_threads = 0; }), refused);
    EXPECT_EQ(create([](loop_options& o) { o.file_threads = loop_options::max_file_threads + 1; }),
              refused);
    EXPECT_EQ(create([](loop_options& o) { o.file_threads = loop_options::max_file_threads; }),
              none);
    EXPECT_EQ(create([](loop_options& o) { o.file_threads = 1; }), none);
    for (auto size : {&loop_options::buffer_size, &loop_options::datagram_size}) {
        EXPECT_EQ(create([size](loop_options& o) { o.*size = 0; }), refused);
        EXPECT_EQ(create([size](loop_options& o) { o.*size = loop_options::min_buffer_size - 1; }),
                  refused);
        EXPECT_EQ(create([size](loop_options& o) { o.*size = loop_options::max_buffer_size + 1; }),
                  refused);
        EXPECT_EQ(create([size](loop_options& o) { o.*size = UINT32_MAX; }), refused);
        EXPECT_EQ(create([size](loop_options& o) { o.*size = loop_options::min_buffer_size; }),
                  none);
        // One buffer, since the machine may not have room for more of that size.
        EXPECT_EQ(create([size](loop_options& o) {
                      o.buffer_count = o.datagram_count = 1;
                      o.*size = loop_options::max_buffer_size;
                  }),
                  none);
    }
    EXPECT_EQ(create([](loop_options& o) { o.sim.socket_buffer = 0; }),
              simulated() ? refused : none);
}

TEST_P(loop_io, a_count_of_buffers_beyond_its_range_is_its_end) {
    for (const std::uint32_t count : {0u, UINT32_MAX}) {
        loop_options options;
        options.buffer_count = options.datagram_count = count;
        options.buffer_size = options.datagram_size = 1024;
        make_loop(options);
        run([this]() -> task<> {
            connection pair = co_await connect();
            must(co_await pair.client.write_all("ping"));
            EXPECT_EQ(must(co_await pair.server.read()).text(), "ping");
            datagram socket = must(here().bind_datagram(loopback()));
            must(socket.send_to(as_bytes("ping"), socket.local()));
            EXPECT_EQ(must(co_await socket.receive()).payload.text(), "ping");
        });
    }
}

TEST_P(loop_io, knows_its_kind_and_its_thread) {
    EXPECT_EQ(here().kind(), GetParam());
    EXPECT_EQ(&loop::current(), &here());
}

TEST_P(loop_io, runs_one_root_after_another) {
    for (int i = 0; i < 3; ++i) {
        int seen = 0;
        run([&]() -> task<> {
            must(co_await here().sleep_for(1us));
            connection pair = co_await connect();
            must(co_await pair.client.write_all("x"));
            static_cast<void>(must(co_await pair.server.read()));
            ++seen;
        });
        EXPECT_EQ(seen, 1);
    }
}

task<int> answer_later() {
    must(co_await sleep_for(1ms));
    must(co_await sleep_until(loop::current().now() + 1ms));
    co_return 42;
}
task<> throw_later() {
    must(co_await sleep_for(1ms));
    throw std::runtime_error("from main");
}

TEST_P(loop_io, a_main_runs_a_task_on_a_loop_of_its_own) {
    end_loop();
    loop_options options = with_environment({});
    options.kind = GetParam();
    for (int i = 0; i < 2; ++i) EXPECT_EQ(eddy::run(answer_later(), options), 42);
    std::string failure;
    try {
        eddy::run(throw_later(), options);
    } catch (const std::runtime_error& caught) {
        failure = caught.what();
    }
    EXPECT_EQ(failure, "from main");

    options.file_threads = 0;
    std::error_code refused;
    try {
        eddy::run(answer_later(), options);
    } catch (const std::system_error& caught) {
        refused = caught.code();
    }
    EXPECT_EQ(refused, errno_code(EINVAL));
    make_loop({});
}

TEST_P(loop_io, sleep_for_and_sleep_until_are_those_of_the_running_loop) {
    run([this]() -> task<> {
        const time_point begin = here().now();
        must(co_await sleep_for(2ms));
        EXPECT_GE(here().now(), begin + 2ms);
        must(co_await sleep_until(begin + 4ms));
        EXPECT_GE(here().now(), begin + 4ms);
        cancel_source stop;
        stop.request();
        co_await []() -> task<> { EXPECT_EQ(error_of(co_await sleep_for(1h)), errc::cancelled); }()
                             .under(stop);
    });
}

TEST_P(loop_io, yield_gives_others_their_turn_in_order) {
    run([this]() -> task<> {
        std::string order;
        const auto speak = [](loop& where, std::string& to, char name) -> task<> {
            for (int i = 0; i < 3; ++i) {
                to += name;
                co_await where.yield();
            }
        };
        co_await join_scope([&](scope& children) -> task<> {
            for (const char name : {'a', 'b', 'c'}) children.spawn(speak(here(), order, name));
            co_return;
        });
        EXPECT_EQ(order.size(), 9u);
        for (std::size_t i = 0; i < 9; i += 3) EXPECT_EQ(spoken(order.substr(i, 3)), "abc");
    });
}

/// Never suspends by itself: all its waits pass at once.
task<void> hog(event& always_set, const bool& stop, std::uint64_t& steps) {
    while (!stop) {
        must(co_await always_set.wait());
        ++steps;
    }
}

TEST_P(loop_io, a_coroutine_that_never_has_to_wait_does_not_starve_others) {
    run([this]() -> task<> {
        connection pair = co_await connect();
        event always_set;
        always_set.set();
        bool stop = false;
        std::uint64_t steps = 0;
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn(hog(always_set, stop, steps));
            // Other coroutines run, and so does the network.
            for (int i = 0; i < 100; ++i) {
                const std::uint64_t before = steps;
                must(co_await pair.client.write_all("ping"));
                EXPECT_EQ(must(co_await pair.server.read()).text(), "ping");
                co_await here().yield();
                EXPECT_LE(steps - before, 50 * loop::inline_budget);
            }
            stop = true;
        });
        EXPECT_GT(steps, 0u);
    });
}

/// Ignores results, so it continues when it is cancelled. Ends where it would do so for ever.
task<void> sleep_until_stopped(const bool& stop, std::uint64_t& steps) {
    while (!stop && steps < 10'000'000) {
        static_cast<void>(co_await loop::current().sleep_for(1ms));
        co_await loop::current().yield();
        ++steps;
    }
}

TEST_P(loop_io, a_cancelled_coroutine_that_ignores_it_does_not_starve_others) {
    run([this]() -> task<> {
        connection pair = co_await connect();
        bool stop = false;
        std::uint64_t steps = 0;
        scope children(co_await current_source());
        children.cancel();
        children.spawn(sleep_until_stopped(stop, steps));
        // Other coroutines run, and so does the network.
        for (int i = 0; i < 100; ++i) {
            const std::uint64_t before = steps;
            must(co_await pair.client.write_all("ping"));
            EXPECT_EQ(must(co_await pair.server.read()).text(), "ping");
            co_await here().yield();
            EXPECT_LE(steps - before, 50 * loop::inline_budget);
        }
        EXPECT_GT(steps, 0u);
        EXPECT_LT(steps, 10'000'000u);
        stop = true;
        co_await children.join();
    });
}

TEST_P(loop_io, bytes_that_are_there_already_are_read_in_bounded_turns) {
    run([this]() -> task<> {
        connection busy = co_await connect();
        const std::string much(10'000, 'x');
        must(co_await busy.client.write_all(much));
        busy.client.close();
        std::size_t read = 0;
        std::size_t longest = 0;
        std::size_t since_a_turn = 0;
        bool ended = false;
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn(
                [](stream from, std::size_t& total, std::size_t& run_length, bool& done) -> task<> {
                    std::byte byte[1];
                    while (co_await from.read_some(byte)) {
                        ++total;
                        ++run_length;
                    }
                    done = true;
                }(std::move(busy.server), read, since_a_turn, ended));
            while (!ended) {
                longest = std::max(longest, std::exchange(since_a_turn, 0));
                co_await here().yield();
            }
        });
        EXPECT_EQ(read, 10'000u);
        // An event, or a turn of the ready list, and then the budget.
        EXPECT_LE(longest, 2 * (loop::inline_budget + 2));
    });
}

struct counting_work final : posted_work {
    void run() noexcept override {
        EXPECT_EQ(std::this_thread::get_id(), home);
        ++*runs;
        if (--*left == 0) all_done->set();
    }
    std::thread::id home;
    std::size_t* runs = nullptr;
    std::size_t* left = nullptr;
    event* all_done = nullptr;
};

TEST_P(loop_io, work_posted_by_many_threads_all_runs_on_the_loop) {
    constexpr std::size_t thread_count = 8;
    constexpr std::size_t posts_each = 5000;
    std::vector<counting_work> work(thread_count * posts_each);
    std::size_t runs = 0;
    std::size_t left = work.size();
    event all_done;
    for (counting_work& each : work) {
        each.home = std::this_thread::get_id();
        each.runs = &runs;
        each.left = &left;
        each.all_done = &all_done;
    }
    std::vector<std::thread> threads;
    run_with_threads([&]() -> task<> {
        for (std::size_t t = 0; t < thread_count; ++t)
            threads.emplace_back([&, t] {
                for (std::size_t i = 0; i < posts_each; ++i) {
                    here().post(work[t * posts_each + i]);
                    // Let the loop fall asleep now and then.
                    if (i % 64 == 0) std::this_thread::yield();
                }
            });
        must(co_await all_done.wait());
    });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(runs, work.size());
}

TEST_P(loop_io, work_of_one_thread_runs_in_its_order) {
    struct ordered_work final : posted_work {
        void run() noexcept override {
            order->push_back(number);
            if (order->size() == 1000) done->set();
        }
        int number = 0;
        std::vector<int>* order = nullptr;
        event* done = nullptr;
    };
    std::vector<ordered_work> work(1000);
    std::vector<int> order;
    event done;
    std::thread poster;
    run_with_threads([&]() -> task<> {
        poster = std::thread([&] {
            for (int i = 0; i < 1000; ++i) {
                ordered_work& each = work[static_cast<std::size_t>(i)];
                each.number = i;
                each.order = &order;
                each.done = &done;
                here().post(each);
            }
        });
        must(co_await done.wait());
    });
    poster.join();
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST_P(loop_io, a_post_wakes_a_loop_that_sleeps) {
    // One at a time: each post finds the loop with nothing to do.
    std::atomic<int> wanted{0};
    std::size_t runs = 0;
    std::thread poster;
    run_with_threads([&]() -> task<> {
        constexpr int rounds = 500;
        std::vector<counting_work> work(rounds);
        event next;
        std::size_t left = 0;
        poster = std::thread([&] {
            for (int i = 0; i < rounds; ++i) {
                wanted.wait(i);
                here().post(work[static_cast<std::size_t>(i)]);
            }
        });
        for (int i = 0; i < rounds; ++i) {
            counting_work& each = work[static_cast<std::size_t>(i)];
            each.home = std::this_thread::get_id();
            each.runs = &runs;
            each.left = &left;
            each.all_done = &next;
            left = 1;
            wanted.store(i + 1);
            wanted.notify_one();
            must(co_await next.wait());
            next.reset();
        }
    });
    poster.join();
    EXPECT_EQ(runs, 500u);
}

TEST_P(loop_io, work_may_end_the_loop_while_its_poster_is_still_in_post) {
    for (int i = 0; i < 300; ++i) {
        std::thread poster;
        counting_work work;
        std::size_t runs = 0;
        std::size_t left = 1;
        event done;
        work.home = std::this_thread::get_id();
        work.runs = &runs;
        work.left = &left;
        work.all_done = &done;
        run_with_threads([&]() -> task<> {
            poster = std::thread([&] { here().post(work); });
            must(co_await done.wait());
        });
        make_loop({});  // destroys the loop at once
        poster.join();
    }
}

TEST_P(loop_io, work_posted_before_run_is_run) {
    std::size_t runs = 0;
    std::size_t left = 1;
    event done;
    counting_work work;
    work.home = std::this_thread::get_id();
    work.runs = &runs;
    work.left = &left;
    work.all_done = &done;
    here().post(work);
    run([&]() -> task<> { must(co_await done.wait()); });
    EXPECT_EQ(runs, 1u);
}

TEST_P(loop_io, spinning_finds_the_same_events) {
    loop_options options;
    options.spin = 200us;
    make_loop(options);
    run([this]() -> task<> {
        connection pair = co_await connect();
        for (int i = 0; i < 200; ++i) {
            must(co_await pair.client.write_all("ping"));
            EXPECT_EQ(must(co_await pair.server.read()).text(), "ping");
        }
        must(co_await here().sleep_for(1ms));
    });
}

/// Number of times that this thread has gone to sleep.
long sleeps() {
    rusage used{};
    getrusage(RUSAGE_THREAD, &used);
    return used.ru_nvcsw;
}

TEST_P(loop_kernel_io, spinning_for_ever_never_sleeps) {
    loop_options options;
    options.spin = duration::max();
    make_loop(options);
    run([this]() -> task<> {
        constexpr int waits = 20;
        must(co_await here().sleep_for(1ms));
        const long before = sleeps();
        for (int i = 0; i < waits; ++i) must(co_await here().sleep_for(1ms));
        EXPECT_LT(sleeps() - before, waits / 2);
    });
}

// Sleeps of a loop that works for a while and then pauses for some microseconds, ten times over.
long sleeps_in_short_pauses(loop& here) {
    long count = 0;
    here.run([](loop& on, long& slept) -> task<> {
        const long before = sleeps();
        for (int i = 0; i < 10; ++i) {
            const time_point work_ends = on.now() + 200us;
            while (std::chrono::steady_clock::now() < work_ends) {
            }
            must(co_await on.sleep_until(std::chrono::steady_clock::now() + 12us));
        }
        slept = sleeps() - before;
    }(here, count));
    return count;
}

TEST_P(loop_kernel_io, sleeps_through_short_pauses_only_without_polling) {
    // On a busy machine a pause may end before the loop can sleep.
    bool is_seen = false;
    for (int i = 0; i < 100 && !is_seen; ++i) {
        loop_options options;
        make_loop(options);
        const long polling = sleeps_in_short_pauses(here());
        options.polling = false;
        make_loop(options);
        is_seen = sleeps_in_short_pauses(here()) > polling;
    }
    EXPECT_TRUE(is_seen);
}

std::size_t open_descriptors() {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
        ++count;
    return count;
}

TEST_P(loop_kernel_io, leaves_no_descriptor_behind) {
    const std::size_t before = open_descriptors();
    run([this]() -> task<> {
        const std::size_t begin = open_descriptors();
        for (int i = 0; i < 20; ++i) {
            connection pair = co_await connect();
            datagram socket = must(here().bind_datagram(loopback()));
            must(co_await pair.client.write_all("x"));
            static_cast<void>(must(co_await pair.server.read()));
        }
        // An io-backend may need a turn or two to withdraw its requests from the kernel.
        while (open_descriptors() > begin) must(co_await here().sleep_for(1ms));
    });
    EXPECT_EQ(open_descriptors(), before);
}

}  // namespace
}  // namespace eddy::testing
