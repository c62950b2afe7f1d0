// Pipes, FIFOs and terminals as streams.
#include <eddy/io/pipe.hpp>

#include <eddy/base/unique_fd.hpp>
#include <eddy/io/scope.hpp>

#include "io/loop/rescuer.hpp"
#include "io/testing.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace eddy::testing {
namespace {

EDDY_ON_EVERY_IO_BACKEND(pipe_io);
EDDY_ON_EVERY_KERNEL_IO_BACKEND(pipe_kernel_io);

task<void> write_pattern(stream& to, std::size_t total) {
    pattern from(3);
    const auto bytes = from.next(total);
    must(co_await to.write_all(bytes));
    to.close();
}

TEST_P(pipe_io, carries_bytes_and_their_end) {
    run([]() -> task<> {
        pipe_ends ends = must(make_pipe());
        constexpr std::size_t total = 3'000'000;  // far more than a pipe holds
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn(write_pattern(ends.writer, total));
            pattern expected(3);
            std::size_t size = 0;
            std::vector<std::byte> room(5000);
            for (;;) {
                // Both ways to read.
                if (size % 2 == 0) {
                    const auto piece = co_await ends.reader.read();
                    if (!piece) {
                        EXPECT_EQ(error_of(piece), errc::end_of_stream);
                        break;
                    }
                    EXPECT_TRUE(expected.continues_with(piece->bytes()));
                    size += piece->size();
                } else {
                    const auto got = co_await ends.reader.read_some(room);
                    if (!got) break;
                    EXPECT_TRUE(expected.continues_with(const_bytes(room).first(*got)));
                    size += *got;
                }
            }
            EXPECT_EQ(size, total);
        });
    });
}

TEST_P(pipe_io, writes_pieces_in_order) {
    run([]() -> task<> {
        pipe_ends ends = must(make_pipe());
        std::vector<const_bytes> pieces;
        for (const char* text : {"one ", "", "two ", "three"}) pieces.push_back(as_bytes(text));
        must(co_await ends.writer.write_all(pieces));
        EXPECT_EQ(must(ends.writer.try_write(as_bytes("!"))), 1u);
        std::array<std::byte, 14> all;
        must(co_await ends.reader.read_exactly(all));
        EXPECT_EQ(as_text(all), "one two three!");
    });
}

TEST_P(pipe_io, a_reader_that_has_gone_is_an_error_and_no_signal) {
    struct sigaction before{};
    struct sigaction deadly{};
    deadly.sa_handler = SIG_DFL;
    sigaction(SIGPIPE, &deadly, &before);
    run([this]() -> task<> {
        pipe_ends ends = must(make_pipe());
        ends.reader.close();
        co_await here().yield();
        EXPECT_EQ(error_of(co_await ends.writer.write_all("x")), errno_code(EPIPE));
        EXPECT_EQ(error_of(ends.writer.try_write(as_bytes("x"))), errno_code(EPIPE));
        // And for a writer that waits when the reader goes.
        pipe_ends full = must(make_pipe());
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn([](stream& to) -> task<> {
                const std::string much(1'000'000, 'x');
                EXPECT_EQ(error_of(co_await to.write_all(much)), errno_code(EPIPE));
            }(full.writer));
            co_await here().yield();
            full.reader.close();
        });
        sigset_t mask;
        pthread_sigmask(SIG_BLOCK, nullptr, &mask);
        EXPECT_EQ(sigismember(&mask, SIGPIPE), 0) << "the thread's mask is as it was";
        sigset_t pending;
        sigpending(&pending);
        EXPECT_EQ(sigismember(&pending, SIGPIPE), 0);
    });
    sigaction(SIGPIPE, &before, nullptr);
}

TEST_P(pipe_io, each_end_goes_one_way) {
    run([]() -> task<> {
        pipe_ends ends = must(make_pipe());
        EXPECT_EQ(error_of(co_await ends.reader.write_all("x")), errno_code(EBADF));
        EXPECT_EQ(error_of(co_await ends.writer.read()), errno_code(EBADF));
        EXPECT_EQ(error_of(ends.writer.shutdown_write()), errc::unsupported);
    });
}

task<void> read_into(stream& from, std::error_code& error) {
    error = error_of(co_await from.read());
}
task<void> write_much(stream& to, std::error_code& error) {
    const std::string much(1'000'000, 'x');
    error = error_of(co_await to.write_all(much));
}

