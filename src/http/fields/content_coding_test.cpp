// Accept-Encoding and what is chosen by it.
#include "http/fields/content_coding.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace eddy::http {
namespace {

http1::header_list fields_of(std::vector<std::string> values) {
    http1::header_list fields;
    for (const std::string& value : values)
        EXPECT_TRUE(fields.add("Accept-Encoding", value).has_value());
    return fields;
}

/// The choice among br, zstd, gzip and identity.
std::string choice(const std::string& value) {
    const content_coding offered[] = {content_coding::br, content_coding::zstd,
                                      content_coding::gzip, content_coding::identity};
    return std::string(to_string(accepted_codings(fields_of({value})).choose(offered)));
}

TEST(http_content_coding, the_highest_quality_is_chosen) {
    EXPECT_EQ(choice("gzip"), "gzip");
    EXPECT_EQ(choice("gzip, deflate, br, zstd"), "br");
    EXPECT_EQ(choice("GZIP;Q=0.5 , Br ; q=0.4"), "gzip");
    EXPECT_EQ(choice("br;q=0.9, zstd;q=1.000, gzip;q=0.999"), "zstd");
    EXPECT_EQ(choice("x-gzip"), "gzip");
    EXPECT_EQ(choice("*"), "br");
    EXPECT_EQ(choice("br;q=0, *"), "zstd");
    EXPECT_EQ(choice("gzip;q=0.001"), "gzip");
}

TEST(http_content_coding, identity_is_chosen_where_nothing_else_is_wanted) {
    EXPECT_EQ(choice(""), "identity");
    EXPECT_EQ(choice("identity"), "identity");
    EXPECT_EQ(choice("identity, gzip;q=0.9"), "identity");
    EXPECT_EQ(choice("deflate, compress, snappy"), "identity");
    EXPECT_EQ(choice("br;q=0, gzip;q=0.0, zstd;q=0.000"), "identity");
    EXPECT_EQ(choice("*;q=0"), "identity") << "better than no answer";
    EXPECT_EQ(choice("identity;q=0"), "identity");
    EXPECT_EQ(choice("identity;q=0, zstd;q=0.001"), "zstd");
    EXPECT_EQ(choice("*;q=0, gzip;q=0.5"), "gzip");
    EXPECT_EQ(accepted_codings(http1::header_list()).quality(content_coding::br), 0u);
    EXPECT_EQ(accepted_codings(http1::header_list()).quality(content_coding::identity), 1u);
}

TEST(http_content_coding, items_that_cannot_be_read_are_skipped) {
    for (const char* item : {"gzip;q=2", "gzip;q=1.001", "gzip;q=0.1234", "gzip;q=", "gzip;q",
                             "gzip;x=1", "gzip;q=.5", "gzip;q=-1", "gzip;q=a", "gzip;", "gz ip",
                             "gzip;q=0x1", ";q=1", ",,", "gzip;q=1;q=1", "gzip;q =1", "gzip;q=01"})
        EXPECT_EQ(choice(item), "identity") << item;
    EXPECT_EQ(choice("gzip;q=x, br;q=0.1"), "br");
    EXPECT_EQ(choice("gzip;q=1."), "gzip");
}

TEST(http_content_coding, the_coding_of_content_is_one) {
    const auto coding = [](std::vector<std::string> values) -> std::string {
        http1::header_list fields;
        for (const std::string& value : values)
            EXPECT_TRUE(fields.add("Content-Encoding", value).has_value());
        const auto found = coding_of(fields);
        return found ? std::string(to_string(*found)) : "none";
    };
    EXPECT_EQ(coding({}), "identity");
    EXPECT_EQ(coding({"gzip"}), "gzip");
    EXPECT_EQ(coding({"X-GZip"}), "gzip");
    EXPECT_EQ(coding({" identity, Br ,"}), "br");
    EXPECT_EQ(coding({"deflate"}), "deflate");
    EXPECT_EQ(coding({"zstd"}), "zstd");
    EXPECT_EQ(coding({"compress"}), "none");
    EXPECT_EQ(coding({"gzip, br"}), "none");
    EXPECT_EQ(coding({"gzip", "gzip"}), "none");
}

TEST(http_content_coding, fields_of_one_name_are_one_list) {
    const accepted_codings both(fields_of({"gzip;q=0.5", "br;q=0.25"}));
    EXPECT_EQ(both.quality(content_coding::gzip), 500u);
    EXPECT_EQ(both.quality(content_coding::br), 250u);
    EXPECT_EQ(both.quality(content_coding::zstd), 0u);
}

}  // namespace
}  // namespace eddy::http
