// Effects of a cache's options of hooks. A program without scripts refuses the option instead.
#include "base/files/temporary_folder.hpp"
#include "runtime/options/option_effects.hpp"
#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace eddy::runtime::cache {
namespace {

using namespace runtime::testing;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// A file of hooks, which wait while a file "slow" is in its folder, and fail while "down" is.
class hooks_file {
public:
    explicit hooks_file(std::string_view text) {
        std::ofstream(path()) << "local function is(name) local f = io.open('" << folder_.file("")
                              << "' .. name) if f then f:close() end return f ~= nil end\n"
                                 "function obstacles()\n"
                                 "    while is('slow') do os.execute('sleep 0.02') end\n"
                                 "    if is('down') then error('it is down', 0) end\n"
                                 "end\n"
                              << text;
    }

    std::string path() const { return folder_.file("hooks.lua"); }
    void put(const std::string& name) const { std::ofstream(folder_.file(name)) << "x"; }
    void remove(const std::string& name) const { std::filesystem::remove(folder_.file(name)); }

    /// The options of a cache with these hooks, none of which depends on the machine's speed.
    json with_hooks(json more = json::object()) const {
        return with(std::move(more),
                    with({{"hooks", path()}, {"hook_deadline", "1h"}, {"hook_flush", "0"}}));
    }

private:
    temporary_folder folder_;
};

constexpr std::string_view answers =
    "function on_miss(key)\n"
    "    obstacles()\n"
    "    if key ~= 'none' then return 'value of ' .. key end\n"
    "end";
constexpr std::string_view takes_changes = "on_write = obstacles";

/// True if it has started; false if the program is built without scripts.
task<bool> starts(subject& s) {
    const auto started = co_await s->start();
    if (started) co_return true;
    EXPECT_THAT(started.error().message, HasSubstr("without scripts"));
    co_return false;
}

double counted(subject& of, std::string_view name) { return sample_of(*of, name).value_or(-1); }

task<void> misses_are_asked_of_the_script(std::string type) {
    const hooks_file script(answers);
    subject s(type, script.with_hooks());
    if (!co_await starts(s)) co_return;
    talker client = co_await talker::to(s->local());
    EXPECT_EQ(co_await ask(client, "GET a"), "$10");
    EXPECT_EQ(co_await line_of(client), "value of a");
    co_await s->stop(0s);
}

task<void> each_thread_runs_the_script(std::string type) {
    const hooks_file script("print('a thread') on_miss = obstacles");
    subject s(type, script.with_hooks({{"hook_threads", 3}}));
    if (!co_await starts(s)) co_return;
    co_await s->stop(0s);
    EXPECT_EQ(std::ranges::count_if(
                  s.events.lines,
                  [](const std::string& line) { return line.find("a thread") != line.npos; }),
              3);
}

task<void> clients_wait_until_the_deadline(std::string type) {
    const hooks_file script(answers);
    script.put("slow");
    subject s(type, script.with_hooks({{"hook_deadline", "50ms"}}));
    if (!co_await starts(s)) co_return;
    talker client = co_await talker::to(s->local());
    EXPECT_THAT(co_await ask(client, "GET a"), StartsWith("-ERR on_miss did not answer in time"));
    EXPECT_EQ(counted(s, "hook_timeouts_total"), 1);
    script.remove("slow");
    co_await s->stop(0s);
}

/// The reply for a key whose value has expired, from a cache whose script fails.
task<std::string> reply_after_expiry(std::string type, json options) {
    const hooks_file script(answers);
    script.put("down");
    subject s(type, script.with_hooks(std::move(options)));
    if (!co_await starts(s)) co_return "";
    talker client = co_await talker::to(s->local());
    EXPECT_EQ(co_await ask(client, "SET a x PX 1"), "+OK");
    while (co_await ask(client, "EXISTS a") != ":0") must(co_await loop::current().sleep_for(1ms));
    std::string reply = co_await ask(client, "GET a");
    co_await s->stop(0s);
    co_return reply;
}

void expect_failure(const std::string& reply) {
    if (!reply.empty()) EXPECT_THAT(reply, StartsWith("-ERR on_miss failed"));
}
void expect_reply(const std::string& reply, std::string_view wanted) {
    if (!reply.empty()) EXPECT_EQ(reply, wanted);
}

task<void> failures_have_a_fallback(std::string type) {
    expect_failure(co_await reply_after_expiry(type, json::object()));
    expect_reply(co_await reply_after_expiry(type, {{"hook_fallback", "nil"}}), "$-1");
    expect_reply(co_await reply_after_expiry(type, {{"hook_fallback", "stale"}}), "$1");
}

task<void> stale_values_are_kept_for_a_time(std::string type) {
    expect_failure(
        co_await reply_after_expiry(type, {{"hook_fallback", "stale"}, {"hook_stale_for", "0"}}));
    expect_reply(
        co_await reply_after_expiry(type, {{"hook_fallback", "stale"}, {"hook_stale_for", "1h"}}),
        "$1");
}

task<void> stale_values_have_a_memory(std::string type) {
    expect_failure(co_await reply_after_expiry(
        type, {{"hook_fallback", "stale"}, {"hook_stale_memory", "10"}}));
}

task<void> absent_values_are_remembered(std::string type) {
    for (const bool remembers : {false, true}) {
        const hooks_file script(answers);
        subject s(type, script.with_hooks({{"hook_negative_ttl", remembers ? "1h" : "0"}}));
        if (!co_await starts(s)) co_return;
        talker client = co_await talker::to(s->local());
        for (int i = 0; i < 3; ++i) EXPECT_EQ(co_await ask(client, "GET none"), "$-1");
        EXPECT_EQ(counted(s, "hook_misses_total"), remembers ? 1 : 3);
        co_await s->stop(0s);
    }
}

task<void> misses_at_a_time_are_limited(std::string type) {
    const hooks_file script(answers);
    script.put("slow");
    subject s(type, script.with_hooks({{"hook_max_misses", 1}, {"hook_fallback", "nil"}}));
    if (!co_await starts(s)) co_return;
    talker first = co_await talker::to(s->local());
    co_await first.say("GET a\r\n");
    co_await until([&] { return counted(s, "hook_waiting_misses") == 1; });
    talker second = co_await talker::to(s->local());
    EXPECT_EQ(co_await ask(second, "GET b"), "$-1");
    EXPECT_EQ(counted(s, "hook_refused_total"), 1);
    script.remove("slow");
    EXPECT_EQ(co_await line_of(first), "$10");
    co_await s->stop(0s);
}

/// The reply to a change behind one of 5,000 bytes that the script does not take; waits until the
/// reply is there, or first heals the script.
task<std::string> reply_to_the_next_change(std::string type, json options, bool heals = false) {
    const hooks_file script(takes_changes);
    script.put("down");
    subject s(type, script.with_hooks(std::move(options)));
    if (!co_await starts(s)) co_return "";
    talker client = co_await talker::to(s->local());
    EXPECT_EQ(co_await ask(client, "SET a " + std::string(5000, 'x')), "+OK");
    co_await client.say("SET b 1\r\n");
    if (heals) {
        co_await until([&] { return counted(s, "hook_waiting_clients") == 1; });
        script.remove("down");
    }
    std::string reply = co_await line_of(client);
    script.remove("down");
    co_await s->stop(0s);
    co_return reply;
}

task<void> changes_that_wait_are_limited(std::string type) {
    const std::string reply =
        co_await reply_to_the_next_change(type, {{"hook_queue", "4k"}, {"hook_full", "refuse"}});
    if (!reply.empty()) EXPECT_THAT(reply, StartsWith("-ERR too many changes wait"));
    expect_reply(
        co_await reply_to_the_next_change(type, {{"hook_queue", "1M"}, {"hook_full", "refuse"}}),
        "+OK");
}

task<void> clients_wait_for_a_full_queue_or_are_refused(std::string type) {
    const std::string reply =
        co_await reply_to_the_next_change(type, {{"hook_queue", "4k"}, {"hook_full", "refuse"}});
    if (!reply.empty()) EXPECT_THAT(reply, StartsWith("-ERR too many changes wait"));
    expect_reply(co_await reply_to_the_next_change(
                     type, {{"hook_queue", "4k"}, {"hook_full", "wait"}}, true),
                 "+OK");
}

task<void> changes_are_given_up_after_some_retries(std::string type) {
    const hooks_file script(takes_changes);
    script.put("down");
    subject s(type, script.with_hooks({{"hook_retries", 1}}));
    if (!co_await starts(s)) co_return;
    talker client = co_await talker::to(s->local());
    EXPECT_EQ(co_await ask(client, "SET a 1"), "+OK");
    co_await until([&] { return counted(s, "hook_lost_total") == 1; });
    EXPECT_EQ(counted(s, "hook_retries_total"), 1);
    EXPECT_EQ(counted(s, "hook_queued_keys"), 0);
    co_await s->stop(0s);
}

task<void> memory_of_the_script_is_limited(std::string type) {
    for (const bool is_small : {true, false}) {
        const hooks_file script(
            "function on_miss() return tostring(pcall(string.rep, 'x', 8e6)) end");
        subject s(type, script.with_hooks({{"hook_memory", is_small ? "2M" : "32M"}}));
        if (!co_await starts(s)) co_return;
        talker client = co_await talker::to(s->local());
        EXPECT_EQ(co_await ask(client, "GET a"), is_small ? "$5" : "$4");
        co_await s->stop(0s);
    }
}

task<void> time_of_a_call_is_limited(std::string type) {
    const hooks_file script("function on_write() while true do end end");
    subject s(type, script.with_hooks({{"hook_time", "20ms"}, {"hook_retries", 1}}));
    if (!co_await starts(s)) co_return;
    talker client = co_await talker::to(s->local());
    EXPECT_EQ(co_await ask(client, "SET a 1"), "+OK");
    co_await until([&] { return counted(s, "hook_lost_total") == 1; });
    co_await s->stop(0s);
    EXPECT_TRUE(s.events.has("hooks.lua:6: it took longer than it may"));
}

task<void> a_stop_waits_for_changes(std::string type) {
    const hooks_file script(takes_changes);
    script.put("down");
    subject s(type, script.with_hooks({{"hook_flush", "100ms"}}));
    if (!co_await starts(s)) co_return;
    talker client = co_await talker::to(s->local());
    EXPECT_EQ(co_await ask(client, "SET a 1"), "+OK");
    co_await s->stop(1h);
    EXPECT_TRUE(s.events.has("within 0.1 s and are lost: a"));
}

}  // namespace
}  // namespace eddy::runtime::cache

