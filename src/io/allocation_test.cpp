// Allocations: operations that make none, and behaviour when memory runs out. Counts calls of
// malloc, in programs without sanitizers.
#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/frame_pool.hpp>
#include <eddy/base/unique_fd.hpp>
#include <eddy/io/channel.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/executor.hpp>
#include <eddy/io/file.hpp>
#include <eddy/io/generator.hpp>
#include <eddy/io/loop_group.hpp>
#include <eddy/io/pipe.hpp>
#include <eddy/io/process.hpp>
#include <eddy/io/semaphore.hpp>
#include <eddy/io/signals.hpp>
#include <eddy/io/strand.hpp>
#include <eddy/io/when.hpp>

#include "base/counted_memory.hpp"
#include "io/testing.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#if EDDY_COUNTS_ALLOCATIONS

namespace eddy::testing {
namespace {

EDDY_ON_EVERY_IO_BACKEND(allocation_io);
EDDY_ON_EVERY_KERNEL_IO_BACKEND(allocation_kernel_io);

task<void> count_echo(stream peer) {
    while (true) {
        const auto request = co_await peer.read();
        if (!request) break;
        if (!co_await peer.write_all(request->bytes())) break;
    }
}

TEST_P(allocation_kernel_io, a_warm_connection_allocates_nothing) {
    run([this]() -> task<> {
        connection pair = co_await connect();
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn(count_echo(std::move(pair.server)));
            const auto ask = [](stream& server) -> task<result<std::size_t>> {
                std::byte room[64];
                if (auto sent = co_await server.write_all("a message of a usual size"); !sent)
                    co_return fail(sent.error());
                co_return co_await server.read_some(room);
            };
            std::uint64_t before = 0;
            for (int i = 0; i < 10'100; ++i) {
                if (i == 100) before = allocations();
                const auto answer = co_await with_timeout(10s, ask(pair.client));
                EXPECT_EQ(must(answer), 25u);
            }
            EXPECT_EQ(allocations() - before, 0u);
            pair.client.close();
        });
    });
}

TEST_P(allocation_kernel_io, warm_datagram_sockets_allocate_nothing) {
    run([this]() -> task<> {
        datagram a = must(here().bind_datagram(loopback()));
        datagram b = must(here().bind_datagram(loopback()));
        const endpoint where = b.local();
        // The first frame that a thread frees makes its pool.
        co_await join_scope([](scope& children) -> task<> {
            children.spawn([]() -> task<> { co_return; }());
            co_return;
        });
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn([](datagram& socket) -> task<> {
                for (int i = 0; i < 2100; ++i) {
                    const datagram_message got = must(co_await socket.receive());
                    must(socket.send_to(got.payload.bytes(), got.from));
                }
            }(b));
            std::uint64_t before = 0;
            for (int i = 0; i < 2100; ++i) {
                if (i == 100) before = allocations();
                must(a.send_to(as_bytes("message"), where));
                static_cast<void>(must(co_await a.receive()));
            }
            EXPECT_EQ(allocations() - before, 0u);
        });
    });
}

task<void> echo_batches(datagram& socket) {
    std::array<datagram_message, 8> messages;
    std::array<outgoing_datagram, 8> replies;
    for (;;) {
        auto got = co_await socket.receive();
        if (!got) co_return;
        std::size_t count = 0;
        for (; got && count < messages.size(); ++count) {
            messages[count] = std::move(*got);
            const datagram_message& one = messages[count];
            const auto segment = static_cast<std::uint16_t>(one.segment_size);
            replies[count] = {one.payload.bytes(), &one.from, segment};
            if (count + 1 < messages.size()) got = socket.try_receive();
        }
        EXPECT_EQ(must(co_await socket.send(std::span(replies).first(count))), count);
        for (std::size_t i = 0; i < count; ++i) messages[i].payload.reset();
    }
}

