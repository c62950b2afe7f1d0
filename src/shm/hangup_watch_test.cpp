// Watch over a connection's socket: its end, and the watch's own failure.
#include "shm/hangup_watch.hpp"

#include "io/testing.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>

namespace eddy::shm {
namespace {

using testing::must;

EDDY_ON_EVERY_KERNEL_IO_BACKEND(shm_hangup_watch);

struct watched {
    std::shared_ptr<liveness> life;
    unique_fd peer;
};

watched make_watched() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        throw std::runtime_error("socketpair");
    return {std::make_shared<liveness>(unique_fd(ends[0])), unique_fd(ends[1])};
}

TEST_P(shm_hangup_watch, ends_with_the_peer_and_not_with_bytes) {
    run([]() -> task<> {
        watched made = make_watched();
        co_await with_scope([&](scope& children) -> task<> {
            children.spawn(watch_until_gone(made.life));
            EXPECT_EQ(::send(made.peer.get(), "!", 1, 0), 1);
            char left = 0;
            while (::recv(made.life->socket(), &left, 1, MSG_PEEK | MSG_DONTWAIT) > 0)
                must(co_await loop::current().sleep_for(std::chrono::milliseconds(1)));
            EXPECT_FALSE(made.life->is_peer_gone());
            made.peer.reset();
            co_await children.join();
            EXPECT_TRUE(made.life->is_peer_gone());
        });
    });
}

TEST(shm_liveness, notices_the_end_before_and_after_it_is_watched) {
    const auto begin = std::chrono::steady_clock::now();
    for (const int calls : {0, 10, 100}) {
        watched made = make_watched();
        for (int i = 0; i < calls; ++i) EXPECT_FALSE(made.life->is_peer_gone());
        made.peer.reset();
        while (!made.life->is_peer_gone() &&
               std::chrono::steady_clock::now() - begin < std::chrono::seconds(40))
            std::this_thread::yield();
        EXPECT_TRUE(made.life->is_peer_gone()) << calls;
    }
}

TEST_P(shm_hangup_watch, that_fails_counts_as_the_end_of_the_peer) {
    run([]() -> task<> {
        const watched made = make_watched();
        cancel_source stop;
        stop.request();
        co_await watch_until_gone(made.life).under(stop);
        EXPECT_TRUE(made.life->is_peer_gone());
    });
}

}  // namespace
}  // namespace eddy::shm
