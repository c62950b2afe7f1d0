// Growth, consumption and release of byte_buffer.
#include <eddy/base/byte_buffer.hpp>

#include <eddy/base/random.hpp>

#include "base/test_seed.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>

namespace eddy {
namespace {

TEST(byte_buffer, begins_empty_and_without_memory) {
    byte_buffer buffer;
    EXPECT_TRUE(buffer.empty());
    EXPECT_EQ(buffer.size(), 0u);
    EXPECT_EQ(buffer.capacity(), 0u);
    EXPECT_EQ(buffer.text(), "");
    EXPECT_TRUE(buffer.bytes().empty());
    buffer.append("");
    buffer.append(const_bytes());
    buffer.consume(0);
    buffer.truncate(0);
    buffer.clear();
    EXPECT_EQ(buffer.capacity(), 0u);
}

TEST(byte_buffer, appends_text_bytes_and_single_characters) {
    byte_buffer buffer;
    buffer.append("ab");
    buffer.append('\0');
    buffer.append(as_bytes("cd"));
    EXPECT_EQ(buffer.text(), std::string_view("ab\0cd", 5));
    EXPECT_EQ(as_text(buffer.bytes()), buffer.text());
}

TEST(byte_buffer, gives_room_to_write_into) {
    byte_buffer buffer;
    buffer.append("x");
    char* room = buffer.reserve(1000);
    EXPECT_GE(buffer.available(), 1000u);
    std::memset(room, 'y', 10);
    EXPECT_EQ(buffer.size(), 1u) << "nothing counts before commit()";
    buffer.commit(10);
    EXPECT_EQ(buffer.text(), "xyyyyyyyyyy");
    const std::size_t room_left = buffer.available();
    EXPECT_EQ(buffer.reserve(room_left), buffer.text().data() + buffer.size());
    buffer.commit(room_left);
    EXPECT_EQ(buffer.available(), 0u);
}

TEST(byte_buffer, consumes_at_the_front_and_truncates_at_the_back) {
    byte_buffer buffer;
    buffer.append("hello world");
    buffer.consume(6);
    EXPECT_EQ(buffer.text(), "world");
    buffer.truncate(3);
    EXPECT_EQ(buffer.text(), "wor");
    buffer.append("d");
    EXPECT_EQ(buffer.text(), "word");
    buffer.consume(4);
    EXPECT_TRUE(buffer.empty());
    EXPECT_EQ(buffer.available(), buffer.capacity()) << "an emptied buffer starts anew";
}

TEST(byte_buffer, stays_small_while_it_is_emptied_as_fast_as_it_is_filled) {
    byte_buffer buffer;
    const std::string piece(100, 'p');
    buffer.append("r");  // never quite empty
    for (int i = 0; i < 10000; ++i) {
        buffer.append(piece);
        buffer.consume(piece.size());
    }
    EXPECT_EQ(buffer.size(), 1u);
    EXPECT_LE(buffer.capacity(), 1024u);
}

TEST(byte_buffer, gives_its_memory_back_only_when_empty) {
    byte_buffer buffer;
    buffer.append("x");
    buffer.release_if_empty();
    EXPECT_EQ(buffer.text(), "x");
    buffer.consume(1);
    EXPECT_GT(buffer.capacity(), 0u);
    buffer.release_if_empty();
    EXPECT_EQ(buffer.capacity(), 0u);
    buffer.append("again");
    EXPECT_EQ(buffer.text(), "again");
}

TEST(byte_buffer, moves_and_swaps) {
    byte_buffer a, b;
    a.append("a");
    b.append("bb");
    a.swap(b);
    EXPECT_EQ(a.text(), "bb");
    byte_buffer c(std::move(a));
    EXPECT_EQ(c.text(), "bb");
    c = std::move(b);
    EXPECT_EQ(c.text(), "a");
    byte_buffer& self = c;
    c = std::move(self);
    EXPECT_EQ(c.text(), "a");
}

TEST(byte_buffer, behaves_like_a_string_under_random_use) {
    const std::uint64_t seed = testing::seed_of_this_run();
    SCOPED_TRACE(seed);
    random_generator random(seed);
    byte_buffer buffer;
    std::string model;
    for (int i = 0; i < 20000; ++i) {
        switch (random.below(5)) {
            case 0:
            case 1: {
                const std::string piece(random.below(700), static_cast<char>(random()));
                buffer.append(piece);
                model += piece;
                break;
            }
            case 2:
            case 3: {
                const std::size_t n = random.below(model.size() + 1);
                buffer.consume(n);
                model.erase(0, n);
                break;
            }
            default: {
                const std::size_t n = model.size() - random.below(model.size() / 4 + 1);
                buffer.truncate(n);
                model.resize(n);
                if (random.chance(0.1)) buffer.release_if_empty();
            }
        }
        ASSERT_EQ(buffer.text(), model);
        ASSERT_LE(buffer.size() + buffer.available(), buffer.capacity());
    }
}

TEST(byte_buffer, a_large_one_keeps_its_content_as_it_grows) {
    byte_buffer buffer;
    std::string model;
    const std::string piece = [] {
        std::string made(100'003, ' ');
        for (std::size_t i = 0; i < made.size(); ++i) made[i] = static_cast<char>(i * 7 >> 2);
        return made;
    }();
    for (int i = 0; i < 100; ++i) {
        buffer.append(piece);
        model += piece;
        if (i % 10 == 9) {
            buffer.consume(77'777);
            model.erase(0, 77'777);
        }
        ASSERT_TRUE(buffer.text() == model) << i;
    }
}

TEST(byte_buffer_death, refuses_to_lose_count) {
    byte_buffer buffer;
    buffer.append("abc");
    EXPECT_DEATH(buffer.consume(4), "consume\\(\\) of more bytes");
    EXPECT_DEATH(buffer.truncate(4), "truncate\\(\\) to more bytes");
    EXPECT_DEATH(buffer.commit(buffer.available() + 1), "commit\\(\\) of more .*byte_buffer");
}

}  // namespace
}  // namespace eddy
