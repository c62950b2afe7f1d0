// Transcript of a parser's events and errors as text, for tests and the fuzz target to compare.
#pragma once

#include <eddy/wire/http1.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::http1 {

inline void describe_common(std::string& out, const message_head& head) {
    out += head.minor_version == 0 ? " 1.0" : " 1.1";
    if (head.keep_alive) out += " keep-alive";
    if (head.chunked) out += " chunked";
    if (head.upgrade) out += " upgrade";
    if (head.content_length) out += " length=" + std::to_string(*head.content_length);
    for (const header h : head.headers) {
        out.append(" [").append(h.name).append("=").append(h.value).append("]");
    }
}

inline std::string describe(const request_parser& parser) {
    std::string out = parser.head().method + " " + parser.head().target;
    describe_common(out, parser.head());
    if (parser.head().expect_continue) out += " expect-continue";
    return out;
}

inline std::string describe(const response_parser& parser) {
    std::string out = std::to_string(parser.head().status) + " '" + parser.head().reason + "'";
    describe_common(out, parser.head());
    if (parser.tunnel()) out += " tunnel";
    return out;
}

/// Feeds `input` cut at these ascending places and writes each event on a line; body pieces that
/// follow each other become one. With `closed`, the peer ends behind the input. Ends at an error
/// and at a tunnel, whose rest it writes.
template <class Parser>
std::string transcript(Parser& parser, std::string_view input, const std::vector<std::size_t>& cuts,
                       bool closed = false) {
    std::string out;
    bool in_body = false;
    const auto line = [&out, &in_body](std::string_view text) {
        if (in_body) out += "'\n";
        in_body = false;
        out.append(text).append("\n");
    };
    const auto failure = [&parser] {
        return "error " + std::to_string(parser.error().status) + " " +
               std::string(parser.error().what);
    };
    std::size_t at = 0;
    for (std::size_t piece = 0; piece <= cuts.size(); ++piece) {
        const std::size_t end = piece < cuts.size() ? cuts[piece] : input.size();
        for (bool more = true; more;) {
            const step one = parser.parse(input.substr(at, end - at));
            EDDY_ASSERT(one.consumed <= end - at);
            at += one.consumed;
            switch (one.what) {
                case event::need_more:
                    EDDY_ASSERT(at == end);
                    more = false;
                    break;
                case event::head: line("head " + describe(parser)); break;
                case event::body:
                    EDDY_ASSERT(!one.body.empty());
                    if (!in_body) out += "body '";
                    in_body = true;
                    out += one.body;
                    break;
                case event::end: {
                    line("end");
                    for (const header h : parser.trailers()) {
                        line("trailer [" + std::string(h.name) + "=" + std::string(h.value) + "]");
                    }
                    if constexpr (requires { parser.tunnel(); }) {
                        if (parser.tunnel()) {
                            line("tunnel " + std::string(input.substr(at)));
                            return out;
                        }
                    }
                    break;
                }
                case event::error: line(failure()); return out;
            }
        }
    }
    if (!closed) {
        line(parser.idle() ? "idle" : "open");
        return out;
    }
    switch (parser.finish()) {
        case event::end: line("end at close"); break;
        case event::need_more: line("closed"); break;
        default: line(failure()); break;
    }
    return out;
}

}  // namespace eddy::http1
