// Fixture of this layer's tests, which runs each of them on every io-backend, and helpers for
// coroutines in tests.
#pragma once

#include <eddy/base/random.hpp>
#include <eddy/base/result.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timeout.hpp>

#include "base/files/temporary_folder.hpp"
#include "base/test_seed.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <ostream>
#include <source_location>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace eddy {

/// True where the sanitizers need descriptors of their own: UBSan reads memory through a pipe
/// before it judges an object's type, and takes a pipe that cannot be had for a broken object.
inline bool sanitizer_needs_descriptors() noexcept {
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(undefined_behavior_sanitizer)
    return true;
#endif
#endif
    return false;
}

// So that GoogleTest prints a parameter by its name.
inline void PrintTo(io_backend_kind kind, std::ostream* out) { *out << to_string(kind); }

}  // namespace eddy

namespace eddy::testing {

using namespace std::chrono_literals;

/// The value of a result that a test relies on; fails the test where there is none.
template <class T>
T must(result<T> outcome, std::source_location where = std::source_location::current()) {
    if (!outcome)
        throw std::runtime_error(std::string(where.file_name()) + ":" +
                                 std::to_string(where.line()) + ": " + outcome.error().message());
    if constexpr (!std::is_void_v<T>) return std::move(*outcome);
}

/// The error of a result, or none.
template <class T>
std::error_code error_of(const result<T>& outcome) {
    return outcome ? std::error_code() : outcome.error();
}

/// EDDY_TEST_SQPOLL=1 and EDDY_TEST_ZERO_COPY=<bytes> run the same tests in other modes of
/// io_uring; EDDY_TEST_SHUFFLE=1 runs them with the simulator's sim_options::shuffle.
inline loop_options with_environment(loop_options options) {
    if (const char* on = std::getenv("EDDY_TEST_SQPOLL")) options.sqpoll = *on == '1';
    if (const char* bytes = std::getenv("EDDY_TEST_ZERO_COPY"))
        options.zero_copy_threshold = std::strtoull(bytes, nullptr, 10);
    if (const char* on = std::getenv("EDDY_TEST_SHUFFLE")) options.sim.shuffle = *on == '1';
    return options;
}

/// Bytes that encode their position in a stream, so that lost, doubled and swapped ones are seen.
class pattern {
public:
    explicit pattern(std::uint64_t stream_number) noexcept : number_(stream_number) {}

    std::vector<std::byte> next(std::size_t size) {
        std::vector<std::byte> bytes(size);
        for (std::byte& b : bytes) b = at(position_++);
        return bytes;
    }
    /// True when these are the next bytes.
    bool continues_with(const_bytes bytes) {
        return std::all_of(bytes.begin(), bytes.end(),
                           [&](std::byte b) { return b == at(position_++); });
    }
    std::uint64_t position() const noexcept { return position_; }

private:
    std::byte at(std::uint64_t position) const noexcept {
        const std::uint64_t mixed =
            (position + number_ * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;
        return static_cast<std::byte>(mixed >> 56);
    }

    std::uint64_t number_;
    std::uint64_t position_ = 0;
};

/// Sends `total` bytes of the pattern in pieces of random sizes, `size_bits` bits long at most,
/// some of them in turns of their own.
inline task<void> send_pattern(stream& to, std::uint64_t number, std::size_t total,
                               std::uint64_t seed, unsigned size_bits) {
    pattern content(number);
    random_generator dice(seed);
    while (total > 0) {
        const std::size_t largest = std::size_t{1} << dice.below(size_bits);
        const std::size_t size = std::min(total, 1 + dice.below(largest));
        const std::vector<std::byte> bytes = content.next(size);
        must(co_await to.write_all(bytes));
        if (dice.chance(0.2)) co_await loop::current().yield();
        total -= size;
    }
}

/// Error of `work` when its source was requested before it begins.
template <class T>
task<std::error_code> cancelled_before(task<result<T>> work) {
    cancel_source stop;
    stop.request();
    co_return error_of(co_await std::move(work).under(stop));
}

/// Error of `work` when its source is requested while it waits.
template <class T>
task<std::error_code> cancelled_during(task<result<T>> work) {
    std::error_code seen;
    bool ended = false;
    cancel_source stop(co_await current_source());
    co_await join_scope([&](scope& children) -> task<> {
        children.spawn([](task<result<T>> waiting, cancel_source& under, std::error_code& error,
                          bool& over) -> task<> {
            error = error_of(co_await std::move(waiting).under(under));
            over = true;
        }(std::move(work), stop, seen, ended));
        for (int i = 0; i < 3; ++i) co_await loop::current().yield();
        EXPECT_FALSE(ended) << "it did not wait: " << seen.message();
        stop.request();
    });
    co_return seen;
}

struct connection {
    stream client;
    stream server;
};

/// Number of leases that can be held at one time, measured on one connection without pending bytes:
/// buffer_count and max_spare_buffers, unless some are held or lost.
inline task<std::size_t> count_leases(connection& idle) {
    std::vector<lease> held;
    for (;;) {
        // Without a copy a write would wait for the acknowledgement, which may take 40 ms.
        EXPECT_EQ(must(idle.client.try_write(as_bytes("x"))), 1u);
        auto received = co_await idle.server.read();
        if (!received) {
            EXPECT_EQ(received.error(), errc::no_buffers);
            co_return held.size();
        }
        EXPECT_EQ(received->text(), "x");
        held.push_back(std::move(*received));
    }
}

/// Runs tests on a loop of each kind. Tests wait for what they expect; a test that waits for longer
/// than `patience` is cancelled and fails. On the simulator that is virtual time.
class on_io_backend : public ::testing::TestWithParam<io_backend_kind> {
public:
    static constexpr duration patience = 40s;

protected:
    void SetUp() override {
        raise_descriptor_limit();
        make_loop({});
    }

