// reply_writer: each reply's bytes in both protocols.
#include <eddy/wire/resp/reply_writer.hpp>

#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/random.hpp>

#include "base/test_seed.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace eddy::resp {
namespace {

constexpr std::int64_t smallest = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

template <class Write>
std::string written(Write write, int protocol = 2) {
    byte_buffer out;
    reply_writer writer(out, protocol);
    write(writer);
    return std::string(out.text());
}

// The expected bytes of both protocols.
template <class Write>
void expect(const std::string& resp2, const std::string& resp3, Write write) {
    EXPECT_EQ(written(write, 2), resp2);
    EXPECT_EQ(written(write, 3), resp3);
}

TEST(resp_reply_writer, status_lines) {
    expect("+OK\r\n", "+OK\r\n", [](reply_writer& w) { w.ok(); });
    expect("+OK\r\n", "+OK\r\n", [](reply_writer& w) { w.simple("OK"); });
    expect("+\r\n", "+\r\n", [](reply_writer& w) { w.simple(""); });
    const std::string text = "a longer status of more than thirty-two bytes";
    expect("+" + text + "\r\n", "+" + text + "\r\n", [&](reply_writer& w) { w.simple(text); });
}

TEST(resp_reply_writer, lines_cannot_be_broken_by_their_text) {
    const std::string text = "a\r\n+b";
    expect("+a  +b\r\n", "+a  +b\r\n", [&](reply_writer& w) { w.simple(text); });
    expect("-ERR a  b\r\n", "-ERR a  b\r\n", [](reply_writer& w) { w.error("\nERR a\r\nb\r\n"); });
    expect("-\r\n", "-\r\n", [](reply_writer& w) { w.error("\r\n\r\n"); });
    expect("-\r\n", "-\r\n", [](reply_writer& w) { w.error(""); });
    EXPECT_EQ(written([](reply_writer& w) { w.big_number("1\r\n2"); }, 3), "(1  2\r\n");
}

TEST(resp_reply_writer, errors) {
    expect("-WRONGTYPE Operation\r\n", "-WRONGTYPE Operation\r\n",
           [](reply_writer& w) { w.error("WRONGTYPE Operation"); });
}

TEST(resp_reply_writer, integers) {
    for (const std::int64_t edge : {0L, 9L, 10L, 99L, 100L, 999L, 1000L, 65535L, 1234567890123L}) {
        for (const std::int64_t value : {edge, -edge, edge + 1}) {
            const std::string digits = std::to_string(value);
            EXPECT_EQ(written([&](reply_writer& w) { w.integer(value); }), ":" + digits + "\r\n");
            EXPECT_EQ(written([&](reply_writer& w) { w.bulk_integer(value); }),
                      "$" + std::to_string(digits.size()) + "\r\n" + digits + "\r\n");
        }
    }
    expect(":-9223372036854775808\r\n", ":-9223372036854775808\r\n",
           [](reply_writer& w) { w.integer(smallest); });
    expect(":9223372036854775807\r\n", ":9223372036854775807\r\n",
           [](reply_writer& w) { w.integer(largest); });
    expect("$20\r\n-9223372036854775808\r\n", "$20\r\n-9223372036854775808\r\n",
           [](reply_writer& w) { w.bulk_integer(smallest); });
}

TEST(resp_reply_writer, random_integers) {
    random_generator random(7);
    for (int i = 0; i < 10'000; ++i) {
        const auto value = static_cast<std::int64_t>(random() >> random.below(64));
        const std::int64_t either = random.chance(0.5) ? value : ~value;
        ASSERT_EQ(written([&](reply_writer& w) { w.integer(either); }),
                  ":" + std::to_string(either) + "\r\n");
    }
}

TEST(resp_reply_writer, strings_of_any_size_and_bytes) {
    for (std::size_t size = 0; size < 1100; size += size < 130 ? 1 : 97) {
        std::string value;
        for (std::size_t i = 0; i < size; ++i) value += static_cast<char>(i * 7);
        const std::string expected = "$" + std::to_string(size) + "\r\n" + value + "\r\n";
        expect(expected, expected, [&](reply_writer& w) { w.bulk(value); });
        ASSERT_EQ(written([&](reply_writer& w) { w.raw(value); }), value);
    }
}

TEST(resp_reply_writer, nulls) {
    expect("$-1\r\n", "_\r\n", [](reply_writer& w) { w.null(); });
    expect("*-1\r\n", "_\r\n", [](reply_writer& w) { w.null_array(); });
}

TEST(resp_reply_writer, aggregates) {
    expect("*0\r\n", "*0\r\n", [](reply_writer& w) { w.array(0); });
    expect("*1234\r\n", "*1234\r\n", [](reply_writer& w) { w.array(1234); });
    expect("*6\r\n", "%3\r\n", [](reply_writer& w) { w.map(3); });
    expect("*3\r\n", "~3\r\n", [](reply_writer& w) { w.set(3); });
    expect("*3\r\n", ">3\r\n", [](reply_writer& w) { w.push(3); });
}

TEST(resp_reply_writer, booleans) {
    expect(":1\r\n", "#t\r\n", [](reply_writer& w) { w.boolean(true); });
    expect(":0\r\n", "#f\r\n", [](reply_writer& w) { w.boolean(false); });
}

TEST(resp_reply_writer, numbers) {
    expect("$1\r\n3\r\n", ",3\r\n", [](reply_writer& w) { w.number(3); });
    expect("$4\r\n-1.5\r\n", ",-1.5\r\n", [](reply_writer& w) { w.number(-1.5); });
    expect("$3\r\n3.1\r\n", ",3.1\r\n", [](reply_writer& w) { w.number(3.1); });
    expect("$24\r\n-2.2250738585072014e-308\r\n", ",-2.2250738585072014e-308\r\n",
           [](reply_writer& w) { w.number(-std::numeric_limits<double>::min()); });
    constexpr double infinity = std::numeric_limits<double>::infinity();
    expect("$3\r\ninf\r\n", ",inf\r\n", [](reply_writer& w) { w.number(infinity); });
    expect("$4\r\n-inf\r\n", ",-inf\r\n", [](reply_writer& w) { w.number(-infinity); });
    expect("$3\r\nnan\r\n", ",nan\r\n",
           [](reply_writer& w) { w.number(-std::numeric_limits<double>::quiet_NaN()); });
    expect("$20\r\n12345678901234567890\r\n", "(12345678901234567890\r\n",
           [](reply_writer& w) { w.big_number("12345678901234567890"); });
}

// Answers of redis-server 8.0 to ZSCORE.
TEST(resp_reply_writer, a_number_has_the_fewest_digits) {
    const auto text = [](double value) {
        char room[max_number_text];
        return std::string(room, write_number(room, value));
    };
    EXPECT_EQ(text(0.0), "0");
    EXPECT_EQ(text(-0.0), "-0");
    EXPECT_EQ(text(0.1), "0.1");
    EXPECT_EQ(text(0.1 + 0.2), "0.30000000000000004");
    EXPECT_EQ(text(10.0 / 3), "3.3333333333333335");
    EXPECT_EQ(text(-12345678.5), "-12345678.5");
    EXPECT_EQ(text(1234.5678901234567), "1234.5678901234567");
    EXPECT_EQ(text(12345.678901234567), "1.2345678901234567e+4");
    EXPECT_EQ(text(0.00001), "0.00001");
    EXPECT_EQ(text(0.000001), "0.000001");
    EXPECT_EQ(text(0.0000001), "1e-7");
    EXPECT_EQ(text(2.5e-7), "2.5e-7");
    EXPECT_EQ(text(0.00012345678), "1.2345678e-4");
    EXPECT_EQ(text(5e-324), "5e-324");
    EXPECT_EQ(text(1e18), "1000000000000000000");
    EXPECT_EQ(text(4611686018427387904.0), "4611686018427387904");
    EXPECT_EQ(text(-4611686018427387904.0), "-4611686018427387904");
    EXPECT_EQ(text(1e19), "1e+19");
    EXPECT_EQ(text(12345678901234567890.0), "12345678901234567000");
    EXPECT_EQ(text(1e20), "1e+20");
    EXPECT_EQ(text(1e300), "1e+300");
    EXPECT_EQ(text(2.2250738585072014e-308), "2.2250738585072014e-308");
    // 1e23 is half way between two numbers, and Redis takes neither bound for the number itself.
    EXPECT_EQ(text(1e23), "99999999999999990000000");
    EXPECT_EQ(text(9e22), "9e+22");
    EXPECT_EQ(text(-1.7976931348623157e308), "-1.7976931348623157e+308");
}

TEST(resp_reply_writer, a_number_reads_back_as_itself) {
    random_generator random(eddy::testing::seed_of_this_run());
    std::size_t longer = 0;
    for (int i = 0; i < 200'000; ++i) {
        const double value = std::bit_cast<double>(random());
        if (!std::isfinite(value)) continue;
        char room[max_number_text];
        const std::string_view text(room,
                                    static_cast<std::size_t>(write_number(room, value) - room));
        double read = 0;
        std::from_chars(text.data(), text.data() + text.size(), read);
        ASSERT_EQ(read, value) << text;
        char fewest[max_number_text];
        const char* const end =
            std::to_chars(fewest, fewest + sizeof fewest, value, std::chars_format::scientific).ptr;
        const auto digits = [](std::string_view of) {
            of = of.substr(0, of.find('e'));
            return std::ranges::count_if(of, [](char c) { return c >= '0' && c <= '9'; });
        };
        const auto least = digits({fewest, static_cast<std::size_t>(end - fewest)});
        if (text.contains('e') && digits(text) > least) ++longer;
    }
    // One of a thousand has a digit more than it needs.
    EXPECT_LT(longer, 1'000U);
}

TEST(resp_reply_writer, verbatim_text) {
    expect("$5\r\nhello\r\n", "=9\r\ntxt:hello\r\n",
           [](reply_writer& w) { w.verbatim("txt", "hello"); });
}

TEST(resp_reply_writer, the_protocol_can_change_between_replies) {
    byte_buffer out;
    reply_writer writer(out);
    EXPECT_EQ(writer.protocol(), 2);
    writer.null();
    writer.set_protocol(3);
    writer.null();
    EXPECT_EQ(out.text(), "$-1\r\n_\r\n");
}

TEST(resp_reply_writer, replies_follow_each_other_through_growth) {
    byte_buffer out;
    reply_writer writer(out);
    std::string expected;
    for (int i = 0; i < 5000; ++i) {
        writer.bulk(std::to_string(i));
        writer.ok();
        expected += "$" + std::to_string(std::to_string(i).size()) + "\r\n" + std::to_string(i) +
                    "\r\n+OK\r\n";
    }
    EXPECT_EQ(out.text(), expected);
}

TEST(resp_reply_writer, commands_of_a_client) {
    byte_buffer out;
    const std::string_view args[] = {"GET", "key"};
    write_command(out, args);
    EXPECT_EQ(out.text(), "*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n");
}

}  // namespace
}  // namespace eddy::resp
