// Patterns find what Lua's own find, for random texts; and say what is wrong in its words.
#include <eddy/base/random.hpp>

#include "base/test_rounds.hpp"
#include "base/test_seed.hpp"
#include "lua/original_lua.hpp"
#include "lua/sandbox_fixture.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace eddy::lua {
namespace {

/// All that the functions make of a subject, a pattern, a replacement and a number.
constexpr std::string_view chunk = R"(
local s, p, r, i = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local out = {}
local function note(ok, ...)
    out[#out + 1] = tostring(ok)
    for n = 1, select('#', ...) do out[#out + 1] = tostring((select(n, ...))) end
end
local function keep(...) return ... end
note(pcall(function() local a, b, c, d, e = string.find(s, p, i) return keep(a, b, c, d, e) end))
note(pcall(function() local a, b = string.find(s, p, i, true) return keep(a, b) end))
note(pcall(function() local a, b, c = string.match(s, p, i) return keep(a, b, c) end))
note(pcall(function()
    local found = 0
    for a, b in string.gmatch(s, p) do
        found = found + 1
        note(a, b)
        if found == 20 then break end
    end
    return found
end))
note(pcall(function() local a, b = string.gsub(s, p, r) return keep(a, b) end))
note(pcall(function() local a, b = string.gsub(s, p, r, i) return keep(a, b) end))
note(pcall(function() local a, b = string.gsub(s, p, {a = 'x', b = false, ab = 7}) return keep(a, b) end))
note(pcall(function()
    local a, b = string.gsub(s, p, function(x, y) if x == 'a' then return y end return x end)
    return keep(a, b)
end))
return table.concat(out, '|')
)";

class patterns : public ::testing::Test {
protected:
    void expect_same(const std::string& subject, const std::string& pattern,
                     const std::string& replacement = "<%0>", const std::string& number = "1") {
        const std::vector<std::string> all = {subject, pattern, replacement, number};
        ASSERT_EQ(ours_(chunk, all), lua_(all))
            << ::testing::PrintToString(subject) << ' ' << ::testing::PrintToString(pattern) << ' '
            << ::testing::PrintToString(replacement) << ' ' << number;
    }

    testing::sandboxed_lua ours_;
    testing::original_lua lua_{chunk};
};

TEST_F(patterns, are_luas) {
    const std::string all = [] {
        std::string made;
        for (int c = 0; c < 256; ++c) made += static_cast<char>(c);
        return made;
    }();
    for (const char letter : std::string_view("acdlpsuwxzACDLPSUWXZ%.-]b1")) {
        expect_same(all, std::string("%") + letter);
        expect_same(all, std::string("[%") + letter + "]");
        expect_same(all, std::string("[^%") + letter + "]+");
    }
    for (const char* const pattern :
         {"",          "^",           "$",         "^$",          "a",      "^a",      "a$",
          "$a",        "a^",          ".",         ".-",          ".*",     ".+",      ".?",
          "()",        "(a)",         "((a)(b))",  "(a",          "a)",     "(()",     "%",
          "a%",        "[",           "[a",        "[]",          "[]]",    "[^]]",    "[^",
          "[a-]",      "[a-c]",       "[c-a]",     "[%a-z]",      "[a-%z]", "[%",      "[%]",
          "%b",        "%b(",         "%b()",      "%bxx",        "%f",     "%fa",     "%f[a]",
          "%f[%w]%w+", "%f[%z]",      "%1",        "(a)%1",       "(a*)%1", "()%1",    "(a%1)",
          "%0",        "(.)(.)%2%1",  "a-b",       "a-$",         "a*?",    "*",       "+a",
          "?",         "-",           "^^a",       "[[]",         "[%a_]+", "(a)(b)(", "x*",
          "%s*",       "(%w+) (%w+)", "%d+%.?%d*", "^%s*(.-)%s*$"}) {
        for (const char* const subject :
             {"", "a", "ab", "aab", "(a(b)c)", "a b  c", "THE (quick) fox", "x1.5, 2", "aaaa",
              "]^-", " trim me "}) {
            for (const char* const replacement : {"", "<%0>", "%1%2", "%", "%%x", "%a"})
                expect_same(subject, pattern, replacement);
        }
    }
    // Deep, and with many captures.
    for (const int count : {31, 32, 33, 190, 199, 200, 201, 300}) {
        std::string options;
        std::string captures;
        std::string positions;
        for (int i = 0; i < count; ++i) {
            options += "a?";
            captures += "(a)";
            positions += "()";
        }
        for (const std::string& pattern : {options, captures, positions})
            expect_same(std::string(static_cast<std::size_t>(count), 'a'), pattern);
    }
    for (const char* const number : {"0", "2", "-1", "-3", "-100", "100", "1.9", "nan"})
        expect_same("abcabc", "b", "x", number);
}

TEST_F(patterns, are_luas_also_at_random) {
    const std::uint64_t seed = eddy::testing::seed_of_this_run();
    SCOPED_TRACE(seed);
    random_generator random(seed);
    const std::string_view pieces[] = {
        "a",    "b",    "ab",   ".",    "%a",   "%d", "%s",   "%W",    "(",   ")",
        "()",   "[ab]", "[^a]", "*",    "+",    "-",  "?",    "%1",    "%2",  "%bab",
        "%b()", "^",    "$",    "[",    "]",    "%",  "[a-c", "%f[a]", "%%",  "1",
        " ",    "(a)",  "(.",   "[%a]", "(b*)", "-]", "%f",   "%b(",   "%z+", "[%w_]"};
    const std::string_view replacements[] = {"", "x", "%0", "%1", "%2", "%", "%%", "(%1)", "%9"};
    const auto text = [&](std::string_view of, std::size_t most) {
        std::string made;
        for (std::size_t n = random.below(most); n > 0; --n) made += of[random.below(of.size())];
        return made;
    };
    using namespace std::string_view_literals;
    for (int i = 0; i < eddy::testing::rounds(30'000) && !HasFatalFailure(); ++i) {
        std::string pattern;
        for (std::size_t n = 1 + random.below(7); n > 0; --n)
            pattern += pieces[random.below(std::size(pieces))];
        if (random.below(50) == 0) pattern += '\0' + text("ab%("sv, 5);
        std::string replacement(replacements[random.below(std::size(replacements))]);
        expect_same(text("aaabb1 ()_\0]%"sv, 14), pattern, replacement,
                    std::to_string(static_cast<int>(random.below(20)) - 8));
    }
}

// LuaJIT has %g of a later Lua.
TEST_F(patterns, have_only_the_classes_of_redis) {
    EXPECT_EQ(ours_("local a, b = ('a g'):find('%g') return a .. ' ' .. b"), "3 3");
}

}  // namespace
}  // namespace eddy::lua
