// Additional values of PROXY headers: which count, whole and broken, and at all splits.
#include "wire/proxy_protocol/client_values.hpp"

#include "wire/proxy_protocol/parser.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace eddy::proxy_protocol {
namespace {

using namespace std::string_literals;

std::string tlv_of(int type, const std::string& value) {
    return static_cast<char>(type) + ""s + static_cast<char>(value.size() >> 8) +
           static_cast<char>(value.size()) + value;
}

std::string tls_of(int flags, std::string verified = "\0\0\0\0"s) {
    return tlv_of(tlv_tls, static_cast<char>(flags) + verified +
                               tlv_of(tlv_tls_version, "TLSv1.3") + tlv_of(tlv_tls_name, "me") +
                               tlv_of(0x24, "SHA256") +
                               tlv_of(tlv_tls_cipher, "TLS_AES_128_GCM_SHA256"));
}

const std::string all = tlv_of(tlv_alpn, "h2") + tlv_of(tlv_authority, "a.example") +
                        tlv_of(tlv_noop, "xxx") + tlv_of(tlv_unique_id, "\1\2\3") + tls_of(7);

TEST(client_values, are_read_by_type) {
    client_values expected;
    expected.alpn = "h2";
    expected.authority = "a.example";
    expected.unique_id = "\1\2\3";
    expected.has_tls = true;
    expected.tls_version = "TLSv1.3";
    expected.tls_cipher = "TLS_AES_128_GCM_SHA256";
    expected.tls_name = "me";
    expected.is_verified = true;
    EXPECT_EQ(read_client_values(all), expected);
    EXPECT_EQ(read_client_values(all + tlv_of(tlv_alpn, "other") + tls_of(1)), expected)
        << "the first of a type counts";
    EXPECT_EQ(read_client_values(""), client_values());
}

TEST(client_values, of_certificates_count_as_verified_if_they_are_shown_and_valid) {
    EXPECT_TRUE(read_client_values(tls_of(3)).is_verified);
    EXPECT_TRUE(read_client_values(tls_of(5)).is_verified);
    EXPECT_FALSE(read_client_values(tls_of(1)).is_verified) << "none was shown";
    EXPECT_FALSE(read_client_values(tls_of(7, "\0\0\0\1"s)).is_verified);
    EXPECT_FALSE(read_client_values(tls_of(7, "\1\0\0\0"s)).is_verified);
    EXPECT_EQ(read_client_values(tls_of(6)), client_values()) << "without TLS";
}

TEST(client_values, that_are_malformed_are_absent) {
    const std::string tls = tls_of(7);
    for (std::size_t size = 3; size < tls.size(); ++size) {
        // The outer length fits what there is.
        const std::string content = tls.substr(3, size - 3);
        const client_values found = read_client_values(tlv_of(tlv_tls, content));
        EXPECT_TRUE(!found.has_tls || found.tls_cipher.empty()) << size;
    }
    EXPECT_EQ(read_client_values(tlv_of(tlv_unique_id, std::string(max_unique_id, 'x'))).unique_id,
              std::string(max_unique_id, 'x'));
    EXPECT_EQ(
        read_client_values(tlv_of(tlv_unique_id, std::string(max_unique_id + 1, 'x'))).unique_id,
        "");
}

TEST(client_values, are_the_same_at_all_splits_of_a_header) {
    const std::string content = "\1\2\3\4\5\6\7\10\1\2\0\x50"s + all;
    const std::string header = "\r\n\r\n\0\r\nQUIT\n\x21\x11"s +
                               static_cast<char>(content.size() >> 8) +
                               static_cast<char>(content.size()) + content;
    const client_values expected = read_client_values(all);
    for (std::size_t cut = 0; cut <= header.size(); ++cut) {
        parser reader;
        ASSERT_EQ(reader.feed(header.substr(0, cut)), cut);
        ASSERT_EQ(reader.feed(header.substr(cut)), header.size() - cut);
        ASSERT_TRUE(reader.is_complete());
        EXPECT_EQ(read_client_values(reader.tlvs()), expected) << cut;
    }
}

}  // namespace
}  // namespace eddy::proxy_protocol
