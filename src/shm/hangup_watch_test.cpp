// Watch over a connection's socket: its end, and the watch's own failure.
#include "shm/hangup_watch.hpp"

#include "io/testing.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <memory>

namespace eddy::shm {
namespace {

using testing::must;

EDDY_ON_EVERY_KERNEL_BACKEND(shm_hangup_watch);

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
