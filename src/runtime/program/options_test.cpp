// Effects of a program's options, and values that it refuses.
#include "runtime/program/options.hpp"

#include "runtime/options/option_effects.hpp"
#include "runtime/options/row_checks.hpp"
#include "runtime/program/environment.hpp"
#include "runtime/program/signal_names.hpp"
#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <string>
#include <utility>

namespace eddy::runtime::program {
namespace {

using namespace runtime::testing;
using ::testing::HasSubstr;

/// A runtime whose program is a script of sh(1).
json script(std::string text, json options = json::object()) {
    options["command"] = "/bin/sh";
    options["arg"] = {"-c", std::move(text)};
    return options;
}

std::string refusal_of(const json& options) {
    const auto parsed = settings::parse(find_type("program")->options, options);
    if (!parsed) return parsed.error().message;
    const auto read = read_config(*parsed);
    return read ? std::string() : read.error().message;
}

/// Starts it, waits for the line in its journal, and stops it.
task<void> expect_line(std::string type, json options, std::string line) {
    subject s(type, options);
    co_await s.start();
    co_await until([&] { return s.events.has(line); });
    co_await s->stop(0s);
}

task<void> the_command_runs(std::string type) {
    subject s(type, {{"command", "/bin/true"}});
    co_await s.start();
    co_await until([&] { return s.events.has("the program exited with status 0"); });
    co_await s->stop(0s);
    subject none(type, {{"command", "/no/such"}});
    EXPECT_THAT(co_await none.failure_to_start(), HasSubstr("there is no program /no/such"));
    EXPECT_THAT(refusal_of(json::object()), HasSubstr("--command PATH"));
    EXPECT_THAT(refusal_of({{"command", "here"}}), HasSubstr("write the whole path"));
}

task<void> arguments_reach_it(std::string type) {
    co_await expect_line(type, {{"command", "/bin/echo"}, {"arg", {"a b", "c"}}}, "out: a b c");
}

task<void> it_has_the_folder(std::string type) {
    const temporary_folder folder;
    co_await expect_line(type, script("pwd -P", {{"directory", folder.path()}}),
                         "out: " + folder.path());
}

task<void> it_has_the_variables(std::string type) {
    co_await expect_line(type, script("echo \"$EDDY_A-$B\"", {{"env", {"EDDY_A=x", "B=y z"}}}),
                         "out: x-y z");
    EXPECT_THAT(refusal_of(script("", {{"env", {"SECRET"}}})), HasSubstr("write NAME=VALUE"));
    EXPECT_EQ(shown_variable("DB_PASSWORD=x"), "DB_PASSWORD=***");
    EXPECT_EQ(shown_variable("apiKey=x"), "apiKey=***");
    EXPECT_EQ(shown_variable("HOME=x"), "HOME=x");
}

task<void> it_has_the_variables_of_a_file(std::string type) {
    const temporary_folder folder;
    std::ofstream(folder.file("env")) << "# none\n\nA=1\nB='2 3'\r\nexport C=4\n";
    co_await expect_line(
        type, script("echo $A-$B-$C", {{"env_file", folder.file("env")}, {"env", {"C=5"}}}),
        "out: 1-2 3-5");
    std::ofstream(folder.file("bad")) << "A=1\nnonsense\n";
    subject bad(type, script("", {{"env_file", folder.file("bad")}}));
    EXPECT_THAT(co_await bad.failure_to_start(), HasSubstr("line 2"));
}

task<void> it_runs_as_the_user(std::string type) {
    if (::geteuid() == 0)
        co_await expect_line(type, script("id -u; id -g", {{"user", "65534:7"}}), "out: 65534");
    else
        EXPECT_THAT(refusal_of(script("", {{"user", "0"}})), HasSubstr("not root's"));
}

task<void> memory_is_limited(std::string type) {
    co_await expect_line(type, script("ulimit -d", {{"limit_memory", "300M"}}), "out: 307200");
}
task<void> files_are_limited(std::string type) {
    co_await expect_line(type, script("ulimit -n", {{"limit_files", 37}}), "out: 37");
}
task<void> processor_time_is_limited(std::string type) {
    co_await expect_line(type, script("ulimit -t", {{"limit_cpu", "70s"}}), "out: 70");
}
task<void> processes_are_limited(std::string type) {
    co_await expect_line(
        type,
        script("read -r line </proc/self/limits; while read -r a b c d; do [ \"$b\" = processes ] "
               "&& echo limit $c; done </proc/self/limits",
               {{"limit_processes", 4321}}),
        "limit 4321");
}

task<void> it_is_started_again(std::string type) {
    const auto host = std::make_shared<test_host>(neighbours(), "subject");
    subject s(type, script("exit 3", {{"restart", "on-failure:2"}, {"restart_delay", "1ms"}}),
              "subject", host);
    co_await s.start();
    co_await until([&] { return host->stop_requests == 1; });
    EXPECT_EQ(sample_of(*s, "restarts_total"), 2);
    EXPECT_THAT(s->fault(), HasSubstr("exited with status 3"));
    co_await s->stop(0s);
    for (const auto& [when, count] :
         {std::pair("no", 0), {"on-failure", 0}, {"always", 5}, {"unless-stopped", 5}}) {
        const auto its = std::make_shared<test_host>(neighbours(), "subject");
        json options = script("exit 0", {{"restart", when}});
        if (std::string_view(when) != "no") options["restart_delay"] = "1ms";
        subject ends(type, options, "subject", its);
        co_await ends.start();
        co_await until(
            [&] { return its->stop_requests == 1 || sample_of(*ends, "restarts_total") >= 5; });
        EXPECT_EQ(its->stop_requests, count == 0 ? 1 : 0) << when;
        co_await ends->stop(0s);
    }
    EXPECT_THAT(refusal_of(script("", {{"restart", "sometimes"}})), HasSubstr("on-failure:N"));
    EXPECT_THAT(refusal_of(script("", {{"restart_delay", "1s"}})), HasSubstr("--restart no"));
}

/// With a pause that outlasts the test it is not started again, and says when it will be.
task<void> pauses_have_a_length(std::string type) {
    subject s(type, script("exit 3", {{"restart", "always"},
                                      {"restart_delay", "3000s"},
                                      {"restart_max_delay", "3000s"}}));
    co_await s.start();
    co_await until([&] { return s->fault().find("started again in") != std::string::npos; });
    EXPECT_THAT(s->fault(), HasSubstr("exited with status 3"));
    EXPECT_EQ(sample_of(*s, "restarts_total"), 0);
    co_await s->stop(0s);
}
task<void> pauses_are_bounded(std::string type) {
    subject s(type, script("exit 3", {{"restart", "always"},
                                      {"restart_delay", "1ms"},
                                      {"restart_max_delay", "2ms"}}));
    co_await s.start();
    // Doubled each time, the sixteenth pause would be a minute.
    co_await until([&] { return sample_of(*s, "restarts_total") >= 16; });
    co_await s->stop(0s);
    EXPECT_THAT(refusal_of(script("", {{"restart", "always"}, {"restart_max_delay", "1ms"}})),
                HasSubstr("longer than"));
}
task<void> counts_begin_anew(std::string type) {
    subject s(type, script("exit 3", {{"restart", "on-failure:1"},
                                      {"restart_delay", "1ms"},
                                      {"restart_reset", "1ns"}}));
    co_await s.start();
    co_await until([&] { return sample_of(*s, "restarts_total") >= 5; });
    co_await s->stop(0s);
}

task<void> the_signal_stops_it(std::string type) {
    subject s(type, script("trap 'echo got it; exit 0' INT; echo ready; while :; do sleep 0.01; "
                           "done",
                           {{"stop_signal", "INT"}}));
    co_await s.start();
    co_await until([&] { return s.events.has("out: ready"); });
    co_await s->stop(0s);
    EXPECT_TRUE(s.events.has("exited with status 0"));
    EXPECT_THAT(refusal_of(script("", {{"stop_signal", "NONE"}})), HasSubstr("kill -l"));
    EXPECT_EQ(must_do(read_signal("sigusr1", "x")), SIGUSR1);
    EXPECT_EQ(must_do(read_signal("9", "x")), SIGKILL);
}
task<void> what_ignores_the_signal_is_killed(std::string type) {
    subject s(type, script("trap '' TERM; echo ready; while :; do sleep 1; done",
                           {{"stop_timeout", "20ms"}}));
    co_await s.start();
    co_await until([&] { return s.events.has("out: ready"); });
    co_await s->stop(0s);
    EXPECT_TRUE(s.events.has("was ended by SIGKILL"));
}
task<void> a_reload_is_a_signal(std::string type) {
    subject s(type, script("trap 'echo again' USR1; echo ready; while :; do sleep 0.01; done",
                           {{"reload_signal", "USR1"}}));
    co_await s.start();
    co_await until([&] { return s.events.has("out: ready"); });
    EXPECT_TRUE(must_do(co_await s->reread()));
    co_await until([&] { return s.events.has("out: again"); });
    co_await s->stop(0s);
    subject without(type, script("sleep 1000"));
    co_await without.start();
    EXPECT_FALSE(must_do(co_await without->reread()));
    co_await without->stop(0s);
}

task<void> output_goes_to_the_file(std::string type) {
    const temporary_folder folder;
    subject s(type, script("echo one; echo two >&2", {{"log", folder.file("log")}}));
    co_await s.start();
    co_await until([&] { return s.events.has("exited with status 0"); });
    co_await s->stop(0s);
    EXPECT_THAT(content(folder.file("log")), HasSubstr("one\n"));
    EXPECT_THAT(content(folder.file("log")), HasSubstr("two\n"));
}
task<void> the_journal_has_the_output(std::string type) {
    for (const char* const has : {"yes", "no"}) {
        subject s(type, script("echo one; echo two >&2", {{"journal", has}}));
        co_await s.start();
        co_await until([&] { return s.events.has("exited with status 0"); });
        co_await s->stop(0s);
        EXPECT_EQ(s.events.has("out: one"), std::string_view(has) == "yes");
        EXPECT_EQ(s.events.has("err: two"), std::string_view(has) == "yes");
    }
}
task<void> long_lines_are_cut(std::string type) {
    co_await expect_line(type, script("echo 12345678901234567890", {{"max_line", 16}}),
                         "out: 1234567890123456... (longer than --max-line)");
}
task<void> the_journals_rate_is_limited(std::string type) {
    subject s(type, script("for i in 1 2 3 4 5 6 7 8 9; do echo line; done", {{"log_rate", 2}}));
    co_await s.start();
    co_await until([&] { return s.events.has("exited with status 0"); });
    co_await s->stop(0s);
    EXPECT_TRUE(s.events.has("of its output were left out")) << "of nine";
}

task<void> its_health_is_checked(std::string type) {
    const listener server = must(loop::current().listen(must(endpoint::ip("127.0.0.1", 0))));
    const std::string open = "tcp:" + std::to_string(server.local().port());
    subject s(type, script("sleep 1000", {{"health_check", open}, {"health_interval", "1ms"}}));
    co_await s.start();
    co_await until([&] { return s->detail().find("healthy") != std::string::npos; });
    EXPECT_EQ(s->fault(), "");
    co_await s->stop(0s);
    for (const std::string check : {"tcp:1", "http://127.0.0.1:1/live", "exec:exit 4"}) {
        subject fails(type, script("sleep 1000", {{"health_check", check},
                                                  {"health_interval", "1ms"},
                                                  {"health_fall", 1}}));
        co_await fails.start();
        co_await until([&] { return fails->fault().find("unhealthy") != std::string::npos; });
        co_await fails->stop(0s);
    }
    EXPECT_THAT(refusal_of(script("", {{"health_check", "yes"}})), HasSubstr("exec:COMMAND"));
    EXPECT_THAT(refusal_of(script("", {{"health_fall", 2}})), HasSubstr("without --health-check"));
}
task<void> checks_come_in_an_interval(std::string type) {
    subject s(type, script("sleep 1000", {{"health_check", "exec:exit 1"},
                                          {"health_interval", "3000s"},
                                          {"health_fall", 1}}));
    co_await s.start();
    must(co_await loop::current().sleep_for(20ms));
    EXPECT_EQ(s->fault(), "");
    co_await s->stop(0s);
}
task<void> checks_have_a_time(std::string type) {
    subject s(type, script("sleep 1000", {{"health_check", "exec:sleep 1000"},
                                          {"health_interval", "1ms"},
                                          {"health_timeout", "5ms"},
                                          {"health_fall", 1}}));
    co_await s.start();
    co_await until([&] { return s->fault().find("--health-timeout") != std::string::npos; });
    co_await s->stop(0s);
}
task<void> failed_checks_start_it_again(std::string type) {
    subject s(type, script("sleep 1000", {{"health_check", "exec:exit 1"},
                                          {"health_interval", "1ms"},
                                          {"health_fall", 2},
                                          {"restart", "on-failure"},
                                          {"restart_delay", "1ms"}}));
    co_await s.start();
    co_await until([&] { return sample_of(*s, "restarts_total") >= 2; });
    EXPECT_TRUE(s.events.has("unhealthy: 2 checks in a row failed"));
    co_await s->stop(0s);
}
task<void> checks_count_after_a_while(std::string type) {
    subject s(type, script("sleep 1000", {{"health_check", "exec:exit 1"},
                                          {"health_interval", "1ms"},
                                          {"health_fall", 1},
                                          {"health_start", "3000s"}}));
    co_await s.start();
    co_await until([&] { return s->detail().find("a check failed") != std::string::npos; });
    EXPECT_EQ(s->fault(), "");
    co_await s->stop(0s);
}

task<void> it_gets_sockets(std::string type) {
    const temporary_folder folder;
    subject s(type, script("test $LISTEN_PID = $$ && echo fds $LISTEN_FDS; ls -l /proc/$$/fd/3",
                           {{"listen", {"127.0.0.1:0", "unix://" + folder.file("s")}}}));
    co_await s.start();
    EXPECT_NE(s->local().port(), 0);
    co_await until([&] { return s.events.has("out: fds 2"); });
    co_await until([&] { return s.events.has("socket:"); });
    // The kernel accepts, though the program does not.
    const talker client = co_await talker::to(s->local());
    co_await s->stop(0s);
    EXPECT_THAT(refusal_of(script("", {{"listen", {"tls://:1"}}})), HasSubstr("--listen"));
    EXPECT_THAT(refusal_of(script("", {{"listen", {"udp://:1", "udp://:1"}}})),
                HasSubstr("given twice"));
    EXPECT_THAT(refusal_of(script("", {{"listen", {":1", ":1"}}})), HasSubstr("given twice"));
}
task<void> its_start_awaits_its_word(std::string type) {
    // Without a tool that sends a datagram to the socket the program ends, and its start fails.
    subject s(type, script("test -n \"$NOTIFY_SOCKET\" && exit 5", {{"notify", true}}));
    EXPECT_THAT(co_await s.failure_to_start(), HasSubstr("exited with status 5 before it said"));
}

TEST(program_options, each_row_reaches_its_member) {
    const json needed = {{"command", "/bin/true"}};
    const json again = with({{"restart", "always"}}, needed);
    const json checked = with({{"health_check", "tcp:1"}}, needed);
    option_changes own = {
        {"env", {needed, {{"env", {"A=b"}}}}},
        {"user", {needed, {{"user", std::to_string(::geteuid())}}}},
        {"restart", {needed, {{"restart", "always"}}}},
        {"restart-delay", {again, {{"restart_delay", "2s"}}}},
        {"restart-max-delay", {again, {{"restart_max_delay", "2s"}}}},
        {"restart-reset", {again, {{"restart_reset", "2s"}}}},
        {"stop-signal", {needed, {{"stop_signal", "INT"}}}},
        {"reload-signal", {needed, {{"reload_signal", "HUP"}}}},
        {"limit-memory", {needed, {{"limit_memory", "2M"}}}},
        {"health-check", {needed, {{"health_check", "tcp:1"}}}},
        {"listen", {needed, {{"listen", {":1"}}}}},
    };
    for (const std::string_view name : {"health-interval", "health-timeout", "health-start"})
        own[name] = {checked, {{option_key(name), "2s"}}};
    own["health-fall"] = {checked, {{"health_fall", 7}}};
    if (::geteuid() != 0) own.erase("user");
    check_reading(option_rows(), read_config, needed, own);
    check_live(option_rows(), read_config, needed, own);
}

}  // namespace
}  // namespace eddy::runtime::program

