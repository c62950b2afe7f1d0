// The same scripts to the engine and to a real redis-server 7.0: the replies must be the same bytes.
// Skipped, with the reason, where redis-server is not installed.
#include <eddy/base/random.hpp>

#include "cache/engine.hpp"
#include "cache/redis_process.hpp"
#include "cache/script/differential_scripting.hpp"
#include "cache/test_client.hpp"

#include <gtest/gtest.h>

#include <cctype>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cache {
namespace {

using testing::arguments;
using testing::redis_process;
using testing::test_client;

class differential_scripting : public ::testing::TestWithParam<int> {
protected:
    static void SetUpTestSuite() { redis_ = redis_process::start(why_not_).release(); }
    static void TearDownTestSuite() {
        delete redis_;
        redis_ = nullptr;
    }

    void SetUp() override {
        if (redis_ == nullptr) GTEST_SKIP() << why_not_;
        if (!redis_->is_7_0()) GTEST_SKIP() << "this redis-server is not 7.0";
        both({"FLUSHALL"});
        both({"SCRIPT", "FLUSH"});
        both({"FUNCTION", "FLUSH"});
        const arguments hello{"HELLO", std::to_string(GetParam())};
        redis_->ask(hello);
        client_.ask(hello);
    }

    void both(const arguments& args) {
        redis_->ask(args);
        client_.ask(args);
    }

    bool same(const arguments& args) {
        using namespace std::chrono;
        const std::string theirs = redis_->ask(args);
        engine_.set_time(duration_cast<microseconds>(system_clock::now().time_since_epoch()));
        const std::string ours = client_.ask(args);
        if (ours == theirs) return true;
        std::string all;
        for (const std::string& each : args) all += each + " ";
        ADD_FAILURE() << all << "\n redis: " << theirs.substr(0, 1000) << "\n eddy:  " << ours.substr(0, 1000);
        return false;
    }

    static redis_process* redis_;
    static std::string why_not_;
    engine engine_;
    test_client client_{engine_};
};

redis_process* differential_scripting::redis_ = nullptr;
std::string differential_scripting::why_not_;

TEST_P(differential_scripting, scripts_reply_the_same) {
    for (const std::string_view script : testing::lua_scripts) {
        same({"EVAL", std::string(script), "2", "k1", "k2", "first", "second"});
    }
}

INSTANTIATE_TEST_SUITE_P(protocols, differential_scripting, ::testing::Values(2, 3),
                         [](const auto& p) { return "resp" + std::to_string(p.param); });

}  // namespace
}  // namespace eddy::cache
