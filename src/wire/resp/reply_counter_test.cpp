// reply_counter: the same counts as reply_parser at any split; both versions of the line run.
#include <eddy/wire/resp/reply_counter.hpp>

#include <eddy/base/random.hpp>

#include "wire/resp/line_run.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>

namespace eddy::resp {
namespace {

// A copy whose end a sanitizer watches.
class exact_copy {
public:
    explicit exact_copy(std::string_view text)
        : bytes_(std::make_unique<char[]>(text.size())), size_(text.size()) {
        if (size_ > 0) std::memcpy(bytes_.get(), text.data(), size_);
    }
    const char* begin() const { return bytes_.get(); }
    const char* end() const { return bytes_.get() + size_; }
    std::string_view text() const { return {bytes_.get(), size_}; }

private:
    std::unique_ptr<char[]> bytes_;
    std::size_t size_;
};

std::string repeated(std::string_view reply, std::size_t times) {
    std::string stream;
    for (std::size_t i = 0; i < times; ++i) stream += reply;
    return stream;
}

// Counts `stream` whole and at every split in two.
reply_counter counted(std::string_view stream) {
    reply_counter whole;
    whole.count(exact_copy(stream).text());
    for (std::size_t split = 0; split <= stream.size(); ++split) {
        reply_counter halves;
        std::uint64_t sum = halves.count(exact_copy(stream.substr(0, split)).text());
        sum += halves.count(exact_copy(stream.substr(split)).text());
        EXPECT_EQ(sum, whole.replies()) << "split at " << split << " of " << stream;
        EXPECT_EQ(halves.replies(), whole.replies());
        EXPECT_EQ(halves.errors(), whole.errors());
        EXPECT_EQ(halves.pushes(), whole.pushes());
        EXPECT_EQ(halves.malformed(), whole.malformed());
        EXPECT_EQ(halves.at_boundary(), whole.at_boundary());
    }
    return whole;
}

TEST(resp_reply_counter, every_type_is_one_reply) {
    for (const std::string_view reply : {"+OK\r\n",
                                         "-ERR no\r\n",
                                         ":1234\r\n",
                                         "$-1\r\n",
                                         "$0\r\n\r\n",
                                         "$3\r\nabc\r\n",
                                         "$12\r\nabc\r\n+OK\r\n.x\r\n",
                                         "*-1\r\n",
                                         "*0\r\n",
                                         "*2\r\n:1\r\n$1\r\nx\r\n",
                                         "_\r\n",
                                         "#t\r\n",
                                         ",1.5\r\n",
                                         "(123\r\n",
                                         "!5\r\nERR x\r\n",
                                         "=5\r\ntxt:x\r\n",
                                         "%1\r\n+k\r\n*1\r\n_\r\n",
                                         "~2\r\n:1\r\n:2\r\n",
                                         "*2\r\n*2\r\n+a\r\n+b\r\n*1\r\n*0\r\n",
                                         "|1\r\n+a\r\n%0\r\n+OK\r\n",
                                         "|0\r\n:1\r\n",
                                         "*1\r\n>1\r\n+nested push\r\n"}) {
        for (const std::size_t times : {1U, 2U, 9U}) {
            const reply_counter counter = counted(repeated(reply, times));
            EXPECT_EQ(counter.replies(), times) << reply;
            EXPECT_EQ(counter.pushes(), 0U) << reply;
            EXPECT_FALSE(counter.malformed()) << reply;
            EXPECT_TRUE(counter.at_boundary()) << reply;
        }
    }
}

TEST(resp_reply_counter, long_runs_of_small_replies) {
    for (const std::string_view reply :
         {"+OK\r\n", ":1\r\n", "$2\r\nab\r\n", "+a longer status line here\r\n"}) {
        for (const std::size_t times : {10'000U, 10'001U}) {
            const std::string stream = repeated(reply, times);
            reply_counter whole;
            EXPECT_EQ(whole.count(stream), times);
            EXPECT_TRUE(whole.at_boundary());
        }
    }
}

TEST(resp_reply_counter, pushes_are_no_replies) {
    const reply_counter counter = counted(
        "+OK\r\n>2\r\n+message\r\n*1\r\n:1\r\n+OK\r\n>0\r\n|1\r\n+a\r\n+b\r\n>1\r\n+x\r\n:1\r\n");
    EXPECT_EQ(counter.replies(), 3U);
    EXPECT_EQ(counter.pushes(), 3U);
}

TEST(resp_reply_counter, errors_are_seen_wherever_they_are) {
    EXPECT_EQ(counted("+OK\r\n-ERR\r\n+OK\r\n").errors(), 1U);
    EXPECT_EQ(counted("*2\r\n-ERR\r\n!3\r\nERR\r\n").errors(), 2U);
    EXPECT_EQ(counted("$8\r\n\r\n-ERR\r\n\r\n+-\r\n").errors(), 0U);
    EXPECT_EQ(counted(repeated("+OK\r\n", 20) + "-ERR\r\n" + repeated(":1\r\n", 20)).errors(), 1U);
}

TEST(resp_reply_counter, what_is_incomplete_is_not_counted) {
    for (const std::string_view rest :
         {"+", "+O", "+OK\r", "$", "$3\r\n", "$3\r\nabc", "$3\r\nabc\r", "*1\r\n", "*2\r\n:1\r\n",
          "|0\r\n", "*1\r\n*1\r\n"}) {
        const reply_counter counter = counted("+OK\r\n" + std::string(rest));
        EXPECT_EQ(counter.replies(), 1U) << rest;
        EXPECT_FALSE(counter.at_boundary()) << rest;
        EXPECT_FALSE(counter.malformed()) << rest;
    }
}

TEST(resp_reply_counter, broken_framing_is_malformed) {
    for (const std::string_view bad :
         {"hello\r\n", "$x\r\n", "$\r\n", "$-2\r\n", "%-1\r\n", "*--1\r\n", "$1-\r\n",
          "$1099511627777\r\n", "*1099511627776\r\n"}) {
        const reply_counter counter = counted("+OK\r\n" + std::string(bad) + "+OK\r\n");
        EXPECT_EQ(counter.replies(), 1U) << bad;
        EXPECT_TRUE(counter.malformed()) << bad;
        EXPECT_FALSE(counter.at_boundary()) << bad;
    }
}

TEST(resp_reply_counter, elements_at_the_limit) {
    const std::string most = std::to_string(reply_counter::max_elements - 1);
    EXPECT_FALSE(counted("*" + most + "\r\n").malformed());
    EXPECT_TRUE(counted("*" + std::to_string(reply_counter::max_elements) + "\r\n").malformed());
    EXPECT_TRUE(counted("*2\r\n*" + most + "\r\n").malformed());
}

// A line run may stop anywhere before what is no line; the rest is counted here.
std::uint64_t lines_of(detail::line_run run, const char* end) {
    std::uint64_t lines = run.lines;
    bool within_line = run.within_line;
    for (const char* at = run.at; at < end; ++at) {
        if (!within_line && !detail::is_line_reply(*at)) break;
        within_line = *at != '\n';
        if (!within_line) ++lines;
    }
    return lines;
}

TEST(resp_line_run, both_versions_skip_the_same_lines) {
    for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
        random_generator random(seed);
        std::string stream = "+";
        const std::uint64_t lines = random.below(60);
        const std::uint64_t longest = 1 + random.below(40);
        for (std::uint64_t i = 0; i < lines; ++i) {
            stream += std::string(random.below(longest), 'x') + "\r\n";
            stream += random.chance(0.01) ? '$' : random.chance(0.5) ? '+' : ':';
        }
        const exact_copy copy(stream);
        const std::uint64_t expected = lines_of({copy.begin(), 0, false}, copy.end());
        const detail::line_run portable = detail::skip_lines_portable(copy.begin(), copy.end());
        EXPECT_EQ(lines_of(portable, copy.end()), expected) << "seed " << seed;
        const detail::line_run chosen = detail::skip_lines(copy.begin(), copy.end());
        EXPECT_EQ(lines_of(chosen, copy.end()), expected) << "seed " << seed;
        EXPECT_LE(chosen.at, copy.end());
    }
}

}  // namespace
}  // namespace eddy::resp
