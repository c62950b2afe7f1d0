// Errors as values: their messages, categories and the ways to make them.
#include <eddy/base/result.hpp>

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace eddy {
namespace {

result<int> half(int n) {
    if (n < 0) return fail(errc::limit_reached);
    if (n % 2 != 0) return fail_errno(EDOM);
    return n / 2;
}

TEST(result, carries_a_value_or_an_error) {
    EXPECT_EQ(half(4).value(), 2);
    EXPECT_EQ(half(-1).error(), errc::limit_reached);
    EXPECT_EQ(half(3).error(), std::errc::argument_out_of_domain);
    EXPECT_TRUE(result<>());
    EXPECT_FALSE(result<>(fail(errc::closed)));
    EXPECT_EQ(result<>(fail(errno_code(ENOENT))).error().message(), "No such file or directory");
}

TEST(result, fails_with_the_systems_errors_by_name) {
    const result<int> failed = fail(std::errc::message_size);
    EXPECT_EQ(failed.error().value(), EMSGSIZE);
    EXPECT_EQ(failed.error(), std::errc::message_size);
}

TEST(result, takes_errno_when_none_is_given) {
    errno = EACCES;
    EXPECT_EQ(result<>(fail_errno()).error(), std::errc::permission_denied);
}

TEST(result, has_a_message_of_its_own_for_every_error) {
    std::set<std::string> messages;
    int count = 0;
    for (int value = static_cast<int>(errc::cancelled);
         value <= static_cast<int>(errc::unusable_certificate); ++value, ++count) {
        const std::error_code code = static_cast<errc>(value);
        EXPECT_STREQ(code.category().name(), "eddy");
        EXPECT_EQ(code.message().find("unknown"), std::string::npos);
        messages.insert(code.message());
    }
    EXPECT_EQ(messages.size(), static_cast<std::size_t>(count));
    EXPECT_NE(error_category().message(9999).find("unknown error 9999"), std::string::npos);
}

TEST(result, compares_with_the_standard_conditions) {
    EXPECT_EQ(make_error_code(errc::timed_out), std::errc::timed_out);
    EXPECT_EQ(make_error_code(errc::cancelled), std::errc::operation_canceled);
    EXPECT_EQ(make_error_code(errc::no_buffers), std::errc::no_buffer_space);
    EXPECT_NE(make_error_code(errc::closed), std::errc::timed_out);
}

}  // namespace
}  // namespace eddy
