// Helpers of the tests of content codings: encoding and decoding at once, and responses taken
// apart.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/wire/http1.hpp>

#include "http/codings/decoder.hpp"
#include "http/codings/encoder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace eddy::http::testing {

inline constexpr content_coding all_codings[] = {content_coding::gzip, content_coding::deflate,
                                                 content_coding::br, content_coding::zstd};

/// JSON that shrinks to about a fifth, and nowhere repeats itself for long.
inline std::string sample_text(std::size_t size) {
    std::string text;
    for (unsigned i = 0; text.size() < size; ++i)
        text += "{\"id\":" + std::to_string(i * 2654435761U >> 12) + ",\"name\":\"value\"},";
    text.resize(size);
    return text;
}

/// The encoded form, made of pieces of `piece` bytes.
inline std::string encoded(content_coding coding, std::string_view text,
                           std::size_t piece = SIZE_MAX) {
    auto by = encoder::make(coding, text.size());
    byte_buffer out;
    while (by && text.size() > piece) {
        EXPECT_TRUE((*by)->add(text.substr(0, piece), encoder::after::more, out));
        text.remove_prefix(piece);
    }
    EXPECT_TRUE(by && (*by)->add(text, encoder::after::end, out));
    return std::string(out.text());
}

/// Sizes by which content is cut, and its limits.
struct decoding {
    std::size_t piece = SIZE_MAX;
    std::size_t room = 64 * 1024;
    std::uint64_t limit = UINT64_MAX;
    expansion_limits expansion = {};
};

/// The decoded form, or the message of the error.
inline std::string decoded(content_coding coding, std::string_view data, decoding how = {}) {
    auto by = decoder::make(coding);
    EXPECT_TRUE(by);
    byte_buffer out;
    std::size_t before = 0;
    bool is_full = false;
    while (!data.empty() || is_full) {
        std::string_view piece = data.substr(0, is_full ? 0 : how.piece);
        data.remove_prefix(piece.size());
        do {
            before = out.size();
            const auto done = by->decode(piece, out, how.room, how.limit, how.expansion);
            if (!done) return done.error().message();
            is_full = out.size() - before == how.room;
            EXPECT_LE(out.size() - before, how.room);
            EXPECT_TRUE(is_full || piece.empty());
        } while (is_full || !piece.empty());
    }
    const auto complete = by->finish();
    return complete ? std::string(out.text()) : complete.error().message();
}

/// A response, its content decoded.
struct answer {
    int status = 0;
    http1::header_list fields;
    std::string content;  ///< as it was sent
    std::string plain;    ///< decoded
    bool is_whole = false;

    std::string field(std::string_view name) const {
        return std::string(fields.find(name).value_or(""));
    }
};

/// Takes apart what a server sent in answer to a request of this method.
inline answer parsed(std::string_view text, std::string_view method = "GET") {
    http1::response_parser parser;
    parser.expect_response_to(method);
    parser.set_body_limit(UINT64_MAX);
    answer got;
    byte_buffer content;
    for (;;) {
        const http1::step step = parser.collect(text, content);
        text.remove_prefix(step.consumed);
        if (step.what == http1::event::head) {
            got.status = parser.head().status;
            got.fields = parser.head().headers;
        }
        got.is_whole = step.what == http1::event::end;
        if (step.what != http1::event::head) break;
    }
    got.content = content.text();
    const auto coding = coding_of(got.fields);
    got.plain =
        coding && *coding != content_coding::identity ? decoded(*coding, got.content) : got.content;
    return got;
}

}  // namespace eddy::http::testing
