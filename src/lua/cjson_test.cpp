// Numbers of JSON: short integers, which have a way of their own, are what the general one makes.
#include <eddy/base/random.hpp>

#include "base/test_rounds.hpp"
#include "base/test_seed.hpp"
#include "lua/sandbox_fixture.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace eddy::lua {
namespace {

using testing::sandboxed_lua;

TEST(cjson, writes_numbers_as_printf_does) {
    sandboxed_lua eval;
    const std::string chunk =
        "local all = {} for i, each in ipairs(ARGV) do\n"
        "  local n = tonumber(each)\n"
        "  if cjson.encode({n}) ~= string.format('[%.14g]', n) then all[#all + 1] = each end\n"
        "end return table.concat(all, ' ')";
    std::vector<std::string> numbers = {"0",
                                        "-0",
                                        "1",
                                        "-1",
                                        "7",
                                        "99999999999999",
                                        "100000000000000",
                                        "-99999999999999",
                                        "1e14",
                                        "1e15",
                                        "1e16",
                                        "1e22",
                                        "1e300",
                                        "-1e300",
                                        "123456789012345",
                                        "0.1",
                                        "-0.5",
                                        "1e-5",
                                        "1e-4",
                                        "2.5",
                                        "3.0",
                                        "1.7976931348623157e308",
                                        "5e-324",
                                        "9007199254740993"};
    const std::uint64_t seed = eddy::testing::seed_of_this_run();
    SCOPED_TRACE(seed);
    random_generator random(seed);
    for (int i = 0; i < eddy::testing::rounds(500); ++i) {
        const auto bits = static_cast<std::int64_t>(random());
        numbers.push_back(std::to_string(bits >> (random.below(64))));
        numbers.push_back(std::to_string(static_cast<double>(bits) / 1e6));
    }
    EXPECT_EQ(eval(chunk, numbers), "");
    EXPECT_EQ(eval("cjson.encode_number_precision(3)\n"
                   "return cjson.encode({1, 999, 1000, 12345, 0.12345})"),
              "[1,999,1e+03,1.23e+04,0.123]");
}

TEST(cjson, reads_numbers_as_strtod_does) {
    sandboxed_lua eval;
    const std::string chunk =
        "local n = cjson.decode('[' .. ARGV[1] .. ']')[1] return string.format('%.17g', n)";
    const std::vector<std::pair<std::string, std::string>> all = {
        {"0", "0"},
        {"-0", "-0"},
        {"7", "7"},
        {"-12", "-12"},
        {"999999999999999", "999999999999999"},
        {"9007199254740993", "9007199254740992"},
        {"123456789012345678", "1.2345678901234568e+17"},
        {"1.5", "1.5"},
        {"1e3", "1000"},
        {"1E3", "1000"},
        {"-2.5e-1", "-0.25"},
        {"0.1", "0.10000000000000001"},
    };
    for (const auto& [text, value] : all) EXPECT_EQ(eval(chunk, {text}), value) << text;
    for (const char* const text : {"-", "--1", "1-", "1 2", "1a", "e5"})
        EXPECT_TRUE(eval(chunk, {text}).starts_with("error: ")) << text;
}

}  // namespace
}  // namespace eddy::lua