TEST_P(allocation_kernel_io, warm_batches_and_segments_allocate_nothing) {
    run([this]() -> task<> {
        datagram_options joining;
        joining.join_segments = true;
        datagram a = must(here().bind_datagram(loopback(), joining));
        datagram b = must(here().bind_datagram(loopback(), joining));
        const endpoint where = b.local();
        const std::vector<std::byte> bytes(64 * 20 - 1);
        co_await with_scope([&](scope& children) -> task<> {
            children.spawn(echo_batches(b));
            std::uint64_t before = 0;
            for (int i = 0; i < 2100; ++i) {
                if (i == 100) before = allocations();
                const std::array<outgoing_datagram, 2> batch{outgoing_datagram{bytes, &where, 64},
                                                             outgoing_datagram{bytes, &where}};
                EXPECT_EQ(must(a.try_send(batch)), 2u);
                must(co_await a.send(bytes, where, 64));
                for (std::size_t left = 3 * bytes.size(); left > 0;)
                    left -= must(co_await a.receive()).payload.size();
            }
            EXPECT_EQ(allocations() - before, 0u);
        });
    });
}

task<void> send_split(stream& to, int rounds) {
    std::array<std::byte, 20> bytes{};
    for (int i = 0; i < rounds; ++i) {
        must(co_await to.write_all(const_bytes(bytes).first(7)));
        co_await loop::current().yield();
        must(co_await to.write_all(const_bytes(bytes).subspan(7)));
        co_await loop::current().yield();
    }
}

TEST_P(allocation_kernel_io, warm_exact_reads_allocate_nothing) {
    run([this]() -> task<> {
        connection pair = co_await connect();
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn(send_split(pair.server, 1100));
            std::array<std::byte, 20> into;
            std::uint64_t before = 0;
            for (int i = 0; i < 1100; ++i) {
                if (i == 100) before = allocations();
                must(co_await pair.client.read_exactly(into));
            }
            EXPECT_EQ(allocations() - before, 0u);
        });
    });
}

task<int> work_there(int number) {
    co_await loop::current().yield();
    co_return number;
}
task<std::uint64_t> allocations_there() { co_return allocations(); }

TEST_P(allocation_io, warm_calls_to_another_loop_allocate_nothing_on_either) {
    run_with_threads([]() -> task<> {
        loop_group_options options;
        options.threads = 1;
        options.loop.kind = GetParam();
        const auto group = must(loop_group::start(options));
        const executor there = group->executor(0);
        std::uint64_t before = 0;
        std::uint64_t before_there = 0;
        for (int i = 0; i < 1100; ++i) {
            if (i == 100) {
                before_there = must(co_await resume_on(there, allocations_there()));
                before = allocations();
            }
            EXPECT_EQ(must(co_await resume_on(there, work_there(i))), i);
        }
        EXPECT_EQ(allocations() - before, 0u);
        EXPECT_EQ(must(co_await resume_on(there, allocations_there())) - before_there, 0u);
    });
}

/// Runs `round` to be warm, and then says what `rounds` more of it allocate.
template <class Round>
task<std::uint64_t> count_warm(int rounds, Round round) {
    for (int i = 0; i < 100; ++i) co_await round();
    const std::uint64_t before = allocations();
    for (int i = 0; i < rounds; ++i) co_await round();
    co_return allocations() - before;
}

task<> echo_numbers(channel<int>& from, channel<int>& to) {
    while (const auto number = co_await from.receive()) must(co_await to.send(*number));
}

TEST_P(allocation_io, a_channel_allocates_nothing_once_it_is_made) {
    run([]() -> task<> {
        channel<int> there(2);
        channel<int> back(1);
        co_await join_scope([&](scope& children) -> task<> {
            children.spawn(echo_numbers(there, back));
            const auto spent = co_await count_warm(1000, [&]() -> task<> {
                for (int i = 0; i < 3; ++i) must(co_await there.send(i));  // the last one waits
                for (int i = 0; i < 3; ++i) EXPECT_EQ(must(co_await back.receive()), i);
            });
            EXPECT_EQ(spent, 0u);
            there.close();
        });
    });
}

task<> hold_for_a_turn(semaphore& awaited, int& entered) {
    const permit inside = must(co_await awaited.acquire());
    ++entered;
    co_await loop::current().yield();
}

