// Tests of typed bytes: nothing is lost, whatever is typed.
#include "cli/text/typed_bytes.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <random>
#include <string>
#include <vector>

namespace eddy::cli {
namespace {

std::string typed(std::string_view bytes) {
    typed_bytes reader;
    std::u32string characters;
    for (const char byte : bytes) {
        reader.add(byte);
        while (const auto next = reader.take()) characters += *next;
    }
    std::string text;
    for (const char32_t c : characters) {
        if (c < 0x80) {
            text += static_cast<char>(c);
            continue;
        }
        const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
        const unsigned leads[] = {0, 0xc0, 0xe0, 0xf0};
        text += static_cast<char>(leads[more] | (c >> (6 * more)));
        for (int i = more - 1; i >= 0; --i)
            text += static_cast<char>(0x80 | ((c >> (6 * i)) & 0x3f));
    }
    return text;
}

TEST(typed_bytes, characters_stand_for_themselves) {
    for (const std::string text : {"plain", "größe", "€", "🙂", "\t\x1b[A"}) {
        EXPECT_EQ(typed(text), text);
        EXPECT_EQ(carry_bytes(text), text);
        EXPECT_EQ(uncarry_bytes(text), text);
    }
}

TEST(typed_bytes, what_is_no_character_is_kept) {
    for (const std::string text :
         {"gr\xf6\xdf"
          "e\n",
          "\xff\xfe\x80\n", "\xe2\x82 cut\n", "\xf0\x9f\x99 cut\n", "\xed\xa0\x80 surrogate\n",
          "\xc0\x80 overlong\n", "\xf8\x88\x80\x80\x80\n", "\xee\xbe\x80 a carrier itself\n",
          "\xee\xbf\xbf\xee\xbe\n"}) {
        EXPECT_NE(typed(text), text);
        EXPECT_EQ(uncarry_bytes(typed(text)), text);
        EXPECT_EQ(carry_bytes(text), typed(text));
    }
}

TEST(typed_bytes, a_byte_that_may_begin_a_character_waits_for_the_next_one) {
    typed_bytes reader;
    reader.add('\xc3');
    EXPECT_FALSE(reader.take());
    reader.add('\xa4');
    EXPECT_EQ(reader.take(), U'ä');
    reader.add('\xe4');
    EXPECT_FALSE(reader.take());
    reader.add('a');
    EXPECT_EQ(reader.take(), first_carrier + 0x64);
    EXPECT_EQ(reader.take(), U'a');
    EXPECT_FALSE(reader.take());
}

TEST(typed_bytes, random_bytes_come_back) {
    std::mt19937 random(7);
    constexpr std::array interesting = {'a',    '\x80', '\xbe', '\xbf', '\xc3', '\xe2',
                                        '\xee', '\xef', '\xf0', '\xff', ' ',    '\x82'};
    for (int round = 0; round < 2000; ++round) {
        std::string text;
        for (std::size_t i = random() % 30; i > 0; --i)
            text += interesting[random() % interesting.size()];
        text += '\n';
        EXPECT_EQ(uncarry_bytes(typed(text)), text);
        EXPECT_EQ(uncarry_bytes(carry_bytes(text)), text);
    }
}

}  // namespace
}  // namespace eddy::cli
