// request_parser and request_batch: accepted input, every limit, independence of splits.
#include <eddy/wire/resp/request.hpp>

#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/random.hpp>
#include <eddy/wire/resp/reply_writer.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

namespace eddy::resp {
namespace {

using testing::ElementsAre;

using words = std::vector<std::string>;

struct parsed {
    std::vector<words> commands;
    std::string error;
    std::size_t unread = 0;  // bytes that belong to no complete command

    friend bool operator==(const parsed&, const parsed&) = default;
};

void PrintTo(const parsed& value, std::ostream* out) {
    *out << value.commands.size() << " commands, error '" << value.error << "', " << value.unread
         << " bytes unread";
}

words words_of(const command& command) {
    words copy;
    for (const std::string_view arg : command.args()) copy.emplace_back(arg);
    return copy;
}

// The input as a connection holds it: each call sees exactly the bytes there are, at a new address,
// so that a sanitizer notices a view that is kept or a byte read too far.
class fresh_copy {
public:
    explicit fresh_copy(std::string_view text)
        : bytes_(std::make_unique<char[]>(text.size())), size_(text.size()) {
        if (size_ > 0) std::memcpy(bytes_.get(), text.data(), size_);
    }
    std::string_view text() const { return {bytes_.get(), size_}; }

private:
    std::unique_ptr<char[]> bytes_;
    std::size_t size_;
};

enum class method { next, batch };

class reader {
public:
    explicit reader(method method, const request_limits& limits = {}, bool unauthenticated = false)
        : method_(method), unauthenticated_(unauthenticated), parser_(limits) {}

    /// Keeps arguments of so many bytes that are not yet whole in places of their own.
    void place_from(std::size_t size) { placed_from_ = size; }

    void feed(std::string_view piece) {
        const std::size_t taken = std::min(missing(), piece.size());
        if (taken > 0) {
            placed_.back() += piece.substr(0, taken);
            if (missing() > 0) return count_unread();
            is_open_ = false;
            parser_.place_argument(placed_.back().data());
            parse_on();
            piece.remove_prefix(taken);
            // The rest came with it, or there was none.
            if (piece.empty()) return count_unread();
            return feed(piece);
        }
        pending_ += piece;
        parse_on();
        count_unread();
    }

    const parsed& result() const { return result_; }
    std::size_t wanted() const { return wanted_; }
    request_parser& parser() { return parser_; }

private:
    void parse_on() {
        while (result_.error.empty() && (method_ == method::next ? step() : step_batch())) {
        }
        if (!result_.error.empty() || parser_.open_argument() < placed_from_) return;
        is_open_ = true;
        open_size_ = parser_.open_argument() + 2;
        const std::size_t begin = parser_.open_argument_offset();
        placed_.emplace_back();
        placed_.back().reserve(open_size_);  // it stays where it is
        placed_.back() = pending_.substr(begin);
        pending_.erase(begin);
    }
    std::size_t missing() const { return is_open_ ? open_size_ - placed_.back().size() : 0; }
    void count_unread() {
        result_.unread = pending_.size();
        for (const std::string& each : placed_) result_.unread += each.size();
    }

    bool step() {
        const fresh_copy input(pending_);
        const request_outcome outcome = parser_.next(input.text(), unauthenticated_);
        if (outcome.status == parse_status::complete) {
            EXPECT_GT(outcome.request.size(), 0U);
            result_.commands.push_back(words_of(outcome.request));
        }
        return finish(outcome.status, outcome.consumed, outcome.wanted, outcome.error);
    }

    bool step_batch() {
        const fresh_copy input(pending_);
        const batch_outcome outcome = batch_.parse(parser_, input.text(), unauthenticated_);
        EXPECT_LE(outcome.commands.size(), request_batch::max_commands);
        for (const command& command : outcome.commands) {
            EXPECT_GT(command.size(), 0U);
            result_.commands.push_back(words_of(command));
        }
        return finish(outcome.status, outcome.consumed, outcome.wanted, outcome.error);
    }

