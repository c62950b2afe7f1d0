// Events of a multipart parser as text: for tests and the fuzz target to compare.
#pragma once

#include <eddy/base/assert.hpp>
#include <eddy/wire/http1/multipart.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::http1 {

/// Feeds a whole body, cut at these ascending places, and writes each event on a line; pieces of
/// content that follow each other become one.
inline std::string transcript(multipart_parser& parser, std::string_view input,
                              const std::vector<std::size_t>& cuts) {
    std::string out;
    bool in_content = false;
    const auto line = [&](const std::string& text) {
        if (in_content) out += "'\n";
        in_content = false;
        out += text + "\n";
    };
    const auto failure = [&] {
        return "error " + std::to_string(parser.error().status) + " " +
               std::string(parser.error().what);
    };
    std::size_t at = 0;
    for (std::size_t piece = 0; piece <= cuts.size(); ++piece) {
        const std::size_t end = piece < cuts.size() ? cuts[piece] : input.size();
        for (bool more = true; more;) {
            const multipart_step one = parser.parse(input.substr(at, end - at));
            EDDY_ASSERT(one.consumed <= end - at);
            at += one.consumed;
            switch (one.what) {
                case multipart_event::need_more:
                    EDDY_ASSERT(at == end);
                    more = false;
                    break;
                case multipart_event::part: {
                    const part_head& head = parser.head();
                    std::string text = "part '" + head.name + "'";
                    if (head.filename) text += " file '" + *head.filename + "'";
                    text += " " + head.content_type;
                    for (const header each : head.headers)
                        text.append(" [").append(each.name).append("]");
                    line(text);
                    break;
                }
                case multipart_event::content:
                    EDDY_ASSERT(!one.content.empty());
                    if (!in_content) out += "content '";
                    in_content = true;
                    out += one.content;
                    break;
                case multipart_event::part_end: line("part end"); break;
                case multipart_event::end: line("end"); break;
                case multipart_event::error: line(failure()); return out;
            }
        }
    }
    line(parser.finish() ? "whole" : failure());
    return out;
}

}  // namespace eddy::http1
