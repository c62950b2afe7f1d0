// Tests of the store's calls on the blocking pool.
#include "daemon/state/state_access.hpp"

#include <eddy/io/loop.hpp>

#include "daemon/state/memory_store.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace eddy::daemon {
namespace {

task<void> use(const state_access& state, testing::memory_store& store) {
    runtime_record record;
    record.name = "a";
    EXPECT_FALSE(co_await state.contains("a"));
    EXPECT_TRUE(co_await state.save(record));
    EXPECT_TRUE(co_await state.contains("a"));
    const auto loaded = co_await state.load(unfinished::kept);
    EXPECT_TRUE(loaded && loaded->records.size() == 1 && loaded->records[0] == record);

    store.is_full = true;
    const auto saved = co_await state.save(record);
    EXPECT_TRUE(!saved && saved.error().status == 507) << "the store's own refusal";
    EXPECT_FALSE(co_await state.erase("a"));
    const auto unread = co_await state.load(unfinished::kept);
    EXPECT_TRUE(!unread && unread.error().status == 500);
    store.is_full = false;
    EXPECT_TRUE(co_await state.erase("a"));
    EXPECT_FALSE(co_await state.contains("a"));
}

TEST(state_access_test, makes_the_calls_of_any_store_and_passes_their_refusals_on) {
    loop_options options;
    options.kind = io_backend_kind::epoll;
    const auto here = std::move(*loop::create(options));
    testing::memory_store store;
    blocking_pool disk;
    const state_access state(store, disk);
    here->run(use(state, store));
}

}  // namespace
}  // namespace eddy::daemon