namespace eddy::runtime::testing {

effect_table program_effects() {
    using namespace program;
    effect_table all;
    const auto add = [&](std::string_view name, task<void> (*seen)(std::string)) {
        all[{"program", name}] = {seen, seen_on::kernel};
    };
    add("command", the_command_runs);
    add("arg", arguments_reach_it);
    add("directory", it_has_the_folder);
    add("env", it_has_the_variables);
    add("env-file", it_has_the_variables_of_a_file);
    add("user", it_runs_as_the_user);
    add("limit-memory", memory_is_limited);
    add("limit-files", files_are_limited);
    add("limit-cpu", processor_time_is_limited);
    add("limit-processes", processes_are_limited);
    add("restart", it_is_started_again);
    add("restart-delay", pauses_have_a_length);
    add("restart-max-delay", pauses_are_bounded);
    add("restart-reset", counts_begin_anew);
    add("stop-signal", the_signal_stops_it);
    add("stop-timeout", what_ignores_the_signal_is_killed);
    add("reload-signal", a_reload_is_a_signal);
    add("log", output_goes_to_the_file);
    add("journal", the_journal_has_the_output);
    add("max-line", long_lines_are_cut);
    add("log-rate", the_journals_rate_is_limited);
    add("health-check", its_health_is_checked);
    add("health-interval", checks_come_in_an_interval);
    add("health-timeout", checks_have_a_time);
    add("health-fall", failed_checks_start_it_again);
    add("health-start", checks_count_after_a_while);
    add("listen", it_gets_sockets);
    add("notify", its_start_awaits_its_word);
    return all;
}

}  // namespace eddy::runtime::testing
