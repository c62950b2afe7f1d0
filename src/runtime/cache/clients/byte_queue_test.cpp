// Tests of the queue of blocks: order, sizes, and a front that stays where it is.
#include "runtime/cache/clients/byte_queue.hpp"

#include <eddy/base/random.hpp>

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace eddy::runtime::cache {
namespace {

byte_buffer block_of(std::string_view text) {
    byte_buffer made;
    made.append(text);
    return made;
}

TEST(byte_queue, the_front_stays_while_more_is_appended) {
    byte_queue queue;
    queue.append("ab");
    const char* const front = queue.front().text().data();
    for (int i = 0; i < 1000; ++i) queue.append(std::string(1000, 'x'));
    EXPECT_EQ(queue.front().text().data(), front);
    EXPECT_EQ(queue.front().text(), "ab");
    EXPECT_EQ(queue.size(), 1'000'002U);
}

TEST(byte_queue, single_bytes_take_few_blocks) {
    byte_queue queue;
    for (std::size_t i = 0; i < 3 * byte_queue::block_size; ++i) queue.append("x");
    int blocks = 0;
    for (; !queue.empty(); ++blocks) static_cast<void>(queue.pop());
    EXPECT_EQ(blocks, 4);
}

TEST(byte_queue, a_block_comes_back_once_it_is_consumed) {
    byte_queue queue;
    queue.push(block_of("abc"));
    queue.push(block_of(""));
    EXPECT_EQ(queue.consume(2).capacity(), 0U);
    EXPECT_EQ(queue.front().text(), "c");
    EXPECT_GT(queue.consume(1).capacity(), 0U);
    EXPECT_TRUE(queue.empty());
}

TEST(byte_queue, what_goes_in_comes_out_in_order) {
    random_generator numbers(7);
    byte_queue queue;
    std::string in;
    std::string out;
    char next = 'a';
    const auto some = [&](std::size_t size) {
        std::string made(size, ' ');
        for (char& each : made) each = next = next == 'z' ? 'a' : static_cast<char>(next + 1);
        in += made;
        return made;
    };
    for (int i = 0; i < 20'000; ++i) {
        switch (numbers.below(4)) {
            case 0: queue.append(some(numbers.below(300))); break;
            case 1: queue.push(block_of(some(numbers.below(300)))); break;
            case 2:
                if (queue.empty()) break;
                out += queue.front().text().substr(0, 1);
                static_cast<void>(queue.consume(1));
                break;
            default:
                if (!queue.empty()) out += queue.pop().text();
        }
        ASSERT_EQ(queue.size(), in.size() - out.size());
    }
    while (!queue.empty()) out += queue.pop().text();
    EXPECT_TRUE(in == out);
}

}  // namespace
}  // namespace eddy::runtime::cache