namespace eddy::runtime::testing {

effect_table hook_effects() {
    using namespace cache;
    effect_table all = {
        {{"cache", "hooks"}, {misses_are_asked_of_the_script}},
        {{"cache", "hook-threads"}, {each_thread_runs_the_script}},
        {{"cache", "hook-memory"}, {memory_of_the_script_is_limited}},
        {{"cache", "hook-time"}, {time_of_a_call_is_limited}},
        {{"cache", "hook-deadline"}, {clients_wait_until_the_deadline}},
        {{"cache", "hook-fallback"}, {failures_have_a_fallback}},
        {{"cache", "hook-stale-for"}, {stale_values_are_kept_for_a_time}},
        {{"cache", "hook-stale-memory"}, {stale_values_have_a_memory}},
        {{"cache", "hook-negative-ttl"}, {absent_values_are_remembered}},
        {{"cache", "hook-max-misses"}, {misses_at_a_time_are_limited}},
        {{"cache", "hook-queue"}, {changes_that_wait_are_limited}},
        {{"cache", "hook-full"}, {clients_wait_for_a_full_queue_or_are_refused}},
        {{"cache", "hook-retries"}, {changes_are_given_up_after_some_retries}},
        {{"cache", "hook-flush"}, {a_stop_waits_for_changes}},
    };
    // Scripts run on threads of the kernel.
    for (auto& [option, its] : all) its.on = seen_on::kernel;
    return all;
}

}  // namespace eddy::runtime::testing
