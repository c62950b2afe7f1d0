// Tests of bit runs against the same operations bit by bit.
#include "cache/types/bits.hpp"

#include <eddy/base/random.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace eddy::cache {
namespace {

bool bit_of(const std::string& bytes, std::uint64_t at) {
    return (static_cast<unsigned char>(bytes[at / 8]) >> (7 - at % 8) & 1) != 0;
}

std::uint64_t slow_read(const std::string& bytes, std::uint64_t offset, unsigned width) {
    std::uint64_t value = 0;
    for (unsigned i = 0; i < width; ++i) {
        const bool in_range = (offset + i) / 8 < bytes.size();
        value = value << 1 | static_cast<std::uint64_t>(in_range && bit_of(bytes, offset + i));
    }
    return value;
}

class bits : public ::testing::Test {
protected:
    // Mostly long runs of the same bit, so that searches go far.
    std::string bytes_of(std::size_t size) {
        std::string made(size, random_.below(2) == 0 ? '\0' : '\xff');
        for (std::uint64_t i = random_.below(4); i > 0 && size > 0; --i) {
            made[random_.below(size)] = static_cast<char>(random_());
        }
        if (random_.below(3) == 0) {
            for (char& each : made) each = static_cast<char>(random_());
        }
        return made;
    }

    random_generator random_{42};
};

TEST_F(bits, are_counted_and_found_as_one_by_one) {
    for (int round = 0; round < 3'000; ++round) {
        const std::string bytes = bytes_of(1 + random_.below(200));
        const std::uint64_t end = random_.below(bytes.size() * 8 + 1);
        const std::uint64_t first = random_.below(end + 1);
        std::uint64_t ones = 0;
        std::optional<std::uint64_t> first_one, first_zero;
        for (std::uint64_t i = first; i < end; ++i) {
            const bool bit = bit_of(bytes, i);
            ones += bit ? 1 : 0;
            std::optional<std::uint64_t>& found = bit ? first_one : first_zero;
            if (!found) found = i;
        }
        ASSERT_EQ(count_bits(bytes, first, end), ones) << first << " to " << end;
        ASSERT_EQ(find_bit(bytes, first, end, true), first_one) << first << " to " << end;
        ASSERT_EQ(find_bit(bytes, first, end, false), first_zero) << first << " to " << end;
    }
    EXPECT_EQ(count_bits(std::string(1'000'000, '\x81'), 0, 8'000'000), 2'000'000U);
}

TEST_F(bits, are_read_and_written_as_numbers_of_any_width) {
    for (int round = 0; round < 20'000; ++round) {
        std::string bytes = bytes_of(9 + random_.below(10));
        const auto width = static_cast<unsigned>(1 + random_.below(64));
        const std::uint64_t offset = random_.below(bytes.size() * 8 - width + 1);
        ASSERT_EQ(read_bits(bytes, offset, width), slow_read(bytes, offset, width));
        const std::uint64_t value = random_();
        std::string expected = bytes;
        for (unsigned i = 0; i < width; ++i) {
            const std::uint64_t at = offset + i;
            const auto mask = static_cast<char>(0x80U >> at % 8);
            const bool bit = (value >> (width - 1 - i) & 1) != 0;
            char& byte = expected[at / 8];
            byte = static_cast<char>(bit ? byte | mask : byte & ~mask);
        }
        write_bits(bytes.data(), bytes.size(), offset, width, value);
        ASSERT_EQ(bytes, expected) << "width " << width << " at " << offset;
    }
}

TEST_F(bits, beyond_the_end_are_zero) {
    EXPECT_EQ(read_bits("\xff", 4, 8), 0xf0U);
    EXPECT_EQ(read_bits("\xff", 8, 64), 0U);
    EXPECT_EQ(read_bits("", 1'000'000, 64), 0U);
}

TEST_F(bits, are_combined_with_shorter_sources_and_onto_a_source) {
    for (int round = 0; round < 300; ++round) {
        std::vector<std::string> sources(1 + random_.below(4));
        std::size_t size = 0;
        for (std::string& each : sources) {
            each = bytes_of(random_.below(5'000));
            size = std::max(size, each.size());
        }
        for (const bit_operation how : {bit_operation::all_of, bit_operation::any_of,
                                        bit_operation::exclusive, bit_operation::negation}) {
            const std::size_t used = how == bit_operation::negation ? 1 : sources.size();
            std::string expected(size, '\0');
            for (std::size_t i = 0; i < size; ++i) {
                const auto at = [&](std::size_t n) {
                    return i < sources[n].size() ? sources[n][i] : '\0';
                };
                char byte = at(0);
                for (std::size_t n = 1; n < used; ++n) {
                    const char with = at(n);
                    byte = static_cast<char>(how == bit_operation::all_of   ? byte & with
                                             : how == bit_operation::any_of ? byte | with
                                                                            : byte ^ with);
                }
                expected[i] = how == bit_operation::negation ? static_cast<char>(~byte) : byte;
            }
            std::vector<std::string_view> views(
                sources.begin(), sources.begin() + static_cast<std::ptrdiff_t>(used));
            std::string apart(size, 'x');
            combine_bits(how, views, apart.data(), size);
            ASSERT_EQ(apart, expected);
            std::string onto = sources[0];
            const std::size_t own = onto.size();
            onto.resize(size);
            views[0] = std::string_view(onto).substr(0, own);
            combine_bits(how, views, onto.data(), size);
            ASSERT_EQ(onto, expected);
        }
    }
}

}  // namespace
}  // namespace eddy::cache
