// Comparison of hashes with expiring fields: the same commands to the engine and to a redis-server
// of version 8, which has all of them. Skipped, with the reason, where the installed one is older.
#include <eddy/base/random.hpp>

#include "base/test_seed.hpp"
#include "cache/engine/engine.hpp"
#include "cache/testing/redis_process.hpp"
#include "cache/testing/test_client.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cache {
namespace {

using testing::arguments;
using testing::parse_reply;
using testing::redis_process;
using testing::reply_tree;
using testing::test_client;

// Times that are compared are absolute: some moments pass between the two servers.
constexpr std::string_view edges = R"(
HSET h a 1 b 2 c 3 d 4 ; HEXPIRE h 10 FIELDS 1 a ; HEXPIRE h 10 FIELDS 2 a ;
HEXPIRE h 10 FIELDS 0 a ; HEXPIRE h 10 FIELDS -1 a ; HEXPIRE h 10 FIELDS x a ;
HEXPIRE h 10 FIELDS 99999999999999999999 a ; HEXPIRE h 10 FIELDS 1 a b ; HEXPIRE h 10 FOO 1 a ;
HEXPIRE h 10 NX NX FIELDS 1 a ; HEXPIRE h x FIELDS 1 a ; HEXPIRE h -1 FIELDS 1 a ;
HEXPIRE h 281474976710655 FIELDS 1 a ; HPEXPIRE h 281474976710655 FIELDS 1 a ;
HPEXPIRE h 70368744177663 FIELDS 1 a ; HEXPIRE h 70368744177 FIELDS 1 a ;
HPEXPIREAT h 281474976710655 FIELDS 1 b ; HPEXPIREAT h 70368744177663 FIELDS 1 b ;
HPEXPIREAT h 70368744177664 FIELDS 1 b ; HEXPIREAT h 70368744177 FIELDS 1 b ;
HEXPIREAT h 70368744178 FIELDS 1 b ; HPEXPIRETIME h FIELDS 3 a b zz ; HEXPIRETIME h FIELDS 1 b ;
HPEXPIREAT h 70000000000001 FIELDS 1 b ; HEXPIRETIME h FIELDS 1 b ; HEXPIRE h 10 nx FIELDS 2 a b ;
HEXPIRE h 20 GT FIELDS 3 a b c ; HEXPIRE h 5 LT FIELDS 3 a b c ; HEXPIRE h 5 XX FIELDS 3 a b d ;
HEXPIRE nokey 5 FIELDS 2 a b ; HEXPIRE nokey 5 FIELDS 3 a b ; HEXPIRE nokey x FIELDS 1 a ;
HEXPIRE nokey 1 FOO 1 a ; SET s 1 ; HEXPIRE s 5 FIELDS 1 a ; HEXPIRE s x FIELDS 1 a ;
HEXPIRE h 0 FIELDS 2 a zz ; HEXPIREAT h 1 FIELDS 1 b ; HGETALL h ; HTTL h FIELDS 2 d zz ;
HTTL h FOO 2 c zz ; HTTL h FIELDS 3 c zz ; HTTL h FIELDS 0 c zz ; HTTL nokey FIELDS 2 c zz ;
HTTL s FIELDS 2 c zz ; HTTL s FOO 1 a ; HTTL nokey FOO 1 a ; HTTL nokey FIELDS 0 a ;
HTTL nokey FIELDS 1 a b ; HPTTL h FIELDS 1 zz ; HEXPIRETIME h FIELDS 1 zz ;
HPERSIST h FIELDS 2 c d ; HPERSIST h FIELDS 2 c d ; HPERSIST nokey FIELDS 2 c d ;
HPERSIST nokey FIELDS 3 c d ; HPERSIST s FOO 1 a ; HPERSIST nokey FOO 1 a ; HPERSIST h FIELDS 0 a ;
HPERSIST h FIELDS 1 a b ; HPERSIST h ; HTTL h ; HTTL h FIELDS ; HTTL h FIELDS 1 ; HEXPIRE h 1 ;
HEXPIRE h 1 NX ; HEXPIRE h 1 NX FIELDS ; HEXPIRE h 1 NX FIELDS 1 ; HEXPIRE h 10 FIELDS 2 c c ;
HGETEX h FIELDS 2 c zz ; HGETEX h EX 10 FIELDS 2 c zz ; HGETEX h EX 10 PX 10 FIELDS 1 c ;
HGETEX h EX FIELDS 1 c ; HGETEX h PERSIST FIELDS 1 c ; HTTL h FIELDS 1 c ;
HGETEX h FIELDS 1 c PERSIST ; HGETEX h FIELDS 3 c ; HGETEX h FIELDS 0 c ; HGETEX h FOO FIELDS 1 c ;
HGETEX nokey FIELDS 2 a b ; HGETEX s FIELDS 1 a ; HGETEX h EX -1 FIELDS 1 c ; HGETEX s EX x FIELDS 1 a ;
HGETEX nokey EX x FIELDS 1 a ; HGETEX nokey EX 10 FIELDS 2 a b ; HGETEX nokey FIELDS 2 a ;
HGETEX h EX x FOO 1 a ; HGETEX h EX 10 FOO 1 a ; HGETEX h KEEPTTL FIELDS 1 a ; HGETEX h FIELDS 1 ;
HGETEX h EX 10 FIELDS 1 ; HGETEX h EX 10 ; HGETEX h PXAT 99999999999999999 FIELDS 1 a ;
HGETEX h PXAT 9999999999999 FIELDS 1 c ; HPEXPIRETIME h FIELDS 1 c ; HGETEX h EXAT 9999999999 FIELDS 2 c c ;
HPEXPIRETIME h FIELDS 1 c ; HGETEX h EX 0 FIELDS 1 c ; HGETEX h EXAT 1 FIELDS 2 d d ; EXISTS h ;
HSET h a 1 b 2 c 3 d 4 ; HGETDEL h FIELDS 2 a zz ; HGETDEL h FIELDS 3 a zz ; HGETDEL h FIELDS 0 a zz ;
HGETDEL h FOO 1 a ; HGETDEL h FIELDS x a ; HGETDEL nokey FIELDS 2 a b ; HGETDEL s FIELDS 1 a ;
HGETDEL s FOO 0 a ; HGETDEL h ; HGETDEL h FIELDS 1 ; HGETDEL h FIELDS 4 b c d d ; EXISTS h ;
HSETEX h FIELDS 2 a 1 b 2 ; HSETEX h FNX FIELDS 1 a 1 ; HSETEX h FXX FIELDS 1 a 3 ;
HSETEX h FXX FIELDS 2 a 3 zz 4 ; HSETEX h FXX FNX FIELDS 1 a 3 ; HSETEX h FNX FNX FIELDS 1 a 3 ;
HSETEX h EXAT 9999999999 FIELDS 1 a 5 ; HEXPIRETIME h FIELDS 1 a ; HSETEX h KEEPTTL FIELDS 1 a 6 ;
HEXPIRETIME h FIELDS 1 a ; HGETALL h ; HSETEX h KEEPTTL EX 10 FIELDS 1 a 6 ;
HSETEX h EX 10 KEEPTTL FIELDS 1 a 6 ; HSETEX h EX 10 PX 10 FIELDS 1 a 6 ; HSETEX h EX FIELDS 1 a 6 ;
HSETEX h EX 10 FIELDS 1 a ; HSETEX h EX 10 FIELDS 2 a 1 ; HSETEX h EX 10 FIELDS 1 a 1 b 2 ;
HSETEX h EX 10 FIELDS 0 a 1 ; HSETEX h FIELDS x b 1 ; HSETEX h FIELDS 99999999999 b 1 ;
HSETEX h FOO FIELDS 1 a 1 ; HSETEX h ; HSETEX h FIELDS 1 a 1 EX 10 ; HSETEX h FIELDS 1 b ;
HSETEX h EX 10 FXX ; HSETEX h EX 10 FXX x y ; HSETEX h EX 10 FXX KEEPTTL z ; HSETEX h FXX FXX FXX EX ;
HSETEX h PXAT 99999999999999999 FIELDS 1 a 1 ; HSETEX h EX -1 FIELDS 1 a 1 ; HSETEX s EX x FIELDS 1 a 1 ;
HSETEX s FOO FIELDS 1 a 1 ; HSETEX s FIELDS 1 a 1 ; HSETEX h EXAT 1 FIELDS 1 a 1 ; HGETALL h ;
HSETEX h2 FXX FIELDS 1 a 1 ; EXISTS h2 ; HSETEX h2 EXAT 1 FIELDS 2 a 1 b 2 ; EXISTS h2 ;
HSETEX h2 FNX FIELDS 2 a 1 a 2 ; HGETALL h2 ; HSETEX h2 FNX FIELDS 2 zz 1 a 2 ;
HSETEX h2 FXX PXAT 9999999999999 FIELDS 2 a 1 a 2 ; HPEXPIRETIME h2 FIELDS 1 a ;
HSETEX h2 KEEPTTL FIELDS 2 a 1 n 2 ; HPEXPIRETIME h2 FIELDS 2 a n ; HSETEX h2 FIELDS 1 a 4 ;
HPEXPIRETIME h2 FIELDS 2 a n ; OBJECT ENCODING h2 ; DEL h2 ; HSET h2 a 1 ; OBJECT ENCODING h2 ;
HEXPIRE h2 100 FIELDS 1 a ; OBJECT ENCODING h2 ; HPERSIST h2 FIELDS 1 a ; OBJECT ENCODING h2 ;
HPEXPIREAT h2 9999999999999 FIELDS 1 a ; HINCRBY h2 a 5 ; HPEXPIRETIME h2 FIELDS 1 a ;
HINCRBYFLOAT h2 a 5.25 ; HPEXPIRETIME h2 FIELDS 1 a ; HSETNX h2 a 6 ; HPEXPIRETIME h2 FIELDS 1 a ;
COPY h2 h3 ; HPEXPIRETIME h3 FIELDS 1 a ; DEBUG DIGEST-VALUE h2 h3 ; RENAME h3 h4 ; HPEXPIRETIME h4 FIELDS 1 a ; MOVE h4 1 ;
SELECT 1 ; HPEXPIRETIME h4 FIELDS 1 a ; SELECT 0 ; HSET h2 a 6 ; HPEXPIRETIME h2 FIELDS 1 a ;
HPEXPIREAT h2 9999999999999 FIELDS 1 a ; HMSET h2 a 6 ; HPEXPIRETIME h2 FIELDS 1 a ;
HPEXPIREAT h2 9999999999999 FIELDS 1 a ; HDEL h2 a ; EXISTS h2 ;
COMMAND INFO hexpire hpexpire hexpireat hpexpireat ; COMMAND INFO httl hpttl hexpiretime hpexpiretime ;
COMMAND INFO hpersist hgetdel ; COMMAND INFO hsetex ; COMMAND GETKEYS HEXPIRE k 1 FIELDS 1 a ;
COMMAND GETKEYSANDFLAGS HPEXPIREAT k 1 FIELDS 1 a ; COMMAND GETKEYSANDFLAGS HTTL k FIELDS 1 a ;
COMMAND GETKEYSANDFLAGS HGETDEL k FIELDS 1 a ; ACL DRYRUN default HTTL k FIELDS 1 a
)";

