// ClientHello parser: names and protocols, records, limits, independence of splits.
#include "wire/client_hello/parser.hpp"

#include "wire/client_hello/transcript.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace eddy::client_hello {
namespace {

using namespace std::string_literals;

/// The transcript, which must be the same for each way to cut the input in two, and in single
/// bytes.
std::string parse(std::string_view input) {
    const std::string expected = transcript(input, {});
    std::vector<std::size_t> everywhere;
    for (std::size_t at = 1; at < input.size(); ++at) {
        EXPECT_EQ(transcript(input, {at}), expected) << "cut at " << at;
        everywhere.push_back(at);
    }
    EXPECT_EQ(transcript(input, everywhere), expected);
    return expected;
}

std::string parse_with(const std::string& extensions) {
    return parse(records_of(hello_of(extensions)));
}

TEST(client_hello, has_a_name_and_protocols) {
    EXPECT_EQ(parse_with(""), "");
    EXPECT_EQ(parse_with(server_name_of("a.example")), "a.example");
    EXPECT_EQ(parse_with(server_name_of("A.Example.")), "a.example");
    EXPECT_EQ(parse_with(alpn_of({"h2", "http/1.1"})), ",h2,http/1.1");
    EXPECT_EQ(parse_with(alpn_of({"h2"}) + server_name_of("b")), "b,h2");
    EXPECT_EQ(parse(records_of(hello_of(server_name_of("b"))) + "early data"), "b");
}

TEST(client_hello, unknown_extensions_are_skipped) {
    // GREASE (RFC 8701) is the first and the last one of Chrome's.
    EXPECT_EQ(parse_with(extension_of(0x0a0a, "") + server_name_of("a") +
                         extension_of(0xfe0d, std::string(300, 'e')) +
                         alpn_of({"\x0a\x0a"s, "h2"}) + extension_of(0xfafa, "\0"s)),
              "a,\x0a\x0a,h2");
}

TEST(client_hello, may_have_no_extensions_at_all) {
    std::string hello = hello_of("");
    hello.resize(hello.size() - 2);
    hello.replace(1, 3, bytes_of(hello.size() - 4, 3));
    EXPECT_EQ(parse(records_of(hello)), "");
}

TEST(client_hello, comes_in_any_number_of_records) {
    const std::string hello = hello_of(server_name_of("a.example") + alpn_of({"h2"}));
    for (const std::size_t largest : {1U, 2U, 3U, 4U, 5U, 50U})
        EXPECT_EQ(parse(records_of(hello, largest)), "a.example,h2") << largest;
    EXPECT_EQ(parse("\x16\x03\x01\0\0"s), "malformed") << "an empty record";
    EXPECT_EQ(parse("\x16\x03\x01\x40\x01"s), "malformed") << "more than 16 KiB";
    EXPECT_EQ(parse(records_of(hello.substr(0, 9)) + "\x17\x03\x03"s), "malformed");
    EXPECT_EQ(parse(records_of(hello.substr(0, 9)) + "\x16\x02"s), "malformed");
}

TEST(client_hello, other_protocols_are_none) {
    for (const std::string& other : {"GET / HTTP/1.1\r\n"s, "SSH-2.0-x"s, "\x80\x2e\x01\x03\x01"s,
                                     "\x16\x04"s, "\x15\x03\x01\0\x02"s, "\x16\x03\x01\0\x05\x02"s})
        EXPECT_EQ(parse(other), "no hello") << other;
    EXPECT_EQ(parse(""), "incomplete");
    EXPECT_EQ(parse("\x16\x03"), "incomplete");
}

TEST(client_hello, malformed_ones_are_refused) {
    EXPECT_EQ(parse("\x16\x03\x01\0\x04\x01\0\0\0"s), "malformed") << "an empty message";
    const std::string whole = hello_of(server_name_of("a"));
    // Without its extensions and their length it is a hello, of TLS 1.2.
    const std::size_t without_extensions = server_name_of("a").size() + 2;
    for (std::size_t size = 1; size + 4 < whole.size(); ++size) {
        std::string cut = whole.substr(0, whole.size() - size);
        cut.replace(1, 3, bytes_of(cut.size() - 4, 3));
        EXPECT_EQ(transcript(records_of(cut), {}), size == without_extensions ? "" : "malformed")
            << size;
    }
    std::string longer = whole + "x";
    longer.replace(1, 3, bytes_of(longer.size() - 4, 3));
    EXPECT_EQ(parse(records_of(longer)), "malformed") << "bytes behind the extensions";
}

TEST(client_hello, names_are_checked) {
    EXPECT_EQ(parse_with(server_name_of("")), "malformed");
    EXPECT_EQ(parse_with(server_name_of("a\0b"s)), "malformed");
    EXPECT_EQ(parse_with(server_name_of("a b")), "malformed");
    EXPECT_EQ(parse_with(server_name_of("\xc3\xa4")), "malformed");
    EXPECT_EQ(parse_with(server_name_of(std::string(255, 'a'))), std::string(255, 'a'));
    EXPECT_EQ(parse_with(server_name_of(std::string(256, 'a'))), "malformed");
    EXPECT_EQ(parse_with(server_name_of("a") + server_name_of("b")), "malformed");
    const std::string host = "\0"s + vector_of("a", 2);
    EXPECT_EQ(parse_with(extension_of(0, vector_of(host + host, 2))), "malformed");
    EXPECT_EQ(parse_with(extension_of(0, vector_of("\x07"s + vector_of("x", 2) + host, 2))), "a");
    EXPECT_EQ(parse_with(extension_of(0, "")), "malformed");
    EXPECT_EQ(parse_with(extension_of(0, vector_of("", 2))), "malformed");
    EXPECT_EQ(parse_with(extension_of(0, vector_of(host, 2) + "x")), "malformed");
    EXPECT_EQ(parse_with(alpn_of({})), "malformed");
    EXPECT_EQ(parse_with(alpn_of({""})), "malformed");
    EXPECT_EQ(parse_with(alpn_of({"a"}) + alpn_of({"b"})), "malformed");
}

TEST(client_hello, its_size_is_limited) {
    const auto of_size = [](std::size_t size) {
        const std::string least = records_of(hello_of(extension_of(9, "") + server_name_of("a")));
        return hello_of(extension_of(9, std::string(size - least.size(), 'x')) +
                        server_name_of("a"));
    };
    const std::string most = records_of(of_size(max_bytes));
    ASSERT_EQ(most.size(), max_bytes);
    EXPECT_EQ(transcript(most, {}), "a");
    EXPECT_EQ(transcript(most, {max_bytes - 1}), "a");
    EXPECT_EQ(transcript(records_of(of_size(max_bytes + 1)), {}), "too long");
    EXPECT_EQ(parse("\x16\x03\x01\0\x04\x01\x01\0\0"s), "too long") << "as soon as it is known";
    EXPECT_EQ(transcript(records_of(of_size(6000), 1), {}), "too long") << "heads of records count";
}

}  // namespace
}  // namespace eddy::client_hello
