// Test fixtures: values in every encoding of RDB, also obsolete ones, and a consumer that records a
// reader's events.
#pragma once

#include "cache/rdb/consumer.hpp"
#include "cache/rdb/crc64.hpp"
#include "cache/rdb/format.hpp"
#include "cache/rdb/reader.hpp"
#include "cache/types/number.hpp"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::cache::rdb::testing {

using texts = std::vector<std::string>;

inline std::string little(std::uint64_t number, std::size_t bytes) {
    return {reinterpret_cast<const char*>(&number), bytes};
}

inline std::string big(std::uint64_t number, std::size_t bytes) {
    std::string made;
    for (std::size_t i = bytes; i-- > 0;) made += static_cast<char>(number >> (8 * i) & 0xff);
    return made;
}

inline std::string byte(unsigned value) { return std::string(1, static_cast<char>(value)); }

inline std::string length(std::uint64_t n) {
    if (n < 64) return byte(static_cast<unsigned>(n));
    if (n < 16384) return big(n | 0x4000, 2);
    if (n <= UINT32_MAX) return byte(0x80) + big(n, 4);
    return byte(0x81) + big(n, 8);
}

inline std::string text(std::string_view plain) {
    return length(plain.size()) + std::string(plain);
}

/// An LZF string of literal runs, or of one byte and a copy that repeats it.
inline std::string lzf(std::string_view plain) {
    std::string packed;
    const bool repeats = plain.size() > 9 && plain.size() <= 265 &&
                         plain.find_first_not_of(plain[0]) == std::string_view::npos;
    if (repeats) {
        packed = byte(0) + std::string(1, plain[0]) + byte(0xe0) +
                 byte(static_cast<unsigned>(plain.size()) - 10) + byte(0);
    } else {
        for (std::size_t at = 0; at < plain.size(); at += 32) {
            const std::string_view run = plain.substr(at, 32);
            packed += byte(static_cast<unsigned>(run.size()) - 1) + std::string(run);
        }
    }
    return byte(0xc3) + length(packed.size()) + length(plain.size()) + packed;
}

/// As in Redis, canonical decimal texts become numbers.
inline std::string listpack(const texts& elements) {
    std::string body;
    for (const std::string& each : elements) {
        std::string one;
        if (const auto number = parse_integer(each)) {
            const std::int64_t n = *number;
            const auto bits = static_cast<std::uint64_t>(n);
            if (n >= 0 && n <= 127) {
                one = byte(static_cast<unsigned>(n));
            } else if (n >= -4096 && n <= 4095) {
                one = big((bits & 0x1fff) | 0xc000, 2);
            } else if (n >= INT16_MIN && n <= INT16_MAX) {
                one = byte(0xf1) + little(bits, 2);
            } else if (n >= -(1 << 23) && n < 1 << 23) {
                one = byte(0xf2) + little(bits, 3);
            } else if (n >= INT32_MIN && n <= INT32_MAX) {
                one = byte(0xf3) + little(bits, 4);
            } else {
                one = byte(0xf4) + little(bits, 8);
            }
        } else if (each.size() < 64) {
            one = byte(0x80 | static_cast<unsigned>(each.size())) + each;
        } else if (each.size() < 4096) {
            one = big(each.size() | 0xe000, 2) + each;
        } else {
            one = byte(0xf0) + little(each.size(), 4) + each;
        }
        const std::size_t size = one.size();
        std::string back;
        const int bytes = size <= 127 ? 1 : size < 16383 ? 2 : size < 2097151 ? 3 : 4;
        for (int i = 0; i < bytes; ++i) {
            const auto seven = static_cast<unsigned>(size >> (7 * i) & 127);
            back.insert(0, byte(seven | (i + 1 < bytes ? 128U : 0U)));
        }
        body += one + back;
    }
    const std::size_t count = elements.size() < 0xffff ? elements.size() : 0xffff;
    return little(body.size() + 7, 4) + little(count, 2) + body + byte(0xff);
}

