// Faults of the kernel: refused io_uring, no descriptors, interrupted calls, more completions than
// a queue holds, and bytes kept that a writer wants back.
#include <eddy/io/event.hpp>

#include "io/testing.hpp"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

namespace eddy::testing {
namespace {

EDDY_ON_EVERY_IO_BACKEND(faults_io);
EDDY_ON_EVERY_KERNEL_IO_BACKEND(faults_kernel_io);

task<> echo(stream peer) {
    for (;;) {
        const auto received = co_await peer.read();
        if (!received) co_return;
        if (!co_await peer.write_all(received->bytes())) co_return;
    }
}

/// Writes all of the pattern and reads it back from an echoing peer.
task<> converse(stream& client, std::uint64_t number, std::size_t total) {
    co_await join_scope([&](scope& children) -> task<> {
        children.spawn([](stream& to, std::uint64_t which, std::size_t left) -> task<> {
            pattern content(which);
            while (left > 0) {
                const std::size_t size = std::min<std::size_t>(left, 3000);
                const auto bytes = content.next(size);
                must(co_await to.write_all(bytes));
                left -= size;
            }
        }(client, number, total));
        pattern expected(number);
        while (expected.position() < total)
            EXPECT_TRUE(expected.continues_with(must(co_await client.read()).bytes()));
    });
}

// ---- io_uring is refused

/// From now on these system calls of this process fail with EPERM, as in many containers.
bool forbid(std::initializer_list<int> calls) {
    std::vector<sock_filter> program;
    program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
    for (const int call : calls) {
        program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 1));
        program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
    }
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    sock_fprog filter{};
    filter.len = static_cast<unsigned short>(program.size());
    filter.filter = program.data();
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/// Runs `body` in a child process, which a filter cannot outlive; its exit code.
template <class Body>
int in_child_process(Body body) {
    const pid_t child = fork();
    if (child == 0) _exit(body());
    int status = -1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

task<bool> says_hello(loop& here) {
    listener accepting = must(here.listen(must(endpoint::ip("127.0.0.1", 0))));
    stream client = must(co_await here.connect(accepting.local()));
    stream server = must(co_await accepting.accept());
    must(co_await client.write_all("hello"));
    must(co_await here.sleep_for(1ms));
    co_return must(co_await server.read()).text() == "hello";
}

enum outcome { worked = 0, failed, wrong_backend, no_filter };

outcome try_automatic_loop() {
    const auto made = loop::create();
    if (!made) return failed;
    if ((*made)->kind() != io_backend_kind::epoll) return wrong_backend;
    return (*made)->run(says_hello(**made)) ? worked : failed;
}

TEST(refused_io_uring, makes_the_automatic_choice_epoll) {
    EXPECT_EQ(in_child_process([] {
                  if (!forbid({SYS_io_uring_setup})) return no_filter;
                  return try_automatic_loop();
              }),
              worked);
}

TEST(refused_io_uring, a_filter_older_than_epoll_pwait2_is_no_harm) {
    EXPECT_EQ(in_child_process([] {
                  if (!forbid({SYS_io_uring_setup, SYS_epoll_pwait2})) return no_filter;
                  return try_automatic_loop();
              }),
              worked);
}

TEST(refused_io_uring, says_so_when_it_was_asked_for) {
    EXPECT_EQ(in_child_process([] {
                  loop_options options;
                  options.kind = io_backend_kind::uring;
                  std::error_code expected = errno_code(EPERM);
                  // A build without io_uring says that before the kernel could refuse it.
                  if (const auto made = loop::create(options);
                      !made && made.error() == errc::unsupported)
                      expected = made.error();
                  if (!forbid({SYS_io_uring_setup})) return no_filter;
                  return error_of(loop::create(options)) == expected ? worked : failed;
              }),
              worked);
}

// ---- interrupted system calls

/// Interrupts whatever this process waits for, thousands of times a second.
class signal_storm {
public:
    signal_storm() {
        struct sigaction handler{};
        handler.sa_handler = [](int) {};  // without SA_RESTART
        sigaction(SIGALRM, &handler, &before_);
        itimerval often{};
        often.it_interval.tv_usec = often.it_value.tv_usec = 100;
        setitimer(ITIMER_REAL, &often, nullptr);
    }
    ~signal_storm() {
        const itimerval never{};
        setitimer(ITIMER_REAL, &never, nullptr);
        sigaction(SIGALRM, &before_, nullptr);
    }
    signal_storm(const signal_storm&) = delete;
    signal_storm& operator=(const signal_storm&) = delete;

private:
    struct sigaction before_{};
};

TEST_P(faults_io, a_storm_of_signals_disturbs_nothing) {
    const signal_storm storm;
    run([this]() -> task<> {
        co_await join_scope([&](scope& children) -> task<> {
            for (std::uint64_t i = 0; i < 20; ++i) {
                connection pair = co_await connect();
                children.spawn(echo(std::move(pair.server)));
                children.spawn([](loop& where, stream client, std::uint64_t number) -> task<> {
                    for (int round = 0; round < 5; ++round) {
                        co_await converse(client, number, 20'000);
                        must(co_await where.sleep_for(1ms));
                    }
                }(here(), std::move(pair.client), i));
            }
        });
    });
}

// ---- posts at the worst moment

struct set_event final : posted_work {
    explicit set_event(event& what) noexcept : target(what) {}
    void run() noexcept override { target.set(); }
    event& target;
};

TEST_P(faults_io, a_post_while_the_loop_spins_is_not_slept_over) {
    loop_options spinning;
    spinning.spin = 20us;
    make_loop(spinning);
    run_with_threads([this]() -> task<> {
        constexpr int rounds = 3000;
        event posted;
        set_event work(posted);
        std::atomic<int> waiting = 0;
        std::thread poster([&] {
            for (int i = 1; i <= rounds; ++i) {
                while (waiting.load() < i) std::this_thread::yield();
                here().post(work);
            }
        });
        for (int i = 1; i <= rounds; ++i) {
            posted.reset();
            waiting = i;
            must(co_await posted.wait());
        }
        poster.join();
    });
}

// ---- no descriptors

TEST_P(faults_kernel_io, adopting_needs_no_descriptor) {
    if (sanitizer_needs_descriptors()) GTEST_SKIP() << "UBSan needs descriptors of its own";
    run([this]() -> task<> {
        int ends[2];
        EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        unique_fd first(ends[0]);
        unique_fd second(ends[1]);
        rlimit before;
        EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
        rlimit none = before;
        none.rlim_cur = 0;
        EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
        stream a = must(here().adopt(std::move(first)));
        stream b = must(here().adopt(std::move(second)));
        must(co_await a.write_all("x"));
        EXPECT_EQ(must(co_await b.read()).text(), "x");
        EXPECT_EQ(error_of(co_await here().connect(loopback(1))), errno_code(EMFILE));
        EXPECT_EQ(error_of(here().listen(loopback())), errno_code(EMFILE));
        EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    });
}

// ---- more completions in one turn than the completion queue holds

TEST_P(faults_io, a_flood_of_small_buffers_loses_nothing) {
    loop_options many_small;
    many_small.buffer_count = 32 * 1024;
    many_small.buffer_size = 64;
    make_loop(many_small);
    run([this]() -> task<> {
        constexpr std::size_t total = 4096;
        std::vector<connection> pairs;
        for (std::uint64_t i = 0; i < 700; ++i) {
            pairs.push_back(co_await connect());
            const auto bytes = pattern(i).next(total);
            must(co_await pairs.back().client.write_all(bytes));
        }
        co_await join_scope([&](scope& children) -> task<> {
            for (std::uint64_t i = 0; i < pairs.size(); ++i)
                children.spawn([](stream& from, std::uint64_t number) -> task<> {
                    pattern expected(number);
                    while (expected.position() < total) {
                        const lease bytes = must(co_await from.read());
                        EXPECT_TRUE(expected.continues_with(bytes.bytes()));
                    }
                }(pairs[i].server, i));
            co_return;
        });
    });
}

// ---- errors that a write and a read both want

TEST_P(faults_io, a_reset_observed_by_a_write_is_no_orderly_end) {
    run([this]() -> task<> {
        for (int i = 0; i < 20; ++i) {
            connection pair = co_await connect();
            must(co_await pair.client.write_all("unread"));
            must(co_await pair.server.write_all("hello"));
            must(co_await here().sleep_for(1ms));
            EXPECT_EQ(must(co_await pair.client.read()).text(), "hello");
            pair.server.close();  // with bytes unread: a reset
            // The write comes before the loop can observe the reset, or after.
            if (i % 2) must(co_await here().sleep_for(1ms));
            std::error_code wrote;
            while (!wrote) wrote = error_of(co_await pair.client.write_all("x"));
            const std::error_code read = error_of(co_await pair.client.read());
            EXPECT_EQ(read, errno_code(ECONNRESET)) << read.message();
        }
    });
}

void reset_by_peer(connection& pair) {
    const linger at_once{1, 0};
    EXPECT_EQ(
        setsockopt(pair.server.native_handle(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)),
        0);
    pair.server.close();
}

/// Makes the client receive by itself, when it is notified of readiness, as it does with large
/// messages.
task<> send_much(connection& pair) {
    const std::vector<std::byte> large(64 << 10);
    std::vector<std::byte> received(large.size());
    co_await join_scope([&](scope& children) -> task<> {
        children.spawn([](stream& to, const_bytes what) -> task<> {
            must(co_await to.write_all(what));
        }(pair.server, large));
        must(co_await pair.client.read_exactly(received));
    });
}

TEST_P(faults_kernel_io, a_reset_right_behind_bytes_is_reported_after_them) {
    run([this]() -> task<> {
        for (const bool much : {false, true}) {
            connection pair = co_await connect();
            if (much) co_await send_much(pair);
            std::array<std::byte, 8> room;
            const auto read = [](stream& from, mutable_bytes into) -> task<result<std::size_t>> {
                co_return co_await from.read_some(into);
            };
            EXPECT_EQ(error_of(co_await with_timeout(1ms, read(pair.client, room))),
                      errc::timed_out);
            EXPECT_EQ(must(pair.server.try_write(as_bytes("last"))), 4u);
            must(co_await here().sleep_for(1ms));
            reset_by_peer(pair);
            must(co_await here().sleep_for(1ms));
            EXPECT_EQ(must(co_await pair.client.read_some(room)), 4u);
            EXPECT_EQ(error_of(co_await pair.client.read_some(room)), errno_code(ECONNRESET));
        }
    });
}

TEST_P(faults_kernel_io, the_address_of_a_peer_outlives_its_reset) {
    run([this]() -> task<> {
        for (const char* const host : {"127.0.0.1", "::1"}) {
            listener accepting = must(here().listen(must(endpoint::ip(host, 0))));
            connection pair;
            pair.server = must(co_await here().connect(accepting.local()));
            const endpoint theirs = pair.server.local();
            // It is in the backlog still, or accepted.
            if (host[0] == ':') reset_by_peer(pair);
            pair.client = must(co_await accepting.accept());
            if (pair.server) reset_by_peer(pair);
            EXPECT_EQ(error_of(co_await pair.client.read()), errno_code(ECONNRESET));
            EXPECT_EQ(pair.client.peer(), theirs);
            EXPECT_NE(pair.client.peer().port(), 0);
        }
    });
}

/// A peer in another thread that sends a few bytes and resets the connection at once, so that both
/// wake the reader together, now and then.
class abrupt_peers {
public:
    abrupt_peers(endpoint where, int count)
        : thread_([where, count] {
              for (int i = 0; i < count; ++i) {
                  const unique_fd peer(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
                  if (connect(peer.get(), where.data(), where.size()) < 0) return;  // no accept
                  const linger at_once{1, 0};
                  setsockopt(peer.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
                  // The reader is armed by then, sometimes.
                  for (int spin = i % 64 * 300; spin > 0; --spin) asm volatile("");
                  EXPECT_EQ(send(peer.get(), "last", 4, 0), 4);
              }
          }) {}
    ~abrupt_peers() { thread_.join(); }

private:
    std::thread thread_;
};

TEST_P(faults_kernel_io, a_reset_together_with_bytes_is_never_slept_over) {
    run([this]() -> task<> {
        listener accepting = must(here().listen(must(endpoint::ip("127.0.0.1", 0))));
        constexpr int peers = 5'000;
        const abrupt_peers coming(accepting.local(), peers);
        for (int i = 0; i < peers; ++i) {
            stream from = must(co_await accepting.accept());
            std::size_t received = 0;
            for (;;) {
                const auto got = co_await with_timeout(10s, [](stream& s) -> task<result<lease>> {
                    co_return co_await s.read();
                }(from));
                if (!got) {
                    EXPECT_EQ(got.error(), errno_code(ECONNRESET)) << "peer " << i;
                    break;
                }
                received += got->size();
            }
            if (received != 0) EXPECT_EQ(received, 4u);
            if (::testing::Test::HasFailure()) break;
        }
        accepting.close();
    });
}

// ---- Unix sockets whose backlog is full

TEST_P(faults_kernel_io, a_full_unix_backlog_is_an_answer_and_no_wait) {
    run([this]() -> task<> {
        listen_options one;
        one.backlog = 0;
        const endpoint name = must(endpoint::unix_path("@eddy-full-" + std::to_string(::getpid())));
        listener accepting = must(here().listen(name, one));
        std::vector<stream> clients;
        std::error_code refused;
        while (!refused && clients.size() < 10) {
            auto made = co_await here().connect(name);
            refused = error_of(made);
            if (made) clients.push_back(std::move(*made));
        }
        EXPECT_EQ(refused, errno_code(EAGAIN));
    });
}

// ---- slow readers

std::size_t threads_of_this_process() {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
}

TEST_P(faults_kernel_io, a_slow_reader_costs_no_thread) {
    run([this]() -> task<> {
        // The second time the reader has said that it will not write.
        for (const bool half_closed : {false, true}) {
            int ends[2];
            EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
            const int small = 4096;
            EXPECT_EQ(setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
            stream writer = must(here().adopt(unique_fd(ends[0])));
            stream reader = must(here().adopt(unique_fd(ends[1])));
            if (half_closed) must(reader.shutdown_write());
            constexpr std::size_t total = 2 << 20;
            const std::size_t before = threads_of_this_process();
            std::size_t most = 0;
            co_await join_scope([&](scope& children) -> task<> {
                children.spawn([](stream& to) -> task<> {
                    const auto bytes = pattern(7).next(total);
                    must(co_await to.write_all(bytes));
                }(writer));
                pattern expected(7);
                std::vector<std::byte> room(3000);
                while (expected.position() < total) {
                    const std::size_t size = must(co_await reader.read_some(room));
                    EXPECT_TRUE(expected.continues_with(const_bytes(room).first(size)));
                    most = std::max(most, threads_of_this_process());
                }
            });
            EXPECT_LE(most, before);
        }
    });
}

TEST_P(faults_io, a_writer_that_waits_for_a_half_closed_peer_does_not_spin) {
    run([this]() -> task<> {
        connection pair = co_await connect();
        must(pair.server.shutdown_write());
        EXPECT_EQ(error_of(co_await pair.client.read()), errc::end_of_stream);
        const std::vector<std::byte> bytes(32 << 20);
        co_await with_scope([&](scope& children) -> task<> {
            children.spawn([](stream& to, const_bytes what) -> task<> {
                EXPECT_EQ(error_of(co_await to.write_all(what)), errc::cancelled);
            }(pair.client, bytes));
            must(co_await here().sleep_for(20ms));
            const std::clock_t before = std::clock();
            must(co_await here().sleep_for(100ms));
            // Ticks of the processor's time, so other programs do not count.
            EXPECT_LT(std::clock() - before, CLOCKS_PER_SEC * 3 / 100);
        });
    });
}

// ---- writes without a copy

class zero_copy_io : public on_io_backend {
protected:
    void SetUp() override {
        on_io_backend::SetUp();
        loop_options options;
        options.zero_copy_threshold = 1024;
        make_loop(options);
    }
};
INSTANTIATE_TEST_SUITE_P(io, zero_copy_io,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll),
                         io_backend_name);

TEST_P(zero_copy_io, large_and_small_writes_arrive_in_order) {
    run([this]() -> task<> {
        connection pair = co_await connect();
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn([](stream& to, std::uint64_t seed) -> task<> {
                random_generator dice(seed);
                pattern content(1);
                for (int i = 0; i < 60; ++i) {
                    // Freed at once afterwards: what the kernel still reads would be seen to
                    // change.
                    std::vector<std::byte> bytes =
                        content.next(1 + dice.below(i % 10 == 0 ? 3'000'000 : 3'000));
                    must(co_await to.write_all(bytes));
                    std::ranges::fill(bytes, std::byte{0xee});
                }
                const std::vector<std::byte> first = content.next(5000);
                const std::vector<std::byte> second = content.next(5);
                const const_bytes both[] = {first, second};
                const std::span<const const_bytes> pieces(both);
                must(co_await to.write_all(pieces));
                must(to.shutdown_write());
            }(pair.client, random()()));
            pattern expected(1);
            for (;;) {
                const auto got = co_await pair.server.read();
                if (!got) {
                    EXPECT_EQ(got.error(), errc::end_of_stream);
                    break;
                }
                EXPECT_TRUE(expected.continues_with(got->bytes()));
            }
        });
    });
}

TEST_P(zero_copy_io, a_peer_that_does_not_read_cannot_keep_the_bytes_of_a_cancelled_write) {
    run([this]() -> task<> {
        for (int i = 0; i < 5; ++i) {
            connection pair = co_await connect();
            const std::vector<std::byte> bytes(32 << 20);
            const auto write = [](stream& to, const_bytes what) -> task<result<>> {
                co_return co_await to.write_all(what);
            };
            EXPECT_EQ(error_of(co_await with_timeout(2ms * i, write(pair.client, bytes))),
                      errc::timed_out);
        }
    });
}

TEST_P(zero_copy_io, a_peer_that_does_not_read_cannot_keep_the_bytes_of_a_closed_stream) {
    run([this]() -> task<> {
        for (int i = 0; i < 5; ++i) {
            connection pair = co_await connect();
            const std::vector<std::byte> bytes(32 << 20);
            std::error_code ended;
            co_await join_scope([&](scope& children) -> task<> {
                children.spawn([](stream& to, const_bytes what, std::error_code& how) -> task<> {
                    how = error_of(co_await to.write_all(what));
                }(pair.client, bytes, ended));
                must(co_await here().sleep_for(2ms * i));
                pair.client.close();
            });
            EXPECT_EQ(ended, errc::cancelled);
        }
    });
}

TEST_P(zero_copy_io, a_reset_observed_by_a_cancelled_write_is_no_orderly_end) {
    run([this]() -> task<> {
        connection pair = co_await connect();
        const std::vector<std::byte> bytes(4096);
        std::error_code wrote;
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn([](stream& to, const_bytes what, std::error_code& how) -> task<> {
                how = error_of(co_await to.write_all(what));
            }(pair.client, bytes, wrote));
            reset_by_peer(pair);
            children.cancel();
            co_return;
        });
        EXPECT_TRUE(!wrote || wrote == errc::cancelled || wrote == errno_code(ECONNRESET))
            << wrote.message();
        const std::error_code read = error_of(co_await pair.client.read());
        EXPECT_EQ(read, errno_code(ECONNRESET)) << read.message();
    });
}

TEST_P(zero_copy_io, a_connection_given_up_for_a_cancelled_write_was_reset) {
    run([this]() -> task<> {
        for (int i = 0; i < 10; ++i) {
            connection pair = co_await connect();
            must(co_await pair.server.write_all(as_bytes("hello")));
            must(co_await pair.client.read());
            const std::vector<std::byte> bytes(32 << 20);
            std::error_code read;
            co_await join_scope([&](scope& children) -> task<> {
                children.spawn([](stream& to, const_bytes what) -> task<> {
                    static_cast<void>(co_await to.write_all(what));
                }(pair.client, bytes));
                must(co_await pair.server.read());
                must(co_await here().sleep_for(1ms * i));
                children.cancel();
                pair.server.close();
                // With a kernel thread, the request that waits for bytes may have got the socket's
                // error by now, and this reads before its completion is seen.
                std::this_thread::sleep_for(1ms);
                read = error_of(co_await pair.client.read());
            });
            EXPECT_EQ(read, errno_code(ECONNRESET)) << read.message();
        }
    });
}

TEST_P(zero_copy_io, a_reset_that_a_write_will_report_is_no_orderly_end) {
    run([this]() -> task<> {
        connection pair = co_await connect();
        co_await send_much(pair);
        // The client receives four times a turn. The reset comes between the first four and the
        // next, so that the fifth read of that turn is still to come when all is read, and the
        // write has got the socket's error.
        const const_bytes small = as_bytes("123456789");
        const std::vector<std::byte> reply(4096);
        std::error_code ended;
        std::size_t count = 0;
        event write_now;
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn([](connection& both, std::size_t& bytes, event& eight,
                              std::error_code& how) -> task<> {
                std::array<std::byte, 1> one;
                while (!how) {
                    how = error_of(co_await both.client.read_some(one));
                    if (!how) ++bytes;
                    if (!how && bytes == 4) reset_by_peer(both);
                    if (bytes == 8) eight.set();
                }
            }(pair, count, write_now, ended));
            children.spawn([](stream& to, event& eight, const_bytes what) -> task<> {
                must(co_await eight.wait());
                const std::error_code wrote = error_of(co_await to.write_all(what));
                EXPECT_TRUE(wrote == errno_code(ECONNRESET) || wrote == errno_code(EPIPE))
                    << wrote.message();
            }(pair.client, write_now, reply));
            must(co_await here().sleep_for(1ms));
            EXPECT_EQ(must(pair.server.try_write(small)), small.size());
        });
        EXPECT_EQ(count, small.size());
        EXPECT_EQ(ended, errno_code(ECONNRESET)) << ended.message();
    });
}

TEST_P(zero_copy_io, unix_sockets_copy) {
    run([this]() -> task<> {
        int ends[2];
        EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        stream client = must(here().adopt(unique_fd(ends[0])));
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn(echo(must(here().adopt(unique_fd(ends[1])))));
            co_await converse(client, 3, 1 << 20);
            client.close();
        });
    });
}

}  // namespace
}  // namespace eddy::testing