    bool finish(parse_status status, std::size_t consumed, std::size_t wanted,
                std::string_view error) {
        EXPECT_LE(consumed, pending_.size());
        pending_.erase(0, consumed);
        if (consumed > 0) placed_.clear();
        EXPECT_EQ(status == parse_status::error, !error.empty());
        result_.error = error;
        wanted_ = wanted;
        EXPECT_TRUE(status != parse_status::need_more || wanted > 0);
        return status == parse_status::complete;
    }

    method method_;
    bool unauthenticated_;
    request_parser parser_;
    request_batch batch_;
    std::string pending_;
    std::size_t placed_from_ = SIZE_MAX;
    std::deque<std::string> placed_;
    bool is_open_ = false;
    std::size_t open_size_ = 0;
    parsed result_;
    std::size_t wanted_ = 0;
};

parsed parse(std::string_view input, const request_limits& limits = {},
             bool unauthenticated = false) {
    reader one(method::next, limits, unauthenticated);
    reader many(method::batch, limits, unauthenticated);
    one.feed(input);
    many.feed(input);
    EXPECT_EQ(one.result(), many.result()) << "of next() and a batch";
    return one.result();
}

std::string encode(const words& args) {
    byte_buffer out;
    const std::vector<std::string_view> views(args.begin(), args.end());
    write_command(out, views);
    return std::string(out.text());
}

std::string error_of(std::string_view input, const request_limits& limits = {},
                     bool unauthenticated = false) {
    return parse(input, limits, unauthenticated).error;
}

TEST(resp_request, an_array_of_strings_is_a_command) {
    const parsed result = parse("*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$12\r\nhello, world\r\n");
    ASSERT_EQ(result.commands.size(), 1U);
    EXPECT_THAT(result.commands[0], ElementsAre("SET", "key", "hello, world"));
    EXPECT_EQ(result.unread, 0U);
    EXPECT_EQ(result.error, "");
}

TEST(resp_request, arguments_hold_any_bytes) {
    std::string every_byte;
    for (int i = 0; i < 256; ++i) every_byte += static_cast<char>(i);
    const words args = {"SET", every_byte, "", "\r\n$3\r\n", std::string(1, '\0'), "*1\r\n"};
    const parsed result = parse(encode(args));
    ASSERT_EQ(result.commands.size(), 1U);
    EXPECT_EQ(result.commands[0], args);
}

TEST(resp_request, lengths_of_any_number_of_digits) {
    for (const std::size_t size : {0U, 1U, 9U, 10U, 99U, 100U, 999U, 1000U, 65536U, 1234567U}) {
        const words args = {"SET", "k", std::string(size, 'v')};
        EXPECT_EQ(parse(encode(args)).commands, std::vector<words>{args}) << size;
    }
}

TEST(resp_request, counts_of_any_number_of_digits) {
    for (const std::size_t count : {1U, 8U, 9U, 10U, 99U, 100U, 1023U, 1024U, 1025U, 70000U}) {
        words args;
        for (std::size_t i = 0; i < count; ++i) args.push_back("arg" + std::to_string(i));
        const std::string two = encode({"PING"}) + encode(args) + encode({"PING"});
        EXPECT_EQ(parse(two).commands, (std::vector<words>{{"PING"}, args, {"PING"}})) << count;
    }
}

TEST(resp_request, empty_requests_are_skipped) {
    const parsed result = parse("\r\n\n  \t\r\n*0\r\n*-1\r\n*-77\r\n\r\n*1\r\n$4\r\nPING\r\n\r\n");
    EXPECT_EQ(result.commands, (std::vector<words>{{"PING"}}));
    EXPECT_EQ(result.unread, 0U);
}

TEST(resp_request, skipped_requests_leave_the_buffer_at_once) {
    request_parser parser;
    const request_outcome outcome = parser.next("\r\n\r\n*0\r\n*2\r\n");
    EXPECT_EQ(outcome.status, parse_status::need_more);
    EXPECT_EQ(outcome.consumed, 8U);
}

TEST(resp_request, the_bytes_behind_a_string_are_not_checked) {
    EXPECT_EQ(parse("*2\r\n$1\r\naXX$1\rYbZZ").commands, (std::vector<words>{{"a", "b"}}));
}

TEST(resp_request, a_nul_byte_in_a_line_is_a_byte_like_others) {
    EXPECT_EQ(parse(std::string_view("PI\0NG\r\n", 7)).commands,
              (std::vector<words>{{std::string("PI\0NG", 5)}}));
}

struct inline_case {
    std::string line;
    words expected;
};

TEST(resp_request, inline_commands_are_split_and_unquoted) {
    const inline_case cases[] = {
        {"PING", {"PING"}},
        {"  SET\tkey   value ", {"SET", "key", "value"}},
        {R"(SET k "a b")", {"SET", "k", "a b"}},
        {R"(SET k 'a b')", {"SET", "k", "a b"}},
        {R"(SET "" '')", {"SET", "", ""}},
        {R"(ECHO "\x41\xzz\x4\n\r\t\b\a\q\"\\'")", {"ECHO", "Axzzx4\n\r\t\b\aq\"\\'"}},
        {R"(ECHO "\x00\xfF\xAb")", {"ECHO", std::string("\0\xff\xab", 3)}},
        {R"(ECHO 'a\'b\n\x41"\\.')", {"ECHO", "a'b\\n\\x41\"\\\\."}},
        {R"(ECHO pre"quoted part")", {"ECHO", "prequoted part"}},
        {R"(ECHO back\slash)", {"ECHO", "back\\slash"}},
        {"PING\rPONG", {"PING", "PONG"}},
        {"\v\fPING\v\f", {"PING\v\f"}},
        {"ECHO \"a\"\v", {"ECHO", "a"}},
        {"a b c d e f g h", {"a", "b", "c", "d", "e", "f", "g", "h"}},
        {"a b c d e f g h i 'j k'", {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j k"}},
        {"\"*1\"", {"*1"}},
    };
    for (const inline_case& one : cases) {
        EXPECT_EQ(parse(one.line + "\r\n").commands, std::vector<words>{one.expected}) << one.line;
        EXPECT_EQ(parse(one.line + "\n").commands, std::vector<words>{one.expected}) << one.line;
    }
}

TEST(resp_request, open_quotes_are_refused) {
    const std::string text = "ERR Protocol error: unbalanced quotes in request";
    for (const std::string line : {R"(ECHO "a)", R"(ECHO 'a)", R"(ECHO "a"b)", R"(ECHO 'a'b)",
                                   R"(ECHO "a\")", R"(ECHO 'a\')", R"(ECHO "\)", R"(")", "a'"}) {
        EXPECT_EQ(error_of(line + "\r\n"), text) << line;
    }
}

TEST(resp_request, inline_and_array_commands_mix_in_a_pipeline) {
    std::string input;
    std::vector<words> expected;
    for (int i = 0; i < 300; ++i) {
        const std::string number = std::to_string(i);
        input += encode({"SET", "key" + number, "v"}) + "GET key" + number + "\r\n";
        input += "ECHO \"quoted " + number + "\"\n";
        expected.insert(
            expected.end(),
            {{"SET", "key" + number, "v"}, {"GET", "key" + number}, {"ECHO", "quoted " + number}});
    }
    EXPECT_EQ(parse(input).commands, expected);
}

TEST(resp_request, bad_numbers_are_refused) {
    for (const std::string number :
         {"", "x", "1x", "+1", "01", "00", "-0", "- 1", " 1", "1 ", "--1", "99999999999999999999",
          "9223372036854775808", "-9223372036854775809", "1048577"}) {
        EXPECT_EQ(error_of("*" + number + "\r\n"), "ERR Protocol error: invalid multibulk length")
            << number;
        if (number == "1048577") continue;
        EXPECT_EQ(error_of("*1\r\n$" + number + "\r\n"), "ERR Protocol error: invalid bulk length")
            << number;
    }
    EXPECT_EQ(error_of("*1\r\n$-1\r\n"), "ERR Protocol error: invalid bulk length");
    EXPECT_EQ(error_of("*-9223372036854775808\r\n"), "");
}

TEST(resp_request, anything_but_a_string_in_an_array_is_refused) {
    EXPECT_EQ(error_of("*1\r\n:1\r\n"), "ERR Protocol error: expected '$', got ':'");
    EXPECT_EQ(error_of("*2\r\n$1\r\na\r\nfoo\r\n"), "ERR Protocol error: expected '$', got 'f'");
    EXPECT_EQ(error_of("*1\r\n\r\n"), "ERR Protocol error: expected '$', got '\r'");
}

TEST(resp_request, commands_before_an_error_are_still_given) {
    const parsed result =
        parse(encode({"PING"}) + encode({"GET", "k"}) + "*1\r\nbad\r\n" + encode({"PING"}));
    EXPECT_EQ(result.commands, (std::vector<words>{{"PING"}, {"GET", "k"}}));
    EXPECT_EQ(result.error, "ERR Protocol error: expected '$', got 'b'");
}

TEST(resp_request, an_error_is_final) {
    request_parser parser;
    EXPECT_EQ(parser.next("*x\r\n").status, parse_status::error);
    const request_outcome again = parser.next("*1\r\n$4\r\nPING\r\n");
    EXPECT_EQ(again.status, parse_status::error);
    EXPECT_EQ(again.error, "ERR Protocol error: invalid multibulk length");
    EXPECT_EQ(again.consumed, 0U);
    request_batch batch;
    EXPECT_EQ(batch.parse(parser, "PING\r\n").error, again.error);
}

// Each limit at its edge, in one piece and byte by byte.

void expect_at_edge(const std::string& allowed, const std::string& refused,
                    const std::string& error, const request_limits& limits,
                    bool unauthenticated = false) {
    for (const method method : {method::next, method::batch}) {
        reader whole(method, limits, unauthenticated);
        whole.feed(allowed);
        EXPECT_EQ(whole.result().error, "");
        reader bytes(method, limits, unauthenticated);
        for (const char c : allowed) bytes.feed({&c, 1});
        EXPECT_EQ(bytes.result(), whole.result());

        reader whole_over(method, limits, unauthenticated);
        whole_over.feed(refused);
        EXPECT_EQ(whole_over.result().error, error);
        reader bytes_over(method, limits, unauthenticated);
        for (const char c : refused) bytes_over.feed({&c, 1});
        EXPECT_EQ(bytes_over.result().error, error);
        EXPECT_EQ(bytes_over.result().commands, whole_over.result().commands);
    }
}

TEST(resp_request_limits, defaults_are_those_of_redis) {
    const request_limits limits;
    EXPECT_EQ(limits.max_inline, 65536U);
    EXPECT_EQ(limits.max_bulk, 536870912U);
    EXPECT_EQ(limits.max_request, 1073741824U);
    EXPECT_EQ(limits.max_args_unauthenticated, 10U);
    EXPECT_EQ(limits.max_bulk_unauthenticated, 16384U);
}

TEST(resp_request_limits, arguments) {
    request_limits limits;
    limits.max_args = 3;
    expect_at_edge("*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n", "*4\r\n",
                   "ERR Protocol error: invalid multibulk length", limits);
    limits.max_args = 12;
    expect_at_edge(encode(words(12, "a")), encode(words(13, "a")),
                   "ERR Protocol error: invalid multibulk length", limits);
}

TEST(resp_request_limits, bulk) {
    request_limits limits;
    limits.max_bulk = 5;
    expect_at_edge("*1\r\n$5\r\nabcde\r\n", "*1\r\n$6\r\n",
                   "ERR Protocol error: invalid bulk length", limits);
    limits = {};
    EXPECT_EQ(error_of("*1\r\n$536870912\r\n"), "");
    EXPECT_EQ(error_of("*1\r\n$536870913\r\n"), "ERR Protocol error: invalid bulk length");
}

TEST(resp_request_limits, whole_request) {
    request_limits limits;
    limits.max_request = 22;
    expect_at_edge("*2\r\n$4\r\nabcd\r\n$2\r\nab\r\n", "*2\r\n$4\r\nabcd\r\n$3\r\nabc\r\n",
                   "ERR Protocol error: too big request", limits);
}

TEST(resp_request_limits, arguments_before_authentication) {
    const request_limits limits;
    expect_at_edge(encode(words(10, "a")), "*11\r\n",
                   "ERR Protocol error: unauthenticated multibulk length", limits, true);
    EXPECT_EQ(error_of(encode(words(11, "a")), limits, false), "");
}

TEST(resp_request_limits, bulk_before_authentication) {
    const request_limits limits;
    expect_at_edge(encode({std::string(16384, 'a')}), "*1\r\n$16385\r\n",
                   "ERR Protocol error: unauthenticated bulk length", limits, true);
    EXPECT_EQ(error_of("*1\r\n$16385\r\n", limits, false), "");
}

TEST(resp_request_limits, authentication_counts_from_the_next_command_on) {
    request_parser parser;
    request_batch batch;
    const std::string auth = encode({"AUTH", "secret"});
    const std::string input = auth + encode(words(11, "a"));
    const batch_outcome first = batch.parse(parser, input, true);
    EXPECT_EQ(first.status, parse_status::complete);
    EXPECT_EQ(first.commands.size(), 1U);
    EXPECT_EQ(first.consumed, auth.size());
    const batch_outcome second =
        batch.parse(parser, std::string_view(input).substr(first.consumed), false);
    ASSERT_EQ(second.commands.size(), 1U);
    EXPECT_EQ(second.commands[0].size(), 11U);
}

TEST(resp_request_limits, inline_line) {
    request_limits limits;
    limits.max_inline = 100;
    const std::string error = "ERR Protocol error: too big inline request";
    expect_at_edge(std::string(100, 'a') + "\n", std::string(101, 'a') + "\n", error, limits);
    expect_at_edge(std::string(99, 'a') + "\r\n", std::string(100, 'a') + "\r\n", error, limits);
    expect_at_edge(std::string(100, 'a'), std::string(101, 'a'), error, limits);
}

TEST(resp_request_limits, lines_of_counts) {
    request_limits limits;
    limits.max_inline = 100;
    expect_at_edge("*" + std::string(99, '1'), "*" + std::string(100, '1'),
                   "ERR Protocol error: too big mbulk count string", limits);
    expect_at_edge("*1\r\n$" + std::string(99, '1'), "*1\r\n$" + std::string(100, '1'),
                   "ERR Protocol error: too big bulk count string", limits);
    // Found in one piece or byte by byte, the answer is the same.
    EXPECT_EQ(error_of("*" + std::string(99, '1') + "\r\n", limits),
              "ERR Protocol error: invalid multibulk length");
    EXPECT_EQ(error_of("*" + std::string(100, '1') + "\r\n", limits),
              "ERR Protocol error: too big mbulk count string");
}

TEST(resp_request_limits, batch_of_commands) {
    std::string input;
    for (std::size_t i = 0; i < request_batch::max_commands + 1; ++i) input += encode({"PING"});
    request_parser parser;
    request_batch batch;
    const batch_outcome first = batch.parse(parser, input);
    EXPECT_EQ(first.status, parse_status::complete);
    EXPECT_EQ(first.commands.size(), request_batch::max_commands);
    const batch_outcome second =
        batch.parse(parser, std::string_view(input).substr(first.consumed));
    EXPECT_EQ(second.status, parse_status::need_more);
    EXPECT_EQ(second.commands.size(), 1U);
}

TEST(resp_request_limits, batch_of_arguments) {
    const std::size_t half = request_batch::max_args / 2;
    const std::string input = encode(words(half, "a")) + encode(words(half, "b")) + encode({"c"});
    request_parser parser;
    request_batch batch;
    const batch_outcome first = batch.parse(parser, input);
    EXPECT_EQ(first.status, parse_status::complete);
    ASSERT_EQ(first.commands.size(), 2U);
    EXPECT_EQ(first.commands[1][half - 1], "b");
    const batch_outcome second =
        batch.parse(parser, std::string_view(input).substr(first.consumed));
    ASSERT_EQ(second.commands.size(), 1U);
    EXPECT_EQ(second.commands[0].name(), "c");
}

TEST(resp_request_limits, batch_of_arguments_of_the_same_command) {
    const std::size_t half = request_batch::max_args / 2;
    const std::string input =
        encode(words(half, "a")) + encode(words(half, "a")) + encode(words(half, "a"));
    request_parser parser;
    request_batch batch;
    const batch_outcome first = batch.parse(parser, input);
    EXPECT_EQ(first.status, parse_status::complete);
    EXPECT_EQ(first.commands.size(), 2U);
    const batch_outcome second =
        batch.parse(parser, std::string_view(input).substr(first.consumed));
    EXPECT_EQ(second.status, parse_status::need_more);
    ASSERT_EQ(second.commands.size(), 1U);
    EXPECT_EQ(second.commands[0].size(), half);
}

TEST(resp_request, a_name_that_repeats_is_marked) {
    const std::string long_name(64, 'n');
    const std::string input = encode({"GET", "a"}) + encode({"GET", "bb"}) + encode({"get", "c"}) +
                              encode({"get", std::string(4000, 'd')}) + "get e\r\n" +
                              encode({"get", "f"}) + encode({"get", "g", "h"}) +
                              encode({long_name}) + encode({long_name}) + encode({"get", "i"});
    request_parser parser;
    request_batch batch;
    const batch_outcome outcome = batch.parse(parser, input);
    std::vector<bool> repeats;
    for (const command& each : outcome.commands) repeats.push_back(each.repeats_name);
    // Never behind a line, nor where the number of arguments is another, or the name is long.
    const std::vector<bool> expected{false, true,  false, true,  false,
                                     false, false, false, false, false};
    EXPECT_EQ(repeats, expected);
    EXPECT_EQ(outcome.commands[1][1], "bb");
    EXPECT_EQ(outcome.commands[3][1].size(), 4000U);
    EXPECT_EQ(outcome.commands[6][2], "h");
    EXPECT_EQ(outcome.commands[8].name(), long_name);
}

TEST(resp_request, wanted_is_the_missing_part_of_a_string) {
    request_parser parser;
    EXPECT_EQ(parser.next("").wanted, 1U);
    const std::string head = "*2\r\n$3\r\nGET\r\n$1000\r\n";
    EXPECT_FALSE(parser.in_progress());
    EXPECT_EQ(parser.next(head).wanted, 1002U);
    EXPECT_TRUE(parser.in_progress());
    EXPECT_EQ(parser.next(head + std::string(600, 'x')).wanted, 402U);
    EXPECT_EQ(parser.next(head + std::string(1001, 'x')).wanted, 1U);
    const request_outcome outcome = parser.next(head + std::string(1002, 'x'));
    EXPECT_EQ(outcome.status, parse_status::complete);
    EXPECT_FALSE(parser.in_progress());
}

// Splits.

std::string mixed_stream() {
    words many(20, "argument");
    words some(9, "x");
    return encode({"SET", "key", "value"}) + "PING\r\n" + "*0\r\n" + encode(many) + "\r\n" +
           "SET k \"quo\\x41ted\" 'x y'\r\n" + encode({"GET", std::string(120, 'k')}) +
           encode(some) + "a b c d e f g h i j\n" + encode({"ECHO", "\r\n\r\n"}) + "*-1\r\n" +
           encode({""}) + "*1\r\n?";
}

TEST(resp_request_splits, every_split_in_two_gives_the_same) {
    const std::string input = mixed_stream();
    const parsed whole = parse(input);
    ASSERT_EQ(whole.commands.size(), 9U);
    for (const std::string& tail : {std::string(), std::string("\r\n")}) {
        const parsed expected = parse(input + tail);
        for (const method method : {method::next, method::batch}) {
            for (std::size_t split = 0; split <= input.size(); ++split) {
                reader reader(method);
                reader.feed(input.substr(0, split));
                reader.feed(input.substr(split) + tail);
                EXPECT_EQ(reader.result(), expected) << "split at " << split;
            }
        }
    }
}

TEST(resp_request_splits, byte_by_byte_gives_the_same) {
    const std::string input = mixed_stream();
    for (const method method : {method::next, method::batch}) {
        reader reader(method);
        for (const char c : input) reader.feed({&c, 1});
        EXPECT_EQ(reader.result(), parse(input));
    }
}

// A stream of commands, sometimes spoilt by a changed byte.
std::string random_stream(random_generator& random) {
    std::string stream;
    const std::uint64_t count = 1 + random.below(12);
    for (std::uint64_t i = 0; i < count; ++i) {
        if (random.chance(0.2)) {
            static const std::string lines[] = {"PING\r\n",
                                                "\r\n",
                                                "*0\r\n",
                                                "*-1\r\n",
                                                "a 'b c' \"d\\x41\"\r\n",
                                                "GET  key\n",
                                                "1 2 3 4 5 6 7 8 9 '10'\r\n"};
            stream += lines[random.below(std::size(lines))];
            continue;
        }
        words args(1 + random.below(random.chance(0.1) ? 1200 : 12));
        for (std::string& arg : args) {
            arg.assign(random.below(random.chance(0.05) ? 2000 : 20), '\0');
            std::ranges::generate(arg, [&] { return static_cast<char>(random()); });
        }
        stream += encode(args);
    }
    if (random.chance(0.5)) {
        static constexpr std::string_view bytes = "\r\n*$0123456789-'\" \\x";
        stream[random.below(stream.size())] = bytes[random.below(bytes.size())];
    }
    return stream;
}

void feed_in_pieces(reader& to, std::string_view input, random_generator& random) {
    const std::uint64_t longest = 1 + random.below(600);
    while (!input.empty()) {
        const std::size_t size = std::min<std::size_t>(1 + random.below(longest), input.size());
        to.feed(input.substr(0, size));
        input.remove_prefix(size);
    }
}

TEST(resp_request_splits, random_splits_give_the_same) {
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        random_generator random(seed);
        const std::string input = random_stream(random);
        const parsed expected = parse(input);
        for (const method method : {method::next, method::batch}) {
            reader reader(method);
            feed_in_pieces(reader, input, random);
            ASSERT_EQ(reader.result(), expected);
        }
    }
}