inline std::string ziplist(const texts& elements) {
    std::string body;
    std::size_t previous = 0;
    std::size_t last = 10;
    for (const std::string& each : elements) {
        std::string one = previous < 254 ? byte(static_cast<unsigned>(previous))
                                         : byte(254) + little(previous, 4);
        if (const auto number = parse_integer(each)) {
            const std::int64_t n = *number;
            const auto bits = static_cast<std::uint64_t>(n);
            if (n >= 0 && n <= 12) {
                one += byte(0xf1 + static_cast<unsigned>(n));
            } else if (n >= INT8_MIN && n <= INT8_MAX) {
                one += byte(0xfe) + little(bits, 1);
            } else if (n >= INT16_MIN && n <= INT16_MAX) {
                one += byte(0xc0) + little(bits, 2);
            } else if (n >= -(1 << 23) && n < 1 << 23) {
                one += byte(0xf0) + little(bits, 3);
            } else if (n >= INT32_MIN && n <= INT32_MAX) {
                one += byte(0xd0) + little(bits, 4);
            } else {
                one += byte(0xe0) + little(bits, 8);
            }
        } else if (each.size() < 64) {
            one += byte(static_cast<unsigned>(each.size())) + each;
        } else if (each.size() < 16384) {
            one += big(each.size() | 0x4000, 2) + each;
        } else {
            one += byte(0x80) + big(each.size(), 4) + each;
        }
        last = 10 + body.size();
        body += one;
        previous = one.size();
    }
    const std::size_t count = elements.size() < 0xffff ? elements.size() : 0xffff;
    return little(body.size() + 11, 4) + little(last, 4) + little(count, 2) + body + byte(0xff);
}

/// Fields and values alternate; each value has some unused bytes after it.
inline std::string zipmap(const texts& elements) {
    std::string made = byte(static_cast<unsigned>(elements.size() / 2));
    for (std::size_t i = 0; i < elements.size(); ++i) {
        const std::string& each = elements[i];
        made += each.size() < 254 ? byte(static_cast<unsigned>(each.size()))
                                  : byte(254) + little(each.size(), 4);
        if (i % 2 != 0) made += byte(2);
        made += each;
        if (i % 2 != 0) made += "??";
    }
    return made + byte(0xff);
}

inline std::string intset(std::size_t width, const std::vector<std::int64_t>& numbers) {
    std::string made = little(width, 4) + little(numbers.size(), 4);
    for (const std::int64_t n : numbers) made += little(static_cast<std::uint64_t>(n), width);
    return made;
}

inline std::string joined(const texts& parts) {
    std::string all;
    for (const std::string& each : parts) all += each;
    return all;
}

inline std::string double_bytes(double value) {
    std::uint64_t bits;
    std::memcpy(&bits, &value, 8);
    return little(bits, 8);
}

