// UTF-8 validation against a slow model of the standard: every code point, every short sequence,
// and texts with one wrong byte, cut anywhere.
#include <eddy/base/utf8.hpp>

#include <eddy/base/random.hpp>

#include "base/test_rounds.hpp"
#include "base/test_seed.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace eddy {
namespace {

std::string encode(char32_t code) {
    const auto low_bits = [code](unsigned shift) {
        return static_cast<char>(0x80 | (code >> shift & 0x3fU));
    };
    if (code < 0x80) return {static_cast<char>(code)};
    if (code < 0x800) return {static_cast<char>(0xc0 | code >> 6), low_bits(0)};
    if (code < 0x10000) return {static_cast<char>(0xe0 | code >> 12), low_bits(6), low_bits(0)};
    return {static_cast<char>(0xf0 | code >> 18), low_bits(12), low_bits(6), low_bits(0)};
}

// The encodings of all code points and their beginnings, as numbers of up to three bytes. The last
// byte of four is any continuation, whichever the first three are.
class model {
public:
    model() : beginnings_(1U << 25), characters_(1U << 25) {
        for (char32_t code = 0; code <= 0x10ffff; ++code) {
            if (code >= 0xd800 && code < 0xe000) continue;
            const std::string bytes = encode(code);
            for (std::size_t size = 1; size < bytes.size(); ++size)
                beginnings_[key(std::string_view(bytes).substr(0, size))] = true;
            if (bytes.size() < 4) characters_[key(bytes)] = true;
        }
    }

    // The position of the first byte that no valid text continues with; the size if there is none.
    std::size_t first_invalid(std::string_view text, bool& is_complete) const {
        std::string open;
        for (std::size_t at = 0; at < text.size(); ++at) {
            open += text[at];
            const bool is_fourth =
                open.size() == 4 && (static_cast<unsigned char>(open[3]) & 0xc0U) == 0x80;
            if (is_fourth || (open.size() < 4 && characters_[key(open)]))
                open.clear();
            else if (open.size() == 4 || !beginnings_[key(open)])
                return at;
        }
        is_complete = open.empty();
        return text.size();
    }

private:
    static std::size_t key(std::string_view bytes) {
        std::size_t made = 1;  // so that the size counts
        for (const char c : bytes) made = made << 8 | static_cast<unsigned char>(c);
        return made;
    }
    std::vector<bool> beginnings_;
    std::vector<bool> characters_;
};

const model& the_model() {
    static const model made;
    return made;
}

void compare(std::string_view text, std::size_t cut) {
    bool is_complete = false;
    const std::size_t expected = the_model().first_invalid(text, is_complete);
    utf8_validator validator;
    const std::size_t first = validator.check(text.substr(0, cut));
    if (expected < cut) {
        ASSERT_EQ(first, expected) << "cut at " << cut;
        return;
    }
    ASSERT_EQ(first, cut);
    ASSERT_EQ(validator.check(text.substr(cut)), expected - cut) << "cut at " << cut;
    if (expected == text.size()) {
        ASSERT_EQ(validator.is_complete(), is_complete);
    }
}

void compare(std::string_view text) {
    for (std::size_t cut = 0; cut <= text.size(); ++cut) compare(text, cut);
}

TEST(utf8, accepts_every_code_point) {
    std::string all;
    for (char32_t code = 0; code <= 0x10ffff; ++code) {
        const bool is_surrogate = code >= 0xd800 && code < 0xe000;
        const std::string bytes = encode(code);
        if (is_utf8(bytes) == is_surrogate) ADD_FAILURE() << std::hex << std::uint32_t{code};
        if (!is_surrogate) all += bytes;
    }
    EXPECT_TRUE(is_utf8(all));
    EXPECT_FALSE(is_utf8(all + "\x80"));
    EXPECT_FALSE(is_utf8(all + "\xc3")) << "an open character at the end";
    EXPECT_TRUE(is_utf8(""));
}

TEST(utf8, judges_every_sequence_of_three_bytes) {
    const std::string before(40, 'a');
    const std::string behind(72, 'b');
    for (unsigned number = 0; number < 1U << 24; number += testing::is_sanitized ? 251 : 7) {
        const char bytes[] = {static_cast<char>(number >> 16), static_cast<char>(number >> 8),
                              static_cast<char>(number)};
        const std::string_view three(bytes, 3);
        bool is_complete = false;
        const std::size_t expected = the_model().first_invalid(three, is_complete);
        utf8_validator validator;
        ASSERT_EQ(validator.check(three), expected) << std::hex << number;
        if (expected == 3) {
            ASSERT_EQ(validator.is_complete(), is_complete);
        }
        // The same by vectors.
        std::string text = before;
        text.append(three).append(behind);
        if (expected == 3 && is_complete) {
            ASSERT_TRUE(is_utf8(text)) << std::hex << number;
        } else {
            validator.reset();
            ASSERT_EQ(validator.check(text), before.size() + expected) << std::hex << number;
        }
    }
}

TEST(utf8, finds_the_first_invalid_byte_however_the_text_is_cut) {
    for (const char* const text :
         {"\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
          "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\x80", "a\xbf", "\xe2\x82", "\xe2\x82g",
          "\xf0\x9f\x98", "\xf0\x9f\x98\x80\x80",
          "\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80 edited"}) {
        compare(text);
        for (std::size_t before = 50; before < 80; ++before) {
            compare(std::string(before, 'x') + text + std::string(100, 'y'), before + 1);
            compare(std::string(before, 'x') + text, 0);
        }
    }
}

TEST(utf8, agrees_with_the_model_on_random_texts) {
    random_generator random(testing::seed_of_this_run());
    for (int round = 0; round < testing::rounds(3000); ++round) {
        std::string text;
        const std::uint64_t plain = random.below(4);
        while (text.size() < random.below(400)) {
            char32_t code = 0;
            do {
                code = static_cast<char32_t>(random.below(plain == 0   ? 0x80
                                                          : plain == 1 ? 0x1000
                                                                       : 0x110000));
                if (random.chance(0.3)) code &= 0x7f;
            } while (code >= 0xd800 && code < 0xe000);
            text += encode(code);
        }
        for (std::uint64_t i = random.below(3); i > 0 && !text.empty(); --i)
            text[random.below(text.size())] = static_cast<char>(random());
        for (int cut = 0; cut < 4; ++cut) {
            compare(text, random.below(text.size() + 1));
            if (HasFatalFailure()) return;
        }
    }
}

}  // namespace
}  // namespace eddy
