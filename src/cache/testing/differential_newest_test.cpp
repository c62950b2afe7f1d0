// Comparison of what Redis 8 and Valkey 9 have added: the same commands to the engine and to the
// servers that EDDY_REDIS_8_6 and EDDY_VALKEY_9_1 name. Skipped, with the reason, without them.
#include "cache/testing/differential_newest.hpp"

#include "cache/engine/engine.hpp"
#include "cache/testing/redis_process.hpp"
#include "cache/testing/test_client.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace eddy::cache {
namespace {

using testing::arguments;
using testing::parse_reply;
using testing::redis_process;
using testing::reply_tree;
using testing::test_client;

class differential_newest : public ::testing::TestWithParam<int> {
protected:
    // Null, with the test skipped, where the variable names no server.
    static std::unique_ptr<redis_process> start(const char* variable, std::string& why) {
        const char* const program = std::getenv(variable);
        if (program == nullptr || *program == '\0') {
            why = std::string(variable) + " names no server; ./eddy-dev test fetches one";
            return nullptr;
        }
        return redis_process::start(why, {}, {}, program);
    }

    // Records of COMMANDLOG without their numbers, times and addresses.
    static void forget_times(reply_tree& log) {
        for (reply_tree& each : log.children) {
            if (each.children.size() != 6) continue;
            each.children[0].text = each.children[1].text = each.children[4].text = "";
        }
    }

    static std::string comparable(const arguments& args, const std::string& bytes) {
        reply_tree tree = parse_reply(bytes);
        if (args[0] == "COMMAND") tree.drop_notes();
        if (args[0] == "COMMANDLOG" && args.size() > 1 && args[1] == "GET") forget_times(tree);
        // Scripts have other names there.
        if (args[0] == "EVAL" && bytes.starts_with('-'))
            return bytes.substr(0, bytes.find(" script: "));
        if (args[0].ends_with("SCAN") && tree.children.size() == 2)
            tree.children[1].sort_children();
        return tree.print();
    }

    void follow(redis_process& other, std::string_view commands) {
        engine_options options;
        options.mode = access_mode::admin;
        engine own(options);
        test_client client(own);
        const auto both = [&](const arguments& args) {
            using namespace std::chrono;
            const std::string theirs = other.ask(args);
            own.set_time(duration_cast<microseconds>(system_clock::now().time_since_epoch()));
            const std::string ours = client.ask(args);
            return comparable(args, ours) == comparable(args, theirs)
                       ? std::string()
                       : "theirs: " + theirs + "\nours:   " + ours;
        };
        other.ask(arguments{"FLUSHALL"});
        const arguments hello{"HELLO", std::to_string(GetParam())};
        other.ask(hello);
        client.ask(hello);
        for (const std::string_view line : testing::separate(commands)) {
            // In RESP3, versions differ in the kind of nothing that a command without something
            // has.
            if (GetParam() == 3 && line.starts_with("COMMAND INFO ")) continue;
            const std::string difference = both(testing::split(line));
            EXPECT_EQ(difference, "") << line;
        }
    }
    void follow_all(const char* variable, std::span<const std::string_view> scripts) {
        std::string why;
        const auto other = start(variable, why);
        if (other == nullptr) GTEST_SKIP() << why;
        for (const std::string_view each : scripts) follow(*other, each);
    }
};

TEST_P(differential_newest, commands_of_redis_8) {
    follow_all("EDDY_REDIS_8_6", testing::newest_of_redis);
}
TEST_P(differential_newest, commands_of_valkey_9) {
    follow_all("EDDY_VALKEY_9_1", testing::newest_of_valkey);
}
TEST_P(differential_newest, logs_of_commands_as_valkey_9_has_them) {
    follow_all("EDDY_VALKEY_9_1", {&testing::command_log_of_valkey, 1});
}
TEST_P(differential_newest, commands_of_both_as_redis_8_answers_them) {
    follow_all("EDDY_REDIS_8_6", testing::newest_of_both);
}
TEST_P(differential_newest, commands_of_both_as_valkey_9_answers_them) {
    follow_all("EDDY_VALKEY_9_1", testing::newest_of_both);
}

INSTANTIATE_TEST_SUITE_P(protocols, differential_newest, ::testing::Values(2, 3),
                         [](const auto& p) { return "resp" + std::to_string(p.param); });

}  // namespace
}  // namespace eddy::cache
