// The functions for whole tables do what Lua's own do, comparison for comparison; and sort() also
// where Lua's own becomes quadratic.
#include <eddy/base/random.hpp>

#include "base/test_seed.hpp"
#include "lua/original_lua.hpp"
#include "lua/sandbox_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::lua {
namespace {

using testing::original_lua;
using arguments = std::vector<std::string>;

class tables : public ::testing::Test {
protected:
    std::string eval(std::string_view chunk, const arguments& args) { return ours_(chunk, args); }

    testing::sandboxed_lua ours_;
};

// Sorts tables with the keys of ARGV by several orders, and returns their new places, the number of
// comparisons, and errors. Orders that contradict themselves are not the same to LuaJIT and to
// Redis: differential_scripting_test.cpp has them.
constexpr std::string_view sort_chunk = R"(
local out = {}
local count
local function try(order)
    local t = {}
    for i = 1, #ARGV do t[i] = {key = ARGV[i], place = i} end
    count = 0
    local ok, why = pcall(function()
        table.sort(t, function(a, b) count = count + 1 return order(a.key, b.key) end)
    end)
    out[#out + 1] = tostring(ok) .. ':' .. count .. ':' .. tostring(why)
    for i = 1, #t do out[#out + 1] = t[i].place end
end
try(function(a, b) return a < b end)
try(function(a, b) return a > b end)
try(function() return false end)
try(function(a, b) if count == 9 then error('enough') end return a < b end)
local t = {}
for i = 1, #ARGV do
    local first = ARGV[i]:byte() % 8
    t[i] = ARGV[i]
    if first > 1 then t[i] = #ARGV[i] end
    if first == 7 then t[i] = {} end
end
out[#out + 1] = select(2, pcall(function() table.sort(t) return 'sorted' end))
for i = 1, #t do out[#out + 1] = type(t[i]) == 'table' and '{}' or t[i] end
table.sort(ARGV)
for i = 1, #ARGV do out[#out + 1] = ARGV[i] end
return table.concat(out, ' ')
)";

TEST_F(tables, are_sorted_as_lua_sorts_them) {
    const std::uint64_t seed = eddy::testing::seed_of_this_run();
    SCOPED_TRACE(seed);
    random_generator random(seed);
    original_lua lua(sort_chunk);
    for (int i = 0; i < 600; ++i) {
        const std::uint64_t count = random.below(random.below(10) == 0 ? 400 : 40);
        const std::uint64_t kinds = 1 + random.below(3) * random.below(300);
        const std::uint64_t shape = random.below(4);
        arguments keys;
        for (std::uint64_t k = 0; k < count; ++k) {
            const std::uint64_t which = shape == 0   ? k % kinds
                                        : shape == 1 ? (count - k) % kinds
                                                     : random.below(kinds);
            keys.push_back(std::to_string(which));
            if (shape == 3) keys.back() = std::string(which % 20 + 1, '3');
        }
        ASSERT_EQ(eval(sort_chunk, keys), lua(keys)) << i;
    }
}

// After M. D. McIlroy, A Killer Adversary for Quicksort (1999): the order of two elements is
// decided when they are compared, in the worst way for the algorithm. Returns the number of
// comparisons and the resulting order.
constexpr std::string_view adversary_chunk = R"(
local n = tonumber(ARGV[1])
local gas, solid, candidate, count = n, 0, 0, 0
local value, items = {}, {}
for i = 1, n do value[i], items[i] = gas, i end
table.sort(items, function(a, b)
    count = count + 1
    if value[a] == gas and value[b] == gas then
        value[a == candidate and a or b] = solid
        solid = solid + 1
    end
    if value[a] == gas then candidate = a elseif value[b] == gas then candidate = b end
    return value[a] < value[b]
end)
for i = 2, n do if value[items[i - 1]] > value[items[i]] then return 'not sorted' end end
return count .. ' ' .. table.concat(value, ' ')
)";

constexpr std::string_view count_chunk = R"(
local t, count = {}, 0
for each in ARGV[1]:gmatch('%d+') do t[#t + 1] = tonumber(each) end
table.sort(t, function(a, b) count = count + 1 return a < b end)
for i = 2, #t do if t[i - 1] > t[i] then return 'not sorted' end end
return count .. ''
)";

TEST_F(tables, that_make_quicksort_quadratic_are_sorted_all_the_same) {
    constexpr std::uint64_t n = 4000;
    constexpr std::uint64_t many = n * n / 16;
    constexpr std::uint64_t few = 100 * n;
    const auto first_number = [](const std::string& text) { return std::stoull(text); };
    const std::string of_lua = original_lua(adversary_chunk)({std::to_string(n)});
    ASSERT_GT(first_number(of_lua), many);
    EXPECT_LT(first_number(eval(adversary_chunk, {std::to_string(n)})), few);
    // The resulting order, for comparisons without the adversary.
    const std::string order = of_lua.substr(of_lua.find(' '));
    ASSERT_GT(first_number(original_lua(count_chunk)({order})), many);
    EXPECT_LT(first_number(eval(count_chunk, {order})), few);
    EXPECT_EQ(
        eval("local t = {} for each in ARGV[1]:gmatch('%d+') do t[#t + 1] = tonumber(each) end "
             "table.sort(t) for i = 2, #t do if t[i - 1] > t[i] then return 'wrong' end end "
             "return 'sorted'",
             {order}),
        "sorted");
}

// Results of the other functions for all sorts of arguments.
constexpr std::string_view others_chunk = R"(
local out = {}
local function note(f)
    local ok, a, b = pcall(f)
    out[#out + 1] = tostring(ok) .. ':' .. tostring(a) .. ':' .. tostring(b)
end
local words = {'a', 1, 2.5, -0.25, 1e15, 1e300, 'z'}
note(function() local a = table.concat(words) return a end)
note(function() local a = table.concat(words, ', ') return a end)
note(function() local a = table.concat(words, 7) return a end)
note(function() local a = table.concat(words, '-', 2) return a end)
note(function() local a = table.concat(words, '-', 2, 4) return a end)
note(function() local a = table.concat(words, '-', 4, 4) return a end)
note(function() local a = table.concat(words, '-', 5, 4) return a end)
note(function() local a = table.concat(words, '-', '2', '3') return a end)
note(function() local a = table.concat(words, '-', nil, nil) return a end)
note(function() local a = table.concat(words, '-', 0, 2) return a end)
note(function() local a = table.concat(words, '-', 6, 8) return a end)
note(function() local a = table.concat({}, '-') return a end)
note(function() local a = table.concat({}, '-', 1, 1) return a end)
note(function() local a = table.concat({'x', {}, 'y'}) return a end)
note(function() local a = table.concat({'x', true}) return a end)
note(function() local a = table.concat({[2147483647] = 'x'}, '', 2147483647, 2147483647) return a end)
note(function() local a = table.concat({[-2147483648] = 'x'}, '', -2147483648, -2147483648) return a end)
note(function() table.concat() end)
note(function() table.concat(1) end)
note(function() table.concat({}, {}) end)
note(function() table.concat({}, '', 'x') end)
note(function() table.concat({}, '', 1, {}) end)
note(function() table.sort() end)
note(function() table.sort(1) end)
note(function() table.sort({}, 1) end)
note(function() table.sort({2, 1}, {}) end)
note(function() table.sort({2, 1}, nil) end)
note(function() table.sort({3, nil, 1}) end)
note(function() table.sort({3, 'x', 1}) end)
note(function() table.sort({{}, {}}) end)
note(function() table.sort({true, false, true}) end)
note(function() table.sort({0 / 0, 3, 0 / 0, 2, 1}) end)
note(function() table.sort({3, 2, 1, 5, 4}, function(a, b) return a end) end)
note(function() local a = table.maxn({1, 2, [10] = 1, [2.5] = 1, x = 3}) return a end)
note(function() local a = table.maxn({}) return a end)
note(function() table.maxn() end)
local long = {}
for i = 1, 10000 do long[i] = i % 3 == 0 and 'x' .. i or i / 4 end
note(function() local a = table.concat(long) return a end)
note(function() local a = table.concat(long, ',') return a end)
note(function() local a = table.concat(long, ',', 17, 9990) return a end)
note(function() local a = table.concat(long, '', 1, 4096) return a end)
note(function() local a = table.concat(long, '--', 1, 4097) return a end)
note(function() local a = table.concat(long, '', 1, 8192) return a end)
note(function() local a = table.concat(long, '', 1, 10001) return a end)
long[8200] = false
note(function() local a = table.concat(long, ',') return a end)
local less = setmetatable({2}, {__lt = function(a, b) return a[1] < b[1] end})
local one = setmetatable({1}, getmetatable(less))
local both = {less, one}
note(function() table.sort(both) return both[1][1] .. both[2][1] end)
local shrinking = {5, 3, 4, 1, 2, 6, 7}
note(function()
    table.sort(shrinking, function(a, b) shrinking[7] = nil return (a or 0) < (b or 0) end)
    return #shrinking
end)
return table.concat(out, '\n')
)";

TEST_F(tables, are_put_together_as_lua_does) {
    std::istringstream ours(eval(others_chunk, {}));
    std::istringstream theirs(original_lua(others_chunk)({}));
    std::string our;
    std::string their;
    int lines = 0;
    for (; std::getline(theirs, their); ++lines) {
        ASSERT_TRUE(std::getline(ours, our)) << lines;
        EXPECT_TRUE(our == their) << our.substr(0, 300) << '\n' << their.substr(0, 300);
    }
    EXPECT_GT(lines, 40);
}

TEST_F(tables, of_the_libraries_are_neither_changed_nor_lost) {
    EXPECT_EQ(eval("table.sort(string) table.sort(cjson) local s = table.concat(cjson) .. "
                   "table.maxn(cjson) return s .. type(cjson.encode)",
                   {}),
              "0function");
}

}  // namespace
}  // namespace eddy::lua
