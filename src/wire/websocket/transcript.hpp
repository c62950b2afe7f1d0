// Events of a parser as text: for tests and the fuzz target to compare.
#pragma once

#include <eddy/wire/websocket.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::websocket {

/// One message or its beginning, as transcript() writes it.
inline std::string describe(std::string_view what, opcode kind, bool is_compressed,
                            std::string_view data) {
    std::string out(what);
    out += kind == opcode::text ? " text" : " binary";
    if (is_compressed) out += " compressed";
    return out.append(" '").append(data).append("'\n");
}

enum class reading : unsigned char { in_place, collected };

/// Feeds `input` cut at these ascending positions and writes each event on a line, data once its
/// message ends. The text is the same for both ways of reading. Ends at an error.
inline std::string transcript(parser& reader, std::string_view input,
                              const std::vector<std::size_t>& cuts, reading how) {
    std::string out;
    std::string copy(input);
    byte_buffer message;
    bool is_open = false;
    std::size_t at = 0;
    const auto open_message = [&] {
        const bool has_begun = how == reading::in_place ? is_open : !message.empty();
        return has_begun && !message.empty()
                   ? describe("open", reader.message().kind, reader.message().is_compressed,
                              message.text())
                   : std::string();
    };
    for (std::size_t piece = 0; piece <= cuts.size(); ++piece) {
        const std::size_t end = piece < cuts.size() ? cuts[piece] : input.size();
        for (bool more = true; more;) {
            // A block of its own, so that a sanitizer sees what is read behind the piece.
            std::vector<std::byte> block(end - at);
            for (std::size_t i = 0; i < block.size(); ++i) block[i] = std::byte(copy[at + i]);
            const step one = how == reading::in_place ? reader.parse(block)
                                                      : reader.collect(as_text(block), message);
            if (one.what != event::error) {
                EDDY_ASSERT(one.consumed <= block.size());
                at += one.consumed;
            }
            switch (one.what) {
                case event::need_more:
                    EDDY_ASSERT(at == end);
                    more = false;
                    break;
                case event::message_begin:
                    EDDY_ASSERT(!is_open && how == reading::in_place);
                    is_open = true;
                    break;
                case event::data:
                    EDDY_ASSERT(is_open && !one.data.empty());
                    message.append(one.data);
                    break;
                case event::message_end:
                    EDDY_ASSERT(is_open || how == reading::collected);
                    EDDY_ASSERT(reader.message().size == message.size());
                    is_open = false;
                    out += describe("message", reader.message().kind,
                                    reader.message().is_compressed, message.text());
                    message.clear();
                    break;
                case event::ping: out.append("ping '").append(one.data).append("'\n"); break;
                case event::pong: out.append("pong '").append(one.data).append("'\n"); break;
                case event::close:
                    out += "close " + std::to_string(static_cast<unsigned>(one.code));
                    out.append(" '").append(one.data).append("'\n");
                    break;
                case event::error:
                    EDDY_ASSERT(!reader.error().what.empty());
                    EDDY_ASSERT(!reader.finish());
                    out += open_message();
                    return out + "error " +
                           std::to_string(static_cast<unsigned>(reader.error().code)) + "\n";
            }
        }
    }
    out += open_message();
    return out + (reader.is_closed() ? "closed\n" : reader.is_idle() ? "idle\n" : "unfinished\n");
}

}  // namespace eddy::websocket
