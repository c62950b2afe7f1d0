// Counter of events in pieces of an event stream.
#include "runtime/stream/sources/event_counter.hpp"

#include <gtest/gtest.h>

#include <string>

namespace eddy::runtime::stream {
namespace {

TEST(event_counter, counts_events_by_their_blank_lines_whatever_the_pieces) {
    const std::string all =
        "data: a\n\n: comment\n\ndata: b\ndata: c\r\n\r\n\n\nevent: d\rdata:\r\rdata: e\n";
    event_counter whole;
    EXPECT_EQ(whole.count(all), 3U);
    EXPECT_EQ(whole.count("\n"), 1U);
    event_counter cut;
    std::uint32_t sum = 0;
    for (const char each : all) sum += cut.count({&each, 1});
    EXPECT_EQ(sum, 3U);
    EXPECT_EQ(event_counter().count(""), 0U);
}

}  // namespace
}  // namespace eddy::runtime::stream
