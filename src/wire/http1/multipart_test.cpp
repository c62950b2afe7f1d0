// Forms with files: events, what is refused with which status, limits, input cut anywhere, and
// bodies that are made to cost much.
#include <eddy/base/random.hpp>

#include "base/test_seed.hpp"
#include "wire/http1/multipart_transcript.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace eddy::http1 {
namespace {

std::string parse_at(std::string_view input, const std::vector<std::size_t>& cuts,
                     const multipart_limits& limits, std::string_view boundary = "b") {
    multipart_parser parser(boundary, limits);
    return transcript(parser, input, cuts);
}

// Judges the input whole, cut at each single place and cut everywhere: always the same.
std::string parse_cut(std::string_view input, const multipart_limits& limits = {},
                      std::string_view boundary = "b") {
    const std::string whole = parse_at(input, {}, limits, boundary);
    std::vector<std::size_t> everywhere;
    for (std::size_t at = 1; at < input.size(); ++at) {
        everywhere.push_back(at);
        EXPECT_EQ(parse_at(input, {at}, limits, boundary), whole) << "cut at " << at;
    }
    EXPECT_EQ(parse_at(input, everywhere, limits, boundary), whole) << "cut everywhere";
    return whole;
}

// A part with these further fields, each with its CRLF.
std::string part(std::string_view fields, std::string_view content = "x") {
    return "--b\r\n" + std::string(fields) + "\r\n" + std::string(content) + "\r\n";
}

std::string field(std::string_view name) {
    return "Content-Disposition: form-data; name=\"" + std::string(name) + "\"\r\n";
}

// The last line: what a form of one part with these fields comes to.
std::string verdict_of(std::string_view fields, const multipart_limits& limits = {}) {
    const std::string all = parse_cut(part(fields) + "--b--", limits);
    return all.substr(all.rfind('\n', all.size() - 2) + 1);
}

TEST(http1_multipart, reads_fields_and_files) {
    EXPECT_EQ(parse_cut("--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\none\r\n"
                        "--b\r\ncontent-disposition: Form-Data; name=f; filename=\"x.png\"\r\n"
                        "Content-Type: image/png\r\n\r\n\r\n\r\r\n--\r\n--bb\n\r\n--b--\r\n"),
              "part 'a' text/plain [Content-Disposition]\ncontent 'one'\npart end\n"
              "part 'f' file 'x.png' image/png [content-disposition] [Content-Type]\n"
              "content '\r\n\r\r\n--'\n"
              "error 400 a line of the form begins with the boundary and is no delimiter\n");
    EXPECT_EQ(parse_cut(part(field("a"), "\r\n--\r\n-b\r--b\n--b") + "--b--\r\n"),
              "part 'a' text/plain [Content-Disposition]\n"
              "content '\r\n--\r\n-b\r--b\n--b'\npart end\nend\nwhole\n");
}

TEST(http1_multipart, takes_empty_parts_forms_and_names) {
    EXPECT_EQ(parse_cut("--b--"), "end\nwhole\n");
    EXPECT_EQ(parse_cut(part(field(""), "") + "--b--"),
              "part '' text/plain [Content-Disposition]\npart end\nend\nwhole\n");
    // The line break of the blank line is the delimiter's, too (RFC 2046, 5.1.1).
    EXPECT_EQ(parse_cut("--b\r\n" + field("a") + "\r\n--b--"),
              "part 'a' text/plain [Content-Disposition]\npart end\nend\nwhole\n");
    EXPECT_EQ(
        parse_cut(part("Content-Disposition: form-data; name=f; filename=\"\"\r\n") + "--b--"),
        "part 'f' file '' text/plain [Content-Disposition]\ncontent 'x'\npart end\n"
        "end\nwhole\n");
}

TEST(http1_multipart, skips_what_is_outside_of_parts) {
    EXPECT_EQ(parse_cut("before\r\n-- b\r\n--b \t\r\n" + field("a") + "\r\nx\r\n--b-- \r\nafter"),
              "part 'a' text/plain [Content-Disposition]\ncontent 'x'\npart end\nend\nwhole\n");
}

TEST(http1_multipart, refuses_what_is_cut_off) {
    const std::string whole = part(field("a")) + "--b--";
    for (std::size_t size = 0; size < whole.size(); ++size) {
        const std::string text = parse_at(whole.substr(0, size), {}, {});
        EXPECT_TRUE(text.ends_with("error 400 the form is cut off\n")) << text;
    }
}

TEST(http1_multipart, refuses_lines_that_only_begin_as_delimiters) {
    constexpr std::string_view fault =
        "error 400 a line of the form begins with the boundary and is no delimiter\n";
    for (const char* line : {"--bx", "--b-\r\n", "--b\n", "--b\r\r\n", "--b -", "--b \n", "--b-x"})
        EXPECT_EQ(parse_cut(line), fault) << line;
}

TEST(http1_multipart, refuses_malformed_headers) {
    EXPECT_EQ(verdict_of(""), "error 400 a part has no Content-Disposition\n");
    EXPECT_EQ(verdict_of(field("a") + field("b")),
              "error 400 a part has two fields Content-Disposition\n");
    EXPECT_EQ(verdict_of("Content-Disposition: attachment; name=a\r\n"),
              "error 400 the Content-Disposition of a part is not form-data\n");
    EXPECT_EQ(verdict_of("Content-Disposition: form-data\r\n"), "error 400 a part has no name\n");
    EXPECT_EQ(verdict_of("Content-Disposition: form-data; name=\"a\r\n"),
              "error 400 the Content-Disposition of a part is malformed\n");
    EXPECT_EQ(verdict_of("Content-Disposition: form-data; name=a; NAME=b\r\n"),
              "error 400 the Content-Disposition of a part has two names\n");
    EXPECT_EQ(verdict_of(field("a") + "A: b\n"),
              "error 400 a line of a part's header does not end in CRLF\n");
    EXPECT_EQ(verdict_of(field("a") + " b: c\r\n"), "error 400 a field of a part is folded\n");
    EXPECT_EQ(verdict_of(field("a") + "bc\r\n"), "error 400 a field of a part has no colon\n");
    EXPECT_EQ(verdict_of(field("a") + "b : c\r\n"),
              "error 400 a field of a part has a byte that may not stand there\n");
    EXPECT_EQ(verdict_of(field("a") + "b: \x01\r\n"),
              "error 400 a field of a part has a byte that may not stand there\n");
    EXPECT_EQ(verdict_of(field("a") + "Content-Type: a/b\r\nContent-Type: a/b\r\n"),
              "error 400 a part has two fields Content-Type\n");
    EXPECT_EQ(verdict_of(field("a") + "Content-Transfer-Encoding: base64\r\n"),
              "error 400 a part has a Content-Transfer-Encoding\n");
    EXPECT_EQ(verdict_of(field("a") + "Content-Transfer-Encoding: Binary\r\n"), "whole\n");
}

TEST(http1_multipart, has_limits) {
    multipart_limits limits;
    limits.parts = 2;
    EXPECT_TRUE(
        parse_cut(part(field("a")) + part(field("b")) + "--b--", limits).ends_with("end\nwhole\n"));
    EXPECT_TRUE(parse_cut(part(field("a")) + part(field("b")) + part(field("c")), limits)
                    .ends_with("error 413 the form has too many parts\n"));
    limits = {};
    limits.name = 3;
    EXPECT_EQ(verdict_of(field("abc"), limits), "whole\n");
    EXPECT_EQ(verdict_of(field("abcd"), limits), "error 413 the name of a part is too long\n");
    EXPECT_EQ(verdict_of("Content-Disposition: form-data; name=a; filename=abcd\r\n", limits),
              "error 413 the name of a part is too long\n");
    limits = {};
    limits.header_count = 2;
    EXPECT_EQ(verdict_of(field("a") + "b: c\r\n", limits), "whole\n");
    EXPECT_EQ(verdict_of(field("a") + "b: c\r\nd: e\r\n", limits),
              "error 413 a part has too many fields\n");
    limits = {};
    limits.header_bytes = field("a").size() + 2;
    EXPECT_EQ(verdict_of(field("a"), limits), "whole\n");
    EXPECT_EQ(verdict_of(field("ab"), limits), "error 413 the header of a part is too long\n");
    limits = {};
    limits.outside = 4;
    EXPECT_EQ(parse_cut("ab\r\n--b--cd", limits), "end\nwhole\n");
    EXPECT_EQ(parse_cut("ab\r\n--b--cde", limits),
              "end\nerror 413 there is too much outside of the parts\n");
    EXPECT_EQ(parse_cut("abcde\r\n--b--", limits),
              "error 413 there is too much outside of the parts\n");
    EXPECT_EQ(parse_cut("--b     \r\n", limits),
              "error 413 there is too much outside of the parts\n");
}

TEST(http1_multipart, any_cuts_of_random_bodies_give_the_same_events) {
    random_generator random(testing::seed_of_this_run());
    const std::vector<std::string> words = {"\r\n",
                                            "--",
                                            "b",
                                            "\r",
                                            "\n",
                                            "-",
                                            "--bab",
                                            "\r\n--bab",
                                            "\r\n--bab\r\n",
                                            "bab--",
                                            "x",
                                            field("a"),
                                            "\r\n--bab\r\n" + field("a") + "\r\n",
                                            " "};
    for (int round = 0; round < 2000; ++round) {
        std::string body = random.chance(0.7) ? "--bab\r\n" + field("n") + "\r\n" : "";
        for (auto left = random.below(20); left > 0; --left)
            body += words[random.below(words.size())];
        if (random.chance(0.7)) body += "\r\n--bab--";
        std::vector<std::size_t> cuts;
        for (std::size_t at = random.below(9); at < body.size(); at += 1 + random.below(9))
            cuts.push_back(at);
        EXPECT_EQ(parse_at(body, cuts, {}, "bab"), parse_at(body, {}, {}, "bab")) << body;
    }
}

// --- Bombs ---

// Feeds `piece` again and again; gives back how many bytes were taken before the error, which has
// this status.
std::size_t bytes_until_error(multipart_parser& parser, std::string_view piece, int status) {
    std::size_t taken = 0;
    for (int round = 0; round < 1'000'000; ++round) {
        for (std::size_t used = 0;;) {
            const multipart_step one = parser.parse(piece.substr(used));
            used += one.consumed;
            taken += one.consumed;
            if (one.what == multipart_event::error) {
                EXPECT_EQ(parser.error().status, status);
                EXPECT_FALSE(parser.finish());
                return taken;
            }
            if (one.what == multipart_event::need_more) break;
        }
    }
    ADD_FAILURE() << "it goes on for ever";
    return taken;
}

TEST(http1_multipart_bomb, a_hundred_thousand_parts_end_at_the_limit) {
    multipart_parser parser("b");
    const std::string one = part(field("a"));
    EXPECT_LE(bytes_until_error(parser, one, 413), 1001 * one.size());
}

TEST(http1_multipart_bomb, endless_headers_end_at_the_limit) {
    multipart_parser lines("b");
    EXPECT_EQ(lines.parse("--b\r\n").what, multipart_event::need_more);
    EXPECT_LE(bytes_until_error(lines, "A: b\r\n", 413), 8u * 1024);
    multipart_parser line("b");
    EXPECT_EQ(line.parse("--b\r\n").what, multipart_event::need_more);
    EXPECT_LE(bytes_until_error(line, "aaaaaaaaaaaaaaaa", 413), 8u * 1024);
}

TEST(http1_multipart_bomb, an_endless_preamble_and_epilogue_end_at_the_limit) {
    multipart_parser before("b");
    EXPECT_LE(bytes_until_error(before, "preamble\r\n-", 413), 5u * 1024);
    multipart_parser behind("b");
    EXPECT_EQ(behind.parse("--b--").what, multipart_event::end);
    EXPECT_LE(bytes_until_error(behind, "epilogue\r\n--b", 413), 5u * 1024);
}

// Each byte is compared twice at most, so the time is that of the size: 16 MiB of what looks like a
// boundary until its last byte, in pieces that cut it at another place each time, are done in the
// time of a test. A search that begins anew behind each CR would compare 70 times as much.
TEST(http1_multipart_bomb, beginnings_of_boundaries_are_content) {
    constexpr std::size_t rounds = 256;
    const std::string boundary(boundary_size_limit, '-');
    const std::string almost = "\r\n--" + boundary.substr(1) + "x";
    std::string flood;
    while (flood.size() < 64 * 1024) flood += almost;
    for (const std::string& piece : {flood, std::string(64 * 1024 + 1, '\r')}) {
        multipart_parser parser(boundary);
        const std::string begin = "--" + boundary + "\r\n" + field("a") + "\r\n";
        EXPECT_EQ(parser.parse(begin).what, multipart_event::part);
        std::size_t content = 0;
        for (std::size_t round = 0; round < rounds; ++round) {
            for (std::size_t used = 0;;) {
                const multipart_step one = parser.parse(std::string_view(piece).substr(used));
                used += one.consumed;
                if (one.what == multipart_event::need_more) break;
                ASSERT_EQ(one.what, multipart_event::content);
                content += one.content.size();
            }
        }
        const multipart_step last = parser.parse("y");
        ASSERT_EQ(last.what, multipart_event::content);
        content += last.content.size();
        EXPECT_GE(content + boundary.size() + 4, rounds * piece.size());
    }
}

// --- Boundaries and names ---

std::string boundary_in(std::string_view content_type) {
    const auto found = boundary_of(content_type);
    return found ? *found : found.error().message();
}

TEST(http1_multipart, takes_boundaries_of_content_types) {
    EXPECT_EQ(boundary_in("multipart/form-data; boundary=----WebKitFormBoundaryAbC"),
              "----WebKitFormBoundaryAbC");
    EXPECT_EQ(boundary_in("Multipart/Form-Data;charset=utf-8; BOUNDARY=\"a b'()+_,-./:=?\""),
              "a b'()+_,-./:=?");
    EXPECT_EQ(boundary_in("multipart/form-data; boundary=" + std::string(70, 'b')),
              std::string(70, 'b'));
    const auto error_of = [](std::string_view type) { return boundary_of(type).error(); };
    EXPECT_EQ(error_of("multipart/mixed; boundary=b"), errc::unsupported);
    EXPECT_EQ(error_of(""), errc::unsupported);
    EXPECT_EQ(error_of("multipart/form-data"), errc::malformed);
    EXPECT_EQ(error_of("multipart/form-data; boundary=\"\""), errc::malformed);
    EXPECT_EQ(error_of("multipart/form-data; boundary=a; boundary=b"), errc::malformed);
    EXPECT_EQ(error_of("multipart/form-data; boundary=a; b"), errc::malformed);
    EXPECT_EQ(error_of("multipart/form-data; boundary=\"a \""), errc::malformed);
    EXPECT_EQ(error_of("multipart/form-data; boundary=\"a\xc3\xa9\""), errc::malformed);
    EXPECT_EQ(error_of("multipart/form-data; boundary=" + std::string(71, 'b')), errc::malformed);
}

TEST(http1_multipart, makes_safe_names_of_files) {
    EXPECT_EQ(safe_file_name("photo.jpg"), "photo.jpg");
    EXPECT_EQ(safe_file_name("../../etc/passwd"), "passwd");
    EXPECT_EQ(safe_file_name("C:\\dir\\my file.txt"), "my file.txt");
    EXPECT_EQ(safe_file_name(".htaccess"), "htaccess");
    EXPECT_EQ(safe_file_name("a. ."), "a");
    EXPECT_EQ(safe_file_name("a\tb\x7f"), "a_b_");
    EXPECT_EQ(safe_file_name(std::string_view("a\0b", 3)), "a_b");
    EXPECT_EQ(safe_file_name("\xc3\xa9t\xc3\xa9"), "\xc3\xa9t\xc3\xa9");
    EXPECT_EQ(safe_file_name("\xe9t\xe9"), "_t_");
    for (const char* name : {"", ".", "..", "../..", "a/", "/", "\\", " . "})
        EXPECT_EQ(safe_file_name(name), "unnamed") << name;
    EXPECT_EQ(safe_file_name(std::string(300, 'a')).size(), 255u);
    std::string wide;
    for (int i = 0; i < 200; ++i) wide += "\xc3\xa9";
    EXPECT_EQ(safe_file_name(wide).size(), 254u);
}

// --- Writer ---

TEST(http1_multipart, writes_what_it_reads) {
    byte_buffer out;
    multipart_writer writer(out, "b0undary");
    writer.field("a", "one").field("\"q\"\r\n", "").file("f", "x\"y\\z.png", "image/png", "\r\n--");
    writer.begin_file("g", "", "text/plain");
    out.append("more");
    EXPECT_TRUE(writer.end_part().end());
    EXPECT_EQ(boundary_in(writer.content_type()), "b0undary");
    multipart_parser parser("b0undary");
    EXPECT_EQ(transcript(parser, out.text(), {}),
              "part 'a' text/plain [Content-Disposition]\ncontent 'one'\npart end\n"
              "part '%22q%22%0D%0A' text/plain [Content-Disposition]\npart end\n"
              "part 'f' file 'x%22y%5Cz.png' image/png [Content-Disposition] [Content-Type]\n"
              "content '\r\n--'\npart end\n"
              "part 'g' file '' text/plain [Content-Disposition] [Content-Type]\n"
              "content 'more'\npart end\nend\nwhole\n");
}

TEST(http1_multipart, writes_no_control_bytes) {
    const auto write = [](std::string_view name, std::string_view filename, std::string_view type) {
        byte_buffer out;
        return multipart_writer(out, "b").file(name, filename, type, "").end();
    };
    EXPECT_TRUE(write("a", "b", "c/d"));
    EXPECT_FALSE(write(std::string_view("\0", 1), "b", "c/d"));
    EXPECT_FALSE(write("a", "\x7f", "c/d"));
    EXPECT_FALSE(write("a", "b", "c/d\r\nX: y"));
    EXPECT_FALSE(write("a", "b", ""));
}

}  // namespace
}  // namespace eddy::http1
