// Base64: the examples of RFC 4648.
#include "base/text/base64.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

namespace eddy {
namespace {

TEST(base64, encodes_the_examples_of_the_standard) {
    EXPECT_EQ(base64(""), "");
    EXPECT_EQ(base64("f"), "Zg==");
    EXPECT_EQ(base64("fo"), "Zm8=");
    EXPECT_EQ(base64("foo"), "Zm9v");
    EXPECT_EQ(base64("foob"), "Zm9vYg==");
    EXPECT_EQ(base64("fooba"), "Zm9vYmE=");
    EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
    EXPECT_EQ(base64("\xff\xfe\xfb"), "//77");
}

TEST(base64, decodes_its_texts_alone) {
    for (const std::string_view each : {"", "f", "fo", "foo", "foob", "fooba", "\xff\xfe\xfb"}) {
        std::string text = base64(each);
        EXPECT_EQ(bytes_of_base64(text), std::string(each));
        while (text.ends_with('=')) text.pop_back();
        EXPECT_EQ(bytes_of_base64(text), std::string(each)) << "without padding";
    }
    for (const std::string_view wrong :
         {"Z", "Zg=", "Zg===", "Z===", "Z g=", "Zg==Zg==", "Zm9v=", "-_=="})
        EXPECT_EQ(bytes_of_base64(wrong), std::nullopt) << wrong;
}

}  // namespace
}  // namespace eddy
