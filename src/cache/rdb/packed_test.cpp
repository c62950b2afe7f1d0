// Tests of the packed encodings, LZF and the checksum, on valid and on damaged input.
#include "cache/types/packed.hpp"

#include <eddy/base/random.hpp>

#include "cache/rdb/crc64.hpp"
#include "cache/rdb/fixtures.hpp"
#include "cache/rdb/lzf.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

namespace eddy::cache::rdb {
namespace {

using namespace testing;

// The elements, or none when something is wrong.
template <class Walk>
std::optional<texts> elements(const std::string& block) {
    std::size_t count = 0;
    if (check_packed<Walk>(block, count) != nullptr) return std::nullopt;
    texts found;
    Walk walk(block);
    packed_item item;
    char digits[24];
    while (walk.next(item) == packed_step::item) found.emplace_back(item.text(digits));
    EXPECT_EQ(found.size(), count);
    return found;
}

texts sizes_and_numbers() {
    texts all;
    for (const unsigned size : {0U, 1U, 62U, 63U, 64U, 126U, 127U, 250U, 254U, 4094U, 4095U, 4096U,
                                16'380U, 16'381U, 16'383U, 16'384U, 70'000U}) {
        all.emplace_back(size, 'x');
    }
    for (unsigned bits = 0; bits < 63; ++bits) {
        const std::int64_t power = std::int64_t{1} << bits;
        for (const std::int64_t n : {power - 1, power, -power, -power - 1}) {
            all.push_back(std::to_string(n));
        }
    }
    all.push_back(std::to_string(INT64_MAX));
    all.push_back(std::to_string(INT64_MIN));
    return all;
}

TEST(packed, elements_of_all_sizes_are_found_again) {
    EXPECT_EQ(elements<listpack_walk>(listpack(sizes_and_numbers())), sizes_and_numbers());
    EXPECT_EQ(elements<ziplist_walk>(ziplist(sizes_and_numbers())), sizes_and_numbers());
    EXPECT_EQ(elements<listpack_walk>(listpack({})), texts{});
    EXPECT_EQ(elements<ziplist_walk>(ziplist({})), texts{});
    const texts pairs{"a", "1", std::string(253, 'x'), std::string(254, 'y'), "", ""};
    EXPECT_EQ(elements<zipmap_walk>(zipmap(pairs)), pairs);
    EXPECT_EQ(elements<intset_walk>(intset(4, {-70'000, 1})), (texts{"-70000", "1"}));
}

TEST(packed, counts_that_do_not_fit_their_field_are_counted) {
    const texts many(70'000, "1");
    EXPECT_EQ(elements<listpack_walk>(listpack(many)), many);
    EXPECT_EQ(elements<ziplist_walk>(ziplist(many)), many);
}

TEST(packed, every_truncation_and_every_addition_is_found) {
    const auto check = [](const std::string& good, auto found) {
        ASSERT_TRUE(found(good));
        for (std::size_t size = 0; size < good.size(); ++size) {
            ASSERT_FALSE(found(good.substr(0, size))) << size;
        }
        ASSERT_FALSE(found(good + '\0'));
        ASSERT_FALSE(found(good + '\xff'));
    };
    const texts some{"a", "1", "1000", std::string(300, 'x'), "-1", "b"};
    check(listpack(some), elements<listpack_walk>);
    check(ziplist(some), elements<ziplist_walk>);
    check(zipmap(some), elements<zipmap_walk>);
    check(intset(2, {1, 2, 300}), elements<intset_walk>);
}

TEST(packed, damage_is_found_or_harmless) {
    random_generator random(5);
    const texts some{"a", "1", "1000", std::string(300, 'x'), "-1", std::string(70, 'y')};
    for (int i = 0; i < 20'000; ++i) {
        std::string block;
        switch (i % 4) {
            case 0: block = listpack(some); break;
            case 1: block = ziplist(some); break;
            case 2: block = zipmap(some); break;
            default: block = intset(4, {1, 2, 300}); break;
        }
        for (std::uint64_t n = random.below(3) + 1; n > 0; --n) {
            block[random.below(block.size())] = static_cast<char>(random());
        }
        switch (i % 4) {
            case 0: static_cast<void>(elements<listpack_walk>(block)); break;
            case 1: static_cast<void>(elements<ziplist_walk>(block)); break;
            case 2: static_cast<void>(elements<zipmap_walk>(block)); break;
            default: static_cast<void>(elements<intset_walk>(block)); break;
        }
    }
}

TEST(packed, an_intset_is_in_order_and_not_empty) {
    EXPECT_FALSE(elements<intset_walk>(intset(2, {})));
    EXPECT_FALSE(elements<intset_walk>(intset(2, {2, 1})));
    EXPECT_FALSE(elements<intset_walk>(intset(2, {1, 1})));
    EXPECT_FALSE(elements<intset_walk>(intset(3, {1})));
    EXPECT_FALSE(elements<intset_walk>(intset(0, {1})));
}

std::optional<std::string> expanded(std::string_view packed, std::size_t size) {
    std::string to(size, '?');
    if (!expand_lzf(packed, to.data(), size)) return std::nullopt;
    return to;
}

TEST(lzf, runs_and_copies) {
    using namespace std::string_view_literals;
    EXPECT_EQ(expanded("", 0), "");
    EXPECT_EQ(expanded("\x02"
                       "abc"sv,
                       3),
              "abc");
    // 3 bytes from 3 back, then 4 bytes from 1 back, which repeats.
    EXPECT_EQ(expanded("\x02"
                       "abc\x20\x02\x40\x00"sv,
                       10),
              "abcabccccc");
    // 7 + 200 + 2 bytes.
    EXPECT_EQ(expanded("\x00"
                       "z\xe0\xc8\x00"sv,
                       210),
              std::string(210, 'z'));
}

TEST(lzf, whatever_does_not_fit_is_refused) {
    using namespace std::string_view_literals;
    constexpr std::string_view good =
        "\x02"
        "abc\x20\x02\x40\x00"sv;
    for (std::size_t size = 0; size < 20; ++size) {
        EXPECT_EQ(expanded(good, size).has_value(), size == 10) << size;
    }
    for (std::size_t size = 0; size < good.size(); ++size) {
        EXPECT_FALSE(expanded(good.substr(0, size), 10)) << size;
    }
    EXPECT_FALSE(
        expanded("\x00"
                 "a\x20\x01"sv,
                 4));  // from before the beginning
    EXPECT_FALSE(expanded("\x20\x00"sv, 3));
    EXPECT_FALSE(expanded("\xe0"sv, 9));
    random_generator random(3);
    for (int i = 0; i < 20'000; ++i) {
        std::string junk(random.below(40), '\0');
        for (char& c : junk) c = static_cast<char>(random());
        static_cast<void>(expanded(junk, random.below(400)));
    }
}

TEST(crc64, has_the_known_value_in_any_pieces) {
    EXPECT_EQ(crc64(0, "123456789"), 0xe9c6'd914'c4b8'd9caULL);
    EXPECT_EQ(crc64(0, ""), 0U);
    std::string all;
    for (int i = 0; i < 300; ++i) all += static_cast<char>(i * 7);
    const std::uint64_t whole = crc64(0, all);
    for (std::size_t at = 0; at <= all.size(); ++at) {
        EXPECT_EQ(crc64(crc64(0, all.substr(0, at)), all.substr(at)), whole) << at;
    }
}

}  // namespace
}  // namespace eddy::cache::rdb