TEST_P(allocation_io, a_semaphore_allocates_nothing) {
    run([]() -> task<> {
        semaphore awaited(2);
        async_mutex one;
        int entered = 0;
        const auto spent = co_await count_warm(1000, [&]() -> task<> {
            co_await join_scope([&](scope& children) -> task<> {
                for (int i = 0; i < 5; ++i) children.spawn(hold_for_a_turn(awaited, entered));
                const permit held = must(co_await one.lock());
                co_return;
            });
        });
        EXPECT_EQ(spent, 0u);
        EXPECT_EQ(entered, 1100 * 5);
    });
}

TEST_P(allocation_io, an_event_and_a_sleep_allocate_nothing) {
    run([]() -> task<> {
        event awaited;
        const auto pass = [](event& of) -> task<> { must(co_await of.wait()); };
        const auto waits = co_await count_warm(1000, [&]() -> task<> {
            co_await join_scope([&](scope& children) -> task<> {
                for (int i = 0; i < 3; ++i) children.spawn(pass(awaited));
                awaited.set();
                co_return;
            });
            must(co_await awaited.wait());  // it is set
            awaited.reset();
        });
        EXPECT_EQ(waits, 0u);
        const auto sleeps = co_await count_warm(
            1000, []() -> task<> { must(co_await loop::current().sleep_for(1us)); });
        EXPECT_EQ(sleeps, 0u);
    });
}

task<> wait_until_readable(int fd) { must(co_await loop::current().wait_readable(fd)); }

