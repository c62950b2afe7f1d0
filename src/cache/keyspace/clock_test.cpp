// Tests of a system clock that is set while clients wait: keys expire by the new time, nothing else
// changes.
#include "cache/engine/engine.hpp"
#include "cache/engine/engine_state.hpp"
#include "cache/persistence/persistence.hpp"
#include "cache/rdb/snapshot.hpp"
#include "cache/testing/test_client.hpp"
#include "cache/testing/test_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>

namespace eddy::cache {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::test_client;

constexpr seconds begin{1'700'000'000};

class clock_changes : public ::testing::TestWithParam<int>, save_host {
protected:
    clock_changes() {
        tell();
        engine_.internals().persistence.saves.host = this;
        note_saved_time(engine_.internals());
    }

    // Time passes, and the deadlines of all waits are checked.
    void pass(microseconds time) {
        passed_ += time;
        tell();
        for (test_client* const each : {&a_, &b_, &c_, &d_}) engine_.end_wait(each->who());
    }
    // The system's clock is set forward or back; no time passes.
    void set_clock() {
        set_by_ += hours(GetParam());
        pass({});
    }
    void sweep() {
        while (engine_.upkeep()) {
        }
    }
    void tell() { engine_.set_time(begin + set_by_ + passed_, seconds(77) + passed_); }

    void save_began() noexcept override {}
    bool is_due() { return save_is_due(engine_.internals()); }
    // Writes the file as a server does, or fails.
    void end_save(std::string_view fault) {
        rdb::snapshot* const image = engine_.internals().persistence.saves.snapshot;
        ASSERT_NE(image, nullptr);
        byte_buffer out;
        while (image->step(out) == rdb::snapshot::status::writing) out.clear();
        image->end();
        cache::end_save(engine_.internals(), fault);
    }
    std::string now_s() const {
        const auto now = begin + set_by_ + passed_;
        return std::to_string(std::chrono::duration_cast<seconds>(now).count());
    }

    engine engine_;
    testing::test_server server_{engine_, testing::with_folder()};
    microseconds set_by_{};
    microseconds passed_{};
    test_client a_{engine_};
    test_client b_{engine_};
    test_client c_{engine_};
    test_client d_{engine_};
};

TEST_P(clock_changes, waits_end_when_their_time_has_passed) {
    test_client other(engine_);
    EXPECT_EQ(a_("BLPOP list 5"), "");
    EXPECT_EQ(b_("XREAD BLOCK 5000 STREAMS s $"), "");
    EXPECT_EQ(c_("WAIT 1 5000"), "");
    EXPECT_EQ(d_("BZPOPMIN z 0.5"), "");
    set_clock();
    for (test_client* const each : {&a_, &b_, &c_, &d_}) EXPECT_TRUE(each->who().blocked);
    pass(milliseconds(499));
    EXPECT_TRUE(d_.who().blocked);
    pass(milliseconds(1));
    EXPECT_EQ(d_.pushed(), "*-1\r\n");
    set_clock();
    pass(milliseconds(4499));
    for (test_client* const each : {&a_, &b_, &c_}) EXPECT_TRUE(each->who().blocked);
    pass(milliseconds(1));
    EXPECT_EQ(a_.pushed(), "*-1\r\n");
    EXPECT_EQ(b_.pushed(), "*-1\r\n");
    EXPECT_EQ(c_.pushed(), ":0\r\n");
    // A wait without a deadline is still served.
    EXPECT_EQ(a_("BLPOP list 0"), "");
    set_clock();
    EXPECT_EQ(other("RPUSH list x"), ":1\r\n");
    EXPECT_EQ(a_.pushed(), "*2\r\n$4\r\nlist\r\n$1\r\nx\r\n");
}

TEST_P(clock_changes, a_pause_ends_when_its_time_has_passed) {
    test_client other(engine_);
    EXPECT_EQ(other("CLIENT PAUSE 2000 ALL"), "+OK\r\n");
    EXPECT_EQ(a_("GET k"), "");
    set_clock();
    EXPECT_TRUE(a_.who().blocked);
    EXPECT_EQ(b_("GET k"), "");
    pass(milliseconds(1999));
    EXPECT_TRUE(a_.who().blocked);
    pass(milliseconds(1));
    EXPECT_EQ(a_.pushed(), "$-1\r\n");
    EXPECT_EQ(b_.pushed(), "$-1\r\n");
    EXPECT_EQ(c_("GET k"), "$-1\r\n");
}

TEST_P(clock_changes, keys_end_by_the_new_time) {
    EXPECT_EQ(a_("SET k v EX 1800"), "+OK\r\n");
    EXPECT_EQ(a_("HSET h f v"), ":1\r\n");
    EXPECT_EQ(a_("HEXPIRE h 1800 FIELDS 1 f"), "*1\r\n:1\r\n");
    const std::string at = a_("EXPIRETIME k");
    set_clock();
    sweep();
    if (GetParam() > 0) {
        EXPECT_EQ(a_("EXISTS k h"), ":0\r\n");
    } else {
        EXPECT_EQ(a_("EXPIRETIME k"), at);
        EXPECT_EQ(a_("TTL k"), ":" + std::to_string(1800 - GetParam() * 3600) + "\r\n");
        EXPECT_EQ(a_("HGET h f"), "$1\r\nv\r\n");
        pass(seconds(1800) - hours(GetParam()) + milliseconds(1));
        sweep();
        EXPECT_EQ(a_("EXISTS k h"), ":0\r\n");
    }
    const auto now = testing::parse_reply(a_("TIME"));
    EXPECT_EQ(now.children.at(0).text, now_s());
    // Reported times are plausible, and waits end.
    EXPECT_THAT(a_("INFO"), ::testing::HasSubstr("uptime_in_seconds:"));
    EXPECT_THAT(a_("CLIENT LIST"), ::testing::HasSubstr(" age="));
    EXPECT_EQ(a_("SET new v EX 10"), "+OK\r\n");
    EXPECT_EQ(a_("TTL new"), ":10\r\n");
}

TEST_P(clock_changes, rates_are_of_the_time_that_has_passed) {
    const auto tenth = [this] {
        pass(milliseconds(100));
        for (int i = 0; i < 50; ++i) a_("PING");
    };
    for (int i = 0; i < 40; ++i) tenth();
    EXPECT_THAT(b_("INFO stats"), ::testing::HasSubstr("instantaneous_ops_per_sec:500\r\n"));
    set_clock();
    for (int i = 0; i < 4; ++i) tenth();
    EXPECT_THAT(b_("INFO stats"), ::testing::HasSubstr("instantaneous_ops_per_sec:50"));
}

TEST_P(clock_changes, save_points_count_the_time_that_has_passed) {
    EXPECT_EQ(a_({"CONFIG", "SET", "save", "60 1"}), "+OK\r\n");
    EXPECT_EQ(a_("SET k v"), "+OK\r\n");
    set_clock();
    EXPECT_FALSE(is_due());
    pass(seconds(60));
    EXPECT_FALSE(is_due());
    pass(milliseconds(1));
    EXPECT_TRUE(is_due());
    EXPECT_EQ(a_("BGSAVE"), "+Background saving started\r\n");
    pass(seconds(2));
    set_clock();
    EXPECT_THAT(a_("INFO"), ::testing::HasSubstr("rdb_current_bgsave_time_sec:2\r\n"));
    end_save("the disk is full");
    EXPECT_THAT(a_("INFO"), ::testing::HasSubstr("rdb_last_bgsave_time_sec:2\r\n"));
    // A failed save is retried after some seconds, whatever the system's clock.
    set_clock();
    pass(seconds(5));
    EXPECT_FALSE(is_due());
    pass(milliseconds(1));
    EXPECT_TRUE(is_due());
    // LASTSAVE replies with the system's time.
    EXPECT_EQ(a_("BGSAVE"), "+Background saving started\r\n");
    end_save({});
    EXPECT_EQ(a_("LASTSAVE"), ":" + now_s() + "\r\n");
}

INSTANTIATE_TEST_SUITE_P(cache, clock_changes, ::testing::Values(1, -1, 30, -30));

}  // namespace
}  // namespace eddy::cache
