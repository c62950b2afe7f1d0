// Comparison of stream commands by the engine and by a real redis-server 7.0: the replies must be
// the same, but for times, and so must the stored bytes. Skipped, with the reason, where
// redis-server is not installed.
#include "cache/testing/differential_streams.hpp"

#include <eddy/base/random.hpp>

#include "base/test_seed.hpp"
#include "cache/engine/engine.hpp"
#include "cache/testing/redis_process.hpp"
#include "cache/testing/test_client.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
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

// Removes the times of pending entries, each of which is an array.
void forget_times(reply_tree& pending) {
    for (reply_tree& each : pending.children) {
        if (each.children.size() >= 3) each.children[each.children.size() - 2].text = "time";
    }
}

// Counts of a group's read and unread entries: Redis 8.6 counts as here.
enum class progress : std::uint8_t { same, other };

// Fields about idempotent producers, in Redis 8.6.
bool is_of_producers(std::string_view name) {
    return name.starts_with("idmp-") || name.starts_with("iids-") || name == "pids-tracked";
}

// Removes all times, and fields that newer versions of Redis have beside those of 7.0.
void make_comparable(reply_tree& tree, progress counted) {
    bool is_map = false;
    for (std::size_t i = 0; i + 1 < tree.children.size(); ++i) {
        const std::string& name = tree.children[i].text;
        if (name == "idle" || name == "seen-time") tree.children[i + 1].text = "time";
        if (counted == progress::other && (name == "lag" || name == "entries-read"))
            tree.children[i + 1] = {resp::reply_type::null, "count", {}};
        if (name == "pending") forget_times(tree.children[i + 1]);
        is_map |= name == "recorded-first-entry-id";
        if (name != "inactive" && name != "active-time" && !is_of_producers(name)) continue;
        const auto at = tree.children.begin() + static_cast<std::ptrdiff_t>(i);
        tree.children.erase(at, at + 2);
        --i;
    }
    for (reply_tree& each : tree.children) {
        is_map |= each.text == "seen-time" || each.text == "idle";
        make_comparable(each, counted);
    }
    if (is_map) tree.text.clear();
}

std::string comparable(const arguments& args, const std::string& reply, progress counted) {
    // Redis 7.0 has other words.
    if (reply.starts_with("-ERR Unbalanced")) return "unbalanced";
    if (reply.empty() || reply[0] == '-') return reply;
    const bool is_info = args[0] == "XINFO";
    const bool is_list = args[0] == "XPENDING" && args.size() > 3;
    if (!is_info && !is_list && args[0] != "SCAN") return reply;
    reply_tree tree = parse_reply(reply);
    if (is_list) forget_times(tree);
    if (is_info) make_comparable(tree, counted);
    if (args[0] == "SCAN") tree.children[1].sort_children();
    return tree.print();
}

class differential_streams : public ::testing::TestWithParam<int> {
protected:
    static void SetUpTestSuite() {
        redis_ = redis_process::start(why_not_).release();
        // So that DUMP can be compared.
        if (redis_ != nullptr) redis_->ask(arguments{"CONFIG", "SET", "rdbcompression", "no"});
    }
    static void TearDownTestSuite() {
        delete redis_;
        redis_ = nullptr;
    }

    void SetUp() override {
        if (redis_ == nullptr) GTEST_SKIP() << why_not_;
        if (!redis_->is_7()) GTEST_SKIP() << "this redis-server is neither 7.0 nor 7.2";
        begin();
    }

    void begin() {
        for (const arguments& args : {arguments{"FLUSHALL"},
                                      {"CONFIG", "SET", "stream-node-max-entries", "100"},
                                      {"CONFIG", "SET", "stream-node-max-bytes", "4096"},
                                      {"HELLO", std::to_string(GetParam())}}) {
            redis_->ask(args);
            client_.ask(args);
        }
    }

