// What costs no allocation, and what becomes of things when there is no memory. All of it counts
// what `operator new` and the frame pool ask malloc for, in programs without sanitizers.
#include <eddy/base/frame_pool.hpp>
#include <eddy/base/unique_fd.hpp>
#include <eddy/io/executor.hpp>
#include <eddy/io/loop_group.hpp>
#include <eddy/io/pipe.hpp>

#include "io/testing.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define EDDY_COUNTS_ALLOCATIONS 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define EDDY_COUNTS_ALLOCATIONS 0
#endif
#endif
#if !defined(EDDY_COUNTS_ALLOCATIONS)
#define EDDY_COUNTS_ALLOCATIONS 1

namespace {

thread_local std::uint64_t news = 0;
thread_local bool memory_is_out = false;

void* counted_allocation(std::size_t size) {
    ++news;
    if (memory_is_out) throw std::bad_alloc();
    void* memory = std::malloc(size ? size : 1);
    if (!memory) throw std::bad_alloc();
    return memory;
}

}  // namespace

// Counted for the whole program, whose sanitizers bring their own; only the difference around a few
// lines is looked at.
void* operator new(std::size_t size) { return counted_allocation(size); }
void* operator new[](std::size_t size) { return counted_allocation(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace eddy::testing {
namespace {

EDDY_ON_EVERY_BACKEND(allocation_io);
EDDY_ON_EVERY_KERNEL_BACKEND(allocation_kernel_io);

std::uint64_t allocations() { return news + frame_allocations(); }

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

TEST_P(allocation_io, warm_visits_to_another_loop_allocate_nothing_on_either) {
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

/// While it lives, `operator new` has no memory for this thread.
class no_memory {
public:
    no_memory() noexcept { memory_is_out = true; }
    ~no_memory() { memory_is_out = false; }
    no_memory(const no_memory&) = delete;
    no_memory& operator=(const no_memory&) = delete;
};

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
