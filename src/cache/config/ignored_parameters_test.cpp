// Comparison of CONFIG SET's replies about parameters without an effect with a real redis-server's.
// Skipped, with the reason, where there is none.
#include "cache/config/ignored_parameters.hpp"

#include "cache/testing/differential_fixture.hpp"
#include "cache/testing/test_server.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>

namespace eddy::cache {
namespace {

using testing::arguments;
using kind = ignored_parameter::kind;

class differential_parameters : public testing::differential {
protected:
    bool is_known_to_redis(std::string_view name) {
        return testing::parse_reply(redis_->ask(arguments{"CONFIG", "GET", std::string(name)}))
                   .children.size() == 2;
    }

    testing::test_server server_{engine_};
};

TEST_P(differential_parameters, values_are_taken_and_refused_as_redis_does) {
    // The operating system rejects scores and addresses, the allocator defragmentation; the title
    // is parsed; two have another range in 7.0, or are clamped to it.
    const std::set<std::string_view> excluded{"oom-score-adj",
                                              "proc-title-template",
                                              "activedefrag",
                                              "bind-source-addr",
                                              "maxmemory-samples",
                                              "hz",
                                              "cluster-announce-hostname"};
    // 7.0 has one level less; 7.2 checks names of nodes and the system's languages.
    const std::set<std::string_view> by_version =
        redis_->is_7_0() ? std::set<std::string_view>{"loglevel"}
                         : std::set<std::string_view>{"cluster-announce-human-nodename",
                                                      "cluster-announce-ip", "locale-collate"};
    int compared = 0;
    // The defaults differ in part, as the implementation does.
    for (const ignored_parameter& each : ignored_parameters()) {
        const std::string name(each.name);
        const auto theirs = testing::parse_reply(redis_->ask(arguments{"CONFIG", "GET", name}));
        if (theirs.children.size() == 2) client_({"CONFIG", "SET", name, theirs.children[1].text});
    }
    for (const ignored_parameter& each : ignored_parameters()) {
        const std::string name(each.name);
        if (name.starts_with("tls-") || excluded.contains(each.name)) continue;
        if (by_version.contains(each.name)) continue;
        if (!is_known_to_redis(name)) continue;
        ++compared;
        for (const std::string value : {"abc",
                                        "yes",
                                        "NO",
                                        "0",
                                        "1",
                                        "-1",
                                        "50",
                                        "1000",
                                        "1001",
                                        "2147483647",
                                        "2147483648",
                                        "-2147483648",
                                        "-2147483649",
                                        "1mb",
                                        "2k",
                                        "1x",
                                        "-1mb",
                                        "99999999999",
                                        "9223372036854775808",
                                        "1048575",
                                        "notice",
                                        "Clients",
                                        "0 200 800",
                                        "1 2",
                                        "0 0 2001",
                                        "50 100.5",
                                        "50 99",
                                        "x 1",
                                        ""}) {
            // Redis accepts an empty value as no bytes, and a number of 19 digits.
            if (each.takes == kind::bytes && (value.empty() || value.size() == 19)) continue;
            EXPECT_TRUE(same({"CONFIG", "SET", name, value}));
            if (each.takes != kind::immutable) EXPECT_TRUE(same({"CONFIG", "GET", name}));
        }
    }
    EXPECT_GT(compared, 70);
}

TEST_P(differential_parameters, those_of_redis_are_known) {
    client_({"HELLO", "2"});
    redis_->ask(arguments{"HELLO", "2"});
    // Processor lists, warnings, and parameters for modules and TLS clients.
    const std::set<std::string> excluded{
        "aof_rewrite_cpulist",      "bgsave_cpulist",       "bio_cpulist",
        "server_cpulist",           "aof-disable-auto-gc",  "ignore-warnings",
        "oom-score-adj-values",     "tls-client-cert-file", "tls-client-key-file",
        "tls-client-key-file-pass", "tls-dh-params-file",   "tls-key-file-pass"};
    if (!redis_->is_7()) GTEST_SKIP() << "this redis-server is neither 7.0 nor 7.2";
    const auto theirs = testing::parse_reply(redis_->ask(arguments{"CONFIG", "GET", "*"}));
    for (std::size_t i = 0; i < theirs.children.size(); i += 2) {
        const std::string& name = theirs.children[i].text;
        if (excluded.contains(name)) continue;
        EXPECT_NE(client_({"CONFIG", "GET", name}), "*0\r\n") << name;
    }
}

// Once: the replies are the same in both protocols.
INSTANTIATE_TEST_SUITE_P(cache, differential_parameters, ::testing::Values(2));

}  // namespace
}  // namespace eddy::cache
