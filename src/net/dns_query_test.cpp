// Records of services in responses, whole and broken.
#include "net/dns_query.hpp"

#include "io/testing.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace eddy {
namespace {

using testing::error_of;
using namespace std::chrono_literals;
using namespace std::string_view_literals;

/// Two records behind an alias; names continue in the question's.
const std::string response(
    "\x12\x34\x81\x80\0\1\0\3\0\0\0\0"                             // header: 1 question, 3 answers
    "\1s\4test\0\0\x21\0\1"                                        // question at 12: s.test, SRV
    "\xc0\x0c\0\5\0\1\0\0\0\x1e\0\2\xc0\x0e"                       // alias of test, 30 s
    "\xc0\x0e\0\x21\0\1\0\0\0\x3c\0\x0a\0\1\0\2\0\x50\1a\xc0\x0e"  // a.test, 60 s
    "\xc0\x0e\0\x21\0\1\0\0\0\x14\0\x0a\0\3\0\4\0\x51\1b\xc0\x0e"sv);  // b.test, 20 s

TEST(services, are_read_with_their_time) {
    const auto found = parse_services(as_bytes(response));
    ASSERT_TRUE(found);
    const std::vector<service_record> expected = {{"a.test", 80, 1, 2}, {"b.test", 81, 3, 4}};
    EXPECT_EQ(found->all, expected);
    EXPECT_EQ(found->valid_for, 20s);
}

TEST(services, of_a_response_that_breaks_off_are_refused) {
    for (std::size_t size = 0; size < response.size(); ++size) {
        // A buffer of its own, so that a sanitizer sees what is read behind it.
        const std::string part = response.substr(0, size);
        EXPECT_EQ(error_of(parse_services(as_bytes(part))), errc::malformed) << size;
    }
}

TEST(services, of_changed_bytes_are_read_or_refused) {
    for (std::size_t at = 0; at < response.size(); ++at)
        for (int value = 0; value < 256; ++value) {
            std::string changed = response;
            changed[at] = static_cast<char>(value);
            const auto found = parse_services(as_bytes(changed));
            if (found) EXPECT_LE(found->all.size(), 3U);
        }
}

}  // namespace
}  // namespace eddy