class differential_fields : public ::testing::TestWithParam<int> {
protected:
    static void SetUpTestSuite() {
        redis_ = redis_process::start(why_not_).release();
        if (redis_ == nullptr) return;
        const std::string known = redis_->ask(arguments{"COMMAND", "INFO", "hsetex"});
        if (parse_reply(known).children.at(0).children.empty()) {
            why_not_ = "the installed redis-server is older than version 8";
            delete redis_;
            redis_ = nullptr;
        }
    }
    static void TearDownTestSuite() {
        delete redis_;
        redis_ = nullptr;
    }
    void SetUp() override {
        if (redis_ == nullptr) GTEST_SKIP() << why_not_;
        redis_->ask(arguments{"FLUSHALL"});
        redis_->ask(arguments{"SELECT", "0"});
        const arguments hello{"HELLO", std::to_string(GetParam())};
        redis_->ask(hello);
        client_.ask(hello);
    }

    static std::string comparable(const arguments& args, const std::string& bytes) {
        if (args[0] != "HGETALL" && args[0] != "HKEYS" && args[0] != "HVALS") return bytes;
        reply_tree tree = parse_reply(bytes);
        tree.sort_children(args[0] == "HGETALL" ? 2 : 1);
        return tree.print();
    }
    std::string ours(const arguments& args) {
        using namespace std::chrono;
        engine_.set_time(duration_cast<microseconds>(system_clock::now().time_since_epoch()));
        return client_.ask(args);
    }
    bool same(const arguments& args) {
        const std::string theirs = redis_->ask(args);
        const std::string own = ours(args);
        if (comparable(args, own) == comparable(args, theirs)) return true;
        std::string line;
        for (const std::string& each : args) line += each + ' ';
        ADD_FAILURE() << line << "\n redis: " << theirs << "\n eddy:  " << own;
        return false;
    }