/// Two idempotent producers, as the newest form of a stream has them behind its groups.
inline std::string producers() {
    const auto message = [](std::string_view identity, std::uint64_t ms) {
        return text(identity) + length(ms) + length(0);
    };
    std::string made = length(100) + length(1000) + length(2);
    made += text("producer") + length(2) + message("first", 1000) + lzf("second");
    made += length(2000) + length(5);
    return made + text("idle") + length(0) + length(3) + length(70'000);
}

/// A stream with a group of two consumers, without its type, in one of the four forms.
inline std::string stream_body(object_type type) {
    const auto id = [](std::uint64_t ms, std::uint64_t seq) { return big(ms, 8) + big(seq, 8); };
    const auto lengths = [](std::uint64_t ms, std::uint64_t seq) {
        return length(ms) + length(seq);
    };
    const bool counts = type != object_type::stream;
    const bool notes_active = type == object_type::stream_3 || type == object_type::stream_4;
    // One of the four entries is removed, and one has fields of its own.
    const texts first{"2", "1", "2", "f", "g", "0", "2", "0", "0", "v", "1", "5", "3",
                      "0", "1", "x", "y", "5", "0", "7", "0", "1", "h", "z", "6"};
    const texts second{"1", "0", "1", "f", "0", "2", "0", "0", "last", "4"};
    std::string made = length(2);
    made += text(id(1000, 5)) + text(listpack(first));
    made += text(id(2000, 0)) + lzf(listpack(second));
    made += length(3) + lengths(2000, 0);
    if (counts) made += lengths(1000, 5) + lengths(1000, 6) + length(4);
    made += length(1) + text("group") + lengths(1007, 5);
    if (counts) made += length(3);
    made += length(2) + id(1000, 5) + little(1'700'000'000'000, 8) + length(3);
    made += id(1007, 5) + little(1'700'000'000'001, 8) + length(1);
    made += length(2);
    for (const char* const name : {"one", "two"}) {
        made += text(name) + little(1'700'000'000'002, 8);
        if (notes_active) made += little(1'700'000'000'001, 8);
        made += length(1) + id(name == std::string("one") ? 1000 : 1007, 5);
    }
    return type == object_type::stream_4 ? made + producers() : made;
}

inline texts stream_events(object_type type) {
    const bool counts = type != object_type::stream;
    const bool notes_active = type == object_type::stream_3 || type == object_type::stream_4;
    const std::string active = notes_active ? " active 1700000000001" : " active 1700000000002";
    return {
        "block 1000-5 of 64 bytes",
        "block 2000-0 of 32 bytes",
        counts ? "facts 3 last 2000-0 deleted 1000-6 added 4" : "facts 3 last 2000-0 deleted 0-0",
        counts ? "group group last 1007-5 read 3" : "group group last 1007-5",
        "pending 1000-5 at 1700000000000 times 3",
        "pending 1007-5 at 1700000000001 times 1",
        "consumer one seen 1700000000002" + active,
        "owned 1000-5",
        "consumer two seen 1700000000002" + active,
        "owned 1007-5"};
}

/// One value, and a reader's events for it.
struct fixture {
    std::string name;
    object_type type;
    std::string body;
    texts told;

    std::string value() const { return byte(static_cast<unsigned>(type)) + body; }
    std::string key_and_value() const {
        return byte(static_cast<unsigned>(type)) + text(name) + body;
    }
};

inline std::vector<fixture> fixtures() {
    const std::string long_text(300, 'l');
    const std::string longer_text(5000, 'm');
    const texts numbers{"0",
                        "12",
                        "13",
                        "127",
                        "128",
                        "-1",
                        "-128",
                        "4095",
                        "-4096",
                        "4096",
                        "32767",
                        "-32769",
                        "8388607",
                        "-8388608",
                        "8388608",
                        "2147483647",
                        "-2147483648",
                        "2147483648",
                        "9223372036854775807",
                        "-9223372036854775808"};
    texts mixed = numbers;
    mixed.insert(mixed.end(), {"", "a", std::string(63, 'b'), std::string(64, 'c'), long_text,
                               "after a long one", longer_text, "007", "end"});
    const auto elements = [](const texts& of) {
        texts told;
        for (const std::string& each : of) told.push_back("element " + each);
        return told;
    };
    const texts fields{"f", "1", "g", "two", "h", long_text, "", ""};
    const texts told_fields{"field f=1", "field g=two", "field h=" + long_text, "field ="};
    const texts scores{"a", "-1.5", "b", "0", "c", "2", "d", "1e100", "e", "inf"};
    const texts told_scores{"scored a -1.5", "scored b 0", "scored c 2", "scored d 1e+100",
                            "scored e inf"};
    using enum object_type;
    return {
        {"text", object_type::text, testing::text("some text"), {"text some text"}},
        {"empty text", object_type::text, testing::text(""), {"text "}},
        {"text of 63",
         object_type::text,
         testing::text(std::string(63, 'x')),
         {"text " + std::string(63, 'x')}},
        {"text of 64",
         object_type::text,
         testing::text(std::string(64, 'x')),
         {"text " + std::string(64, 'x')}},
        {"long text",
         object_type::text,
         byte(0x80) + big(5000, 4) + longer_text,
         {"text " + longer_text}},
        {"long text, wide",
         object_type::text,
         byte(0x81) + big(300, 8) + long_text,
         {"text " + long_text}},
        {"int 8", object_type::text, byte(0xc0) + little(0xff, 1), {"text -1"}},
        {"int 16", object_type::text, byte(0xc1) + little(0x8000, 2), {"text -32768"}},
        {"int 32", object_type::text, byte(0xc2) + little(0x7fffffff, 4), {"text 2147483647"}},
        {"lzf",
         object_type::text,
         lzf("some text that is not compressible at all"),
         {"text some text that is not compressible at all"}},
        {"lzf copy",
         object_type::text,
         lzf(std::string(200, 'z')),
         {"text " + std::string(200, 'z')}},
        {"list",
         list,
         joined({length(3), testing::text("a"), byte(0xc0) + "\x05", lzf("abc")}),
         {"element a", "element 5", "element abc"}},
        {"set",
         set,
         joined({length(2), testing::text("a"), testing::text("b")}),
         {"member a", "member b"}},
        {"zset",
         zset,
         joined({length(4), testing::text("a"), byte(3), "1.5", testing::text("b"), byte(254),
                 testing::text("c"), byte(255), testing::text("d"), byte(4), "-1e5"}),
         {"scored a 1.5", "scored b inf", "scored c -inf", "scored d -100000"}},
        {"hash",
         hash,
         joined({length(2), testing::text("f"), byte(0xc0) + "\x01", testing::text("g"),
                 lzf(std::string(100, 'y'))}),
         {"field f=1", "field g=" + std::string(100, 'y')}},
        {"zset 2",
         zset_2,
         joined({length(2), testing::text("a"), double_bytes(-0.25), testing::text("b"),
                 double_bytes(1e100)}),
         {"scored a -0.25", "scored b 1e+100"}},
        {"zipmap", hash_zipmap, testing::text(zipmap(fields)), told_fields},
        {"list ziplist", list_ziplist, testing::text(ziplist(mixed)), elements(mixed)},
        {"intset 16",
         set_intset,
         testing::text(intset(2, {-32768, 0, 7})),
         {"member -32768", "member 0", "member 7"}},
        {"intset 32",
         set_intset,
         testing::text(intset(4, {-40000, 5, 2147483647})),
         {"member -40000", "member 5", "member 2147483647"}},
        {"intset 64",
         set_intset,
         testing::text(intset(8, {INT64_MIN, 5, INT64_MAX})),
         {"member -9223372036854775808", "member 5", "member 9223372036854775807"}},
        {"zset ziplist", zset_ziplist, testing::text(ziplist(scores)), told_scores},
        {"hash ziplist", hash_ziplist, testing::text(ziplist(fields)), told_fields},
        {"quicklist",
         list_quicklist,
         joined({length(2), testing::text(ziplist({"a", "1"})), lzf(ziplist({"b", long_text}))}),
         {"element a", "element 1", "element b", "element " + long_text}},
        {"hash listpack", hash_listpack, testing::text(listpack(fields)), told_fields},
        {"zset listpack", zset_listpack, testing::text(listpack(scores)), told_scores},
        {"quicklist 2", list_quicklist_2,
         joined({length(3), length(2), testing::text(listpack(mixed)), length(1),
                 testing::text(longer_text), length(2), lzf(listpack({"x", "1"}))}),
         [&] {
             texts told = elements(mixed);
             told.push_back("element " + longer_text);
             told.insert(told.end(), {"element x", "element 1"});
             return told;
         }()},
        {"set listpack",
         set_listpack,
         testing::text(listpack({"a", "1", long_text})),
         {"member a", "member 1", "member " + long_text}},
        {"hash with ends",
         hash_with_expiry,
         joined({little(5'000'000'000'000, 8), length(3), length(1), testing::text("f"),
                 testing::text("1"), length(0), testing::text("g"), testing::text("two"),
                 length(1001), testing::text("h"), lzf(std::string(100, 'y'))}),
         {"field f=1 ends 5000000000000", "field g=two",
          "field h=" + std::string(100, 'y') + " ends 5000000001000"}},
        {"hash listpack with ends",
         hash_listpack_with_expiry,
         little(5'000'000'000'000, 8) +
             testing::text(listpack({"f", "1", "5000000000000", "g", long_text, "0"})),
         {"field f=1 ends 5000000000000", "field g=" + long_text}},
        {"hash with ends, of a candidate",
         hash_with_expiry_rc,
         joined({length(2), byte(0x81) + big(5'000'000'000'000, 8), testing::text("f"),
                 testing::text("1"), length(0), testing::text("g"), testing::text("two")}),
         {"field f=1 ends 5000000000000", "field g=two"}},
        {"hash listpack with ends, of a candidate",
         hash_listpack_with_expiry_rc,
         testing::text(listpack({"f", "1", "5000000000000", "", "two", "0"})),
         {"field f=1 ends 5000000000000", "field =two"}},
        {"stream", stream, stream_body(stream), stream_events(stream)},
        {"stream 2", stream_2, stream_body(stream_2), stream_events(stream_2)},
        {"stream 3", stream_3, stream_body(stream_3), stream_events(stream_3)},
        {"stream 4", stream_4, stream_body(stream_4), stream_events(stream_4)},
    };
}

/// The same for what Valkey has of its own.
inline std::vector<fixture> fixtures_of_valkey() {
    const std::string none = little(UINT64_MAX, 8);
    return {
        {"hash with ends",
         object_type::valkey_hash_with_expiry,
         joined({length(4), text("f"), byte(0xc0) + byte(1), little(5'000'000'000'000, 8),
                 text("g"), text("two"), none, lzf("h"), lzf(std::string(100, 'y')),
                 little(INT64_MAX, 8), text(""), text(""), little(1, 8)}),
         {"field f=1 ends 5000000000000", "field g=two",
          "field h=" + std::string(100, 'y') + " ends 281474976710654", "field = ends 1"}},
        {"hash with ends of 70", object_type::valkey_hash_with_expiry,
         [&] {
             std::string body = length(70);
             for (int i = 0; i < 70; ++i)
                 body += text("field" + std::to_string(i)) + text("v") + none;
             return body;
         }(),
         [] {
             texts told;
             for (int i = 0; i < 70; ++i) told.push_back("field field" + std::to_string(i) + "=v");
             return told;
         }()},
    };
}

/// Appends the end mark and, from version 5 on, the correct checksum.
inline std::string ended_file(std::string content, unsigned version = 10) {
    content += byte(255);
    return version < 5 ? content : content + little(crc64(0, content), 8);
}

inline std::string magic(unsigned version = 10) {
    std::string digits = std::to_string(version);
    return "REDIS" + std::string(4 - digits.size(), '0') + digits;
}

/// Appends the footer.
inline std::string payload(std::string value, unsigned version = 10) {
    value += little(version, 2);
    return value + little(crc64(0, value), 8);
}

/// Metadata of a key by two modules.
inline std::string key_metadata() {
    return byte(243) + length(2) + "abcd" + length(2) + length(78) + length(5) + text("of a key") +
           length(0) + "efgh" + length(0);
}

/// All fixtures after all opcodes.
inline std::string everything() {
    std::string all = magic(13);
    all += byte(250) + text("redis-ver") + text("7.4.0");
    all += byte(250) + text("redis-bits") + byte(0xc0) + byte(64);
    all += byte(247) + length(0x123456789abcdefULL) + length(2) + length(1);
    all += length(1) + length(77) + length(2) + length(78) + length(3) + little(0, 4);
    all += length(4) + little(0, 8) + length(5) + text("a module's text") + length(0);
    all += byte(245) + text("#!lua name=mylib\n");
    all += byte(254) + length(0) + byte(251) + length(30) + length(3);
    all += byte(244) + length(1) + length(2) + length(3);
    int turn = 0;
    for (const fixture& each : fixtures()) {
        switch (turn++ % 5) {
            case 0: all += byte(252) + little(4'102'444'800'123, 8); break;
            case 1: all += byte(253) + little(2'000'000'000, 4); break;
            case 2: all += byte(248) + length(100); break;
            case 3: all += byte(249) + byte(200); break;
            default: all += key_metadata(); break;
        }
        all += each.key_and_value();
    }
    all += byte(254) + length(15);
    all += fixtures()[0].key_and_value();
    return ended_file(all, 13);
}

/// A file of Valkey with its own fixtures, and with the short ones of both families.
inline std::string everything_of_valkey() {
    constexpr std::size_t longest = 200;
    std::string all = "VALKEY080" + byte(250) + text("valkey-ver") + text("9.1.2");
    all += byte(254) + length(0) + byte(251) + length(30) + length(3);
    for (const fixture& each : fixtures()) {
        const bool is_shared = each.type <= object_type::stream_3;
        if (is_shared && each.body.size() <= longest) all += each.key_and_value();
    }
    for (const fixture& each : fixtures_of_valkey()) {
        all += byte(252) + little(4'102'444'800'123, 8);
        all += byte(static_cast<unsigned>(each.type)) + text("own " + each.name) + each.body;
    }
    return ended_file(all, 80);
}

/// Recorder of events, one line each.
class recorder : public consumer {
public:
    texts lines;

    refusal aux(std::string_view name, std::string_view value) override {
        return note("aux " + std::string(name) + "=" + std::string(value));
    }
    refusal select(std::uint64_t database) override {
        return note("select " + std::to_string(database));
    }
    refusal sizes(std::uint64_t keys, std::uint64_t expiring) override {
        return note("sizes " + std::to_string(keys) + " " + std::to_string(expiring));
    }
    refusal library(std::string_view code) override { return note("library " + std::string(code)); }
    refusal begin(const key_header& of) override {
        return note("key " + std::string(of.key) + " " + std::to_string(static_cast<int>(of.kind)) +
                    (of.expires ? " until " + std::to_string(of.expires_at_ms) : ""));
    }
    refusal text(std::string_view whole) override { return note("text " + std::string(whole)); }
    refusal element(std::string_view e) override { return note("element " + std::string(e)); }
    refusal member(std::string_view m) override { return note("member " + std::string(m)); }
    refusal scored(std::string_view m, double score) override {
        char digits[40];
        std::snprintf(digits, sizeof digits, " %.17g", score);
        return note("scored " + std::string(m) + digits);
    }
    refusal field(std::string_view f, std::string_view v) override {
        return note("field " + std::string(f) + "=" + std::string(v));
    }
    refusal timed_field(std::string_view f, std::string_view v, std::int64_t ends) override {
        return note("field " + std::string(f) + "=" + std::string(v) + " ends " +
                    std::to_string(ends));
    }
    refusal stream_block(stream_id id, std::string_view pack) override {
        return note("block " + of(id) + " of " + std::to_string(pack.size()) + " bytes");
    }
    refusal stream_facts(const redis_stream::facts& known) override {
        return note("facts " + std::to_string(known.length) + " last " + of(known.last_id) +
                    " deleted " + of(known.max_deleted_id) +
                    (known.entries_added ? " added " + std::to_string(*known.entries_added) : ""));
    }
    refusal group(std::string_view name, stream_id last,
                  std::optional<std::int64_t> entries_read) override {
        return note("group " + std::string(name) + " last " + of(last) +
                    (entries_read ? " read " + std::to_string(*entries_read) : ""));
    }
    refusal pending(stream_id id, std::int64_t at, std::uint64_t times) override {
        return note("pending " + of(id) + " at " + std::to_string(at) + " times " +
                    std::to_string(times));
    }
    refusal group_consumer(std::string_view name, std::int64_t seen, std::int64_t active) override {
        return note("consumer " + std::string(name) + " seen " + std::to_string(seen) + " active " +
                    std::to_string(active));
    }
    refusal owned(stream_id id) override { return note("owned " + of(id)); }
    refusal end() override { return note("end"); }

private:
    static std::string of(stream_id id) { return std::string(stream_id_text(id).view()); }
    refusal note(std::string line) {
        lines.push_back(std::move(line));
        return accepted;
    }
};

}  // namespace eddy::cache::rdb::testing
