// Lines and delimited messages: every split of the input, the limits, the end of the stream, and
// waits that are cancelled.
#include <eddy/io/line_reader.hpp>

#include <eddy/io/scope.hpp>

#include "io/testing.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::testing {
namespace {

/// Sends `text` in pieces that end at `cuts`, each in turns of its own, and finishes.
task<> send_pieces(stream& to, std::string text, std::vector<std::size_t> cuts) {
    cuts.push_back(text.size());
    std::size_t begin = 0;
    for (const std::size_t end : cuts) {
        const std::string piece = text.substr(begin, end - begin);
        begin = end;
        const auto sent = co_await to.write_all(piece);
        if (!sent) co_return;  // the reader has had enough
        for (int i = 0; i < 3; ++i) co_await loop::current().yield();
    }
    static_cast<void>(to.shutdown_write());
}

/// Each line in brackets, then the error and the rest.
task<> read_lines(stream& from, std::size_t longest, std::string& seen) {
    line_reader lines(from, longest);
    for (;;) {
        const auto line = co_await lines.next();
        if (!line) {
            seen += line.error().message();
            // The number of bytes that have come by then depends on the pieces.
            if (line.error() != errc::limit_reached) seen += " (" + std::string(lines.rest()) + ")";
            const auto again = co_await lines.next();
            EXPECT_EQ(error_of(again), line.error()) << "it is repeated";
            break;
        }
        seen += "[" + std::string(*line) + "]";
    }
    from.close();
}

task<> read_heads(stream& from, std::size_t limit, std::string& seen) {
    std::string kept;
    for (;;) {
        const auto size = co_await read_until(from, kept, "\r\n\r\n", limit);
        if (!size) {
            seen += size.error().message();
            if (size.error() != errc::limit_reached) seen += " (" + kept + ")";
            break;
        }
        seen += "[" + kept.substr(0, *size) + "]";
        kept.erase(0, *size);
    }
    from.close();
}

class line_reader_io : public on_io_backend {
protected:
    using reading = task<> (*)(stream& from, std::size_t limit, std::string& seen);

    std::string seen_in_pieces(reading read, std::size_t limit, const std::string& text,
                               const std::vector<std::size_t>& cuts) {
        std::string seen;
        run([&]() -> task<> {
            connection pair = co_await connect();
            co_await join_scope([&](scope& children) -> task<> {
                children.spawn(send_pieces(pair.client, text, cuts));
                children.spawn(read(pair.server, limit, seen));
                co_return;
            });
        });
        return seen;
    }

    /// `text` whole, in two pieces of any size, and byte by byte.
    void expect_of_every_split(reading read, std::size_t limit, const std::string& text,
                               const std::string& expected) {
        EXPECT_EQ(seen_in_pieces(read, limit, text, {}), expected);
        std::vector<std::size_t> all;
        for (std::size_t cut = 1; cut < text.size(); ++cut) {
            EXPECT_EQ(seen_in_pieces(read, limit, text, {cut}), expected) << "cut at " << cut;
            all.push_back(cut);
        }
        EXPECT_EQ(seen_in_pieces(read, limit, text, all), expected) << "byte by byte";
    }

    static std::string end() { return make_error_code(errc::end_of_stream).message() + " ()"; }
    static std::string truncated(const std::string& rest) {
        return make_error_code(errc::truncated).message() + " (" + rest + ")";
    }
    static std::string limit_reached() { return make_error_code(errc::limit_reached).message(); }
};
INSTANTIATE_TEST_SUITE_P(io, line_reader_io,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll,
                                           io_backend_kind::sim),
                         io_backend_name);

TEST_P(line_reader_io, every_split_gives_the_same_lines) {
    expect_of_every_split(read_lines, 100, "one\r\n\ntwo\n\r\r\nth\rree\r\n",
                          "[one][][two][\r][th\rree]" + end());
    expect_of_every_split(read_lines, 100, "one\nhal", "[one]" + truncated("hal"));
    expect_of_every_split(read_lines, 100, "one\r", truncated("one\r"));
    const std::string zeros("a\0b\n\0\n", 6);
    expect_of_every_split(read_lines, 100, zeros,
                          "[" + zeros.substr(0, 3) + "][" + zeros.substr(4, 1) + "]" + end());
    EXPECT_EQ(seen_in_pieces(read_lines, 100, "", {}), end());
}