TEST_P(allocation_kernel_io, waiting_for_a_descriptor_allocates_nothing) {
    run([]() -> task<> {
        const unique_fd counter(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
        const auto spent = co_await count_warm(1000, [&]() -> task<> {
            // Two on one descriptor, once waiting and once with it ready.
            std::uint64_t number = 1;
            co_await join_scope([&](scope& children) -> task<> {
                for (int i = 0; i < 2; ++i) children.spawn(wait_until_readable(counter.get()));
                co_await loop::current().yield();
                EXPECT_EQ(write(counter.get(), &number, sizeof(number)), 8);
            });
            must(co_await loop::current().wait_readable(counter.get()));
            must(co_await loop::current().wait_writable(counter.get()));
            EXPECT_EQ(read(counter.get(), &number, sizeof(number)), 8);
        });
        EXPECT_EQ(spent, 0u);
    });
}

TEST(allocation, counts_what_the_frame_pool_and_buffers_ask_malloc_for) {
    std::uint64_t before = allocations();
    {
        const std::vector<std::byte> bytes(100);
    }
    EXPECT_EQ(allocations() - before, 1u);
    before = allocations();
    frame_free(frame_allocate(frame_size_limit + 1), frame_size_limit + 1);
    EXPECT_EQ(allocations() - before, 1u);
    before = allocations();
    {
        byte_buffer bytes;
        bytes.append("x");
    }
    EXPECT_EQ(allocations() - before, 1u);
}

TEST_P(allocation_io, work_on_a_file_allocates_nothing) {
    run_with_threads([]() -> task<> {
        const temporary_folder folder;
        file made = must(co_await file::open(folder.path() + "/x", O_RDWR | O_CREAT, 0600));
        std::array<std::byte, 10> bytes{};
        const auto spent = co_await count_warm(50, [&]() -> task<> {
            must(co_await made.write_at(0, bytes));
            must(co_await made.sync_data());
            must(co_await made.sync());
            EXPECT_EQ(must(co_await made.read_at(0, bytes)), bytes.size());
            EXPECT_EQ(must(co_await made.size()), bytes.size());
            must(co_await made.truncate(bytes.size()));
        });
        EXPECT_EQ(spent, 0u);
    });
}

TEST_P(allocation_io, waits_for_all_or_any_allocate_nothing) {
    run([]() -> task<> {
        const auto all = co_await count_warm(1000, []() -> task<> {
            const auto [one, two] = co_await when_all(work_there(1), work_there(2));
            EXPECT_EQ(one + two, 3);
        });
        EXPECT_EQ(all, 0u);
        const auto any = co_await count_warm(1000, []() -> task<> {
            const auto first = co_await when_any(work_there(1), []() -> task<std::error_code> {
                co_return error_of(co_await loop::current().sleep_for(1h));
            }());
            EXPECT_EQ(first.index(), 0u);
        });
        EXPECT_EQ(any, 0u);
    });
}

TEST_P(allocation_kernel_io, the_next_signal_allocates_nothing) {
    run([]() -> task<> {
        signal_set signals = must(signal_set::take({SIGUSR2}));
        const auto spent = co_await count_warm(500, [&]() -> task<> {
            // One that is there, and one that is waited for.
            EXPECT_EQ(::kill(::getpid(), SIGUSR2), 0);
            EXPECT_EQ(must(co_await signals.next()), SIGUSR2);
            co_await join_scope([&](scope& children) -> task<> {
                children.spawn([](signal_set& from) -> task<> {
                    EXPECT_EQ(must(co_await from.next()), SIGUSR2);
                }(signals));
                co_await loop::current().yield();
                EXPECT_EQ(::kill(::getpid(), SIGUSR2), 0);
            });
        });
        EXPECT_EQ(spent, 0u);
    });
}

task<> run_on(const strand& on, int number) {
    EXPECT_EQ(must(co_await on.run(work_there(number))), number);
}

TEST_P(allocation_io, a_strand_of_this_loop_allocates_nothing_once_it_is_made) {
    run([]() -> task<> {
        const strand here_on(executor::current());
        const auto spent = co_await count_warm(1000, [&]() -> task<> {
            // One that has its turn at once, and two that wait for it.
            co_await join_scope([&](scope& children) -> task<> {
                for (int i = 0; i < 3; ++i) children.spawn(run_on(here_on, i));
                co_return;
            });
        });
        EXPECT_EQ(spent, 0u);
    });
}

TEST_P(allocation_io, a_strand_of_another_loop_allocates_nothing_once_warm) {
    run_with_threads([]() -> task<> {
        loop_group_options options;
        options.threads = 1;
        options.loop.kind = GetParam();
        const auto group = must(loop_group::start(options));
        const executor there = group->executor(0);
        const strand over_there(there);
        constexpr int rounds = 1000;
        std::uint64_t before = 0;
        std::uint64_t before_there = 0;
        for (int i = 0; i < rounds + 100; ++i) {
            if (i == 100) {
                before_there = must(co_await resume_on(there, allocations_there()));
                before = allocations();
            }
            EXPECT_EQ(must(co_await over_there.run(work_there(i))), i);
        }
        // The memory of its turn comes back to this thread, and that of the work within it.
        EXPECT_EQ(allocations() - before, 0u);
        EXPECT_EQ(must(co_await resume_on(there, allocations_there())) - before_there, 0u);
    });
}

TEST_P(allocation_kernel_io, the_leases_of_a_warm_stream_allocate_nothing) {
    run([this]() -> task<> {
        connection pair = co_await connect();
        auto incoming = leases(pair.server);
        const auto one_after_another = co_await count_warm(1000, [&]() -> task<> {
            must(co_await pair.client.write_all("a message"));
            auto received = co_await incoming.next();
            EXPECT_EQ(must(std::move(received.value())).text(), "a message");
        });
        EXPECT_EQ(one_after_another, 0u);
        const auto one_generator_each = co_await count_warm(1000, [&]() -> task<> {
            must(co_await pair.client.write_all("a message"));
            auto once = leases(pair.server);
            auto received = co_await once.next();
            EXPECT_EQ(must(std::move(received.value())).text(), "a message");
        });
        EXPECT_EQ(one_generator_each, 0u);
    });
}

TEST_P(allocation_kernel_io, a_warm_pipe_allocates_nothing) {
    run([]() -> task<> {
        pipe_ends ends = must(make_pipe());
        std::array<std::byte, 3> into;
        const auto spent = co_await count_warm(1000, [&]() -> task<> {
            // A reader that waits, once with a lease and once into its own bytes.
            co_await join_scope([&](scope& children) -> task<> {
                children.spawn([](stream& from) -> task<> {
                    EXPECT_EQ(must(co_await from.read()).text(), "one");
                }(ends.reader));
                must(co_await ends.writer.write_all("one"));
                co_return;
            });
            must(co_await ends.writer.write_all("two"));
            must(co_await ends.reader.read_exactly(into));
        });
        EXPECT_EQ(spent, 0u);
    });
}

TEST_P(allocation_kernel_io, connections_one_after_another_share_the_memory_of_their_drivers) {
    run([this]() -> task<> {
        listener accepting = must(here().listen(loopback()));
        const endpoint where = accepting.local();
        const auto spent = co_await count_warm(500, [&]() -> task<> {
            {
                stream client = must(co_await here().connect(where));
                stream server = must(co_await accepting.accept());
                must(co_await client.write_all("x"));
                EXPECT_EQ(must(co_await server.read()).text(), "x");
            }
            // On io_uring a driver is there until its last completion.
            for (int i = 0; i < 3; ++i) co_await here().yield();
        });
        EXPECT_EQ(spent, 0u);
    });
}

TEST_P(allocation_kernel_io, connections_that_wait_to_be_accepted_allocate_nothing_more) {
    run([this]() -> task<> {
        listener accepting = must(here().listen(loopback()));
        const endpoint where = accepting.local();
        constexpr std::size_t ahead = 50;
        std::array<stream, ahead> clients;
        const auto spent = co_await count_warm(20, [&]() -> task<> {
            for (stream& each : clients) each = must(co_await here().connect(where));
            for (std::size_t i = 0; i < ahead; ++i)
                static_cast<void>(must(co_await accepting.accept()));
            for (stream& each : clients) each.close();
            for (int i = 0; i < 3; ++i) co_await here().yield();
        });
        EXPECT_EQ(spent, 0u);
    });
}

task<> write_twice_as_much_as_fits(stream& to, const std::vector<std::byte>& bytes) {
    const std::array<const_bytes, 3> pieces{const_bytes(bytes), const_bytes(),
                                            const_bytes(bytes).first(100)};
    must(co_await to.write_all(std::span<const const_bytes>(pieces)));
    must(co_await to.write_all(const_bytes(bytes)));
}

TEST_P(allocation_kernel_io, a_write_that_waits_for_room_allocates_nothing) {
    run([this]() -> task<> {
        connection pair = co_await connect();
        // More than the buffers of both sockets hold.
        const std::vector<std::byte> bytes(16 * 1024 * 1024);
        std::vector<std::byte> room(1024 * 1024);
        std::uint64_t spent = 0;
        for (int round = 0; round < 4; ++round) {
            const std::uint64_t before = allocations();
            co_await join_scope([&](scope& children) -> task<> {
                children.spawn(write_twice_as_much_as_fits(pair.client, bytes));
                EXPECT_EQ(children.children(), 1u) << "it waits";
                for (std::size_t left = 2 * bytes.size() + 100; left > 0;)
                    left -= must(co_await pair.server.read_some(
                        mutable_bytes(room).first(std::min(left, room.size()))));
            });
            if (round > 0) spent += allocations() - before;
        }
        EXPECT_EQ(spent, 0u);
    });
}

task<> send_late(datagram& to, std::string_view text) { must(co_await to.send(as_bytes(text))); }

TEST_P(allocation_kernel_io, a_message_that_waits_for_room_allocates_nothing) {
    run([this]() -> task<> {
        // Loopback UDP always has room; a pair of Unix sockets has not.
        int ends[2];
        EXPECT_EQ(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends), 0);
        datagram near = must(here().adopt_datagram(unique_fd(ends[0])));
        datagram far = must(here().adopt_datagram(unique_fd(ends[1])));
        const auto spent = co_await count_warm(50, [&]() -> task<> {
            int sent = 0;
            while (near.send_to(as_bytes("early"), {})) ++sent;
            co_await join_scope([&](scope& children) -> task<> {
                for (int i = 0; i < 3; ++i) children.spawn(send_late(near, "late"));
                // The kernel's thread of SQPOLL may have made room meanwhile, by the receive that
                // is armed.
                if (!testing::with_environment({}).sqpoll)
                    EXPECT_EQ(children.children(), 3u) << "they wait";
                for (int i = 0; i < sent; ++i)
                    EXPECT_EQ(must(co_await far.receive()).payload.text(), "early");
                for (int i = 0; i < 3; ++i)
                    EXPECT_EQ(must(co_await far.receive()).payload.text(), "late");
            });
        });
        EXPECT_EQ(spent, 0u);
    });
}