TEST(resp_request_splits, arguments_in_places_of_their_own_give_the_same) {
    request_limits limits;
    limits.max_request = 6000;
    for (std::uint64_t seed = 1; seed <= 600; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        random_generator random(seed);
        const std::string input = random_stream(random);
        const parsed expected = parse(input, limits);
        for (const method method : {method::next, method::batch}) {
            reader reader(method, limits);
            reader.place_from(1 + random.below(random.chance(0.5) ? 10 : 500));
            feed_in_pieces(reader, input, random);
            ASSERT_EQ(reader.result().commands, expected.commands);
            ASSERT_EQ(reader.result().error, expected.error);
            if (expected.error.empty()) ASSERT_EQ(reader.result().unread, expected.unread);
        }
    }
}

TEST(resp_request, an_argument_is_taken_where_it_was_placed) {
    request_parser parser;
    const std::string head = "*4\r\n$4\r\nMSET\r\n$1\r\na\r\n$1000\r\n";
    EXPECT_EQ(parser.next(head + "some").status, parse_status::need_more);
    EXPECT_EQ(parser.open_argument(), 1000U);
    EXPECT_EQ(parser.open_argument_offset(), head.size());
    const std::string elsewhere(1000, 'x');
    parser.place_argument(elsewhere.data());
    EXPECT_EQ(parser.open_argument(), 0U);
    EXPECT_EQ(parser.next(head).status, parse_status::need_more);
    const std::string rest = "$1\r\nb\r\n";
    const std::string all = head + rest + "PING\r\n";
    const request_outcome outcome = parser.next(all);
    ASSERT_EQ(outcome.status, parse_status::complete);
    EXPECT_EQ(outcome.consumed, head.size() + rest.size());
    EXPECT_EQ(words_of(outcome.request), (words{"MSET", "a", elsewhere, "b"}));
    EXPECT_EQ(outcome.request[2].data(), elsewhere.data());
    EXPECT_EQ(parser.next("PING\r\n").status, parse_status::complete);
}

