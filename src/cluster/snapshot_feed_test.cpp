// Numbers of snapshots, and waits for the next one.
#include "cluster/snapshot_feed.hpp"

#include <eddy/io/scope.hpp>

#include "cluster/testing.hpp"
#include "io/testing.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <system_error>
#include <vector>

namespace eddy::cluster {
namespace {

using namespace cluster::testing;

class snapshots : public eddy::testing::on_io_backend {
protected:
    static std::shared_ptr<const member_info> member(std::string name) {
        auto made = std::make_shared<member_info>();
        made->name = std::move(name);
        return made;
    }
    static task<void> note_change(snapshot_feed& of, std::uint64_t known,
                                  std::vector<std::error_code>& to) {
        const result<> waited = co_await of.changed(known);
        to.push_back(waited ? std::error_code() : waited.error());
    }
};
INSTANTIATE_TEST_SUITE_P(cluster, snapshots, ::testing::Values(io_backend_kind::sim),
                         eddy::testing::io_backend_name);

TEST_P(snapshots, are_numbered_where_they_differ) {
    snapshot_feed feed;
    EXPECT_EQ(feed.current()->number, 0U);
    feed.show({}, "");
    EXPECT_EQ(feed.current()->number, 1U) << "an empty cluster is known, too";
    const member_list both{member("a"), member("b")};
    feed.show(both, "");
    const auto second = feed.current();
    feed.show(both, "");
    EXPECT_EQ(feed.current(), second);
    feed.show(both, "it is away");
    EXPECT_EQ(feed.current()->number, 3U);
    EXPECT_TRUE(feed.current()->is_stale);
    EXPECT_EQ(feed.current()->stale_reason, "it is away");
    EXPECT_FALSE(second->is_stale);
    EXPECT_EQ(feed.current()->find("b"), both[1].get());
    EXPECT_EQ(feed.current()->find("ab"), nullptr);
    EXPECT_EQ(feed.current()->find("c"), nullptr);
}

TEST_P(snapshots, wake_all_that_wait) {
    run([]() -> task<void> {
        snapshot_feed feed;
        feed.show({member("a")}, "");
        std::vector<std::error_code> ends;
        EXPECT_TRUE(co_await feed.changed(0)) << "a newer one is there";
        cancel_source stop;
        scope waits;
        for (int i = 0; i < 3; ++i) waits.spawn(note_change(feed, 1, ends));
        waits.spawn(note_change(feed, 2, ends));
        waits.spawn(note_change(feed, 2, ends).under(stop));
        co_await loop::current().yield();
        feed.show({}, "");
        while (ends.size() < 3) co_await loop::current().yield();
        EXPECT_EQ(ends, std::vector<std::error_code>(3));
        stop.request();
        while (ends.size() < 4) co_await loop::current().yield();
        EXPECT_EQ(ends.back(), errc::cancelled);
        feed.close();
        co_await feed.drained();
        EXPECT_EQ(ends.size(), 5U) << "drained() has awaited the last one";
        EXPECT_EQ(ends.back(), errc::closed);
        const result<> later = co_await feed.changed(0);
        EXPECT_EQ(eddy::testing::error_of(later), errc::closed);
        feed.show({member("a")}, "");
        EXPECT_EQ(feed.current()->number, 2U) << "none after the end";
        co_await waits.join();
    });
}

}  // namespace
}  // namespace eddy::cluster