TEST_P(allocation_kernel_io, waiting_for_a_child_allocates_nothing) {
    run([]() -> task<> {
        std::uint64_t spent = 0;
        for (int round = 0; round < 5; ++round) {
            process child = must(process::start({"cat"}, {.input = stdio::stream}));
            const std::uint64_t before = allocations();
            co_await join_scope([&](scope& children) -> task<> {
                children.spawn([](process& of) -> task<> {
                    EXPECT_TRUE(must(co_await of.wait()).success());
                }(child));
                child.input.close();
                co_return;
            });
            if (round > 0) spent += allocations() - before;
        }
        EXPECT_EQ(spent, 0u);
    });
}

/// A piece of work that is posted again and again.
class counting_work final : public posted_work {
public:
    void run() noexcept override {
        ++runs;
        done.set();
    }

    int runs = 0;
    event done;
};

TEST_P(allocation_io, posting_a_node_of_ones_own_allocates_nothing) {
    run([]() -> task<> {
        const executor at_home = executor::current();
        counting_work work;
        const auto spent = co_await count_warm(1000, [&]() -> task<> {
            work.done.reset();
            must(at_home.post(work));
            must(co_await work.done.wait());
        });
        EXPECT_EQ(spent, 0u);
        EXPECT_EQ(work.runs, 1100);
    });
}

