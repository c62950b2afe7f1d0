// The scan of whole heads: each kernel finds the same, whatever the head's size and position, and
// reads no byte behind the input.
#include "wire/http1/head_scan.hpp"

#include <eddy/base/random.hpp>
#include <eddy/wire/http1/target.hpp>

#include "base/test_seed.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

namespace eddy::http1 {
namespace {

std::string describe(const head_scan& scan, std::string_view input) {
    std::string out = std::to_string(scan.fields_at) + "+" + std::to_string(scan.fields_size);
    const std::string_view fields = input.substr(scan.fields_at, scan.fields_size);
    for (std::size_t i = 0; i < scan.field_count; ++i) {
        const head_scan::field& f = scan.fields[i];
        out += scan.candidates << i >> 63 != 0 ? " ?" : " ";
        out.append(fields.substr(f.name_at, f.name_size)).append("=");
        out.append(fields.substr(f.value_at, f.value_size)).append(";");
    }
    return out;
}

// The input in a block of its own, so that a sanitizer sees each byte read behind it.
std::string scan_with(scan_kernel kernel, std::string_view input) {
    const auto block = std::make_unique<char[]>(input.size());
    std::copy(input.begin(), input.end(), block.get());
    const std::string_view text(block.get(), input.size());
    head_scan scan;
    if (!scan_request_with(kernel, text, scan)) return "left to the lines";
    return std::string(text.substr(0, scan.method_size)) + " " +
           std::string(text.substr(scan.method_size + 1, scan.target_size)) + " 1." +
           std::to_string(scan.minor_version) + " " + describe(scan, text);
}

std::string scan(std::string_view input) {
    std::string found = scan_with(scan_kernel::plain, input);
    if (has_kernel(scan_kernel::avx2)) {
        EXPECT_EQ(scan_with(scan_kernel::avx2, input), found) << input;
    }
    return found;
}

TEST(http1_head_scan, finds_the_parts) {
    EXPECT_EQ(scan("GET /a?b HTTP/1.1\r\nHost: x\r\nA:\r\nB: \t c d \t\r\n\r\nGET"),
              "GET /a?b 1.1 19+27 ?Host=x; A=; B=c d;");
    EXPECT_EQ(scan("G / HTTP/1.0\r\n\r\n"), "G / 1.0 14+2");
    EXPECT_EQ(scan("G / HTTP/1.7\r\n\r\n"), "G / 1.1 14+2");
}

TEST(http1_head_scan, knows_deciding_names_in_any_case) {
    EXPECT_EQ(kind_of("hOST"), field_kind::host);
    EXPECT_EQ(kind_of("EXPECT"), field_kind::expect);
    EXPECT_EQ(kind_of("Upgrade"), field_kind::upgrade);
    EXPECT_EQ(kind_of("Connection"), field_kind::connection);
    EXPECT_EQ(kind_of("Content-length"), field_kind::content_length);
    EXPECT_EQ(kind_of("TRANSFER-ENCODING"), field_kind::transfer_encoding);
    for (const char* other : {"a", "hos", "h-st", "hosts", "content_length", "content-lengtX",
                              "transfer-encodinX", "transferXencoding", "Xonnection", "cookie"}) {
        EXPECT_EQ(kind_of(other), field_kind::other) << other;
    }
}

TEST(http1_head_scan, crosses_blocks_anywhere) {
    for (std::size_t target = 1; target < 140; ++target) {
        const std::string start = "GET /" + std::string(target, 't') + " HTTP/1.1\r\n";
        for (std::size_t value = 0; value < 140; value += 1 + value / 70) {
            const std::string text = start + "Content-Length: " + std::string(value, '1') +
                                     "\r\nUser-Agent-Of-A-Long-Name: v \r\n\r\n";
            const std::string found = scan(text);
            EXPECT_TRUE(found.ends_with(" ?Content-Length=" + std::string(value, '1') +
                                        "; User-Agent-Of-A-Long-Name=v;"))
                << found;
            EXPECT_EQ(scan(text + "GET / HTTP/1.1\r\n"), found);
        }
    }
}

TEST(http1_head_scan, leaves_heads_that_are_not_whole) {
    const std::string whole =
        "GET /path HTTP/1.1\r\nHost: a.example\r\nAccept: " + std::string(60, 'a') +
        "\r\nX-Y: z\r\n\r\n";
    for (std::size_t size = 0; size < whole.size(); ++size)
        EXPECT_EQ(scan(whole.substr(0, size)), "left to the lines") << size;
    EXPECT_NE(scan(whole), "left to the lines");
}

TEST(http1_head_scan, leaves_more_fields_than_its_limit) {
    std::string head = "GET / HTTP/1.1\r\n";
    for (std::size_t i = 0; i < head_scan::field_limit; ++i) head += "host: b\r\n";
    EXPECT_NE(scan(head + "\r\n"), "left to the lines");
    EXPECT_EQ(scan(head + "A: b\r\n\r\n"), "left to the lines");
}

TEST(http1_head_scan, judges_every_byte_as_the_lines_do) {
    for (unsigned byte = 0; byte < 256; ++byte) {
        const std::string c(1, static_cast<char>(byte));
        for (const std::string& pad : {std::string(), std::string(40, 'p')}) {
            const bool in_name =
                scan("GET / HTTP/1.1\r\n" + pad + "A" + c + "B: v\r\n\r\n") != "left to the lines";
            EXPECT_EQ(in_name, is_token(c) || c == ":") << byte;
            const bool in_value =
                scan("GET / HTTP/1.1\r\nA: " + pad + "v" + c + "w\r\n\r\n") != "left to the lines";
            EXPECT_EQ(in_value, is_field_value(c)) << byte;
            const bool in_target =
                scan("GET /" + pad + c + "x HTTP/1.1\r\n\r\n") != "left to the lines";
            EXPECT_EQ(in_target, split_target("GET", "/" + c).has_value()) << byte;
            const bool in_method = scan("G" + c + " / HTTP/1.1\r\n\r\n") != "left to the lines";
            // No method in use has a '#', which ends a target: the lines judge it.
            EXPECT_EQ(in_method, is_token(c) && c != "#") << byte;
        }
    }
}

TEST(http1_head_scan, agrees_on_damaged_heads) {
    random_generator random(testing::seed_of_this_run());
    const std::string good =
        "POST /p?q=1 HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nConnection: "
        "close\r\nCookie: " +
        std::string(80, 'c') + "\r\n\r\nbody";
    using namespace std::string_view_literals;
    constexpr std::string_view spice = "\r\n\0: \t;0aG,/\xff\x7f"sv;
    for (int i = 0; i < 20000; ++i) {
        std::string input = good;
        for (std::uint64_t n = random.below(4); n > 0; --n) {
            const std::size_t at = random.below(input.size());
            switch (random.below(3)) {
                case 0: input[at] = spice[random.below(spice.size())]; break;
                case 1: input.insert(at, 1, spice[random.below(spice.size())]); break;
                default: input.erase(at, 1 + random.below(40)); break;
            }
        }
        scan(input);
    }
}

}  // namespace
}  // namespace eddy::http1