TEST_P(pipe_io, cancelling_and_closing_end_the_waits_at_once) {
    run([this]() -> task<> {
        for (int round = 0; round < 4; ++round) {
            pipe_ends ends = must(make_pipe());
            pipe_ends full = must(make_pipe());
            std::error_code read, written;
            scope children(co_await current_source());
            children.spawn(read_into(ends.reader, read));
            children.spawn(write_much(full.writer, written));
            if (round % 2 == 0) co_await here().yield();
            if (round < 2) {
                children.cancel();
            } else {
                ends.reader.close();
                full.writer.close();
            }
            co_await children.join();
            EXPECT_EQ(read, errc::cancelled);
            EXPECT_EQ(written, errc::cancelled);
            if (round >= 2) continue;
            // The ends are as good as before.
            must(co_await ends.writer.write_all("after"));
            const lease after = must(co_await ends.reader.read());
            EXPECT_EQ(after.text(), "after");
        }
    });
}

unique_fd duplicate(const unique_fd& of) { return unique_fd(fcntl(of.get(), F_DUPFD_CLOEXEC, 0)); }

bool is_nonblocking(const unique_fd& fd) { return (fcntl(fd.get(), F_GETFL) & O_NONBLOCK) != 0; }

void make_blocking(const unique_fd& fd) {
    EXPECT_EQ(fcntl(fd.get(), F_SETFL, fcntl(fd.get(), F_GETFL) & ~O_NONBLOCK), 0);
}

