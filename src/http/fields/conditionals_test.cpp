// Preconditions: each field, and their order.
#include "http/fields/conditionals.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace eddy::http {
namespace {

constexpr std::int64_t modified = 784'111'777;
constexpr char at[] = "Sun, 06 Nov 1994 08:49:37 GMT";
constexpr char before[] = "Sun, 06 Nov 1994 08:49:36 GMT";
constexpr char after[] = "Sun, 06 Nov 1994 08:49:38 GMT";
constexpr validators valid{"\"a\"", modified, modified + 1000};

using field_list = std::vector<std::pair<std::string, std::string>>;

http1::header_list fields_of(const field_list& wanted) {
    http1::header_list fields;
    for (const auto& [name, value] : wanted) EXPECT_TRUE(fields.add(name, value).has_value());
    return fields;
}

/// The status that the fields lead to.
int status_of(const field_list& fields, bool reads = true) {
    switch (evaluate_preconditions(fields_of(fields), valid, reads)) {
        case precondition::holds: return 200;
        case precondition::not_modified: return 304;
        case precondition::failed: break;
    }
    return 412;
}

bool has_range(const field_list& fields, const validators& of = valid) {
    return is_range_wanted(fields_of(fields), of);
}

TEST(http_conditionals, without_fields_they_hold) { EXPECT_EQ(status_of({}), 200); }

TEST(http_conditionals, if_match_compares_strongly) {
    EXPECT_EQ(status_of({{"If-Match", "\"a\""}}), 200);
    EXPECT_EQ(status_of({{"if-match", "\"b\", \"a\""}}), 200);
    EXPECT_EQ(status_of({{"If-Match", "\"b\""}, {"If-Match", "\"a\""}}), 200);
    EXPECT_EQ(status_of({{"If-Match", "*"}}), 200);
    EXPECT_EQ(status_of({{"If-Match", "W/\"a\""}}), 412);
    EXPECT_EQ(status_of({{"If-Match", "\"b\""}}), 412);
    EXPECT_EQ(status_of({{"If-Match", ""}}), 412);
    EXPECT_EQ(status_of({{"If-Match", "a"}}), 412);
}

TEST(http_conditionals, if_none_match_compares_weakly) {
    EXPECT_EQ(status_of({{"If-None-Match", "\"a\""}}), 304);
    EXPECT_EQ(status_of({{"If-None-Match", "W/\"a\""}}), 304);
    EXPECT_EQ(status_of({{"If-None-Match", "\"b\", W/\"a\""}}), 304);
    EXPECT_EQ(status_of({{"If-None-Match", "*"}}), 304);
    EXPECT_EQ(status_of({{"If-None-Match", "\"b\""}}), 200);
    EXPECT_EQ(status_of({{"If-None-Match", "a"}}), 200);
    EXPECT_EQ(status_of({{"If-None-Match", "\"a\""}}, false), 412) << "a method that changes it";
}

TEST(http_conditionals, if_modified_since_compares_seconds) {
    EXPECT_EQ(status_of({{"If-Modified-Since", at}}), 304);
    EXPECT_EQ(status_of({{"If-Modified-Since", after}}), 304);
    EXPECT_EQ(status_of({{"If-Modified-Since", before}}), 200);
    EXPECT_EQ(status_of({{"If-Modified-Since", "yesterday"}}), 200);
    EXPECT_EQ(status_of({{"If-Modified-Since", at}}, false), 200);
    EXPECT_EQ(status_of({{"If-Modified-Since", "Sun Nov  6 08:49:37 1994"}}), 304);
}

TEST(http_conditionals, if_unmodified_since_compares_seconds) {
    EXPECT_EQ(status_of({{"If-Unmodified-Since", at}}), 200);
    EXPECT_EQ(status_of({{"If-Unmodified-Since", before}}), 412);
    EXPECT_EQ(status_of({{"If-Unmodified-Since", "yesterday"}}), 200);
}

TEST(http_conditionals, several_dates_are_ignored) {
    EXPECT_EQ(status_of({{"If-Modified-Since", at}, {"If-Modified-Since", at}}), 200);
    EXPECT_EQ(status_of({{"If-Modified-Since", at}, {"if-modified-since", before}}), 200);
    EXPECT_EQ(status_of({{"If-Modified-Since", at}, {"If-Modified-Since", ""}}), 200);
    EXPECT_EQ(status_of({{"If-Modified-Since", std::string(at) + ", " + at}}), 200);
    EXPECT_EQ(status_of({{"If-Unmodified-Since", before}, {"If-Unmodified-Since", before}}), 200);
    EXPECT_EQ(status_of({{"If-Unmodified-Since", before}, {"IF-UNMODIFIED-SINCE", after}}), 200);
    EXPECT_EQ(status_of({{"If-Modified-Since", at}, {"If-Unmodified-Since", at}}), 304)
        << "one of each";
}

TEST(http_conditionals, tags_take_precedence_over_dates) {
    EXPECT_EQ(status_of({{"If-None-Match", "\"b\""}, {"If-Modified-Since", after}}), 200);
    EXPECT_EQ(status_of({{"If-None-Match", "\"a\""}, {"If-Modified-Since", before}}), 304);
    EXPECT_EQ(status_of({{"If-Match", "\"a\""}, {"If-Unmodified-Since", before}}), 200);
    EXPECT_EQ(status_of({{"If-Match", "\"b\""}, {"If-Unmodified-Since", after}}), 412);
}

TEST(http_conditionals, what_must_match_is_evaluated_first) {
    EXPECT_EQ(status_of({{"If-None-Match", "\"a\""}, {"If-Match", "\"b\""}}), 412);
    EXPECT_EQ(status_of({{"If-None-Match", "\"a\""}, {"If-Match", "\"a\""}}), 304);
    EXPECT_EQ(status_of({{"If-Modified-Since", at}, {"If-Unmodified-Since", before}}), 412);
    EXPECT_EQ(status_of({{"If-None-Match", "\"a\""}, {"If-Unmodified-Since", before}}), 412);
}

TEST(http_conditionals, if_range_needs_a_strong_validator) {
    EXPECT_TRUE(has_range({}));
    EXPECT_TRUE(has_range({{"If-Range", "\"a\""}}));
    EXPECT_FALSE(has_range({{"If-Range", "W/\"a\""}}));
    EXPECT_FALSE(has_range({{"If-Range", "\"b\""}}));
    EXPECT_FALSE(has_range({{"If-Range", "\"a\", \"b\""}}));
    EXPECT_FALSE(has_range({{"If-Range", "\"a\""}, {"If-Range", "\"b\""}})) << "as that list";
    EXPECT_FALSE(has_range({{"If-Range", "\"a\""}, {"if-range", "\"a\""}}));
    EXPECT_FALSE(has_range({{"If-Range", at}, {"If-Range", at}}));
    EXPECT_FALSE(has_range({{"If-Range", ""}, {"If-Range", ""}}));
    EXPECT_FALSE(has_range({{"If-Range", "*"}}));
    EXPECT_TRUE(has_range({{"If-Range", at}}));
    EXPECT_FALSE(has_range({{"If-Range", before}}));
    EXPECT_FALSE(has_range({{"If-Range", after}})) << "it must be the same date";
    EXPECT_FALSE(has_range({{"If-Range", "yesterday"}}));
    EXPECT_FALSE(has_range({{"If-Range", at}}, {"\"a\"", modified, modified}))
        << "it may change again within this second";
    EXPECT_FALSE(has_range({{"If-Range", "W/\"a\""}}, {"W/\"a\"", modified, modified + 1000}));
}

}  // namespace
}  // namespace eddy::http
