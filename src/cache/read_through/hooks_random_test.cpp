// Random test of hooks: once all changes are delivered the backend equals the cache, for any
// commands and any subset of functions in the script.
#include <eddy/base/random.hpp>

#include "base/test_seed.hpp"
#include "cache/engine/engine_state.hpp"
#include "cache/testing/hooks_fixture.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace eddy::cache {
namespace {

using testing::HooksTest;
using testing::test_client;

class HooksRandomTest : public HooksTest {
protected:
    struct stored {
        std::string value;
        std::int64_t ends_ms = 0;  // 0: never
    };
    struct running {
        hook_job job;
        bool is_early = false;  // takes effect when it begins
        std::int64_t ends_ms = 0;
        std::optional<stored> read;
    };
    static constexpr unsigned keys = 6;

    std::int64_t now_ms() const { return now_us_ / 1000; }
    std::size_t pick(std::size_t below) { return random_.below(below); }
    static std::string name(unsigned database, std::string_view key) {
        return std::to_string(database) + ":" + std::string(key);
    }

    std::optional<stored> in_backend(const std::string& name) const {
        const auto found = backend_.find(name);
        if (found == backend_.end()) return std::nullopt;
        if (found->second.ends_ms != 0 && now_ms() > found->second.ends_ms) return std::nullopt;
        return found->second;
    }
    void touch(running& of) {
        const std::string its = name(of.job.database, of.job.key);
        switch (of.job.what) {
            case hook_job::kind::write: backend_[its] = {*of.job.value, of.ends_ms}; break;
            case hook_job::kind::erase: backend_.erase(its); break;
            case hook_job::kind::miss: of.read = in_backend(its); break;
            case hook_job::kind::expire: break;
        }
    }
    bool begin_one() {
        running made;
        if (!hooks_->take(made.job)) return false;
        const hook_options& has = hooks_->options();
        switch (made.job.what) {
            case hook_job::kind::write: EXPECT_TRUE(has.has_write); break;
            case hook_job::kind::erase: EXPECT_TRUE(has.has_delete); break;
            case hook_job::kind::miss: EXPECT_TRUE(has.has_miss); break;
            case hook_job::kind::expire: EXPECT_TRUE(has.has_expire); break;
        }
        made.is_early = pick(2) == 0;
        if (made.job.ttl_ms != 0) made.ends_ms = now_ms() + made.job.ttl_ms;
        if (made.is_early) touch(made);
        at_work_.push_back(std::move(made));
        return true;
    }
    bool end_one(bool may_fail) {
        if (at_work_.empty()) return false;
        const auto which = at_work_.begin() + static_cast<std::ptrdiff_t>(pick(at_work_.size()));
        running one = std::move(*which);
        at_work_.erase(which);
        hook_result result;
        result.id = one.job.id;
        result.failed = may_fail && pick(8) == 0;
        if (!one.is_early && (!result.failed || pick(2) == 0)) touch(one);
        if (!result.failed && one.read) {
            result.value = one.read->value;
            if (one.read->ends_ms != 0)
                result.ttl_ms = std::max<std::int64_t>(one.read->ends_ms - now_ms(), 1);
        }
        hooks_->finish(std::move(result));
        return true;
    }
    void drain() {
        for (int round = 0; round < 1000; ++round) {
            while (begin_one()) {
            }
            const bool ended = end_one(false);
            if (!ended && hooks_->flushed()) return;
            if (!ended) pass_ms(100);
        }
        ADD_FAILURE() << "what waits does not end";
    }

