// Random test of propagation: commands on one engine, and their recorded changes on another one;
// both must have the same keys, values and times.
#include <eddy/base/random.hpp>

#include "base/test_rounds.hpp"
#include "cache/testing/differential_commands.hpp"
#include "cache/testing/differential_streams.hpp"
#include "cache/testing/mirror.hpp"
#include "cache/testing/random_commands.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cache {
namespace {

using namespace cache::testing;

void expect_same_everywhere(std::string_view templates, std::uint64_t seed, int commands) {
    engine_options options;
    options.mode = access_mode::admin;
    options.seed = seed + 1;
    engine home(options);
    options.seed = seed + 1000;
    engine copy(options);
    kept_changes sink;
    add_sink(home.internals(), sink);
    std::int64_t now_ms = 1'700'000'000'000;
    const auto set_time = [&] {
        home.set_time(std::chrono::milliseconds(now_ms));
        copy.set_time(std::chrono::milliseconds(now_ms));
    };
    set_time();
    random_commands random(templates, seed);
    std::vector<std::string> recent;
    {
        test_client ask(home);
        change_replayer told(copy);
        for (int i = 0; i < commands; ++i) {
            const bool in_transaction = random.chance(10);
            recent.clear();
            if (in_transaction) ask("MULTI");
            for (std::uint64_t n = in_transaction ? random.below(5) : 1; n > 0; --n) {
                const arguments words = random.next();
                std::string line;
                for (const std::string& each : words) line += each + ' ';
                recent.push_back(line);
                ask.ask(words);
            }
            if (in_transaction) ask("EXEC");
            if (random.chance(5)) {
                now_ms += static_cast<std::int64_t>(random.below(4000));
                set_time();
            }
            if (random.chance(50)) home.upkeep();
            const std::string recorded = sink.take();
            const std::string errors = told.obey(recorded);
            const std::string ours = describe(home);
            const std::string theirs = describe(copy);
            if (ours == theirs && errors.empty()) continue;
            std::string said;
            for (const std::string& each : recent) said += each + '\n';
            FAIL() << "seed " << seed << ", after:\n"
                   << said << "recorded:\n"
                   << recorded << "errors: " << errors << "\nhere:\n"
                   << ours << "there:\n"
                   << theirs;
        }
    }
    remove_sink(home.internals(), sink);
}

TEST(propagated_random, commands_make_the_same_elsewhere) {
    std::string all(command_templates);
    all +=
        "; SPOP %k ; SPOP %k %n ; SPOP %k 2 ; FLUSHDB ; BLPOP %k %k 1 ; BZPOPMIN %z 1 ; "
        "SET %k %v PX %n000 ; EXPIRE %k %n ; PEXPIRE %k %n00 ;"
        "SET %k %v IFEQ %n ; SET %k %v IFNE %n PX %n000 ; SET %k %n IFEQ %n KEEPTTL ; DELEX %k "
        "IFEQ %n ; "
        "DELEX %k IFNE %n ; DELIFEQ %k %n ; MSETEX 2 %k %v %k %v NX PX %n000 ; MSETEX 2 %k %v %k "
        "%v ; "
        "MSETEX 1 %k %v XX KEEPTTL ; SET %k %v IFDNE 0123456789abcdef ; BITOP DIFF %k %k %k ; "
        "BITOP ONE %k %k %k ; BITOP ANDOR %k %k %k ; BITOP DIFF1 %k %k %k ; "
        "EVAL return(redis.call('incr','k1'))+redis.call('lpush','k2',1) 0";
    for (std::uint64_t seed = 1; seed <= eddy::testing::rounds(4U); ++seed)
        expect_same_everywhere(all, seed, 3000);
}

TEST(propagated_random, fields_that_end_are_the_same_elsewhere) {
    constexpr std::string_view all = R"(
HSET h%g %n %i %n %v ; HSETNX h%g %n %i ; HINCRBY h%g %n %i ; HINCRBYFLOAT h%g %n %f ; HDEL h%g %n %n ;
HEXPIRE h%g %n FIELDS 2 %n %n ; HPEXPIRE h%g %n00 FIELDS 3 %n %n %n ; HEXPIRE h%g 2 NX FIELDS 1 %n ;
HPEXPIRE h%g %n00 GT FIELDS 2 %n %n ; HPEXPIRE h%g %n00 LT FIELDS 2 %n %n ; HPEXPIREAT h%g 1 FIELDS 1 %n ;
HPERSIST h%g FIELDS 2 %n %n ; HGETEX h%g PX %n00 FIELDS 2 %n %n ; HGETEX h%g PERSIST FIELDS 2 %n %n ;
HGETEX h%g EXAT 1 FIELDS 2 %n %n ; HGETEX h%g FIELDS 1 %n ; HGETDEL h%g FIELDS 2 %n %n ;
HSETEX h%g PX %n000 FIELDS 2 %n %v %n %i ; HSETEX h%g KEEPTTL FIELDS 1 %n %i ;
HSETEX h%g FNX EX %n FIELDS 1 %n %i ; HSETEX h%g FXX EX 3 FIELDS 2 %n %i %n %v ;
HSETEX h%g PXAT 1 FIELDS 1 %n %i ; HSETEX h%g FIELDS 1 %n %i ; HGETALL h%g ; HLEN h%g ; HMGET h%g %n %n ;
COPY h%g h%g REPLACE ; RENAME h%g h%g ; MOVE h%g 1 ; PEXPIRE h%g %n000 ; DEL h%g
)";
    for (std::uint64_t seed = 1; seed <= eddy::testing::rounds(4U); ++seed)
        expect_same_everywhere(all, seed, 3000);
}

TEST(propagated_random, streams_are_the_same_elsewhere) {
    std::string all(stream_entry_templates);
    all += ';';
    all += stream_group_templates;
    all += R"(;
XDELEX %k DELREF IDS 2 %i %i ; XDELEX %k ACKED IDS 3 %i %i %i ; XDELEX %k IDS 1 %i ;
XACKDEL %k %g IDS 2 %i %i ; XACKDEL %k %g ACKED IDS 3 %i %i %i ; XACKDEL %k %g DELREF IDS 2 %i %i ;
XTRIM %k %t ACKED ; XTRIM %k DELREF %t ; XTRIM %k %t LIMIT %n ACKED ; XADD %k ACKED %t %a f1 %v ;
XADD %k %t DELREF %a f1 %v ; XREADGROUP GROUP %g %c CLAIM %n00 COUNT %n STREAMS %k > ;
XREADGROUP GROUP %g %c CLAIM 0 STREAMS %k s1 > > ; XREADGROUP GROUP %g %c CLAIM 0 NOACK STREAMS %k >
)";
    for (std::uint64_t seed = 1; seed <= eddy::testing::rounds(4U); ++seed)
        expect_same_everywhere(all, seed, 3000);
}

}  // namespace
}  // namespace eddy::cache
