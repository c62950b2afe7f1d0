// reply_parser: types, nesting, limits, faults, independence of splits.
#include <eddy/wire/resp/reply_parser.hpp>

#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/random.hpp>
#include <eddy/wire/resp/reply_writer.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace eddy::resp {
namespace {

// An event with the bytes that its views point to.
struct event {
    reply_type type;
    bool ends_reply;
    std::uint32_t depth;
    std::int64_t integer;
    std::uint64_t count;
    double number;
    std::string text;
    std::string format;

    friend bool operator==(const event& a, const event& b) {
        return a.type == b.type && a.ends_reply == b.ends_reply && a.depth == b.depth &&
               a.integer == b.integer && a.count == b.count && a.text == b.text &&
               a.format == b.format && (a.number == b.number || a.number != a.number);
    }
};

struct parsed {
    std::vector<event> events;
    std::string error;
    bool at_boundary = false;

    friend bool operator==(const parsed&, const parsed&) = default;
};

class reader {
public:
    explicit reader(const reply_limits& limits = {}) : parser_(limits) {}

    void feed(std::string_view piece) {
        pending_ += piece;
        while (result_.error.empty() && step()) {
        }
        result_.at_boundary = parser_.at_boundary();
    }
    const parsed& result() const { return result_; }

private:
    // Each call sees its bytes at a new address and not one more.
    bool step() {
        const auto copy = std::make_unique<char[]>(pending_.size());
        std::memcpy(copy.get(), pending_.data(), pending_.size());
        const reply_outcome outcome = parser_.next({copy.get(), pending_.size()});
        result_.error = outcome.error;
        if (outcome.status != parse_status::complete) {
            EXPECT_EQ(outcome.consumed, 0U);
            EXPECT_TRUE(outcome.status == parse_status::error || outcome.wanted > 0);
            return false;
        }
        const reply_event& e = outcome.event;
        result_.events.push_back({e.type, e.ends_reply, e.depth, e.integer, e.count, e.number,
                                  std::string(e.text), std::string(e.format)});
        EXPECT_GT(outcome.consumed, 0U);
        pending_.erase(0, outcome.consumed);
        return true;
    }