    void TearDown() override {
        loop_.reset();
        if (HasFailure())
            std::fprintf(stderr, "backend=%s; repeat this with EDDY_SEED=%llu\n",
                         std::string(to_string(GetParam())).c_str(),
                         static_cast<unsigned long long>(seed_of_this_run()));
    }

    /// Replaces the loop by one with other options; `kind` and the seed are filled in.
    void make_loop(loop_options options) {
        loop_.reset();
        options = with_environment(options);
        options.kind = GetParam();
        options.sim.seed = seed_of_this_run();
        auto made = loop::create(options);
        if (!made && GetParam() == io_backend_kind::uring)
            GTEST_SKIP() << "io_uring is refused here: " << made.error().message();
        ASSERT_TRUE(made) << made.error().message();
        loop_ = std::move(*made);
    }

    /// Leaves this thread without a loop.
    void end_loop() noexcept { loop_.reset(); }

    loop& here() noexcept { return *loop_; }
    bool simulated() const noexcept { return GetParam() == io_backend_kind::sim; }
    random_generator& random() noexcept { return random_; }

    /// Marks of coroutines that were ready in one turn, one character each: in order, unless the
    /// order is drawn (EDDY_TEST_SHUFFLE=1), when only the set counts.
    std::string spoken(std::string marks) const {
        if (simulated() && with_environment({}).sim.shuffle) std::sort(marks.begin(), marks.end());
        return marks;
    }

    /// Runs `body`, a callable that returns task<void>. An exception fails the test.
    template <class Body>
    void run(Body body) {
        if (!loop_) return;
        try {
            loop_->run(bounded(body));
        } catch (const std::exception& failure) {
            ADD_FAILURE() << failure.what();
        }
    }

    /// The same without the limit of patience: for tests in which other threads take part, since
    /// their time is not the simulator's.
    template <class Body>
    void run_with_threads(Body body) {
        if (!loop_) return;
        try {
            loop_->run(body());
        } catch (const std::exception& failure) {
            ADD_FAILURE() << failure.what();
        }
    }

    static endpoint loopback(std::uint16_t port = 0) {
        return must(endpoint::ip("127.0.0.1", port));
    }

    /// Both ends of a new TCP connection.
    task<connection> connect() {
        listener accepting = must(here().listen(loopback()));
        connection made;
        made.client = must(co_await here().connect(accepting.local()));
        made.server = must(co_await accepting.accept());
        co_return made;
    }

private:
    template <class Body>
    static task<void> bounded(Body& body) {
        deadline_source limit(nullptr, loop::current().now() + patience);
        co_await body().under(limit.source());
        if (limit.expired()) ADD_FAILURE() << "the test waited for too long and was cancelled";
    }

    static void raise_descriptor_limit() {
        rlimit limit;
        if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
        limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 65536);
        setrlimit(RLIMIT_NOFILE, &limit);
    }

    std::unique_ptr<loop> loop_;
    random_generator random_{seed_of_this_run()};
};

inline std::string io_backend_name(const ::testing::TestParamInfo<io_backend_kind>& info) {
    return std::string(to_string(info.param));
}

// A suite's name declares a class here, where it can have no parentheses.
// NOLINTBEGIN(bugprone-macro-parentheses)

/// Declares a suite whose tests, written with TEST_P, run on all io-backends.
#define EDDY_ON_EVERY_IO_BACKEND(suite)                                                   \
    class suite : public ::eddy::testing::on_io_backend {};                               \
    INSTANTIATE_TEST_SUITE_P(                                                             \
        io, suite,                                                                        \
        ::testing::Values(::eddy::io_backend_kind::uring, ::eddy::io_backend_kind::epoll, \
                          ::eddy::io_backend_kind::sim),                                  \
        ::eddy::testing::io_backend_name)

/// The same without the simulator: for what needs descriptors or files.
#define EDDY_ON_EVERY_KERNEL_IO_BACKEND(suite)                                             \
    class suite : public ::eddy::testing::on_io_backend {};                                \
    INSTANTIATE_TEST_SUITE_P(                                                              \
        io, suite,                                                                         \
        ::testing::Values(::eddy::io_backend_kind::uring, ::eddy::io_backend_kind::epoll), \
        ::eddy::testing::io_backend_name)

// NOLINTEND(bugprone-macro-parentheses)

}  // namespace eddy::testing