TEST_P(allocation_kernel_io, waiting_for_a_connection_allocates_nothing) {
    run([this]() -> task<> {
        listener accepting = must(here().listen(loopback()));
        const auto wait = [](listener& from) -> task<result<stream>> {
            co_return co_await from.accept();
        };
        const auto spent = co_await count_warm(100, [&]() -> task<> {
            EXPECT_EQ(error_of(co_await with_timeout(1us, wait(accepting))), errc::timed_out);
            EXPECT_EQ(error_of(co_await with_timeout(1us, accepting.accept())), errc::timed_out);
        });
        EXPECT_EQ(spent, 0u);
    });
}

TEST_P(allocation_kernel_io, a_child_whose_plan_lacks_memory_does_not_start) {
    run([]() -> task<> {
        std::error_code started;
        {
            // Only the copy of the folder's name is that small. Without it the child would start in
            // ours.
            const no_memory now(0, 8);
            started = error_of(process::start({"true"}, {.folder = "/"}));
        }
        EXPECT_EQ(started, errno_code(ENOMEM));
        co_return;
    });
}

TEST_P(allocation_kernel_io, a_fifo_without_memory_for_it_is_left_as_it_was) {
    run([this]() -> task<> {
        const temporary_folder folder;
        const std::string path = folder.path() + "/fifo";
        EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
        const unique_fd shared(open(path.c_str(), O_RDWR | O_CLOEXEC));
        unique_fd copy(fcntl(shared.get(), F_DUPFD_CLOEXEC, 0));
        std::error_code adopted;
        std::error_code made;
        {
            const no_memory now;
            adopted = error_of(here().adopt(std::move(copy)));
            made = error_of(make_pipe());
        }
        EXPECT_EQ(adopted, errno_code(ENOMEM));
        EXPECT_EQ(made, errno_code(ENOMEM));
        EXPECT_EQ(fcntl(shared.get(), F_GETFL) & O_NONBLOCK, 0);
        co_return;
    });
}

}  // namespace
}  // namespace eddy::testing
#endif  // EDDY_COUNTS_ALLOCATIONS