    bool same(const arguments& args) {
        using namespace std::chrono;
        const std::string theirs = redis_->ask(args);
        engine_.set_time(duration_cast<microseconds>(system_clock::now().time_since_epoch()));
        const std::string ours = client_.ask(args);
        if (ours[0] != '-' && ours[0] != '+') make_consumers(args);
        const progress counted = redis_->is_7() ? progress::other : progress::same;
        if (ours == theirs || comparable(args, ours, counted) == comparable(args, theirs, counted))
            return true;
        is_gone_ = theirs.empty();
        if (is_gone_) return true;
        // Redis 7.0 has no small lists and sets in listpacks.
        if (args[0] == "OBJECT" && ours == "$8\r\nlistpack\r\n") return true;
        std::string line;
        for (const std::string& each : args) line += each.substr(0, 80) + " ";
        ADD_FAILURE() << line << "\n redis: " << theirs << "\n eddy:  " << ours;
        return false;
    }
    // Since 7.2 a client that reads or claims becomes a consumer, even if there is no entry for it.
    void make_consumers(const arguments& args) {
        if (!redis_->is_7_0()) return;
        if (args[0] == "XCLAIM" || args[0] == "XAUTOCLAIM") {
            redis_->ask(arguments{"XGROUP", "CREATECONSUMER", args[1], args[2], args[3]});
        }
        if (args[0] != "XREADGROUP") return;
        const auto group = std::ranges::find(args, "GROUP");
        const auto first = std::ranges::find(args, "STREAMS") + 1;
        for (auto key = first; key < first + (args.end() - first) / 2; ++key) {
            redis_->ask(arguments{"XGROUP", "CREATECONSUMER", *key, group[1], group[2]});
        }
    }
    bool same_line(std::string_view line) { return same(testing::split(line)); }

    static redis_process* redis_;
    static std::string why_not_;
    bool is_gone_ = false;  // redis-server, which ends by a fault now and then
    static engine_options options() {
        engine_options made;
        made.mode = access_mode::admin;  // for DEBUG
        return made;
    }

    engine engine_{options()};
    test_client client_{engine_};
};

redis_process* differential_streams::redis_ = nullptr;
std::string differential_streams::why_not_;

// Makes commands of the templates, whose IDs grow.
class command_maker {
public:
    command_maker(std::uint64_t seed, std::initializer_list<std::string_view> templates)
        : random_(seed) {
        for (const std::string_view each : templates) {
            const auto more = testing::separate(each);
            templates_.insert(templates_.end(), more.begin(), more.end());
        }
    }

    arguments make() {
        // Entries are what the rest lives on.
        const bool adds = random_.below(3) == 0;
        arguments args = testing::split(adds ? "XADD %k %a f1 %v f2 %v"
                                             : templates_[random_.below(templates_.size())]);
        arguments filled;
        for (const std::string& word : args) {
            const std::size_t at = word.find('%');
            if (at == std::string::npos) {
                filled.push_back(word);
            } else if (word[at + 1] == 't') {
                for (std::string& each : trim()) filled.push_back(std::move(each));
            } else {
                filled.push_back(word.substr(0, at) + fill(word[at + 1]) + word.substr(at + 2));
            }
        }
        if (random_.below(60) == 0 && filled.size() > 2) filled.pop_back();
        return filled;
    }

