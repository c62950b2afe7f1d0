// Writer of PROXY protocol headers: the bytes, and that the parser reads them back.
#include "wire/proxy_protocol/writer.hpp"

#include "wire/proxy_protocol/transcript.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace eddy::proxy_protocol {
namespace {

using namespace std::string_literals;

std::string written(version as, const std::optional<addresses>& of) {
    byte_buffer out;
    write_header(out, as, of);
    return std::string(out.text());
}

addresses v4() {
    addresses made;
    made.source.bytes = {10, 0, 0, 7};
    made.source.port = 56324;
    made.destination.bytes = {192, 168, 100, 200};
    made.destination.port = 443;
    return made;
}

addresses widest_v6() {
    addresses made;
    made.source.is_v6 = made.destination.is_v6 = true;
    made.source.bytes.fill(0xff);
    made.destination.bytes.fill(0xff);
    made.source.port = made.destination.port = 65535;
    return made;
}

TEST(proxy_writer, writes_lines) {
    EXPECT_EQ(written(version::text, v4()), "PROXY TCP4 10.0.0.7 192.168.100.200 56324 443\r\n");
    EXPECT_EQ(written(version::text, std::nullopt), "PROXY UNKNOWN\r\n");
    EXPECT_LE(written(version::text, widest_v6()).size(), max_line);
}

TEST(proxy_writer, writes_binary_headers) {
    EXPECT_EQ(written(version::binary, v4()),
              "\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\x0a\0\0\x07\xc0\xa8\x64\xc8\xdc\x04\x01\xbb"s);
    EXPECT_EQ(written(version::binary, v4()).size(), 28U);
    EXPECT_EQ(written(version::binary, std::nullopt), "\r\n\r\n\0\r\nQUIT\n\x20\0\0\0"s);
    EXPECT_LE(written(version::binary, widest_v6()).size(), binary_prefix + max_sent_content);
}

TEST(proxy_writer, what_it_writes_is_read_back) {
    for (const version as : {version::text, version::binary}) {
        for (const addresses& each : {v4(), widest_v6()})
            EXPECT_EQ(transcript(written(as, each), {}),
                      to_text(each.source) + " > " + to_text(each.destination) + ", 0 behind it");
        EXPECT_EQ(transcript(written(as, std::nullopt), {}), "own addresses, 0 behind it");
    }
}

}  // namespace
}  // namespace eddy::proxy_protocol
