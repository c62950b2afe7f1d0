// Spare buffers: what is kept, and how much.
#include "http/session/spare_buffers.hpp"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace eddy::http {
namespace {

byte_buffer with_capacity(std::size_t size) {
    byte_buffer made;
    made.append(std::string(size, 'x'));
    made.clear();
    return made;
}

/// On a thread of its own, which has none at first.
template <class Body>
void on_new_thread(Body body) {
    std::thread(body).join();
}

TEST(spare_buffers, come_back) {
    on_new_thread([] {
        byte_buffer first = with_capacity(1000);
        give_spare(first);
        EXPECT_EQ(first.capacity(), 0U);
        EXPECT_EQ(spare_buffers(), 1U);
        byte_buffer second;
        take_spare(second);
        EXPECT_GE(second.capacity(), 1000U);
        EXPECT_TRUE(second.empty());
        EXPECT_EQ(spare_buffers(), 0U);
        byte_buffer third;
        take_spare(third);
        EXPECT_EQ(third.capacity(), 0U);
    });
}

TEST(spare_buffers, leave_one_that_has_a_block) {
    on_new_thread([] {
        byte_buffer spare = with_capacity(10);
        give_spare(spare);
        byte_buffer used;
        used.append("bytes");
        take_spare(used);
        EXPECT_EQ(used.text(), "bytes");
        EXPECT_EQ(spare_buffers(), 1U);
    });
}

TEST(spare_buffers, are_limited_in_number_and_size) {
    on_new_thread([] {
        byte_buffer large = with_capacity(max_spare_capacity + 1);
        give_spare(large);
        EXPECT_EQ(large.capacity(), 0U);
        EXPECT_EQ(spare_buffers(), 0U);
        std::vector<byte_buffer> many;
        for (std::size_t i = 0; i <= max_spare_buffers; ++i) many.push_back(with_capacity(10));
        for (byte_buffer& each : many) give_spare(each);
        EXPECT_EQ(spare_buffers(), max_spare_buffers);
    });
}

}  // namespace
}  // namespace eddy::http