    std::string key() { return "k" + std::to_string(pick(in_transaction_ ? 2 : keys)); }
    std::string value() {
        const std::size_t size = pick(3) == 0 ? 17'000 + pick(9000) : pick(30);
        return std::to_string(++values_) + std::string(size, 'v');
    }
    std::vector<std::string> command() {
        switch (pick(24)) {
            case 0: return {"SET", key(), value(), "PX", std::to_string(1 + pick(60))};
            case 1: return {"APPEND", key(), value()};
            case 2: return {"DEL", key()};
            case 3: return {"UNLINK", key(), key()};
            case 4: return {"GETDEL", key()};
            case 5: return {"RENAME", key(), key()};
            case 6: return {"COPY", key(), key(), "REPLACE"};
            case 7: return {"MOVE", key(), "1"};
            case 8: return {"LPUSH", key(), "x"};
            case 9: return {"SADD", key(), "x"};
            case 10: return {"SUNIONSTORE", key(), key(), key()};
            case 11: return {"LPOP", key()};
            case 12: return {"PEXPIRE", key(), std::to_string(pick(80))};
            case 13: return {"PERSIST", key()};
            case 14: return {"EXPIRE", key(), "-1"};
            case 15: return {"MSET", key(), value(), key(), value()};
            case 16: return {"SORT", key(), "BY", "nosort", "STORE", key()};
            case 17: return {"SETRANGE", key(), std::to_string(pick(20'000)), "s"};
            case 18: return {"GETEX", key(), "PX", std::to_string(1 + pick(60))};
            case 19:
            case 20: return {"GET", key()};
            default: return {"SET", key(), value()};
        }
    }
    void client_step(test_client& c) {
        if (pick(5) != 0) {
            c.ask(command());
            return;
        }
        // Changes of one key within a transaction are checked at its end.
        in_transaction_ = true;
        c("MULTI");
        for (std::size_t i = 1 + pick(5); i > 0; --i) c.ask(command());
        c("EXEC");
        in_transaction_ = false;
    }

    void compare() {
        const hook_options& has = hooks_->options();
        for (unsigned database = 0; database < 2; ++database) {
            for (unsigned i = 0; i < keys; ++i) {
                const std::string key = "k" + std::to_string(i);
                keyspace& all = home_->internals().data.database(database);
                const entry* const there = all.look_at(key);
                const bool is_string =
                    there != nullptr && !all.is_over(*there) && there->type == value_type::string;
                const auto kept = in_backend(name(database, key));
                if (is_string && has.has_write) {
                    text_view text;
                    ASSERT_TRUE(kept) << database << key;
                    EXPECT_TRUE(text(*there) == kept->value) << database << key;
                    EXPECT_EQ(there->expiry() == no_expiry ? 0 : there->expiry(), kept->ends_ms);
                }
                if (!is_string && has.has_delete) EXPECT_FALSE(kept) << database << key;
            }
        }
    }

    void run(std::uint64_t seed) {
        random_ = random_generator(seed);
        backend_.clear();
        at_work_.clear();
        hook_options options;
        options.has_miss = (seed & 1) != 0;
        options.has_write = (seed & 2) != 0;
        options.has_delete = (seed & 4) != 0;
        options.has_expire = (seed & 8) != 0;
        options.deadline_us = INT64_MAX / 4;
        if (pick(3) == 0) options.fallback = hook_fallback::stale;
        if (pick(4) == 0) options.queue.max_bytes = 60'000;
        begin_exactly(options);
        std::deque<test_client> clients;
        for (int i = 0; i < 4; ++i) clients.emplace_back(*home_);
        for (int step = 0; step < 600 && !HasFailure(); ++step) {
            const std::size_t what = pick(20);
            test_client& c = clients[pick(clients.size())];
            if (what < 10) {
                static_cast<void>(c.pushed());
                if (!c.who().blocked) client_step(c);
            } else if (what < 14) {
                begin_one();
            } else if (what < 18) {
                end_one(true);
            } else if (what == 18) {
                pass_ms(static_cast<std::int64_t>(1 + pick(10)));
            } else {
                // Expired keys are not removed yet.
                set_time(now_us_ + static_cast<std::int64_t>(pick(1200)) * 1000);
            }
        }
        for (int i = 0; i < 3; ++i) {
            for (test_client& each : clients) static_cast<void>(each.pushed());
            drain();
        }
        pass_ms(read_through::stale_retry_ms + 200);
        drain();
        if (hooks_->counts().changes.lost == 0) compare();
        EXPECT_EQ(hooks_->counts().queued_keys, 0);
    }

private:
    random_generator random_{1};
    std::map<std::string, stored> backend_;
    std::vector<running> at_work_;
    std::uint64_t values_ = 0;
    bool in_transaction_ = false;
};

TEST_F(HooksRandomTest, the_backend_has_what_the_cache_has_when_all_is_told) {
    const std::uint64_t first = eddy::testing::seed_of_this_run();
    for (std::uint64_t i = 0; i < 320; ++i) {
        run(first + i);
        ASSERT_FALSE(HasFailure()) << "seed " << first + i << " (repeat with EDDY_SEED)";
    }
}

}  // namespace
}  // namespace eddy::cache
