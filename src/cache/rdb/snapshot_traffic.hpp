// Test fixtures: traffic for the random tests of snapshots, and their seeds.
#pragma once

#include <eddy/base/random.hpp>

#include "base/test_seed.hpp"
#include "cache/rdb/snapshot_fixture.hpp"
#include "cache/testing/differential_commands.hpp"
#include "cache/testing/differential_streams.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::cache::testing {

/// Random commands of all kinds, by the cache's two clients.
class disturbance {
public:
    disturbance(cache_with_client& of, std::uint64_t seed, unsigned keys)
        : it_(of),
          random_(seed),
          keys_(keys),
          templates_(testing::separate(all_)),
          of_streams_(testing::separate(stream_templates_)) {}

    void fill() {
        for (unsigned i = 0; i < keys_; ++i) {
            const std::string n = std::to_string(i);
            switch (i % 7) {
                case 0: it_.ask({"RPUSH", "k" + n, "a", n, text()}); break;
                case 1: it_.ask({"HSET", "k" + n, n, text(), "f", n}); break;
                case 2: it_.ask({"SADD", "k" + n, n, "x"}); break;
                case 3: it_.ask({"ZADD", "k" + n, n, "m", "1", "n" + n}); break;
                default: it_.ask({"SET", "k" + n, text()}); break;
            }
            if (i % 5 == 0 && !still_)
                it_.ask({"PEXPIRE", "k" + n, std::to_string(1 + random_.below(5000))});
        }
        const unsigned big = random_.below(4) == 0 ? 400 : 40;
        for (unsigned i = 0; i < big; ++i) {
            const std::string n = std::to_string(i);
            it_.ask({"RPUSH", "k0", n, text()});
            it_.ask({"HSET", "k1", "f" + n, text()});
            it_.ask({"SADD", "k2", n, "m" + n});
            it_.ask({"ZADD", "k3", n, "m" + n});
            it_.ask({"XADD", "s0", std::to_string(++stream_clock_), "f", text()});
        }
        it_.ask("XGROUP CREATE s0 g0 0");
        it_.ask("XREADGROUP GROUP g0 c0 STREAMS s0 >");
        if (random_.below(4) == 0) it_.ask({"SET", "k4", std::string(30'000, 'z')});
        for (int i = 0; i < 200; ++i) command();
    }

    /// No time passes, and keys stay for long.
    void set_still() { still_ = true; }
    /// No thousands of keys are added.
    void keep_few() { few_ = true; }

    /// By one of two clients, which may have to wait.
    void command() {
        if (it_.home.is_behind() && random_.below(3) == 0) go_on(it_);
        if (random_.below(2) == 0) std::swap(who_, idle_);
        if (!who_->who().blocked) ask();
    }

private:
    void ask() {
        test_client& client = *who_;
        switch (random_.below(400)) {
            case 0: client("FLUSHALL"); return;
            case 1: client("FLUSHDB"); return;
            case 2: client("SWAPDB 0 1"); return;
            case 3:
                if (!few_) grow();
                return;
            case 4: client("SORT k3 BY nosort"); return;
            case 5: client("UNLINK k0 k1"); return;
            case 6: client("RENAME k1 k0"); return;
            case 7:
                if (still_) return;
                now_ms_ += static_cast<std::int64_t>(random_.below(2000));
                it_.set_time(now_ms_);
                return;
            default: break;
        }
        if (random_.below(20) == 0) static_cast<void>(it_.home.upkeep(random_.below(200)));
        if (random_.below(4) == 0) return stream_command();
        arguments args = testing::split(templates_[random_.below(templates_.size())]);
        for (std::string& word : args) fill(word);
        // These run on a database of their own or for long.
        if (args.empty() || args[0] == "PFDEBUG") return;
        client.ask(args);
    }

    static std::string all_templates() {
        return std::string(testing::command_templates) + ";" +
               std::string(testing::command_templates_of_7_0);
    }
    static std::string all_stream_templates() {
        return std::string(testing::stream_entry_templates) + ";" +
               std::string(testing::stream_group_templates);
    }
    void stream_command() {
        arguments args = testing::split(of_streams_[random_.below(of_streams_.size())]);
        for (std::string& word : args) {
            const std::size_t at = word.find('%');
            if (at != std::string::npos) word.replace(at, 2, of_stream(word[at + 1]));
        }
        who_->ask(args);
    }
    std::string of_stream(char what) {
        const auto number = [&](std::uint64_t below) {
            return std::to_string(random_.below(below));
        };
        switch (what) {
            case 'k': return random_.below(2) == 0 ? "s0" : "s" + number(3);
            case 'a': return std::to_string(++stream_clock_) + "-*";
            case 'i':
            case 'r': return number(stream_clock_ + 2);
            case 'n': return number(10);
            case 'g': return "g" + number(2);
            case 'c': return "c" + number(3);
            // A trim takes two words.
            case 't': return "MAXLEN";
            default: return text();
        }
    }
    void grow() {
        for (int i = 0; i < 1500; ++i) {
            (*who_)({"SET", "grown" + std::to_string(random_.below(3000)), text()});
        }
    }
    std::string text() {
        switch (random_.below(6)) {
            case 0: return std::to_string(random_.below(1000));
            case 1: return std::string(random_.below(300), 't');
            case 2: return std::string(random_.below(6000), 'u');
            default: return "text" + std::to_string(random_.below(50));
        }
    }
    void fill(std::string& word) {
        const std::size_t at = word.find('%');
        if (at == std::string::npos) return;
        const auto number = [&](std::uint64_t below) {
            return std::to_string(random_.below(below));
        };
        std::string with;
        switch (word[at + 1]) {
            case 'k': with = "k" + number(random_.below(2) == 0 ? 12 : keys_ + 12); break;
            case 'v': with = text(); break;
            case 'm': with = "m" + number(60); break;
            case 'i': with = number(2000); break;
            case 'n': with = number(12); break;
            case 'f': with = number(100) + ".5"; break;
            case 'z': with = "z" + number(4); break;
            case 'g': with = "g" + number(4); break;
            case 'd': with = number(80); break;
            case 'b': with = number(50); break;
            case 'l': with = random_.below(2) == 0 ? "-" : "+"; break;
            case 'x': with = number(100'000) + (still_ ? "00000" : ""); break;
            default: with = "*"; break;
        }
        word.replace(at, 2, with);
    }

    cache_with_client& it_;
    test_client* who_ = &it_.ask;
    test_client* idle_ = &it_.other;
    random_generator random_;
    const unsigned keys_;
    std::string all_ = all_templates();
    std::string stream_templates_ = all_stream_templates();
    std::vector<std::string_view> templates_;
    std::vector<std::string_view> of_streams_;
    std::uint64_t stream_clock_ = 0;
    std::int64_t now_ms_ = start_ms;
    bool still_ = false;
    bool few_ = false;
};

/// Runs with this many seeds in a row, or with EDDY_RUNS of them, until one fails.
template <class Run>
void for_each_seed(std::uint64_t usual_runs, Run one_run) {
    const char* const wanted = std::getenv("EDDY_RUNS");
    const std::uint64_t first = eddy::testing::seed_of_this_run();
    const std::uint64_t runs = wanted != nullptr ? std::strtoull(wanted, nullptr, 0) : usual_runs;
    // Sanitizers on a busy machine do fewer.
    const auto enough = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    std::uint64_t done = 0;
    while (done < runs && (wanted != nullptr || std::chrono::steady_clock::now() < enough)) {
        one_run(first + done);
        ASSERT_FALSE(::testing::Test::HasFailure())
            << "seed " << first + done << " (repeat with EDDY_SEED and EDDY_RUNS=1)";
        ++done;
    }
}

}  // namespace eddy::cache::testing