TEST_P(line_reader_io, every_split_meets_the_same_limit) {
    expect_of_every_split(read_lines, 3, "abc\nabc\r\n", "[abc][abc]" + end());
    expect_of_every_split(read_lines, 3, "abc\nabcd\nab\n", "[abc]" + limit_reached());
    expect_of_every_split(read_lines, 3, "abc\r\r\n", limit_reached());
    expect_of_every_split(read_lines, 3, "abc\rd\n", limit_reached());
    expect_of_every_split(read_lines, 3, "abcd", limit_reached());
    expect_of_every_split(read_lines, 3, "abc\r", truncated("abc\r"));
    expect_of_every_split(read_lines, 0, "\n\r\n", "[][]" + end());
    expect_of_every_split(read_lines, 0, "\na", "[]" + limit_reached());
}

TEST_P(line_reader_io, every_split_gives_the_same_messages) {
    expect_of_every_split(read_heads, 100, "GET /\r\n\r\n\r\n\r\nx\r\n\r\r\n\r\n",
                          "[GET /\r\n\r\n][\r\n\r\n][x\r\n\r\r\n\r\n]" + end());
    expect_of_every_split(read_heads, 100, "a\r\n\r\nb\r\n\r",
                          "[a\r\n\r\n]" + truncated("b\r\n\r"));
    expect_of_every_split(read_heads, 7, "abc\r\n\r\nabcd\r\n\r\n",
                          "[abc\r\n\r\n]" + limit_reached());
    expect_of_every_split(read_heads, 7, "abcdefg", limit_reached());
    expect_of_every_split(read_heads, 7, "abcdef", truncated("abcdef"));
}

TEST_P(line_reader_io, many_lines_in_pieces_of_any_size) {
    std::vector<std::string> lines;
    std::string text;
    for (int i = 0; i < 5000; ++i) {
        lines.emplace_back(random().below(random().chance(0.01) ? 20000 : 60), 'x');
        text += lines.back() + (random().chance(0.5) ? "\n" : "\r\n");
    }
    run([&]() -> task<> {
        connection pair = co_await connect();
        co_await join_scope([&](scope& children) -> task<> {
            std::vector<std::size_t> cuts;
            for (std::size_t at = 0;;) {
                at += 1 + random().below(30000);
                if (at >= text.size()) break;
                cuts.push_back(at);
            }
            children.spawn(send_pieces(pair.client, text, cuts));
            line_reader from(pair.server);
            for (const std::string& line : lines) EXPECT_EQ(must(co_await from.next()), line);
            EXPECT_EQ(error_of(co_await from.next()), errc::end_of_stream);
        });
    });
}

TEST_P(line_reader_io, a_cancelled_wait_loses_no_byte) {
    run([this]() -> task<> {
        connection pair = co_await connect();
        line_reader lines(pair.server);
        must(co_await pair.client.write_all("first\nsec"));
        EXPECT_EQ(must(co_await lines.next()), "first");
        EXPECT_EQ(error_of(co_await with_timeout(20ms, lines.next())), errc::timed_out);
        EXPECT_EQ(lines.rest(), "sec");
        must(co_await pair.client.write_all("ond\n"));
        EXPECT_EQ(must(co_await lines.next()), "second");

        std::string kept;
        must(co_await pair.client.write_all("hal"));
        EXPECT_EQ(error_of(co_await with_timeout(20ms, read_until(pair.server, kept, "|"))),
                  errc::timed_out);
        EXPECT_EQ(kept, "hal");
        must(co_await pair.client.write_all("f|next"));
        EXPECT_EQ(must(co_await read_until(pair.server, kept, "|")), 5U);
        EXPECT_EQ(kept, "half|next");
    });
}

TEST_P(line_reader_io, what_came_behind_a_line_is_there_for_what_follows_it) {
    run([this]() -> task<> {
        connection pair = co_await connect();
        line_reader lines(pair.server);
        must(co_await pair.client.write_all("length 7\nabc\nefg"));
        const auto head = must(co_await lines.next());
        EXPECT_EQ(head, "length 7");
        EXPECT_EQ(lines.rest(), "abc\nefg");
        EXPECT_EQ(head, "length 7") << "it is unchanged until the next line";
    });
}

TEST_P(line_reader_io, a_line_that_is_there_needs_no_wait) {
    run([this]() -> task<> {
        connection pair = co_await connect();
        line_reader lines(pair.server);
        must(co_await pair.client.write_all("one\ntwo\n"));
        EXPECT_EQ(must(co_await lines.next()), "one");
        cancel_source stop;
        stop.request();
        EXPECT_EQ(must(co_await lines.next().under(stop)), "two");
        EXPECT_EQ(error_of(co_await lines.next().under(stop)), errc::cancelled);
        must(co_await pair.client.write_all("three\n"));
        EXPECT_EQ(must(co_await lines.next()), "three");
    });
}

}  // namespace
}  // namespace eddy::testing