/// A pseudo-terminal. Its master cannot be opened again: every user shares one description.
struct terminal {
    terminal() : master(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
        EXPECT_EQ(grantpt(master.get()), 0);
        EXPECT_EQ(unlockpt(master.get()), 0);
        slave.reset(open(ptsname(master.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
        EXPECT_TRUE(slave);
    }
    unique_fd master;
    unique_fd slave;
};

TEST_P(pipe_kernel_io, a_fifo_is_adopted_and_others_that_share_it_keep_their_flag) {
    run([this]() -> task<> {
        const temporary_folder folder;
        const std::string path = folder.path() + "/fifo";
        EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
        const unique_fd both(open(path.c_str(), O_RDWR | O_CLOEXEC));
        {
            stream adopted = must(here().adopt(duplicate(both)));
            EXPECT_FALSE(is_nonblocking(both));
            must(co_await adopted.write_all("through"));
            const lease got = must(co_await adopted.read());
            EXPECT_EQ(got.text(), "through");
        }
        EXPECT_FALSE(is_nonblocking(both));
    });
}

TEST_P(pipe_kernel_io, a_terminal_master_is_adopted_and_its_flag_restored) {
    run([this]() -> task<> {
        const terminal one;
        stream first = must(here().adopt(duplicate(one.master)));
        stream second = must(here().adopt(duplicate(one.master)));
        EXPECT_TRUE(is_nonblocking(one.master));
        first.close();
        EXPECT_FALSE(is_nonblocking(one.master));
        EXPECT_EQ(error_of(second.try_write(as_bytes("x"))), std::error_code());
        EXPECT_TRUE(is_nonblocking(one.master)) << "the other one needs it still";
        second.close();
        EXPECT_FALSE(is_nonblocking(one.master));
        co_return;
    });
}

task<void> read_text(stream& from, std::string& text) {
    const auto got = co_await from.read();
    text = got ? std::string(got->text()) : got.error().message();
}

TEST_P(pipe_kernel_io, closing_one_of_two_that_share_a_terminal_does_not_block_the_other) {
    run([this]() -> task<> {
        for (const bool use_master : {false, true}) {
            const terminal one;
            const unique_fd& shared = use_master ? one.master : one.slave;
            const unique_fd& other = use_master ? one.slave : one.master;
            stream output = must(here().adopt(duplicate(shared)));
            stream input = must(here().adopt(duplicate(shared)));
            output.close();
            rescuer helper([&] { EXPECT_EQ(write(other.get(), "late\n", 5), 5); });
            std::string text;
            co_await join_scope([&](scope& children) -> task<> {
                children.spawn(read_text(input, text));
                co_await here().yield();
                EXPECT_FALSE(helper.called()) << "the read kept the loop";
                if (!helper.called()) EXPECT_EQ(write(other.get(), "typed\n", 6), 6);
            });
            EXPECT_TRUE(text.starts_with("typed")) << text;
        }
    });
}

TEST_P(pipe_kernel_io, a_child_that_clears_the_flag_does_not_block_the_loop) {
    run([this]() -> task<> {
        const terminal one;
        int ends[2];
        EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
        const unique_fd out_of_pipe(ends[0]);
        const unique_fd into_pipe(ends[1]);
        // One whose description is its own from then on, and one that has to share it.
        for (const unique_fd* shared : {&out_of_pipe, &one.master}) {
            const unique_fd& other = shared == &out_of_pipe ? into_pipe : one.slave;
            stream input = must(here().adopt(duplicate(*shared)));
            make_blocking(*shared);
            rescuer helper([&] { EXPECT_EQ(write(other.get(), "late\n", 5), 5); });
            std::string text;
            co_await join_scope([&](scope& children) -> task<> {
                children.spawn(read_text(input, text));
                co_await here().yield();
                EXPECT_FALSE(helper.called()) << "the read kept the loop";
                make_blocking(*shared);
                if (!helper.called()) EXPECT_EQ(write(other.get(), "typed\n", 6), 6);
            });
            EXPECT_TRUE(text.starts_with("typed")) << text;
        }
    });
}

/// Reads until `total` bytes have come, or none come any more.
void drain(int fd, std::size_t total) {
    std::byte room[4096];
    pollfd state{fd, POLLIN, 0};
    while (total > 0 && poll(&state, 1, 2000) > 0) {
        const ssize_t size = read(fd, room, sizeof(room));
        if (size <= 0) return;
        total -= std::min(total, static_cast<std::size_t>(size));
    }
}

TEST_P(pipe_kernel_io, a_writer_whose_flag_was_cleared_does_not_block_the_loop) {
    run([this]() -> task<> {
        terminal one;
        termios raw{};
        EXPECT_EQ(tcgetattr(one.slave.get(), &raw), 0);
        cfmakeraw(&raw);
        EXPECT_EQ(tcsetattr(one.slave.get(), TCSANOW, &raw), 0);
        int ends[2];
        EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
        unique_fd out_of_pipe(ends[0]);
        const unique_fd into_pipe(ends[1]);
        for (const unique_fd* shared : {&into_pipe, &std::as_const(one.master)}) {
            stream output = must(here().adopt(duplicate(*shared)));
            stream reader =
                must(here().adopt(std::move(shared == &into_pipe ? out_of_pipe : one.slave)));
            make_blocking(*shared);
            constexpr std::size_t total = 300'000;  // more than either holds
            rescuer helper([&] { drain(reader.native_handle(), total); });
            co_await join_scope([&](scope& children) -> task<> {
                children.spawn([](stream& to) -> task<> {
                    const std::string much(total, 'x');
                    must(co_await to.write_all(much));
                }(output));
                co_await here().yield();
                EXPECT_FALSE(helper.called()) << "the write kept the loop";
                for (std::size_t size = 0; size < total && !helper.called();)
                    size += must(co_await reader.read()).size();
            });
        }
    });
}

TEST_P(pipe_kernel_io, a_detached_end_is_as_blocking_as_it_was_adopted) {
    run([this]() -> task<> {
        for (const int flags : {0, O_NONBLOCK}) {
            int ends[2];
            EXPECT_EQ(pipe2(ends, O_CLOEXEC | flags), 0);
            const unique_fd writer(ends[1]);
            stream reader = must(here().adopt(unique_fd(ends[0])));
            const unique_fd back = must(reader.detach());
            EXPECT_EQ(is_nonblocking(back), flags != 0);
            EXPECT_EQ(write(writer.get(), "x", 1), 1);
            char byte = 0;
            EXPECT_EQ(read(back.get(), &byte, 1), 1);
        }
        co_return;
    });
}

TEST_P(pipe_kernel_io, a_fifo_that_its_writers_have_left_ends_after_what_they_wrote) {
    run([this]() -> task<> {
        const temporary_folder folder;
        const std::string path = folder.path() + "/fifo";
        EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
        unique_fd reader(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
        {
            const unique_fd writer(open(path.c_str(), O_WRONLY | O_CLOEXEC));
            EXPECT_EQ(write(writer.get(), "words", 5), 5);
        }
        stream from = must(here().adopt(std::move(reader)));
        std::array<std::byte, 5> words;
        must(co_await from.read_exactly(words));
        EXPECT_EQ(as_text(words), "words");
        EXPECT_EQ(error_of(co_await from.read()), errc::end_of_stream);
    });
}

TEST_P(pipe_kernel_io, a_terminal_is_read_and_written) {
    run([this]() -> task<> {
        terminal one;
        stream screen = must(here().adopt(std::move(one.master)));
        stream program = must(here().adopt(std::move(one.slave)));
        must(co_await screen.write_all("typed\n"));
        {
            const lease line = must(co_await program.read());
            EXPECT_EQ(line.text(), "typed\n");
        }
        must(co_await program.write_all("shown"));
        std::string seen;
        while (seen.find("shown") == std::string::npos) {
            const lease piece = must(co_await screen.read());
            seen += piece.text();
        }
    });
}

TEST_P(pipe_kernel_io, a_file_is_no_stream) {
    run([this]() -> task<> {
        const temporary_folder folder;
        unique_fd plain(open((folder.path() + "/x").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
        EXPECT_EQ(error_of(here().adopt(std::move(plain))), errc::unsupported);
        co_return;
    });
}

TEST_P(pipe_kernel_io, an_end_moves_to_another_thread) {
    run([]() -> task<> {
        pipe_ends ends = must(make_pipe());
        const unique_fd raw = must(ends.writer.detach());
        std::thread writer([&raw] { EXPECT_EQ(write(raw.get(), "plain", 5), 5); });
        const lease got = must(co_await ends.reader.read());
        EXPECT_EQ(got.text(), "plain");
        writer.join();
    });
}

TEST_P(pipe_io, a_writer_that_has_gone_is_the_end_after_what_it_wrote) {
    run([]() -> task<> {
        pipe_ends ends = must(make_pipe());
        must(co_await ends.writer.write_all("last words"));
        ends.writer.close();
        const lease words = must(co_await ends.reader.read());
        EXPECT_EQ(words.text(), "last words");
        for (int i = 0; i < 3; ++i)
            EXPECT_EQ(error_of(co_await ends.reader.read()), errc::end_of_stream);
    });
}

TEST_P(pipe_io, a_reader_that_empties_it_and_goes_ends_the_writer_that_waits) {
    run([]() -> task<> {
        pipe_ends ends = must(make_pipe());
        std::error_code written;
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn(write_much(ends.writer, written));
            std::vector<std::byte> into(64 * 1024);  // all that it holds
            must(co_await ends.reader.read_exactly(into));
            ends.reader.close();
        });
        EXPECT_EQ(written, errno_code(EPIPE));
    });
}

TEST_P(pipe_io, a_full_pipe_holds_its_writer_and_no_more) {
    run([]() -> task<> {
        pipe_ends ends = must(make_pipe());
        const std::vector<std::byte> much = pattern(8).next(8 << 20);
        std::size_t sent = 0;
        while (const std::size_t size =
                   must(ends.writer.try_write(const_bytes(much).subspan(sent))))
            sent += size;
        EXPECT_GT(sent, 0u);
        EXPECT_LT(sent, much.size());
        ends.writer.close();
        std::vector<std::byte> into(sent);
        must(co_await ends.reader.read_exactly(into));
        EXPECT_TRUE(pattern(8).continues_with(into));
    });
}

// ---- simulated pipes

class simulated_pipe : public on_io_backend {};
INSTANTIATE_TEST_SUITE_P(io, simulated_pipe, ::testing::Values(io_backend_kind::sim),
                         io_backend_name);

TEST_P(simulated_pipe, has_no_descriptor_and_no_address) {
    run([]() -> task<> {
        pipe_ends ends = must(make_pipe());
        EXPECT_EQ(ends.reader.native_handle(), -1);
        EXPECT_EQ(error_of(ends.writer.detach()), errno_code(EBADF));
        EXPECT_EQ(ends.writer.peer(), endpoint());
        co_return;
    });
}

TEST_P(simulated_pipe, meets_short_reads_delays_and_want_of_buffers) {
    loop_options options;
    options.sim.short_read = 0.5;
    options.sim.no_buffers = 0.1;
    options.sim.min_delay = 1ms;
    options.sim.max_delay = 5ms;
    options.sim.socket_buffer = 4096;
    make_loop(options);
    run([this]() -> task<> {
        pipe_ends ends = must(make_pipe());
        const time_point begin = here().now();
        constexpr std::size_t total = 200'000;
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn(write_pattern(ends.writer, total));
            pattern expected(3);
            std::size_t reads = 0;
            while (const auto piece = co_await ends.reader.read()) {
                EXPECT_TRUE(expected.continues_with(piece->bytes()));
                ++reads;
            }
            EXPECT_EQ(expected.position(), total);
            EXPECT_GT(reads, total / 4096);
        });
        EXPECT_GE(here().now() - begin, total / 4096 * 1ms);
    });
}

task<void> write_until_broken(stream& to, std::error_code& error) {
    const std::string much(100'000, 'x');
    while (!error) error = error_of(co_await to.write_all(much));
}

TEST_P(simulated_pipe, may_lose_its_other_end) {
    loop_options options;
    options.sim.reset = 0.01;
    make_loop(options);
    run([]() -> task<> {
        for (int round = 0; round < 50; ++round) {
            pipe_ends ends = must(make_pipe());
            std::error_code written;
            co_await join_scope([&](scope& children) -> task<> {
                children.spawn(write_until_broken(ends.writer, written));
                for (;;) {
                    const auto piece = co_await ends.reader.read();
                    if (piece) continue;
                    EXPECT_EQ(piece.error(), errc::end_of_stream);
                    break;
                }
            });
            EXPECT_EQ(written, errno_code(EPIPE));
        }
    });
}

}  // namespace
}  // namespace eddy::testing