    std::string number(std::uint64_t below) { return std::to_string(random_.below(below)); }

private:
    std::string fill(char what) {
        switch (what) {
            case 'k': return "s" + number(3);
            case 'a': return new_id();
            case 'i': return id();
            case 'r': return interval_end();
            case 'n': return number(10);
            case 'g': return "g" + number(2);
            case 'c': return "c" + number(3);
            default: return value();
        }
    }
    std::string new_id() {
        clock_ += random_.below(3);
        if (random_.below(200) == 0) clock_ += 1'000'000;
        if (random_.below(3) == 0) return std::to_string(clock_) + "-*";
        return std::to_string(clock_) + "-" + std::to_string(++sequence_);
    }
    std::string id() {
        if (random_.below(40) == 0) return random_.below(2) == 0 ? "x" : "0";
        const std::uint64_t back = random_.below(40);
        std::string made = std::to_string(clock_ + 2 - std::min(back, clock_ + 2));
        if (random_.below(3) != 0) {
            made += "-" + std::to_string(sequence_ + 2 -
                                         random_.below(std::min<std::uint64_t>(40, sequence_ + 2)));
        }
        return made;
    }
    std::string interval_end() {
        switch (random_.below(8)) {
            case 0: return "-";
            case 1: return "+";
            case 2: return "(" + id();
            default: return id();
        }
    }
    std::vector<std::string> trim() {
        std::vector<std::string> words{random_.below(2) == 0 ? "MAXLEN" : "MINID"};
        if (random_.below(3) != 0) words.emplace_back(random_.below(2) == 0 ? "~" : "=");
        words.push_back(words[0] == "MINID" ? id() : number(60));
        return words;
    }
    std::string value() {
        static constexpr const char* odd[] = {"",
                                              "0",
                                              "-1",
                                              "127",
                                              "128",
                                              "4095",
                                              "-4096",
                                              "-4097",
                                              "32767",
                                              "-32769",
                                              "8388607",
                                              "-8388609",
                                              "2147483647",
                                              "2147483648",
                                              "9223372036854775807",
                                              "-9223372036854775808",
                                              "9223372036854775808",
                                              "007",
                                              "-0",
                                              "1.5"};
        switch (random_.below(8)) {
            case 0: return odd[random_.below(std::size(odd))];
            case 1: return number(100'000);
            case 2: return std::string(random_.below(200), 'x');
            case 3: return random_.below(10) == 0 ? std::string(random_.below(9'000), 'y') : "z";
            case 4: return std::string("bin\0\r\n\xff", 7) + number(3);
            default: return "value:" + number(50);
        }
    }

    random_generator random_;
    std::vector<std::string_view> templates_;
    std::uint64_t clock_ = 1;
    std::uint64_t sequence_ = 0;
};

// Debian's redis-server 7.0.15 allocates stream-node-max-bytes, 4 KiB at most, for a new block, and
// loses what it appends behind them: a value of about 4 KiB becomes another field's text, or is cut
// off. So values are smaller here, and the limit stays as it is.
arguments next_of(command_maker& maker) {
    constexpr std::size_t most = 3000;
    for (;;) {
        arguments made = maker.make();
        if (std::ranges::all_of(made, [](const std::string& a) { return a.size() <= most; }))
            return made;
    }
}

TEST_P(differential_streams, random_commands_are_answered_as_redis_answers_them) {
    const std::uint64_t seed = eddy::testing::seed_of_this_run();
    command_maker maker(seed, {testing::stream_entry_templates, testing::stream_group_templates,
                               testing::stream_group_templates});
    for (int i = 0; i < 15'000; ++i) {
        ASSERT_TRUE(same(next_of(maker))) << "command " << i << ", seed " << seed;
        if (is_gone_) GTEST_SKIP() << "redis-server has ended by itself";
    }
    for (const std::string key : {"s0", "s1", "s2"}) {
        same_line("XRANGE " + key + " - +");
        same_line("XINFO STREAM " + key + " FULL COUNT 0");
        same_line("XINFO GROUPS " + key);
    }
    same_line("DEBUG DIGEST");
}

// A stream that stays short, so that groups stand before its first entry, behind its last one, and
// among deleted entries.
TEST_P(differential_streams, groups_have_as_much_to_read_as_in_redis) {
    // 7.0 and 7.2 count it in other ways.
    const char* const program = std::getenv("EDDY_REDIS_8_6");
    if (program == nullptr || *program == '\0')
        GTEST_SKIP() << "EDDY_REDIS_8_6 names no server; ./eddy-dev test fetches one";
    std::string why;
    const auto newest = redis_process::start(why, {}, {}, program);
    if (newest == nullptr) GTEST_SKIP() << why;
    struct other_server {
        explicit other_server(redis_process* other) noexcept : usual(redis_) { redis_ = other; }
        ~other_server() { redis_ = usual; }
        redis_process* usual;
    };
    const other_server used(newest.get());
    begin();
    const std::uint64_t seed = eddy::testing::seed_of_this_run();
    random_generator random(seed);
    const auto number = [&](std::uint64_t below) { return std::to_string(random.below(below)); };
    std::uint64_t last = 1;
    const auto id = [&] { return std::to_string(last + 1 - std::min(last + 1, random.below(10))); };
    const auto group = [&] { return "g" + number(2); };
    const auto next = [&]() -> arguments {
        const std::uint64_t dice = random.below(100);
        if (dice < 30) {
            last += 1 + random.below(2);
            const std::string made = std::to_string(last);
            if (random.below(8) == 0) return {"XADD", "s", "MAXLEN", number(5), made, "f", "v"};
            return {"XADD", "s", made, "f", "v"};
        }
        if (dice < 42) return {"XDEL", "s", id()};
        if (dice < 45) return {"XTRIM", "s", "MAXLEN", number(6)};
        if (dice < 48) return {"XTRIM", "s", "MINID", id()};
        if (dice < 52) return {"XGROUP", "CREATE", "s", group(), random.below(2) == 0 ? "0" : id()};
        if (dice < 55) return {"XGROUP", "SETID", "s", group(), random.below(2) == 0 ? "$" : id()};
        if (dice < 58)
            return {"XGROUP", "SETID", "s", group(), id(), "ENTRIESREAD", number(last + 20)};
        if (dice < 61) return {"XGROUP", "DESTROY", "s", group()};
        if (dice < 62) return {"DEL", "s"};
        if (dice < 65) return {"XSETID", "s", std::to_string(last + random.below(3))};
        if (dice < 67)
            return {
                "XSETID",       "s", std::to_string(last), "ENTRIESADDED", std::to_string(last + 5),
                "MAXDELETEDID", id()};
        return {"XREADGROUP", "GROUP", group(), "c", "COUNT", std::to_string(1 + random.below(3)),
                "STREAMS",    "s",     ">"};
    };
    for (int i = 0; i < 10'000; ++i) {
        ASSERT_TRUE(same(next())) << "command " << i << ", seed " << seed;
        ASSERT_TRUE(same({"XINFO", "GROUPS", "s"})) << "command " << i << ", seed " << seed;
        if (i % 10 == 0) ASSERT_TRUE(same({"XINFO", "STREAM", "s", "FULL"})) << seed;
    }
}

// Without groups, which have times in them.
TEST_P(differential_streams, what_is_stored_is_what_redis_stores_to_the_byte) {
    if (!redis_->is_7_0()) GTEST_SKIP() << "later versions store more of a consumer";
    const std::uint64_t seed = eddy::testing::seed_of_this_run();
    command_maker maker(seed, {testing::stream_entry_templates});
    for (int i = 0; i < 6'000; ++i) {
        ASSERT_TRUE(same(next_of(maker))) << "command " << i << ", seed " << seed;
        if (is_gone_) GTEST_SKIP() << "redis-server has ended by itself";
        if (i % 50 != 0) continue;
        for (const std::string key : {"s0", "s1", "s2"}) {
            if (client_("TYPE " + key) != "+stream\r\n") continue;
            const std::string ours = client_("DUMP " + key);
            ASSERT_EQ(ours, redis_->ask(arguments{"DUMP", key})) << key << ", seed " << seed;
        }
    }
}

// With the usual size of blocks, and enough entries for a tree of them.
TEST_P(differential_streams, a_long_stream_is_read_and_trimmed_as_in_redis) {
    const std::uint64_t seed = eddy::testing::seed_of_this_run();
    SCOPED_TRACE(seed);
    command_maker maker(seed, {testing::stream_entry_templates});
    constexpr int entries = 12'000;
    const auto id = [&] { return std::to_string(100 + std::atoi(maker.number(entries).c_str())); };
    for (int i = 0; i < entries; ++i) {
        arguments args{"XADD", "s", std::to_string(100 + i), "field", maker.number(1'000'000)};
        if (i % 7 == 0)
            args.insert(args.end(), {"other", std::string(static_cast<std::size_t>(i % 90), 'o')});
        ASSERT_TRUE(same(args));
    }
    for (int i = 0; i < 2'000; ++i) {
        ASSERT_TRUE(same({"XRANGE", "s", id(), "+", "COUNT", "3"}));
        ASSERT_TRUE(same({"XREVRANGE", "s", id(), "-", "COUNT", "3"}));
        ASSERT_TRUE(same({"XREAD", "COUNT", "2", "STREAMS", "s", id()}));
        ASSERT_TRUE(same({"XDEL", "s", id(), id()}));
        if (i % 100 != 0) continue;
        ASSERT_TRUE(same(
            {"XTRIM", "s", "MAXLEN", i % 200 == 0 ? "~" : "=", std::to_string(entries - i * 6)}));
        ASSERT_TRUE(same_line("XINFO STREAM s"));
    }
    ASSERT_TRUE(same_line("DEBUG DIGEST-VALUE s"));
    ASSERT_TRUE(same_line("XREVRANGE s + -"));
}

TEST_P(differential_streams, scripted_edges) {
    for (const std::string_view script : testing::stream_scripts) {
        begin();
        for (const std::string_view line : testing::separate(script)) same_line(line);
    }
}

INSTANTIATE_TEST_SUITE_P(protocols, differential_streams, ::testing::Values(2, 3),
                         [](const auto& p) { return "resp" + std::to_string(p.param); });

}  // namespace
}  // namespace eddy::cache
