// Tests of the reader on every encoding, every split of the input, every truncation and every
// flipped byte.
#include "cache/rdb/reader.hpp"

#include <eddy/base/random.hpp>

#include "base/test_rounds.hpp"
#include "cache/rdb/fixtures.hpp"

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cache::rdb {
namespace {

using namespace testing;
using status = reader::status;

struct outcome {
    texts lines;
    status now = status::reading;
    std::uint64_t offset = 0;
    std::string fault;
    std::size_t taken = 0;

    bool operator==(const outcome&) const = default;
};

outcome finished(reader& of, recorder& told, std::size_t taken) {
    of.finish();
    const char* const what = of.fault().what;
    return {std::move(told.lines), of.now(), of.fault().offset, what != nullptr ? what : "", taken};
}

outcome read(const std::vector<std::string_view>& pieces, reader_options options = {},
             reader::input what = reader::input::file) {
    recorder told;
    reader reading(told, what, options);
    std::size_t taken = 0;
    for (const std::string_view piece : pieces) {
        // A copy of its own shows the sanitizer each view that is kept too long.
        const std::string copy(piece);
        taken += reading.feed(copy);
    }
    return finished(reading, told, taken);
}

outcome read_value(std::string_view value, format_family family = format_family::redis) {
    return read({value}, {.family = family}, reader::input::value);
}

// Files of both families.
std::vector<std::string> whole_files() { return {everything(), everything_of_valkey()}; }

void expect_fault(std::string_view input, std::string_view what, std::uint64_t offset) {
    const outcome seen = read({input});
    EXPECT_EQ(seen.now, status::failed);
    EXPECT_EQ(seen.fault, what);
    EXPECT_EQ(seen.offset, offset) << what;
}

TEST(rdb_reader, tells_every_type_in_every_encoding) {
    for (const fixture& each : fixtures()) {
        const outcome seen = read_value(each.value());
        EXPECT_EQ(seen.now, status::done) << each.name << ": " << seen.fault;
        ASSERT_GE(seen.lines.size(), 2U) << each.name;
        EXPECT_EQ(seen.lines.back(), "end");
        EXPECT_EQ(texts(seen.lines.begin() + 1, seen.lines.end() - 1), each.told) << each.name;
    }
    for (const fixture& each : fixtures_of_valkey()) {
        const outcome seen = read_value(each.value(), format_family::valkey);
        EXPECT_EQ(seen.now, status::done) << each.name << ": " << seen.fault;
        ASSERT_GE(seen.lines.size(), 2U) << each.name;
        EXPECT_EQ(texts(seen.lines.begin() + 1, seen.lines.end() - 1), each.told) << each.name;
    }
}

// In Redis's files the same number is a hash of a release candidate.
TEST(rdb_reader, a_type_means_what_its_family_means_by_it) {
    const std::string redis = byte(22) + length(1) + length(0) + text("f") + text("v");
    EXPECT_EQ(read_value(redis).lines, (texts{"key  4", "field f=v", "end"}));
    EXPECT_NE(read_value(redis, format_family::valkey).now, status::done);
    const std::string valkeys = byte(22) + length(1) + text("f") + text("v") + little(7, 8);
    EXPECT_EQ(read_value(valkeys, format_family::valkey).lines,
              (texts{"key  4", "field f=v ends 7", "end"}));
    EXPECT_NE(read_value(valkeys).now, status::done);
    for (const unsigned no_type : {23U, 24U, 25U, 26U, 128U, 242U, 243U, 244U, 255U}) {
        EXPECT_EQ(read_value(byte(no_type) + text("x"), format_family::valkey).fault,
                  "a value has an unknown type")
            << no_type;
    }
}

TEST(rdb_reader, metadata_of_keys_is_skipped_in_files_and_values) {
    const std::string value = key_metadata() + fixtures()[0].value();
    EXPECT_EQ(read_value(value).lines, read_value(fixtures()[0].value()).lines);
    EXPECT_EQ(read_value(byte(243) + length(0) + fixtures()[0].value()).now, status::done);
    EXPECT_EQ(read_value(byte(243) + length(8)).fault, "a key has metadata of too many modules");
}

TEST(rdb_reader, a_copy_made_while_slots_are_imported_is_refused_and_not_called_damaged) {
    recorder told;
    reader reading(told);
    reading.feed("VALKEY080" + byte(243));
    EXPECT_STREQ(reading.fault().what, "it was written while slots of a cluster were imported");
    EXPECT_TRUE(reading.fault().is_unknown_format);
}

TEST(rdb_reader, tells_a_whole_file) {
    const outcome seen = read({everything()});
    ASSERT_EQ(seen.now, status::done) << seen.fault << " at " << seen.offset;
    EXPECT_EQ(seen.taken, everything().size());
    const texts begin{"aux redis-ver=7.4.0",
                      "aux redis-bits=64",
                      "library #!lua name=mylib\n",
                      "select 0",
                      "sizes 30 3",
                      "key text 0 until 4102444800123",
                      "text some text",
                      "end",
                      "key empty text 0 until "
                      "2000000000000"};
    ASSERT_GT(seen.lines.size(), begin.size());
    EXPECT_EQ(
        texts(seen.lines.begin(), seen.lines.begin() + static_cast<std::ptrdiff_t>(begin.size())),
        begin);
    const texts end{"select 15", "key text 0", "text some text", "end"};
    EXPECT_EQ(texts(seen.lines.end() - 4, seen.lines.end()), end);
}

TEST(rdb_reader, every_split_gives_the_same_events) {
    for (const std::string& all : whole_files()) {
        const outcome whole = read({all});
        ASSERT_EQ(whole.now, status::done) << whole.fault << " at " << whole.offset;
        for (std::size_t at = 0; at <= all.size(); at += eddy::testing::place_step) {
            const std::string_view view = all;
            ASSERT_EQ(read({view.substr(0, at), view.substr(at)}), whole) << at;
        }
        for (const std::size_t size : {1U, 2U, 3U, 7U, 100U, 4096U}) {
            std::vector<std::string_view> pieces;
            for (std::size_t at = 0; at < all.size(); at += size) {
                pieces.push_back(std::string_view(all).substr(at, size));
            }
            ASSERT_EQ(read(pieces), whole) << size;
        }
    }
}

TEST(rdb_reader, every_truncation_is_told_as_one) {
    for (const std::string& all : whole_files()) {
        const outcome whole = read({all});
        for (std::size_t size = 0; size < all.size(); size += eddy::testing::place_step) {
            const outcome seen = read({std::string_view(all).substr(0, size)});
            ASSERT_EQ(seen.now, status::failed) << size;
            ASSERT_EQ(seen.fault, "the input ends too early") << size;
            ASSERT_EQ(seen.offset, size);
            ASSERT_TRUE(std::equal(seen.lines.begin(), seen.lines.end(), whole.lines.begin()))
                << size;
        }
    }
}

// Faults must not depend on the split either.
TEST(rdb_reader, every_flipped_byte_is_found_and_no_split_changes_how) {
    random_generator random(7);
    for (const std::string& all : whole_files()) {
        for (std::size_t at = 0; at < all.size(); at += eddy::testing::place_step) {
            std::string damaged = all;
            damaged[at] = static_cast<char>(damaged[at] ^ static_cast<char>(1 + random.below(255)));
            const outcome seen = read({damaged});
            ASSERT_EQ(seen.now, status::failed) << at;
            if (at % 8 != 0) continue;
            const std::string_view view = damaged;
            const std::size_t split = random.below(all.size());
            ASSERT_EQ(read({view.substr(0, split), view.substr(split)}).fault, seen.fault) << at;
            // Without the checksum it may pass, or be something else; it must only be sound.
            static_cast<void>(read({damaged}, {.max_text = 1 << 20, .check_sum = false}));
        }
    }
}

TEST(rdb_reader, every_damaged_value_is_a_value_or_a_fault) {
    random_generator random(11);
    const auto damage = [&random](const fixture& each, format_family family) {
        const std::string good = each.value();
        const std::size_t step = good.size() > 1000 ? 3 : 1;
        for (std::size_t at = 0; at < good.size(); at += step) {
            std::string damaged = good;
            damaged[at] = static_cast<char>(random());
            const outcome seen = read_value(damaged, family);
            ASSERT_NE(seen.now, status::reading);
            ASSERT_EQ(seen.now == status::done, seen.fault.empty());
        }
    };
    for (const fixture& each : fixtures()) damage(each, format_family::redis);
    for (const fixture& each : fixtures_of_valkey()) damage(each, format_family::valkey);
}

TEST(rdb_reader, old_versions_have_no_checksum_and_a_checksum_of_zero_is_none) {
    const std::string one = fixtures()[0].key_and_value();
    for (unsigned version = 1; version <= 13; ++version) {
        const std::string file = ended_file(magic(version) + one, version);
        const outcome seen = read({file + "more"});
        EXPECT_EQ(seen.now, status::done) << version;
        EXPECT_EQ(seen.taken, file.size()) << version;
    }
    EXPECT_EQ(read({magic() + one + byte(255) + std::string(8, '\0')}).now, status::done);
    std::string wrong = ended_file(magic() + one);
    wrong.back() = static_cast<char>(wrong.back() ^ 1);
    EXPECT_EQ(read({wrong}).now, status::failed);
    EXPECT_EQ(read({wrong}, {.check_sum = false}).now, status::done);
}

TEST(rdb_reader, says_what_is_wrong_and_where) {
    const std::string head = magic();
    expect_fault("RADIS0010", "this is no RDB file", 0);
    expect_fault("REDIS00x0", "this is no RDB file", 0);
    expect_fault("VALKEY0x0", "this is no RDB file", 0);
    expect_fault("VALKEE080", "this is no RDB file", 0);
    const auto expect_unread = [](const std::string& head_of_file, const std::string& named) {
        expect_fault(head_of_file,
                     "it has RDB version " + named + " (" + head_of_file +
                         "), and versions 1 to 13 of Redis and 80 of Valkey are read",
                     0);
    };
    expect_unread("REDIS0014", "14");
    expect_unread("REDIS0000", "0");
    expect_unread("REDIS0080", "80");
    expect_unread("VALKEY079", "79 of Valkey");
    expect_unread("VALKEY081", "81 of Valkey");
    expect_unread("VALKEY011", "11 of Valkey");
    expect_fault(head + byte(8), "a value has an unknown type", 9);
    expect_fault(head + byte(100), "a value has an unknown type", 9);
    expect_fault(head + byte(246), "a function was written by a release candidate of Redis 7.0", 9);
    expect_fault(head + byte(7), "a key holds a module's value", 9);
    // Times of fields.
    constexpr const char* impossible = "a field of a hash has a time that cannot be";
    const std::string timed = head + byte(24) + text("k");
    expect_fault(timed + big(UINT64_MAX, 8) + length(1) + length(2) + text("f") + text("v"),
                 impossible, 21);
    expect_fault(timed + little(0, 8) + length(1) + length(1) + text("f") + text("v"), impossible,
                 21);
    expect_fault(timed + little(1ULL << 48, 8) + length(1) + length(1) + text("f") + text("v"),
                 impossible, 21);
    const std::string of_valkey = "VALKEY080" + byte(22) + text("k") + length(1);
    for (const std::uint64_t time : {std::uint64_t{0}, UINT64_MAX - 1, std::uint64_t{1} << 63})
        expect_fault(of_valkey + text("f") + text("v") + little(time, 8), impossible, 13);
    const std::string packed = head + byte(23) + text("k");
    expect_fault(packed + text(listpack({"f", "v"})),
                 "a packed hash has a field without a value or a time", 12);
    expect_fault(packed + text(listpack({"f", "v", "x"})),
                 "a field of a hash has a time that is no number", 12);
    expect_fault(packed + text(listpack({"f", "v", "-1"})),
                 "a field of a hash has a time that is no number", 12);
    expect_fault(packed + text(listpack({"f", "v", "281474976710655"})), impossible, 12);
    expect_fault(head + byte(254) + byte(0xc0), "a string stands where a length should", 10);
    expect_fault(head + byte(254) + byte(0x82), "a length has an unknown form", 10);
    const std::string key = head + byte(0) + text("k");
    expect_fault(key + byte(0xc4), "a string has an unknown form", 12);
    expect_fault(key + byte(0x81) + big(UINT64_MAX, 8), "a string is longer than the limit", 12);
    expect_fault(key + byte(0xc3) + length(1) + length(89) + "x",
                 "a compressed string claims more than it can hold", 12);
    expect_fault(key + byte(0xc3) + length(3) + length(3) + byte(2) + "ab",
                 "a compressed string is damaged", 12);
    const std::string scored = head + byte(3) + text("k") + length(1) + text("m");
    expect_fault(scored + byte(253), "a score is no number", 13);
    expect_fault(scored + byte(3) + "abc", "a score is no number", 13);
    expect_fault(scored + byte(3) + "1 2", "a score is no number", 13);
    expect_fault(scored + byte(0), "a score is no number", 13);
    const std::string binary = head + byte(5) + text("k") + length(1) + text("m");
    expect_fault(binary + double_bytes(__builtin_nan("")), "a score is no number", 13);
    expect_fault(head + byte(16) + text("k") + text(listpack({"a"})),
                 "a packed value has a field without a value", 12);
    expect_fault(head + byte(17) + text("k") + text(listpack({"a", "b"})), "a score is no number",
                 12);
    expect_fault(head + byte(18) + text("k") + length(1) + length(3) + text("x"),
                 "a list's node has an unknown form", 13);
    expect_fault(head + byte(247) + length(1) + length(1) + length(1),
                 "a module's data do not begin as they should", 10);
    expect_fault(head + byte(247) + length(1) + length(2) + length(1) + length(9),
                 "a module's data have an unknown type", 13);
}

TEST(rdb_reader, a_value_is_a_type_and_a_value_alone) {
    for (const unsigned no_type : {244U, 245U, 250U, 252U, 254U, 255U, 8U, 27U, 128U}) {
        const outcome seen = read_value(byte(no_type) + text("x"));
        EXPECT_EQ(seen.fault, "a value has an unknown type") << no_type;
    }
    const outcome longer = read_value(fixtures()[0].value() + "more");
    EXPECT_EQ(longer.now, status::done);
    EXPECT_EQ(longer.taken, fixtures()[0].value().size());
}

TEST(rdb_reader, the_limit_of_strings_is_exact) {
    const auto with = [](std::string_view value) {
        return read({std::string(byte(0)) + std::string(value)}, {.max_text = 100},
                    reader::input::value);
    };
    EXPECT_EQ(with(text(std::string(100, 'x'))).now, status::done);
    EXPECT_EQ(with(text(std::string(101, 'x'))).fault, "a string is longer than the limit");
    EXPECT_EQ(with(lzf(std::string(100, 'x'))).now, status::done);
    EXPECT_EQ(with(lzf(std::string(101, 'x'))).fault, "a string is longer than the limit");
}

class refusing : public recorder {
public:
    refusal element(std::string_view e) override {
        return e == "b" ? "no b is wanted" : recorder::element(e);
    }
};

TEST(rdb_reader, a_consumer_can_refuse) {
    refusing told;
    reader reading(told);
    const std::string input =
        magic() + byte(1) + text("k") + length(3) + text("a") + text("b") + text("c");
    EXPECT_LT(reading.feed(input), input.size());
    EXPECT_EQ(reading.now(), status::failed);
    EXPECT_STREQ(reading.fault().what, "no b is wanted");
    EXPECT_EQ(reading.fault().offset, 15U);
    EXPECT_EQ(told.lines.back(), "element a");
    EXPECT_EQ(reading.feed("more"), 0U);
}

// A size is no allocation. (Without glibc's allocator, under a sanitizer, there is nothing to see.)
TEST(rdb_reader, claims_take_no_memory) {
    const std::size_t before = mallinfo2().uordblks;
    std::vector<std::string> claims;
    const std::string large = byte(0x80) + big(500 << 20, 4);
    claims.push_back(byte(0) + large + "only this");
    claims.push_back(byte(0) + byte(0xc3) + large + large + "only this");
    claims.push_back(byte(1) + byte(0x81) + big(UINT64_MAX, 8) + text("one"));
    claims.push_back(byte(4) + byte(0x81) + big(UINT64_MAX, 8) + text("one") + large);
    claims.push_back(byte(18) + large + length(2) + large);
    claims.push_back(byte(11) + text(little(8, 4) + little(UINT32_MAX, 4)));
    const std::string most = byte(0x81) + big(UINT64_MAX, 8);
    claims.push_back(byte(22) + most + text("f") + text("v") + little(1, 8) + large);
    const std::string stream = byte(26) + stream_body(object_type::stream_3);
    claims.push_back(stream + length(100) + length(1000) + most + text("producer") + most);
    claims.push_back(stream + most + most + most + text("producer") + most + large);
    claims.push_back(byte(243) + length(7) + "abcd" + length(5) + large);
    for (const std::string& each : claims) {
        recorder told;
        const bool is_valkeys = each[0] == '\x16';
        const auto family = is_valkeys ? format_family::valkey : format_family::redis;
        reader reading(told, reader::input::value, {.family = family});
        for (const char c : each) static_cast<void>(reading.feed({&c, 1}));
        EXPECT_LT(mallinfo2().uordblks, before + (1U << 20));
        reading.finish();
        EXPECT_EQ(reading.now(), status::failed);
    }
}

}  // namespace
}  // namespace eddy::cache::rdb