    reply_parser parser_;
    std::string pending_;
    parsed result_;
};

parsed parse(std::string_view input, const reply_limits& limits = {}) {
    reader reader(limits);
    reader.feed(input);
    return reader.result();
}

std::string error_of(std::string_view input, const reply_limits& limits = {}) {
    return parse(input, limits).error;
}

// The one event of a reply that is one value.
event only(std::string_view input) {
    const parsed result = parse(input);
    EXPECT_EQ(result.error, "") << input;
    EXPECT_EQ(result.events.size(), 1U) << input;
    EXPECT_TRUE(result.at_boundary);
    if (result.events.size() != 1) return {};
    EXPECT_TRUE(result.events[0].ends_reply);
    EXPECT_EQ(result.events[0].depth, 0U);
    return result.events[0];
}

TEST(resp_reply_parser, texts) {
    EXPECT_EQ(only("+OK\r\n").type, reply_type::simple);
    EXPECT_EQ(only("+OK\r\n").text, "OK");
    EXPECT_EQ(only("+\r\n").text, "");
    EXPECT_EQ(only("-ERR no\r\n").type, reply_type::error);
    EXPECT_EQ(only("-ERR no\r\n").text, "ERR no");
    EXPECT_EQ(only("!7\r\nERR\r\nno\r\n").type, reply_type::error);
    EXPECT_EQ(only("!7\r\nERR\r\nno\r\n").text, "ERR\r\nno");
    EXPECT_EQ(only("$4\r\n\r\n\r\n\r\n").type, reply_type::bulk);
    EXPECT_EQ(only("$4\r\n\r\n\r\n\r\n").text, "\r\n\r\n");
    EXPECT_EQ(only("$0\r\n\r\n").text, "");
    EXPECT_EQ(only("=8\r\ntxt:some\r\n").type, reply_type::verbatim);
    EXPECT_EQ(only("=8\r\ntxt:some\r\n").text, "some");
    EXPECT_EQ(only("=8\r\ntxt:some\r\n").format, "txt");
}

TEST(resp_reply_parser, numbers) {
    EXPECT_EQ(only(":1234\r\n").type, reply_type::integer);
    EXPECT_EQ(only(":1234\r\n").integer, 1234);
    EXPECT_EQ(only(":+7\r\n").integer, 7);
    EXPECT_EQ(only(":-9223372036854775808\r\n").integer, INT64_MIN);
    EXPECT_EQ(only("#t\r\n").type, reply_type::boolean);
    EXPECT_EQ(only("#t\r\n").integer, 1);
    EXPECT_EQ(only("#f\r\n").integer, 0);
    EXPECT_EQ(only(",1.5e3\r\n").type, reply_type::number);
    EXPECT_EQ(only(",1.5e3\r\n").number, 1500);
    EXPECT_EQ(only(",-inf\r\n").number, -std::numeric_limits<double>::infinity());
    EXPECT_TRUE(std::isnan(only(",nan\r\n").number));
    EXPECT_EQ(only("(-123456789012345678901\r\n").type, reply_type::big_number);
    EXPECT_EQ(only("(-123456789012345678901\r\n").text, "-123456789012345678901");
}

TEST(resp_reply_parser, nulls) {
    for (const std::string_view null : {"$-1\r\n", "*-1\r\n", "_\r\n"}) {
        EXPECT_EQ(only(null).type, reply_type::null) << null;
    }
}

TEST(resp_reply_parser, empty_aggregates_are_complete) {
    EXPECT_EQ(only("*0\r\n").type, reply_type::array);
    EXPECT_EQ(only("%0\r\n").type, reply_type::map);
    EXPECT_EQ(only("~0\r\n").type, reply_type::set);
    EXPECT_EQ(only(">0\r\n").type, reply_type::push);
}

TEST(resp_reply_parser, nested_aggregates) {
    const parsed result = parse("*3\r\n:1\r\n%1\r\n+k\r\n*0\r\n~1\r\n$1\r\nx\r\n+next\r\n");
    ASSERT_EQ(result.error, "");
    ASSERT_EQ(result.events.size(), 8U);
    const std::uint32_t depths[] = {0, 1, 1, 2, 2, 1, 2, 0};
    for (std::size_t i = 0; i < 8; ++i) {
        EXPECT_EQ(result.events[i].depth, depths[i]) << i;
        EXPECT_EQ(result.events[i].ends_reply, i >= 6) << i;
    }
    EXPECT_EQ(result.events[0].count, 3U);
    EXPECT_EQ(result.events[2].count, 2U) << "a map of one pair";
}

TEST(resp_reply_parser, attributes_stand_before_their_value) {
    const parsed result = parse("|1\r\n+ttl\r\n:3600\r\n$1\r\nv\r\n");
    ASSERT_EQ(result.events.size(), 4U);
    EXPECT_EQ(result.events[0].type, reply_type::attribute);
    EXPECT_EQ(result.events[0].count, 2U);
    EXPECT_FALSE(result.events[2].ends_reply);
    EXPECT_EQ(result.events[3].depth, 0U);
    EXPECT_TRUE(result.events[3].ends_reply);

    const parsed inner = parse("*1\r\n|0\r\n|1\r\n*0\r\n_\r\n:5\r\n");
    ASSERT_EQ(inner.events.size(), 6U);
    EXPECT_EQ(inner.events[5].depth, 1U);
    EXPECT_TRUE(inner.events[5].ends_reply);

    EXPECT_FALSE(parse("|1\r\n+a\r\n+b\r\n").at_boundary);
    EXPECT_FALSE(parse("|0\r\n").at_boundary);
}

TEST(resp_reply_parser, values_that_do_not_fit_their_type_are_refused) {
    for (const std::string_view input :
         {":\r\n", ":x\r\n", ":1 \r\n", ":+-1\r\n", ":9223372036854775808\r\n", "_x\r\n", "#\r\n",
          "#x\r\n", ",\r\n", ",1x\r\n", "(\r\n", "(-\r\n", "(1a\r\n"}) {
        EXPECT_EQ(error_of(input), "a value does not fit its type") << input;
    }
    for (const std::string_view input :
         {"$x\r\n", "$\r\n", "$-2\r\n", "$+2\r\n", "=-1\r\n", "!-1\r\n", "$?\r\n"}) {
        EXPECT_EQ(error_of(input), "a string's length is no number") << input;
    }
    for (const std::string_view input : {"*x\r\n", "*\r\n", "*-2\r\n", "%-1\r\n", "*?\r\n"}) {
        EXPECT_EQ(error_of(input), "an aggregate's length is no number") << input;
    }
    for (const std::string_view input : {"x\r\n", "hello\r\n", "HTTP/1.1 400 Bad Request\r\n"}) {
        EXPECT_EQ(error_of(input), "a value has an unknown type") << input;
    }
    for (const std::string_view input : {"\r\n", "+OK\n", "\n", "+\n"}) {
        EXPECT_EQ(error_of(input), "a line does not end with CR LF") << input;
    }
    EXPECT_EQ(error_of("$2\r\nabcd"), "a string does not end with CR LF");
    EXPECT_EQ(error_of("=3\r\ntxt\r\n"), "a verbatim string has no format");
    EXPECT_EQ(error_of("=5\r\ntextx\r\n"), "a verbatim string has no format");
}

TEST(resp_reply_parser, an_error_is_final) {
    reply_parser parser;
    EXPECT_EQ(parser.next("?\r\n").status, parse_status::error);
    const reply_outcome again = parser.next("+OK\r\n");
    EXPECT_EQ(again.status, parse_status::error);
    EXPECT_EQ(again.error, "a value has an unknown type");
    EXPECT_FALSE(parser.at_boundary());
}

TEST(resp_reply_parser_limits, line) {
    reply_limits limits;
    limits.max_line = 10;
    EXPECT_EQ(error_of("+" + std::string(10, 'a') + "\r\n", limits), "");
    EXPECT_EQ(error_of("+" + std::string(11, 'a') + "\r\n", limits), "a line is too long");
    EXPECT_EQ(error_of("+" + std::string(11, 'a'), limits), "");
    EXPECT_EQ(error_of("+" + std::string(12, 'a'), limits), "a line is too long");
}

TEST(resp_reply_parser_limits, bulk) {
    reply_limits limits;
    limits.max_bulk = 10;
    EXPECT_EQ(error_of("$10\r\n0123456789\r\n", limits), "");
    EXPECT_EQ(error_of("$11\r\n", limits), "a string is too long");
    EXPECT_EQ(error_of("$18446744073709551615\r\n"), "a string is too long");
}

TEST(resp_reply_parser_limits, elements) {
    reply_limits limits;
    limits.max_elements = 10;
    for (const std::string_view fits : {"*10\r\n", "%5\r\n", "|5\r\n"}) {
        EXPECT_EQ(error_of(fits, limits), "") << fits;
    }
    for (const std::string_view over :
         {"*11\r\n", "%6\r\n", "|6\r\n", "%9223372036854775808\r\n"}) {
        EXPECT_EQ(error_of(over, limits), "an aggregate has too many elements") << over;
    }
}

TEST(resp_reply_parser_limits, depth) {
    std::string nested;
    for (std::size_t i = 0; i < reply_parser::max_depth; ++i) nested += "*1\r\n";
    const parsed deepest = parse(nested + ":1\r\n");
    EXPECT_EQ(deepest.error, "");
    EXPECT_TRUE(deepest.events.back().ends_reply);
    EXPECT_EQ(deepest.events.back().depth, reply_parser::max_depth);
    EXPECT_EQ(error_of(nested + "*1\r\n"), "aggregates are nested too deeply");
}

TEST(resp_reply_parser, wanted_is_the_missing_part_of_a_string) {
    reply_parser parser;
    EXPECT_EQ(parser.next("").wanted, 1U);
    EXPECT_EQ(parser.next("$1000\r\n").wanted, 1002U);
    EXPECT_EQ(parser.next("$1000\r\nabc").wanted, 999U);
}

// Possible output of a server, from the server's writer.
std::string random_replies(random_generator& random) {
    byte_buffer out;
    reply_writer writer(out, random.chance(0.5) ? 3 : 2);
    const std::uint64_t values = 1 + random.below(40);
    for (std::uint64_t i = 0; i < values; ++i) {
        const std::string text(random.below(random.chance(0.1) ? 500 : 40), 'x');
        switch (random.below(13)) {
            case 0: writer.ok(); break;
            case 1: writer.error("ERR " + text); break;
            case 2: writer.integer(static_cast<std::int64_t>(random())); break;
            case 3: writer.bulk(text); break;
            case 4: writer.null(); break;
            case 5: writer.null_array(); break;
            case 6: writer.array(random.below(4)); break;
            case 7: writer.map(random.below(3)); break;
            case 8: writer.set(random.below(3)); break;
            case 9: writer.push(random.below(3)); break;
            case 10: writer.boolean(random.chance(0.5)); break;
            case 11: writer.number(random.unit()); break;
            default: writer.verbatim("txt", text); break;
        }
    }
    return std::string(out.text());
}

TEST(resp_reply_parser_splits, random_splits_give_the_same) {
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        random_generator random(seed);
        const std::string input = random_replies(random);
        const parsed expected = parse(input);
        EXPECT_EQ(expected.error, "");
        reader reader;
        const std::uint64_t longest = 1 + random.below(100);
        for (std::string_view rest = input; !rest.empty();) {
            const std::size_t size = std::min<std::size_t>(1 + random.below(longest), rest.size());
            reader.feed(rest.substr(0, size));
            rest.remove_prefix(size);
        }
        ASSERT_EQ(reader.result(), expected);
    }
}

TEST(resp_reply_parser_splits, every_split_in_two_gives_the_same) {
    const std::string input =
        "*2\r\n$3\r\nfoo\r\n|1\r\n+a\r\n:1\r\n%1\r\n+k\r\n=5\r\ntxt:v\r\n-ERR x\r\n,1.5\r\n$-1\r\n";
    const parsed expected = parse(input);
    for (std::size_t split = 0; split <= input.size(); ++split) {
        reader reader;
        reader.feed(input.substr(0, split));
        reader.feed(input.substr(split));
        EXPECT_EQ(reader.result(), expected) << "split at " << split;
    }
}

}  // namespace
}  // namespace eddy::resp
