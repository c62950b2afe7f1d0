// Tests of the JSON of runtimes, without instances.
#include "daemon/control/runtime_view.hpp"

#include "daemon/runtimes/registry_fixture.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace eddy::daemon {
namespace {

using runtime_view_test = testing::registry_fixture;

TEST_F(runtime_view_test, a_runtime_that_has_never_run) {
    runtime_record made = record("a", "", "web");
    made.created = *parse_time("2026-11-21T21:22:04Z");
    made.options = {{"port", 80}};
    EXPECT_EQ(show_runtime(*add(made), time_point{}), json({{"id", "id-a"},
                                                            {"name", "a"},
                                                            {"type", "fake"},
                                                            {"status", "created"},
                                                            {"port", 80},
                                                            {"address", nullptr},
                                                            {"uptime_s", nullptr},
                                                            {"connections", 0},
                                                            {"handshakes", 0},
                                                            {"owner", ""},
                                                            {"group", "web"},
                                                            {"on_parent_stop", "stop"},
                                                            {"created", "2026-11-21T21:22:04Z"},
                                                            {"loop", nullptr},
                                                            {"options", {{"port", 80}}}}));
}

TEST_F(runtime_view_test, a_failure_is_shown_with_its_reason_while_it_lasts) {
    runtime_record wrong = record("wrong");
    wrong.options = {{"port", "many"}};
    const runtime_ref failed = add(wrong);
    const json shown = show_runtime(*failed, time_point{});
    EXPECT_EQ(shown.at("status"), "failed");
    EXPECT_NE(shown.at("reason").get<std::string>().find("its options are not valid"),
              std::string::npos);
    failed->running.mark_stopped();
    EXPECT_FALSE(show_runtime(*failed, time_point{}).contains("reason"));
}

TEST_F(runtime_view_test, a_removal_lists_what_was_lost_and_what_went_with_it) {
    const runtime_ref owner = add(record("owner"));
    const runtime_ref owned = add(record("owned", "owner"));
    EXPECT_EQ(show_removal(*owner), json({{"name", "owner"}}));
    owned->running.set_lost("3 keys");
    owner->removed_with_it.push_back(owned);
    EXPECT_EQ(show_removal(*owner),
              json({{"name", "owner"}, {"owned", {{{"name", "owned"}, {"lost", "3 keys"}}}}}));
}

TEST_F(runtime_view_test, counters_before_the_first_refresh_are_zero) {
    const json stats = show_stats(*add(record("a")), time_point{});
    EXPECT_EQ(stats.at("connections_total"), 0);
    EXPECT_TRUE(stats.at("latency").is_null());
    EXPECT_TRUE(stats.at("uptime_s").is_null());
}

TEST_F(runtime_view_test, a_type_shows_the_table_of_its_options) {
    const json shown = show_type(types_.front());
    EXPECT_EQ(shown.at("name"), "fake");
    const json& port = shown.at("options").at(0);
    EXPECT_EQ(port.at("name"), "port");
    EXPECT_EQ(port.at("kind"), "integer");
    EXPECT_EQ(port.at("default"), "1000");
    EXPECT_EQ(port.at("live"), false);
}

}  // namespace
}  // namespace eddy::daemon
