// Messages between a supervisor and its workers.
#include "daemon/stream_daemon/worker_channel.hpp"

#include "io/testing.hpp"
#include "runtime/stream/worker_share.hpp"

#include <gtest/gtest.h>

#include <string>

namespace eddy::daemon {
namespace {

using eddy::testing::must;

TEST(worker_channel, names_workers) {
    const auto read = parse_worker_identity(to_text({3, 1234}));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->number, 3U);
    EXPECT_EQ(read->parent, 1234);
    const std::string too_large = std::to_string(runtime::stream::max_workers) + ":1";
    for (const std::string& each :
         {std::string(), std::string("3"), std::string("3:"), std::string(":1"), std::string("3:x"),
          std::string("-1:1"), std::string("3:99999999999"), too_large})
        EXPECT_FALSE(parse_worker_identity(each)) << each;
}

TEST(worker_channel, numbers_pages) {
    const std::string request = page_request(7);
    const auto asked = parse_page(request);
    ASSERT_TRUE(asked);
    EXPECT_EQ(asked->number, 7U);
    EXPECT_EQ(asked->page, "");
    const std::string answer = page_request(7) + "\na 1\nb 2\n";
    const auto answered = parse_page(answer);
    ASSERT_TRUE(answered);
    EXPECT_EQ(answered->number, 7U);
    EXPECT_EQ(answered->page, "a 1\nb 2\n");
    for (const char* const each : {"", "ready", "page", "page ", "page x", "page 1 \n"})
        EXPECT_FALSE(parse_page(each)) << each;
}

class worker_channels : public eddy::testing::on_io_backend {};
INSTANTIATE_TEST_SUITE_P(daemon, worker_channels,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll),
                         eddy::testing::io_backend_name);

TEST_P(worker_channels, keep_messages_apart) {
    run([]() -> task<void> {
        const channel_ends ends = must(make_worker_channel());
        const int there = ends.worker.get();
        must(send_worker_message(ends.supervisor.get(), "one"));
        must(send_worker_message(ends.supervisor.get(), "two"));
        EXPECT_EQ(must(co_await receive_worker_message(there)), "one");
        EXPECT_EQ(must(co_await receive_worker_message(there)), "two");
    });
}

TEST_P(worker_channels, end_with_the_other_process) {
    run([]() -> task<void> {
        channel_ends ends = must(make_worker_channel());
        must(send_worker_message(ends.worker.get(), "last"));
        ends.worker.reset();
        EXPECT_EQ(must(co_await receive_worker_message(ends.supervisor.get())), "last");
        EXPECT_EQ(must(co_await receive_worker_message(ends.supervisor.get())), "");
        EXPECT_FALSE(send_worker_message(ends.supervisor.get(), "late"));
    });
}

TEST_P(worker_channels, take_messages_up_to_the_limit) {
    run([]() -> task<void> {
        const channel_ends ends = must(make_worker_channel());
        const int there = ends.worker.get();
        const std::string largest(max_worker_message, 'x');
        must(send_worker_message(ends.supervisor.get(), largest));
        EXPECT_EQ(must(co_await receive_worker_message(there)), largest);
        must(send_worker_message(ends.supervisor.get(), largest + "x"));
        const auto refused = co_await receive_worker_message(there);
        EXPECT_EQ(refused.error(), errc::limit_reached);
    });
}

TEST_P(worker_channels, never_wait_for_one_that_does_not_read) {
    run([]() -> task<void> {
        const channel_ends ends = must(make_worker_channel());
        result<> sent;
        for (int i = 0; i < 100'000 && sent; ++i)
            sent = send_worker_message(ends.supervisor.get(), std::string(1000, 'x'));
        EXPECT_EQ(sent.error(), std::errc::resource_unavailable_try_again);
        co_return;
    });
}

}  // namespace
}  // namespace eddy::daemon