TEST(resp_request_splits, a_million_arguments_in_slices) {
    const request_limits limits;
    std::string input = "*" + std::to_string(limits.max_args) + "\r\n";
    for (std::size_t i = 0; i < limits.max_args; ++i) input += "$1\r\na\r\n";
    constexpr std::size_t slice = 16 * 1024;
    request_parser parser;
    request_outcome outcome;
    for (std::size_t have = 0; have < input.size();) {
        ASSERT_EQ(outcome.status, parse_status::need_more);
        have = std::min(have + slice, input.size());
        outcome = parser.next(std::string_view(input).substr(0, have));
    }
    ASSERT_EQ(outcome.status, parse_status::complete);
    EXPECT_EQ(outcome.request.size(), limits.max_args);
    EXPECT_EQ(outcome.request[limits.max_args - 1], "a");
}

// Memory. mallinfo2() sees nothing under a sanitizer; then these only run the code.

std::size_t allocated() { return mallinfo2().uordblks + mallinfo2().hblkhd; }

TEST(resp_request_memory, common_commands_allocate_nothing) {
    std::string input;
    for (int i = 0; i < 100; ++i)
        input += encode({"SET", "key", std::string(50, 'v')}) + "PING\r\n";
    const std::string_view all = input;
    request_parser parser;
    request_batch batch;
    const std::size_t before = allocated();
    const batch_outcome first = batch.parse(parser, all.substr(0, 1000));
    const batch_outcome second = batch.parse(parser, all.substr(first.consumed));
    EXPECT_EQ(allocated(), before);
    EXPECT_EQ(second.commands.size(), request_batch::max_commands);
}

TEST(resp_request_memory, a_claimed_count_allocates_nothing) {
    request_parser parser;
    const std::size_t before = allocated();
    EXPECT_EQ(parser.next("*1048576\r\n$536870912\r\n").status, parse_status::need_more);
    EXPECT_EQ(allocated(), before);
}

TEST(resp_request_memory, a_huge_command_gives_its_memory_back) {
    const std::string input = encode(words(100'000, "a"));
    request_parser parser;
    const std::size_t before = allocated();
    ASSERT_EQ(parser.next(input).status, parse_status::complete);
    ASSERT_EQ(parser.next("").status, parse_status::need_more);
    EXPECT_LE(allocated(), before + 1024);
}

TEST(resp_request_memory, a_parser_is_small) { EXPECT_LE(sizeof(request_parser), 320U); }

}  // namespace
}  // namespace eddy::resp
