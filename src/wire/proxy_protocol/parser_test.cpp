// Parser of PROXY protocol headers: both versions, limits, checksum, independence of splits.
#include "wire/proxy_protocol/parser.hpp"

#include "wire/proxy_protocol/transcript.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::proxy_protocol {
namespace {

using namespace std::string_literals;

const std::string signature = "\r\n\r\n\0\r\nQUIT\n"s;

// The transcript, which must be the same for each way to cut the input in two, in single bytes, and
// where a reader takes no more than the parser wants.
std::string parse(std::string_view input) {
    const std::string expected = transcript(input, {});
    EXPECT_EQ(transcript(input, {}, true), expected);
    std::vector<std::size_t> everywhere;
    for (std::size_t at = 1; at < input.size(); ++at) {
        EXPECT_EQ(transcript(input, {at}), expected) << "cut at " << at;
        EXPECT_EQ(transcript(input, {at}, true), expected) << "cut at " << at;
        everywhere.push_back(at);
    }
    EXPECT_EQ(transcript(input, everywhere), expected);
    return expected;
}

std::string binary(int command, int family, const std::string& content) {
    return signature + static_cast<char>(command) + static_cast<char>(family) +
           static_cast<char>(content.size() >> 8) + static_cast<char>(content.size()) + content;
}

std::string tlv_of(int type, const std::string& value) {
    return static_cast<char>(type) + ""s + static_cast<char>(value.size() >> 8) +
           static_cast<char>(value.size()) + value;
}

// 1.2.3.4:258 to 5.6.7.8:80
const std::string v4_content = "\x01\x02\x03\x04\x05\x06\x07\x08\x01\x02\x00\x50"s;
const std::string v4_addresses = "1.2.3.4|258 > 5.6.7.8|80";
const std::string v6_content =
    "\xfd"s + std::string(14, '\0') + "\x01" + std::string(15, '\0') + "\x01" + "\xff\xff\x00\x16"s;
const std::string v6_addresses = "fd00::1|65535 > ::1|22";

/// A header with the checksum behind these TLVs.
std::string with_checksum(const std::string& tlvs, bool is_right = true) {
    std::string made = binary(0x21, 0x11, v4_content + tlvs + tlv_of(tlv_crc32c, "\0\0\0\0"s));
    const std::uint32_t sum = crc32c(made) + (is_right ? 0 : 1);
    for (std::size_t i = 0; i < 4; ++i)
        made[made.size() - 4 + i] = static_cast<char>(sum >> (24 - 8 * i));
    return made;
}

TEST(proxy_parser, reads_lines) {
    EXPECT_EQ(parse("PROXY TCP4 1.2.3.4 5.6.7.8 258 80\r\nGET /"), v4_addresses + ", 5 behind it");
    EXPECT_EQ(parse("PROXY TCP6 fd00::1 ::1 65535 22\r\n"), v6_addresses + ", 0 behind it");
    EXPECT_EQ(parse("PROXY TCP4 1.2.3.4 5.6.7.8 0 0\r\n\r\n"),
              "1.2.3.4|0 > 5.6.7.8|0, 2 behind it");
    EXPECT_EQ(parse("PROXY TCP6 :: :: 1 2\r\n"), "::|1 > ::|2, 0 behind it");
}

TEST(proxy_parser, a_line_of_an_unknown_protocol_keeps_the_own_addresses) {
    EXPECT_EQ(parse("PROXY UNKNOWN\r\nx"), "own addresses, 1 behind it");
    EXPECT_EQ(parse("PROXY UNKNOWN 1.2.3.4 5.6.7.8 1 2\r\n"), "own addresses, 0 behind it");
    EXPECT_EQ(parse("PROXY UNKNOWN any thing else, even\0zeros\r\n"s),
              "own addresses, 0 behind it");
}

TEST(proxy_parser, lines_are_limited) {
    const std::string most = "PROXY UNKNOWN " + std::string(max_line - 16, 'x') + "\r\n";
    ASSERT_EQ(most.size(), max_line);
    EXPECT_EQ(parse(most + "y"), "own addresses, 1 behind it");
    EXPECT_EQ(parse("PROXY UNKNOWN " + std::string(max_line - 15, 'x') + "\r\n"), "malformed");
    EXPECT_EQ(parse("PROXY UNKNOWN " + std::string(300, 'x')), "malformed");
    const std::string longest =
        "PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
        "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
        "65535 65535\r\n";
    EXPECT_EQ(parse(longest),
              "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff|65535 > "
              "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff|65535, 0 behind it");
}

TEST(proxy_parser, malformed_lines) {
    for (const std::string& each : {"GET / HTTP/1.1\r\n"s,
                                    "proxy TCP4 1.2.3.4 5.6.7.8 1 2\r\n"s,
                                    "PROXY TCP5 1.2.3.4 5.6.7.8 1 2\r\n"s,
                                    "PROXY UNKNOWNS\r\n"s,
                                    "PROXY  TCP4 1.2.3.4 5.6.7.8 1 2\r\n"s,
                                    "PROXY TCP4 1.2.3.4  5.6.7.8 1 2\r\n"s,
                                    "PROXY TCP4 1.2.3.4 5.6.7.8 1 2 \r\n"s,
                                    "PROXY TCP4 1.2.3.4 5.6.7.8 1 2 3\r\n"s,
                                    "PROXY TCP4 1.2.3.4 5.6.7.8 1\r\n"s,
                                    "PROXY TCP4 1.2.3.4 5.6.7.8 1 \r\n"s,
                                    "PROXY TCP4 1.2.3.4 5.6.7.8 01 2\r\n"s,
                                    "PROXY TCP4 1.2.3.4 5.6.7.8 +1 2\r\n"s,
                                    "PROXY TCP4 1.2.3.4 5.6.7.8 1 65536\r\n"s,
                                    "PROXY TCP4 1.2.3.04 5.6.7.8 1 2\r\n"s,
                                    "PROXY TCP4 1.2.3 5.6.7.8 1 2\r\n"s,
                                    "PROXY TCP4 1.2.3.256 5.6.7.8 1 2\r\n"s,
                                    "PROXY TCP4 ::1 ::1 1 2\r\n"s,
                                    "PROXY TCP6 1.2.3.4 5.6.7.8 1 2\r\n"s,
                                    "PROXY TCP6 fe80::1%lo ::1 1 2\r\n"s,
                                    "PROXY TCP4 1.2.3.4\0 5.6.7.8 1 2\r\n"s,
                                    "PROXY TCP4 1.2.3.4 5.6.7.8 1 2\n"s,
                                    "PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r \n"s,
                                    "PROXY TCP4 1.2.3.4\r\n 5.6.7.8 1 2\r\n"s,
                                    "PROXY TCP4\r\nxxxxxxxxxxxxx"s,
                                    "PROXY UNKNOWN a\nb\r\n"s,
                                    "PROXY UNKNOWN a\rb\r\n"s,
                                    "PROXY \r\nxxxxxxxxxxx"s})
        EXPECT_EQ(parse(each), "malformed") << each;
}

TEST(proxy_parser, a_header_that_is_cut_off_is_incomplete) {
    for (const std::string& whole : {"PROXY TCP4 1.2.3.4 5.6.7.8 258 80\r\n"s,
                                     binary(0x21, 0x11, v4_content), with_checksum("")})
        for (std::size_t size = 0; size < whole.size(); ++size)
            EXPECT_EQ(transcript(whole.substr(0, size), {}), "incomplete") << size;
}

TEST(proxy_parser, wants_no_byte_behind_a_line) {
    // A reader that takes what is wanted needs few reads.
    const std::string line = "PROXY TCP4 192.168.100.101 192.168.100.102 56324 443\r\n";
    parser reader;
    std::size_t at = 0;
    int reads = 0;
    while (!reader.is_complete()) {
        const std::string_view piece = std::string_view(line).substr(at, reader.wanted());
        ASSERT_EQ(piece.size(), reader.wanted());
        at += reader.feed(piece).value();
        ++reads;
    }
    EXPECT_EQ(at, line.size());
    EXPECT_LE(reads, 12);
}

TEST(proxy_parser, reads_binary_headers) {
    EXPECT_EQ(parse(binary(0x21, 0x11, v4_content) + "rest"), v4_addresses + ", 4 behind it");
    EXPECT_EQ(parse(binary(0x21, 0x12, v4_content)), v4_addresses + ", 0 behind it");
    EXPECT_EQ(parse(binary(0x21, 0x21, v6_content)), v6_addresses + ", 0 behind it");
    EXPECT_EQ(parse(binary(0x21, 0x22, v6_content)), v6_addresses + ", 0 behind it");
}

TEST(proxy_parser, other_binary_headers_keep_the_own_addresses) {
    EXPECT_EQ(parse(binary(0x20, 0x00, "") + "x"), "own addresses, 1 behind it");
    EXPECT_EQ(parse(binary(0x20, 0x11, v4_content)), "own addresses, 0 behind it");
    EXPECT_EQ(parse(binary(0x20, 0xff, "any")), "own addresses, 0 behind it");
    EXPECT_EQ(parse(binary(0x21, 0x00, "")), "own addresses, 0 behind it");
    EXPECT_EQ(parse(binary(0x21, 0x00, "any")), "own addresses, 0 behind it");
    EXPECT_EQ(parse(binary(0x21, 0x31, std::string(216, 'p'))), "own addresses, 0 behind it");
    EXPECT_EQ(parse(binary(0x21, 0x32, std::string(216, 'p'))), "own addresses, 0 behind it");
}

TEST(proxy_parser, malformed_binary_headers) {
    std::string other_signature = binary(0x21, 0x11, v4_content);
    other_signature[11] = '\r';
    EXPECT_EQ(parse(other_signature), "malformed");
    for (const auto& [command, family] : {std::pair(0x11, 0x11),
                                          {0x31, 0x11},
                                          {0x22, 0x11},
                                          {0x2f, 0x11},
                                          {0x21, 0x10},
                                          {0x21, 0x13},
                                          {0x21, 0x01},
                                          {0x21, 0x20},
                                          {0x21, 0x33},
                                          {0x21, 0x41}})
        EXPECT_EQ(parse(binary(command, family, std::string(216, '\0'))), "malformed")
            << command << " " << family;
    EXPECT_EQ(parse(binary(0x21, 0x11, v4_content.substr(1))), "malformed");
    EXPECT_EQ(parse(binary(0x21, 0x21, v6_content.substr(1))), "malformed");
    EXPECT_EQ(parse(binary(0x21, 0x31, std::string(215, 'p'))), "malformed");
}

TEST(proxy_parser, contents_are_limited) {
    const std::string most = v4_content + tlv_of(tlv_noop, std::string(max_content - 15, 'x'));
    ASSERT_EQ(most.size(), max_content);
    EXPECT_EQ(transcript(binary(0x21, 0x11, most), {}),
              v4_addresses + ", 4=" + std::string(max_content - 15, 'x') + ", 0 behind it");
    EXPECT_EQ(parse(binary(0x21, 0x11, most + "x").substr(0, 40)), "too long");
    EXPECT_EQ(parse(binary(0x20, 0x00, std::string(max_content + 1, 'x')).substr(0, 40)),
              "too long");
}

TEST(proxy_parser, reads_additional_values) {
    EXPECT_EQ(parse(binary(0x21, 0x11,
                           v4_content + tlv_of(tlv_alpn, "h2") + tlv_of(tlv_noop, "") +
                               tlv_of(tlv_authority, "a.example"))),
              v4_addresses + ", 1=h2, 4=, 2=a.example, 0 behind it");
    EXPECT_EQ(parse(binary(0x21, 0x21, v6_content + tlv_of(0xe0, "own"))),
              v6_addresses + ", 224=own, 0 behind it");
    EXPECT_EQ(parse(binary(0x21, 0x11, v4_content + "x")), "malformed");
    EXPECT_EQ(parse(binary(0x21, 0x11, v4_content + "\x04\x00\x02x"s)), "malformed");
}

TEST(proxy_parser, checks_the_checksum) {
    EXPECT_EQ(crc32c("123456789"), 0xe3069283U);
    EXPECT_EQ(crc32c(""), 0U);
    ASSERT_EQ(with_checksum("").size(), 35U);
    EXPECT_EQ(parse(with_checksum("")).substr(0, v4_addresses.size()), v4_addresses);
    EXPECT_EQ(parse(with_checksum(tlv_of(tlv_alpn, "h2"))).substr(0, v4_addresses.size()),
              v4_addresses);
    EXPECT_EQ(parse(with_checksum("", false)), "malformed");
    EXPECT_EQ(parse(with_checksum(tlv_of(tlv_crc32c, "\0\0\0\0"s))), "malformed");
    EXPECT_EQ(parse(binary(0x21, 0x11, v4_content + tlv_of(tlv_crc32c, "xxx"))), "malformed");
    for (std::size_t bit = 12 * 8; bit < 35U * 8; ++bit) {
        // Another type makes it another value, which is not checked.
        if (bit / 8 == 28) continue;
        std::string damaged = with_checksum("");
        damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
        EXPECT_NE(transcript(damaged, {}).substr(0, v4_addresses.size()), v4_addresses) << bit;
    }
}

}  // namespace
}  // namespace eddy::proxy_protocol