    static redis_process* redis_;
    static std::string why_not_;
    static engine_options options() {
        engine_options made;
        made.mode = access_mode::admin;
        return made;
    }
    engine engine_{options()};
    test_client client_{engine_};
};

redis_process* differential_fields::redis_ = nullptr;
std::string differential_fields::why_not_;

TEST_P(differential_fields, scripted_edges) {
    for (const std::string_view line : testing::separate(edges)) {
        // Redis 8 has another kind of nothing there, where a command has none, than 7.2.
        if (GetParam() == 3 && line.starts_with("COMMAND INFO ")) continue;
        same(testing::split(line));
    }
}

TEST_P(differential_fields, random_commands_are_answered_as_redis_answers_them) {
    const std::uint64_t seed = eddy::testing::seed_of_this_run();
    random_generator random(seed);
    const auto key = [&] { return "h" + std::to_string(random.below(3)); };
    const auto field = [&] { return "f" + std::to_string(random.below(60)); };
    // Over, or far away.
    const auto time = [&] {
        return random.below(8) == 0 ? "1" : "99999999" + std::to_string(10'000 + random.below(9));
    };
    const std::vector<std::string> conditions{"NX", "XX", "GT", "LT"};
    for (int i = 0; i < 10'000; ++i) {
        const std::string k = key();
        arguments args;
        switch (random.below(19)) {
            case 0:
            case 1:
                args = {"HSET", k, field(), "1", field(), std::string(random.below(90), 'v')};
                break;
            case 2: args = {"HDEL", k, field(), field()}; break;
            case 3: args = {"HPEXPIREAT", k, time(), "FIELDS", "2", field(), field()}; break;
            case 4:
            case 5:
                args = {"HPEXPIREAT", k,       time(), conditions[random.below(4)], "FIELDS", "3",
                        field(),      field(), field()};
                break;
            case 6: args = {"HPEXPIRETIME", k, "FIELDS", "3", field(), field(), field()}; break;
            case 7: args = {"HPERSIST", k, "FIELDS", "2", field(), field()}; break;
            case 8: args = {"HGETEX", k, "PXAT", time(), "FIELDS", "2", field(), field()}; break;
            case 9: args = {"HGETEX", k, "PERSIST", "FIELDS", "1", field()}; break;
            case 10: args = {"HGETDEL", k, "FIELDS", "2", field(), field()}; break;
            case 11: args = {"HSETEX", k, "PXAT", time(), "FIELDS", "1", field(), "x"}; break;
            case 12: args = {"HSETEX", k, "KEEPTTL", "FIELDS", "1", field(), "keep"}; break;
            case 13:
                args = {"HSETEX", k, "FNX", "PXAT", time(), "FIELDS", "1", field(), "new"};
                break;
            case 14: args = {"HINCRBY", k, field(), "3"}; break;
            case 15: args = {"HGETALL", k}; break;
            case 16: args = {"HLEN", k}; break;
            case 17: args = {"HMGET", k, field(), field()}; break;
            default:
                if (random.below(30) == 0) args = {"COPY", k, key(), "REPLACE"};
                if (random.below(30) == 0) args = {"RENAME", k, key()};
                if (args.empty()) args = {"EXISTS", k};
        }
        if (args[0] == "COPY" && args[1] == args[2]) continue;
        ASSERT_TRUE(same(args)) << "command " << i << ", seed " << seed;
    }
}

TEST_P(differential_fields, payloads_go_both_ways) {
    for (const int fields : {3, 300}) {
        for (int i = 0; i < fields; ++i) {
            const std::string name = "f" + std::to_string(i);
            same({"HSET", "h", name, "v" + std::to_string(i)});
            if (i % 3 != 0) {
                same({"HPEXPIREAT", "h", std::to_string(9'999'999'990'000 + i), "FIELDS", "1",
                      name});
            }
        }
        const auto payload_of = [](const std::string& reply) { return parse_reply(reply).text; };
        const std::string theirs = payload_of(redis_->ask(arguments{"DUMP", "h"}));
        const std::string own = payload_of(ours({"DUMP", "h"}));
        EXPECT_EQ(redis_->ask(arguments{"RESTORE", "from", "0", own, "REPLACE"}), "+OK\r\n");
        EXPECT_EQ(ours({"RESTORE", "from", "0", theirs, "REPLACE"}), "+OK\r\n");
        same({"HGETALL", "from"});
        for (int i = 0; i < fields; ++i) {
            ASSERT_TRUE(same({"HPEXPIRETIME", "from", "FIELDS", "1", "f" + std::to_string(i)}));
        }
    }
}

INSTANTIATE_TEST_SUITE_P(protocols, differential_fields, ::testing::Values(2, 3),
                         [](const auto& p) { return "resp" + std::to_string(p.param); });

}  // namespace
}  // namespace eddy::cache
