// The life of runtimes of a fake type, from the creation to the removal.
#include "daemon/runtimes/runtime_parts.hpp"

#include <eddy/io/scope.hpp>

#include "daemon/runtimes/runtime_parts_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::daemon {
namespace {

namespace fs = std::filesystem;

using testing::describe;
using testing::make;
using testing::most_runtimes;
using testing::wanted;

class runtime_parts_test : public testing::runtime_parts_fixture {};

task<void> nothing(runtime_parts&) { co_return; }

TEST_F(runtime_parts_test, starts_what_is_created_and_stops_it) {
    live([](runtime_parts& runtimes) -> task<void> {
        const runtime_ref a = co_await make(runtimes, wanted("a", {{"port", 80}}));
        EXPECT_EQ(a->running.status(), runtime_status::created);
        EXPECT_EQ(describe(*a).at("port"), 80);
        EXPECT_TRUE(co_await runtimes.lifecycle.start(a));
        EXPECT_EQ(a->running.status(), runtime_status::running);
        co_await runtimes.lifecycle.refresh();
        const json shown = describe(*a);
        EXPECT_EQ(shown.at("address"), "127.0.0.1:80");
        EXPECT_EQ(shown.at("connections"), 3);
        EXPECT_TRUE(shown.at("uptime_s").is_number());
        EXPECT_TRUE(co_await runtimes.lifecycle.start(a)) << "starting twice is no error";
        EXPECT_TRUE(co_await runtimes.lifecycle.stop(a));
        EXPECT_EQ(a->running.status(), runtime_status::stopped);
        EXPECT_TRUE(describe(*a).at("address").is_null());
        EXPECT_EQ(describe(*a).at("connections"), 0);
        EXPECT_TRUE(co_await runtimes.lifecycle.stop(a)) << "stopping twice is no error";
        EXPECT_TRUE(co_await runtimes.editor.remove(a));
        EXPECT_FALSE(runtimes.registry.find("a"));
    });
}

TEST_F(runtime_parts_test, spreads_runtimes_over_the_loops) {
    live([](runtime_parts& runtimes) -> task<void> {
        EXPECT_EQ(runtimes.lifecycle.loops(), 2U);
        int on_first = 0;
        for (int i = 0; i < 6; ++i) {
            const runtime_ref each = co_await make(runtimes, wanted("r" + std::to_string(i)));
            EXPECT_TRUE(co_await runtimes.lifecycle.start(each));
            if (each->running.where()->index() == 0) ++on_first;
        }
        EXPECT_EQ(on_first, 3);
    });
}

TEST_F(runtime_parts_test, what_ran_runs_again_and_what_was_stopped_does_not) {
    live([](runtime_parts& runtimes) -> task<void> {
        const runtime_ref running = co_await make(runtimes, wanted("running", {{"level", 5}}));
        const runtime_ref stopped = co_await make(runtimes, wanted("stopped"));
        co_await make(runtimes, wanted("created"));
        EXPECT_TRUE(co_await runtimes.lifecycle.start(running));
        EXPECT_TRUE(co_await runtimes.lifecycle.start(stopped));
        EXPECT_TRUE(co_await runtimes.lifecycle.stop(stopped));
    });
    live([](runtime_parts& runtimes) -> task<void> {
        EXPECT_EQ((*runtimes.registry.find("running"))->running.status(), runtime_status::running);
        EXPECT_EQ((*runtimes.registry.find("stopped"))->running.status(), runtime_status::stopped);
        EXPECT_EQ((*runtimes.registry.find("created"))->running.status(), runtime_status::stopped);
        EXPECT_EQ((*runtimes.registry.find("running"))->desired.record.options.at("level"), 5);
        co_return;
    });
}

TEST_F(runtime_parts_test, a_failure_stays_with_its_runtime) {
    live([](runtime_parts& runtimes) -> task<void> {
        const runtime_ref good = co_await make(runtimes, wanted("good"));
        const runtime_ref refusing = co_await make(runtimes, wanted("refusing", {{"port", 666}}));
        const runtime_ref throwing =
            co_await make(runtimes, wanted("throwing", {{"throwing", true}}));
        EXPECT_TRUE(co_await runtimes.lifecycle.start(good));
        const auto refused = co_await runtimes.lifecycle.start(refusing);
        EXPECT_FALSE(refused);
        if (refused) co_return;
        EXPECT_EQ(refused.error().status, 409);
        EXPECT_NE(refused.error().message.find("port 666 is taken"), std::string::npos);
        EXPECT_EQ(refusing->running.status(), runtime_status::failed);
        EXPECT_EQ(describe(*refusing).at("reason"), "port 666 is taken");
        const auto thrown = co_await runtimes.lifecycle.start(throwing);
        EXPECT_FALSE(thrown);
        EXPECT_NE(throwing->running.reason().find("thrown on purpose"), std::string::npos);
        EXPECT_EQ(good->running.status(), runtime_status::running);
        EXPECT_FALSE(refusing->desired.record.running) << "what never ran is not to run again";
    });
    live([](runtime_parts& runtimes) -> task<void> {
        EXPECT_EQ((*runtimes.registry.find("good"))->running.status(), runtime_status::running);
        EXPECT_EQ((*runtimes.registry.find("refusing"))->running.status(), runtime_status::stopped);
        co_return;
    });
}

TEST_F(runtime_parts_test, what_cannot_run_again_is_tried_at_the_next_start) {
    live([](runtime_parts& runtimes) -> task<void> {
        const runtime_ref a = co_await make(runtimes, wanted("a"));
        EXPECT_TRUE(co_await runtimes.lifecycle.start(a));
    });
    json record = saved("a");
    record["options"]["port"] = 666;
    std::ofstream(file("a")) << record;
    live([](runtime_parts& runtimes) -> task<void> {
        EXPECT_EQ((*runtimes.registry.find("a"))->running.status(), runtime_status::failed);
        co_return;
    });
    EXPECT_EQ(saved("a").at("running"), true);
}

TEST_F(runtime_parts_test, refuses_bad_requests_with_their_reason) {
    live([](runtime_parts& runtimes) -> task<void> {
        const auto refusal = [](outcome<runtime_ref> made) {
            return made ? std::string() : made.error().message;
        };
        co_await make(runtimes, wanted("a"));
        EXPECT_NE(refusal(co_await runtimes.editor.create(wanted("a"))).find("already"),
                  std::string::npos);
        EXPECT_NE(refusal(co_await runtimes.editor.create(wanted(".a"))).find("1 to 128"),
                  std::string::npos);
        EXPECT_NE(
            refusal(co_await runtimes.editor.create(wanted("b", {{"prot", 1}}))).find("--port"),
            std::string::npos);
        EXPECT_NE(
            refusal(co_await runtimes.editor.create(wanted("b", {{"port", 99999}}))).find("65535"),
            std::string::npos);
        EXPECT_NE(refusal(co_await runtimes.editor.create(wanted("b", {{"port", 1}})))
                      .find("another level"),
                  std::string::npos);
        runtime_request no_type = wanted("b");
        no_type.type = "fakes";
        EXPECT_NE(refusal(co_await runtimes.editor.create(no_type)).find("did you mean \"fake\""),
                  std::string::npos);
        runtime_request no_owner = wanted("b");
        no_owner.owner = "absent";
        EXPECT_NE(refusal(co_await runtimes.editor.create(no_owner)).find("absent"),
                  std::string::npos);
        runtime_request bad_group = wanted("b");
        bad_group.group = "a b";
        EXPECT_NE(refusal(co_await runtimes.editor.create(bad_group)).find("group"),
                  std::string::npos);
        EXPECT_EQ(runtimes.registry.all().size(), 1U);
    });
}

TEST_F(runtime_parts_test, keeps_no_more_than_the_limit) {
    live([](runtime_parts& runtimes) -> task<void> {
        for (std::size_t i = 0; i < most_runtimes; ++i)
            co_await make(runtimes, wanted("r" + std::to_string(i)));
        const auto over = co_await runtimes.editor.create(wanted("over"));
        EXPECT_FALSE(over);
        if (!over) EXPECT_NE(over.error().message.find("8 runtimes"), std::string::npos);
        EXPECT_TRUE(co_await runtimes.editor.remove(*runtimes.registry.find("r0")));
        EXPECT_TRUE(co_await runtimes.editor.create(wanted("over")));
    });
}

TEST_F(runtime_parts_test, finds_by_name_and_id_and_guesses) {
    live([](runtime_parts& runtimes) -> task<void> {
        const runtime_ref api = co_await make(runtimes, wanted("api-1"));
        runtime_request grouped = wanted("api-2");
        grouped.group = "web";
        co_await make(runtimes, grouped);
        EXPECT_EQ(*runtimes.registry.find("api-1"), api);
        EXPECT_EQ(*runtimes.registry.find(api->desired.record.id), api);
        EXPECT_EQ(api->desired.record.id.size(), 12U);
        EXPECT_NE(runtimes.registry.find("api1").error().message.find("did you mean \"api-1\"?"),
                  std::string::npos);
        EXPECT_EQ(runtimes.registry.find("zzz").error().status, 404);
        EXPECT_EQ(runtimes.registry.match("api-*").size(), 2U);
        EXPECT_EQ(runtimes.registry.match("*").size(), 2U);
        EXPECT_EQ(runtimes.registry.match("@web").size(), 1U);
        EXPECT_EQ(runtimes.registry.match("@*").size(), 1U) << "those without a group are in none";
        EXPECT_EQ(runtimes.registry.match("x*").size(), 0U);
    });
}

TEST_F(runtime_parts_test, edits_live_what_it_can_and_restarts_for_the_rest) {
    live([](runtime_parts& runtimes) -> task<void> {
        const runtime_ref a = co_await make(runtimes, wanted("a"));
        EXPECT_EQ(*co_await runtimes.editor.edit(a, {.options = {{"port", 81}}}),
                  edit_effect::saved);
        EXPECT_TRUE(co_await runtimes.lifecycle.start(a));
        const auto number = a->running.number();
        EXPECT_EQ(*co_await runtimes.editor.edit(a, {.options = {{"level", 2}}}),
                  edit_effect::live);
        EXPECT_EQ(a->running.number(), number);
        EXPECT_EQ(a->journal->read(0, 100).at(a->journal->read(0, 100).size() - 2).text, "level 2");
        EXPECT_EQ(*co_await runtimes.editor.edit(a, {.options = {{"level", 2}}}),
                  edit_effect::none);
        EXPECT_EQ(*co_await runtimes.editor.edit(a, {.options = {{"port", 82}}}),
                  edit_effect::restarted);
        EXPECT_NE(a->running.number(), number);
        EXPECT_EQ(a->running.status(), runtime_status::running);
        co_await runtimes.lifecycle.refresh();
        EXPECT_EQ(describe(*a).at("port"), 82);
        EXPECT_EQ(*co_await runtimes.editor.edit(a, {.options = {{"level", nullptr}}}),
                  edit_effect::live);
        EXPECT_FALSE(a->desired.record.options.contains("level"));
        EXPECT_EQ(*co_await runtimes.editor.edit(a, {.group = "g"}), edit_effect::saved);
        EXPECT_EQ(a->desired.record.group, "g");
    });
    EXPECT_EQ(saved("a").at("options").at("port"), 82);
    EXPECT_EQ(saved("a").at("group"), "g");
}

TEST_F(runtime_parts_test, options_by_their_former_names_are_created_edited_and_read_again) {
    static std::string path;
    path = folder_ + "/runtimes/a.json";
    live([](runtime_parts& runtimes) -> task<void> {
        const runtime_ref a = co_await make(runtimes, wanted("a", {{"depth", 2}}));
        EXPECT_EQ(a->desired.record.options, json({{"level", 2}}));
        EXPECT_TRUE(co_await runtimes.lifecycle.start(a));
        EXPECT_EQ(*co_await runtimes.editor.edit(a, {.options = {{"depth", 3}}}),
                  edit_effect::live);
        EXPECT_EQ(a->desired.record.options, json({{"level", 3}}));

        // A file of an earlier version.
        json record = json::parse(std::ifstream(path));
        record["options"] = {{"depth", 4}};
        std::ofstream(path) << record;
        EXPECT_TRUE(co_await runtimes.restore.reread());
        EXPECT_EQ(a->desired.record.options, json({{"level", 4}}));
    });
    json record = saved("a");
    record["options"] = {{"depth", 5}};
    std::ofstream(path) << record;
    live([](runtime_parts& runtimes) -> task<void> {
        EXPECT_EQ((*runtimes.registry.find("a"))->desired.record.options, json({{"level", 5}}));
        co_return;
    });
}

TEST_F(runtime_parts_test, a_planned_edit_names_its_effect_and_changes_nothing) {
    live([](runtime_parts& runtimes) -> task<void> {
        const runtime_ref a = co_await make(runtimes, wanted("a", {{"port", 80}}));
        EXPECT_EQ(*co_await runtimes.editor.plan_edit(a, {.options = {{"port", 81}}}),
                  edit_effect::saved);
        EXPECT_TRUE(co_await runtimes.lifecycle.start(a));
        const auto number = a->running.number();
        EXPECT_EQ(*co_await runtimes.editor.plan_edit(a, {.options = {{"port", 80}}}),
                  edit_effect::none);
        EXPECT_EQ(*co_await runtimes.editor.plan_edit(a, {.options = {{"level", 2}}}),
                  edit_effect::live);
        EXPECT_EQ(*co_await runtimes.editor.plan_edit(a, {.group = "g"}), edit_effect::saved);
        const auto restart =
            co_await runtimes.editor.plan_edit(a, {.options = {{"level", 2}, {"port", 81}}});
        EXPECT_EQ(*restart, edit_effect::restarted);
        EXPECT_EQ(restart->restart_options, std::vector<std::string_view>{"port"});
        // Plans are refused like the edits themselves.
        EXPECT_FALSE(co_await runtimes.editor.plan_edit(a, {.options = {{"nonsense", 1}}}));
        EXPECT_FALSE(co_await runtimes.editor.plan_edit(a, {.owner = "a"}));
        EXPECT_FALSE(co_await runtimes.editor.plan_edit(a, {.options = {{"port", 665}}}));
        EXPECT_EQ(a->running.number(), number);
        EXPECT_EQ(a->desired.record.options, json({{"port", 80}}));
        EXPECT_EQ(a->desired.record.group, "");
    });
    EXPECT_EQ(saved("a").at("options"), json({{"port", 80}}));
}

TEST_F(runtime_parts_test, an_edit_that_must_not_restart_is_refused_where_it_would) {
    live([](runtime_parts& runtimes) -> task<void> {
        const runtime_ref a = co_await make(runtimes, wanted("a", {{"port", 80}}));
        EXPECT_TRUE(co_await runtimes.lifecycle.start(a));
        const auto number = a->running.number();
        const auto refused = co_await runtimes.editor.edit(
            a, {.options = {{"level", 2}, {"port", 81}}, .restart = edit_restart::refused});
        EXPECT_FALSE(refused);
        if (!refused) {
            EXPECT_EQ(refused.error().status, 409);
            EXPECT_EQ(refused.error().message,
                      "\"a\" was not changed: --port cannot change without a restart");
        }
        EXPECT_EQ(a->desired.record.options, json({{"port", 80}}));
        EXPECT_EQ(*co_await runtimes.editor.edit(
                      a, {.options = {{"level", 2}}, .restart = edit_restart::refused}),
                  edit_effect::live);
        EXPECT_EQ(a->running.number(), number);
        EXPECT_TRUE(co_await runtimes.lifecycle.stop(a));
        EXPECT_EQ(*co_await runtimes.editor.edit(
                      a, {.options = {{"port", 81}}, .restart = edit_restart::refused}),
                  edit_effect::saved);
    });
}

TEST_F(runtime_parts_test, a_restart_is_announced_in_the_journal) {
    live([](runtime_parts& runtimes) -> task<void> {
        const runtime_ref a = co_await make(runtimes, wanted("a", {{"port", 80}}));
        EXPECT_TRUE(co_await runtimes.lifecycle.start(a));
        EXPECT_TRUE(co_await runtimes.editor.edit(a, {.options = {{"port", 81}}}));
        EXPECT_TRUE(co_await runtimes.lifecycle.reload(a));
        std::vector<std::string> lines;
        for (const journal_line& each : a->journal->read(0, 100)) lines.push_back(each.text);
        const auto at = [&](std::string_view text) {
            return std::find(lines.begin(), lines.end(), text) - lines.begin();
        };
        const auto edited = at(
            "restarts for --port: it serves new clients at once; those that it has may finish for "
            "up to 10m");
        const auto reloaded =
            at("restarts to read its files again: it serves new clients at once; those that it has "
               "may finish for up to 10m");
        const auto stopped = at("stopped");
        EXPECT_LT(edited, stopped);
        EXPECT_LT(stopped, reloaded);
        EXPECT_LT(reloaded, std::ssize(lines));
    });
}

TEST_F(runtime_parts_test, an_edit_that_fails_changes_nothing) {
    live([](runtime_parts& runtimes) -> task<void> {
        const runtime_ref a = co_await make(runtimes, wanted("a", {{"port", 80}}));
        EXPECT_TRUE(co_await runtimes.lifecycle.start(a));
        const auto unlucky = co_await runtimes.editor.edit(a, {.options = {{"level", 13}}});
        EXPECT_FALSE(unlucky);
        const auto taken = co_await runtimes.editor.edit(a, {.options = {{"port", 666}}});
        EXPECT_FALSE(taken);
        if (!taken)
            EXPECT_NE(taken.error().message.find("keeps its old options"), std::string::npos);
        EXPECT_FALSE(co_await runtimes.editor.edit(a, {.options = {{"nonsense", 1}}}));
        EXPECT_FALSE(co_await runtimes.editor.edit(a, {.owner = "a"})) << "nothing owns itself";
        EXPECT_EQ(a->running.status(), runtime_status::running);
        co_await runtimes.lifecycle.refresh();
        EXPECT_EQ(describe(*a).at("port"), 80);
        EXPECT_EQ(a->desired.record.options, json({{"port", 80}}));
    });
    EXPECT_EQ(saved("a").at("options"), json({{"port", 80}}));
}

bool has_line(const managed_runtime& of, std::string_view text) {
    for (const journal_line& each : of.journal->read(0, 100))
        if (each.text == text) return true;
    return false;
}

TEST_F(runtime_parts_test, a_restart_hands_data_over) {
    live([](runtime_parts& runtimes) -> task<void> {
        const runtime_ref a = co_await make(runtimes, wanted("a", {{"port", 80}}));
        EXPECT_TRUE(co_await runtimes.lifecycle.start(a));
        EXPECT_TRUE(co_await runtimes.lifecycle.send(a, "keep this"));
        EXPECT_EQ(*co_await runtimes.editor.edit(a, {.options = {{"port", 81}}}),
                  edit_effect::restarted);
        EXPECT_TRUE(has_line(*a, "has this"));
        EXPECT_EQ(a->running.handover(), nullptr) << "the new instance has it";
        EXPECT_TRUE(co_await runtimes.lifecycle.send(a, "keep that"));
        EXPECT_TRUE(co_await runtimes.lifecycle.reload(a));
        EXPECT_TRUE(has_line(*a, "has that"));
        // It starts with neither: the data waits for the next start.
        EXPECT_TRUE(co_await runtimes.lifecycle.send(a, "keep more"));
        const auto number = a->running.number();
        EXPECT_FALSE(co_await runtimes.editor.edit(a, {.options = {{"port", 665}}}));
        EXPECT_EQ(a->running.number(), number) << "what is known before stops nothing";
        EXPECT_FALSE(co_await runtimes.editor.edit(a, {.options = {{"port", 666}}}));
        EXPECT_EQ(a->running.status(), runtime_status::running);
        EXPECT_TRUE(has_line(*a, "has more")) << "given back to the old options";
        EXPECT_EQ(*co_await runtimes.editor.edit(
                      a, {.options = {{"port", 82}}, .data = restart_data::discarded}),
                  edit_effect::restarted);
        EXPECT_TRUE(co_await runtimes.lifecycle.stop(a));
        EXPECT_EQ(a->running.lost(), "") << "it had none any more";
    });
}

template <class T>
std::string text_of(const outcome<T>& of) {
    return of ? "done" : of.error().message;
}

TEST_F(runtime_parts_test, data_that_no_instance_has_taken_over_is_not_lost_unasked) {
    using ::testing::HasSubstr;
    live([](runtime_parts& runtimes) -> task<void> {
        const runtime_ref a = co_await make(runtimes, wanted("a", {{"port", 80}}));
        EXPECT_TRUE(co_await runtimes.lifecycle.start(a));
        EXPECT_TRUE(co_await runtimes.lifecycle.send(a, "keep this"));
        testing::failing = true;
        EXPECT_THAT(text_of(co_await runtimes.editor.edit(a, {.options = {{"port", 81}}})),
                    HasSubstr("its data is kept for the next start"));
        EXPECT_THAT(text_of(co_await runtimes.editor.remove(a)),
                    HasSubstr("\"a\" was not removed: the data of its last instance is in memory"));
        EXPECT_THAT(text_of(co_await runtimes.lifecycle.prepare_shutdown(std::chrono::seconds(1))),
                    HasSubstr("\"a\": the data of its last instance is in memory alone"));
        EXPECT_FALSE(co_await runtimes.lifecycle.start(a));
        testing::failing = false;
        EXPECT_TRUE(co_await runtimes.lifecycle.start(a));
        EXPECT_TRUE(has_line(*a, "has this"));

        testing::failing = true;
        EXPECT_FALSE(co_await runtimes.lifecycle.reload(a));
        testing::failing = false;
        EXPECT_TRUE(co_await runtimes.editor.remove(a, unsaved::lost));
        EXPECT_EQ(a->running.lost(), "the data of its last instance");
    });
}

TEST_F(runtime_parts_test, what_cannot_be_written_is_not_stopped_unless_it_may_be_lost) {
    live([](runtime_parts& runtimes) -> task<void> {
        const runtime_ref a = co_await make(runtimes, wanted("a", {{"full", true}}));
        const runtime_ref b = co_await make(runtimes, wanted("b"));
        for (const runtime_ref& each : {a, b}) {
            EXPECT_TRUE(co_await runtimes.lifecycle.start(each));
            EXPECT_TRUE(co_await runtimes.lifecycle.send(each, "keep " + each->name()));
        }
        const auto number = a->running.number();
        std::vector<outcome<>> all_refused;
        all_refused.push_back(co_await runtimes.lifecycle.stop(a));
        all_refused.push_back(co_await runtimes.editor.remove(a));
        all_refused.push_back(co_await runtimes.lifecycle.reload(a));
        for (const auto& refused : all_refused) {
            EXPECT_FALSE(refused);
            if (!refused)
                EXPECT_NE(refused.error().message.find("the disk is full"), std::string::npos);
        }
        EXPECT_FALSE(co_await runtimes.editor.edit(a, {.options = {{"port", 81}}}));
        const auto all = co_await runtimes.lifecycle.prepare_shutdown(std::chrono::seconds(1));
        EXPECT_FALSE(all);
        if (!all) EXPECT_NE(all.error().message.find("\"a\": the disk is full"), std::string::npos);
        EXPECT_EQ(a->running.number(), number);
        for (const runtime_ref& each : {a, b})
            EXPECT_EQ(each->running.status(), runtime_status::running);
        // Behind what was posted to its loop.
        co_await runtimes.lifecycle.refresh();
        EXPECT_TRUE(has_line(*b, "resumed"));

        EXPECT_TRUE(co_await runtimes.lifecycle.stop(a, unsaved::lost));
        EXPECT_EQ(a->running.lost(), "a");
        EXPECT_EQ(describe(*a).at("lost"), "a");
        EXPECT_TRUE(co_await runtimes.lifecycle.start(a));
        EXPECT_EQ(a->running.lost(), "");
        EXPECT_TRUE(co_await runtimes.lifecycle.prepare_shutdown(std::chrono::seconds(1)));
    });
}

TEST_F(runtime_parts_test, a_change_that_cannot_be_saved_is_undone) {
    // A folder where the new file would go makes saving fail, for root as well.
    fs::create_directory(folder_ + "/runtimes/.b.json.new");
    live([](runtime_parts& runtimes) -> task<void> {
        const auto b = co_await runtimes.editor.create(wanted("b"));
        EXPECT_FALSE(b);
        if (!b) EXPECT_NE(b.error().message.find("was not created"), std::string::npos);
        EXPECT_FALSE(runtimes.registry.find("b"));
        co_await make(runtimes, wanted("a"));
    });
    fs::create_directory(folder_ + "/runtimes/.a.json.new");
    live([](runtime_parts& runtimes) -> task<void> {
        const runtime_ref a = *runtimes.registry.find("a");
        EXPECT_FALSE(co_await runtimes.lifecycle.start(a));
        EXPECT_EQ(a->running.status(), runtime_status::stopped);
        EXPECT_FALSE(co_await runtimes.editor.edit(a, {.options = {{"level", 9}}}));
        EXPECT_FALSE(a->desired.record.options.contains("level"));
    });
}

TEST_F(runtime_parts_test, a_stop_that_cannot_be_saved_stops_and_says_so) {
    live([](runtime_parts& runtimes) -> task<void> {
        const runtime_ref a = co_await make(runtimes, wanted("a"));
        EXPECT_TRUE(co_await runtimes.lifecycle.start(a));
    });
    fs::create_directory(folder_ + "/runtimes/.a.json.new");
    live([](runtime_parts& runtimes) -> task<void> {
        const runtime_ref a = *runtimes.registry.find("a");
        const auto stopped = co_await runtimes.lifecycle.stop(a);
        EXPECT_FALSE(stopped);
        if (!stopped)
            EXPECT_NE(stopped.error().message.find("will run again with the next daemon"),
                      std::string::npos);
        EXPECT_EQ(a->running.status(), runtime_status::stopped);
    });
}

TEST_F(runtime_parts_test, owned_runtimes_stop_and_go_with_their_owner) {
    live([](runtime_parts& runtimes) -> task<void> {
        const runtime_ref boss = co_await make(runtimes, wanted("boss"));
        runtime_request owned = wanted("child");
        owned.owner = "boss";
        const runtime_ref child = co_await make(runtimes, owned);
        owned = wanted("grandchild");
        owned.owner = "child";
        const runtime_ref grandchild = co_await make(runtimes, owned);
        EXPECT_FALSE(co_await runtimes.editor.edit(boss, {.owner = "grandchild"}));
        for (const runtime_ref& each : {boss, child, grandchild})
            EXPECT_TRUE(co_await runtimes.lifecycle.start(each));
        EXPECT_TRUE(co_await runtimes.lifecycle.stop(boss));
        EXPECT_EQ(child->running.status(), runtime_status::stopped);
        EXPECT_EQ(grandchild->running.status(), runtime_status::stopped);
        EXPECT_TRUE(co_await runtimes.editor.remove(boss));
        EXPECT_TRUE(runtimes.registry.all().empty());
        EXPECT_EQ(boss->removed_with_it, (std::vector<runtime_ref>{child, grandchild}));
        EXPECT_TRUE(child->removed_with_it.empty());
    });
    live(nothing);
}

TEST_F(runtime_parts_test, reload_starts_anew_and_only_what_runs) {
    live([](runtime_parts& runtimes) -> task<void> {
        const runtime_ref a = co_await make(runtimes, wanted("a"));
        EXPECT_FALSE(co_await runtimes.lifecycle.reload(a));
        EXPECT_TRUE(co_await runtimes.lifecycle.start(a));
        const auto number = a->running.number();
        EXPECT_TRUE(co_await runtimes.lifecycle.reload(a));
        EXPECT_NE(a->running.number(), number);
        EXPECT_EQ(a->running.status(), runtime_status::running);
    });
}

TEST_F(runtime_parts_test, sends_to_what_runs) {
    live([](runtime_parts& runtimes) -> task<void> {
        const runtime_ref a = co_await make(runtimes, wanted("a"));
        EXPECT_FALSE(co_await runtimes.lifecycle.send(a, "hello"));
        EXPECT_TRUE(co_await runtimes.lifecycle.start(a));
        EXPECT_EQ(*co_await runtimes.lifecycle.send(a, "hello"), 5U);
        const auto refused = co_await runtimes.lifecycle.send(a, "refuse");
        EXPECT_FALSE(refused);
        if (!refused) EXPECT_NE(refused.error().message.find("no listener"), std::string::npos);
    });
}

task<void> start_one(runtime_parts& runtimes, runtime_ref which, int& succeeded) {
    if (co_await runtimes.lifecycle.start(which)) ++succeeded;
}
task<void> stop_one(runtime_parts& runtimes, runtime_ref which, int& succeeded) {
    if (co_await runtimes.lifecycle.stop(which)) ++succeeded;
}
task<void> remove_one(runtime_parts& runtimes, runtime_ref which, int& succeeded) {
    if (co_await runtimes.editor.remove(which)) ++succeeded;
}

TEST_F(runtime_parts_test, changes_to_one_runtime_take_turns) {
    live([](runtime_parts& runtimes) -> task<void> {
        const runtime_ref a = co_await make(runtimes, wanted("a"));
        int succeeded = 0;
        scope all(co_await current_source());
        for (int i = 0; i < 20; ++i) {
            all.spawn(start_one(runtimes, a, succeeded));
            all.spawn(stop_one(runtimes, a, succeeded));
        }
        co_await all.join();
        EXPECT_EQ(succeeded, 40);
        EXPECT_EQ(a->running.where() == nullptr, a->running.status() == runtime_status::stopped);
        all.spawn(remove_one(runtimes, a, succeeded));
        all.spawn(remove_one(runtimes, a, succeeded));
        all.spawn(start_one(runtimes, a, succeeded));
        co_await all.join();
        EXPECT_EQ(succeeded, 42) << "what is removed cannot be started";
        EXPECT_TRUE(runtimes.registry.all().empty());
    });
}

task<void> start_in_vain(runtime_parts& runtimes, runtime_ref which, std::string& why) {
    const auto started = co_await runtimes.lifecycle.start(which);
    why = started ? "it has started" : started.error().message;
}

task<runtime_ref> begin_to_start(runtime_parts& runtimes, std::string name, scope& in,
                                 std::string& why) {
    const runtime_ref which = co_await make(runtimes, wanted(std::move(name), {{"patient", true}}));
    why.clear();
    in.spawn(start_in_vain(runtimes, which, why));
    while (which->running.status() != runtime_status::starting)
        static_cast<void>(co_await loop::current().sleep_for(std::chrono::milliseconds(1)));
    co_return which;
}

// One that reads a large file, say.
TEST_F(runtime_parts_test, a_start_that_takes_long_holds_up_no_stop) {
    live([](runtime_parts& runtimes) -> task<void> {
        std::string why;
        scope starts(co_await current_source());
        const runtime_ref stopped = co_await begin_to_start(runtimes, "stopped", starts, why);
        EXPECT_TRUE(co_await runtimes.lifecycle.stop(stopped));
        EXPECT_EQ(stopped->running.status(), runtime_status::stopped);
        EXPECT_EQ(stopped->running.reason(), "");
        EXPECT_FALSE(stopped->desired.record.running);
        co_await starts.join();
        EXPECT_NE(why.find("its start was given up"), std::string::npos) << why;

        const runtime_ref removed = co_await begin_to_start(runtimes, "removed", starts, why);
        EXPECT_TRUE(co_await runtimes.editor.remove(removed));
        co_await starts.join();
        EXPECT_EQ(runtimes.registry.all().size(), 1U);

        const runtime_ref kept = co_await begin_to_start(runtimes, "kept", starts, why);
        EXPECT_TRUE(co_await runtimes.lifecycle.shut_down(std::chrono::seconds(1)));
        co_await starts.join();
        EXPECT_NE(why.find("its start was given up"), std::string::npos) << why;
        EXPECT_EQ(testing::instances, 0);
    });
}

task<void> send_one(runtime_parts& runtimes, runtime_ref which, std::string message) {
    static_cast<void>(co_await runtimes.lifecycle.send(which, std::move(message)));
}

TEST_F(runtime_parts_test, a_loop_that_hangs_stops_no_other) {
    live([](runtime_parts& runtimes) -> task<void> {
        const runtime_ref stuck = co_await make(runtimes, wanted("stuck"));
        const runtime_ref lively = co_await make(runtimes, wanted("lively"));
        EXPECT_TRUE(co_await runtimes.lifecycle.start(stuck));
        EXPECT_TRUE(co_await runtimes.lifecycle.start(lively));
        EXPECT_NE(stuck->running.where(), lively->running.where());
        testing::hanging = true;
        scope hung(co_await current_source());
        hung.spawn(send_one(runtimes, stuck, "hang"));
        co_await runtimes.lifecycle.refresh();
        EXPECT_EQ(*co_await runtimes.lifecycle.send(lively, "hello"), 5U);
        const auto stopped = co_await runtimes.lifecycle.stop(stuck);
        EXPECT_FALSE(stopped);
        if (!stopped) EXPECT_NE(stopped.error().message.find("did not answer"), std::string::npos);
        EXPECT_EQ(stuck->running.status(), runtime_status::failed);
        EXPECT_FALSE(co_await runtimes.lifecycle.start(stuck)) << "the old one is still there";
        EXPECT_TRUE(co_await runtimes.lifecycle.stop(lively));
        testing::hanging = false;
        testing::hanging.notify_all();
        co_await hung.join();
        EXPECT_TRUE(co_await runtimes.lifecycle.stop(stuck)) << "it answers again";
        EXPECT_TRUE(co_await runtimes.lifecycle.start(stuck));
    });
}

TEST_F(runtime_parts_test, a_stop_that_takes_long_is_made_once) {
    live([](runtime_parts& runtimes) -> task<void> {
        const runtime_ref slow = co_await make(runtimes, wanted("slow", {{"lingering", true}}));
        EXPECT_TRUE(co_await runtimes.lifecycle.start(slow));
        testing::lingering = true;
        for (int i = 0; i < 2; ++i) {
            const auto stopped = co_await runtimes.lifecycle.stop(slow);
            EXPECT_FALSE(stopped);
            EXPECT_EQ(slow->running.status(), runtime_status::failed);
        }
        testing::lingering = false;
        EXPECT_TRUE(co_await runtimes.lifecycle.stop(slow)) << "the stop has ended";
        EXPECT_EQ(slow->running.status(), runtime_status::stopped);
        EXPECT_TRUE(co_await runtimes.lifecycle.start(slow));
    });
    EXPECT_EQ(testing::instances, 0);
}

TEST_F(runtime_parts_test, reads_again_what_was_changed_by_hand) {
    static std::string folder;
    folder = folder_;
    live([](runtime_parts& runtimes) -> task<void> {
        for (const char* name : {"changed", "same", "gone", "stopped", "broken"}) {
            const runtime_ref each = co_await make(runtimes, wanted(name, {{"port", 80}}));
            EXPECT_TRUE(co_await runtimes.lifecycle.start(each));
        }
        const auto edit_file = [](const std::string& name, auto&& change) {
            const std::string path = folder + "/runtimes/" + name + ".json";
            std::ifstream in(path);
            json record = json::parse(in);
            change(record);
            std::ofstream(folder + "/runtimes/" + record.at("name").get<std::string>() + ".json")
                << record;
        };
        edit_file("changed", [](json& r) { r["options"]["port"] = 99; });
        edit_file("stopped", [](json& r) { r["running"] = false; });
        edit_file("same", [](json& r) { r["name"] = "added", r["id"] = "ffffffffffff"; });
        fs::remove(folder + "/runtimes/gone.json");
        std::ofstream(folder + "/runtimes/broken.json") << "{";

        const auto same_number = (*runtimes.registry.find("same"))->running.number();
        const auto summary = co_await runtimes.restore.reread();
        EXPECT_TRUE(summary);
        if (!summary) co_return;
        EXPECT_EQ(summary->created, 1U);
        EXPECT_EQ(summary->changed, 2U);
        EXPECT_EQ(summary->unchanged, 1U);
        EXPECT_EQ(summary->problems.size(), 3U) << "broken, and broken and gone written anew";
        co_await runtimes.lifecycle.refresh();
        EXPECT_EQ(describe(**runtimes.registry.find("changed")).at("port"), 99);
        EXPECT_EQ((*runtimes.registry.find("stopped"))->running.status(), runtime_status::stopped);
        EXPECT_EQ((*runtimes.registry.find("added"))->running.status(), runtime_status::running);
        EXPECT_EQ((*runtimes.registry.find("same"))->running.number(), same_number);
        EXPECT_EQ((*runtimes.registry.find("gone"))->running.status(), runtime_status::running);
        EXPECT_TRUE(fs::exists(folder + "/runtimes/gone.json"));
        EXPECT_TRUE(fs::exists(folder + "/damaged/broken.json"));
        const auto again = co_await runtimes.restore.reread();
        EXPECT_EQ(again->unchanged, 6U);
        EXPECT_TRUE(again->problems.empty());
    });
}

TEST_F(runtime_parts_test, a_journal_goes_on_with_the_next_daemon_and_goes_with_its_runtime) {
    live([](runtime_parts& runtimes) -> task<void> {
        const runtime_ref a = co_await make(runtimes, wanted("a"));
        co_await make(runtimes, wanted("b"));
        EXPECT_TRUE(co_await runtimes.lifecycle.start(a));
    });
    live([](runtime_parts& runtimes) -> task<void> {
        const runtime_ref a = *runtimes.registry.find("a");
        std::vector<std::string> texts;
        for (const journal_line& each : a->journal->read(0, 100)) texts.push_back(each.text);
        using ::testing::StartsWith;
        EXPECT_THAT(texts, ::testing::ElementsAre("created", "level 1", StartsWith("started"),
                                                  "stopped", "level 1", StartsWith("started")));
        EXPECT_TRUE(co_await runtimes.editor.remove(a));
        // The next one of that name has nothing of it.
        const runtime_ref next = co_await make(runtimes, wanted("a"));
        EXPECT_EQ(next->journal->read(0, 100).size(), 1U);
        EXPECT_TRUE(co_await runtimes.editor.remove(*runtimes.registry.find("b")));
    });
    EXPECT_TRUE(fs::exists(folder_ + "/journals/a.log"));
    EXPECT_FALSE(fs::exists(folder_ + "/journals/b.log"));
}

task<void> give_owner(runtime_parts& runtimes, std::string name, std::string owner, int& refused,
                      json options = json::object()) {
    edit_request wanted;
    wanted.options = std::move(options);
    wanted.owner = std::move(owner);
    auto given = co_await runtimes.editor.edit(*runtimes.registry.find(name), std::move(wanted));
    if (!given) ++refused;
}

TEST_F(runtime_parts_test, runtimes_that_are_given_to_each_other_at_once_do_not_own_each_other) {
    live([](runtime_parts& runtimes) -> task<void> {
        for (const char* const name : {"a", "b", "c"})
            EXPECT_TRUE(co_await runtimes.editor.create(wanted(name)));
        int refused = 0;
        scope edits(co_await current_source());
        edits.spawn(give_owner(runtimes, "a", "b", refused));
        edits.spawn(give_owner(runtimes, "b", "a", refused));
        co_await edits.join();
        EXPECT_EQ(refused, 1);
        co_await give_owner(runtimes, "c", "a", refused);
        EXPECT_EQ(refused, 1);
    });
}

TEST_F(runtime_parts_test, runtimes_that_restart_meanwhile_do_not_own_each_other_either) {
    live([](runtime_parts& runtimes) -> task<void> {
        for (const char* const name : {"a", "b"})
            EXPECT_TRUE(co_await runtimes.lifecycle.start(co_await make(runtimes, wanted(name))));
        int refused = 0;
        scope edits(co_await current_source());
        edits.spawn(give_owner(runtimes, "a", "b", refused, {{"port", 80}}));
        edits.spawn(give_owner(runtimes, "b", "a", refused, {{"port", 81}}));
        co_await edits.join();
        EXPECT_EQ(refused, 1);
    });
}

task<void> make_one(runtime_parts& runtimes, std::string name) {
    EXPECT_TRUE(co_await runtimes.editor.create(wanted(name)));
}

TEST_F(runtime_parts_test, one_that_is_being_made_is_not_reported_as_gone) {
    live([](runtime_parts& runtimes) -> task<void> {
        for (int i = 0; i < 30; ++i) {
            scope making(co_await current_source());
            for (const char* const name : {"a", "b", "c"}) making.spawn(make_one(runtimes, name));
            const auto summary = co_await runtimes.restore.reread();
            EXPECT_THAT(summary->problems, ::testing::IsEmpty());
            co_await making.join();
            for (const char* const name : {"a", "b", "c"})
                EXPECT_TRUE(co_await runtimes.editor.remove(*runtimes.registry.find(name)));
        }
    });
}

TEST_F(runtime_parts_test, state_files_whose_owners_own_each_other_hold_up_nothing) {
    for (const auto& [name, owner] : {std::pair{"a", "b"}, std::pair{"b", "a"}}) {
        runtime_record made;
        made.id = "0123456789ab";
        made.name = name;
        made.owner = owner;
        made.type = "fake";
        made.created = *parse_time("2026-01-01T00:00:00Z");
        ASSERT_TRUE(store_->save(made));
    }
    live([](runtime_parts& runtimes) -> task<void> {
        runtime_request owned = wanted("c");
        owned.owner = "a";
        const auto made = co_await runtimes.editor.create(owned);
        EXPECT_FALSE(made);
        if (!made) EXPECT_NE(made.error().message.find("own each other"), std::string::npos);
        const auto told = co_await runtimes.restore.reread();
        EXPECT_THAT(told->problems, ::testing::UnorderedElementsAre(
                                        ::testing::StartsWith("\"a\" owns its own owner \"b\""),
                                        ::testing::StartsWith("\"b\" owns its own owner \"a\"")));
        EXPECT_TRUE(co_await runtimes.editor.remove(*runtimes.registry.find("a"), unsaved::lost));
    });
}

TEST_F(runtime_parts_test, a_save_that_is_under_way_is_left_alone_when_the_state_is_read_again) {
    static std::string folder;
    folder = folder_;
    live([](runtime_parts& runtimes) -> task<void> {
        EXPECT_TRUE(co_await runtimes.restore.reread());
        std::ofstream(folder + "/runtimes/.x.json.new") << "{";
        EXPECT_TRUE(co_await runtimes.restore.reread());
        EXPECT_TRUE(fs::exists(folder + "/runtimes/.x.json.new"));
    });
}

TEST_F(runtime_parts_test, a_record_of_an_unknown_type_is_kept_and_explained) {
    runtime_record strange;
    strange.id = "0123456789ab";
    strange.name = "strange";
    strange.type = "teleporter";
    strange.created = *parse_time("2026-01-01T00:00:00Z");
    strange.running = true;
    ASSERT_TRUE(store_->save(strange));
    strange.name = "wrong";
    strange.type = "fake";
    strange.options = {{"port", "many"}};
    ASSERT_TRUE(store_->save(strange));
    live([](runtime_parts& runtimes) -> task<void> {
        const runtime_ref unknown = *runtimes.registry.find("strange");
        EXPECT_EQ(unknown->running.status(), runtime_status::failed);
        EXPECT_NE(unknown->running.reason().find("teleporter"), std::string::npos);
        EXPECT_FALSE(co_await runtimes.lifecycle.start(unknown));
        EXPECT_FALSE(co_await runtimes.editor.edit(unknown, {}));
        const runtime_ref wrong = *runtimes.registry.find("wrong");
        EXPECT_EQ(wrong->running.status(), runtime_status::failed);
        EXPECT_FALSE(co_await runtimes.lifecycle.start(wrong));
        EXPECT_TRUE(co_await runtimes.editor.edit(wrong, {.options = {{"port", 5}}}));
        EXPECT_TRUE(co_await runtimes.lifecycle.start(wrong));
        EXPECT_TRUE(co_await runtimes.editor.remove(unknown));
    });
}

}  // namespace
}  // namespace eddy::daemon
