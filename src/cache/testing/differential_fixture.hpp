// Test fixtures for comparisons: the same command to the engine and to a real redis-server, and a
// reply without its arbitrary parts.
#pragma once

#include "cache/engine/engine.hpp"
#include "cache/testing/differential_commands.hpp"
#include "cache/testing/redis_process.hpp"
#include "cache/testing/test_client.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <set>
#include <string>
#include <string_view>

namespace eddy::cache::testing {

inline std::string upper(std::string text) {
    for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return text;
}

inline std::string in_quotes(const arguments& args) {
    std::string all;
    for (const std::string& each : args) {
        all += '"';
        for (const char c : each.substr(0, 80)) {
            if (c >= ' ' && c <= '~') {
                all += c;
            } else {
                char hex[8];
                std::snprintf(hex, sizeof hex, "\\x%02x", static_cast<unsigned char>(c));
                all += hex;
            }
        }
        all += each.size() > 80 ? "...\" " : "\" ";
    }
    return all;
}

// A reply without its arbitrary parts.
inline std::string comparable(const arguments& args, const std::string& bytes) {
    const std::string name = upper(args[0]);
    static const std::set<std::string> unordered{
        "SMEMBERS", "SINTER", "SUNION", "SDIFF", "KEYS", "HKEYS", "HVALS", "SRANDMEMBER", "SPOP"};
    static const std::set<std::string> scans{"SCAN", "SSCAN", "HSCAN", "ZSCAN"};
    static const std::set<std::string> pair_scans{"HSCAN", "ZSCAN"};
    const auto parsed = [&] {
        reply_tree tree = parse_reply(bytes);
        if (name.starts_with('Z') || name.starts_with("GEO")) tree.unify_numbers();
        return tree;
    };
    if (unordered.contains(name)) {
        reply_tree tree = parsed();
        tree.sort_children();
        return tree.print();
    }
    // Sets have no order; the lists that are sorted at random have other names.
    if (name == "SORT" && args.size() > 1 && args[1].starts_with('k')) {
        reply_tree tree = parsed();
        tree.sort_children();
        return tree.print();
    }
    if (name == "HGETALL") {
        reply_tree tree = parsed();
        tree.sort_children(2);
        return tree.print();
    }
    if (name == "HRANDFIELD" || name == "ZRANDMEMBER") {
        reply_tree tree = parsed();
        const bool flat =
            args.size() == 4 && !tree.children.empty() && tree.children[0].children.empty();
        tree.sort_children(flat ? 2 : 1);
        return tree.print();
    }
    if (scans.contains(name)) {
        reply_tree tree = parsed();
        if (tree.children.size() == 2) {
            tree.children[1].sort_children(pair_scans.contains(name) ? 2 : 1);
        }
        return tree.print();
    }
    if (name.starts_with('Z') || name.starts_with("GEO")) return parsed().print();
    if (name == "COMMAND") {
        reply_tree tree = parsed();
        tree.drop_notes();
        return tree.print();
    }
    if (name == "HELLO") return hide_version(bytes);
    return bytes;
}

// Times that pass between the two servers' answers.
inline bool may_differ(const arguments& args, const std::string& ours, const std::string& theirs) {
    const std::string name = upper(args[0]);
    // COMMAND GETKEYS takes a name alone since 7.2.
    if (name == "COMMAND" && args.size() == 3 && upper(args[1]).starts_with("GETKEYS") &&
        theirs.starts_with("-ERR wrong number"))
        return ours.starts_with("-ERR");
    const bool seconds = name == "TTL" || name == "EXPIRETIME";
    if (!seconds && name != "PTTL" && name != "PEXPIRETIME") return false;
    if (ours[0] != ':' || theirs[0] != ':') return false;
    const long long a = std::atoll(ours.c_str() + 1);
    const long long b = std::atoll(theirs.c_str() + 1);
    return a > 0 && b > 0 && std::llabs(a - b) <= (seconds ? 10 : 10'000);
}

/// True for commands that stop a redis-server that lacks fixes of 2022 and later: a count, an
/// offset or a limit near the ends of 64 bits, an increment of a field that is not finite, MSETNX
/// with a key twice. Random commands may be such; they are sent to no server.
inline bool stops_unpatched_servers(const arguments& args) {
    const std::string name = upper(args[0]);
    if (name == "MSETNX") {
        std::set<std::string> keys;
        for (std::size_t i = 1; i < args.size(); i += 2)
            if (!keys.insert(args[i]).second) return true;
        return false;
    }
    if (name == "HINCRBYFLOAT")
        return args.size() > 3 && !std::isfinite(std::strtold(args[3].c_str(), nullptr));
    static const std::set<std::string> counting{
        "SETRANGE", "SRANDMEMBER", "HRANDFIELD", "ZRANDMEMBER", "XAUTOCLAIM", "SORT", "SORT_RO"};
    if (!counting.contains(name)) return false;
    constexpr long long harmless = 1LL << 56;
    return std::any_of(args.begin() + 1, args.end(), [](const std::string& each) {
        const long long value = std::strtoll(each.c_str(), nullptr, 10);
        return value > harmless || value < -harmless;
    });
}

/// The engine and a redis-server, in the protocol of the parameter.
class differential : public ::testing::TestWithParam<int> {
protected:
    static void SetUpTestSuite() { redis_ = redis_process::start(why_not_).release(); }
    static void TearDownTestSuite() {
        delete redis_;
        redis_ = nullptr;
    }

    void SetUp() override {
        if (redis_ == nullptr) GTEST_SKIP() << why_not_;
        redis_->ask(arguments{"FLUSHALL"});
        redis_->ask(arguments{"SELECT", "0"});
        use_protocol(GetParam());
    }

    void use_protocol(int protocol) {
        const arguments hello{"HELLO", std::to_string(protocol)};
        redis_->ask(hello);
        client_.ask(hello);
    }

    // One command to both. False, with a report, when the replies differ.
    bool same(const arguments& args) {
        using namespace std::chrono;
        if (stops_unpatched_servers(args)) return true;
        // Redis 7.0's SORT takes an errno for its own that was left by an earlier one, or by its
        // own reading of a small sorted set's scores.
        if (upper(args[0]).starts_with("SORT")) {
            const arguments of{"SORT_RO", args.size() > 1 ? args[1] : "none", "BY", "nosort"};
            redis_->ask(of);
            client_.ask(of);
            redis_->ask(arguments{"INCRBYFLOAT", "none", "x"});
        }
        const std::string theirs = redis_->ask(args);
        engine_.set_time(duration_cast<microseconds>(system_clock::now().time_since_epoch()));
        const std::string ours = client_.ask(args);
        if (ours == theirs || comparable(args, ours) == comparable(args, theirs) ||
            may_differ(args, ours, theirs)) {
            return true;
        }
        ADD_FAILURE() << in_quotes(args) << "\n redis: " << in_quotes({theirs})
                      << "\n eddy:  " << in_quotes({ours});
        return false;
    }
    bool same_line(std::string_view line) { return same(split(line)); }

    // The lines of a script to both, whose databases it finds empty.
    void follow(std::string_view script) {
        redis_->ask(arguments{"FLUSHALL"});
        redis_->ask(arguments{"SELECT", "0"});
        client_("FLUSHALL");
        client_("SELECT 0");
        use_protocol(GetParam());
        for (const std::string_view line : separate(script)) {
            // In RESP3, other versions have other kinds of nothing where a command has none.
            const bool is_of_7_2 = GetParam() == 3 && line.starts_with("COMMAND INFO ");
            const bool differs = is_of_7_2 || (redis_->is_7_0() ? is_later_than_7_0(line)
                                                                : differs_between_versions(line));
            const bool left_out = !redis_->is_7_2() && differs;
            if (!left_out)
                same_line(line);
            else
                std::cout << "left out with this version of redis-server: " << line << "\n";
        }
    }

    static inline redis_process* redis_ = nullptr;
    static inline std::string why_not_;
    static engine_options options() {
        engine_options made;
        made.mode = access_mode::admin;  // for DEBUG
        return made;
    }

    engine engine_{options()};
    test_client client_{engine_};
};

}  // namespace eddy::cache::testing
