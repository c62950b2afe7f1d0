// Events of an event stream as text: for tests and the fuzz target to compare.
#pragma once

#include <eddy/base/assert.hpp>
#include <eddy/wire/sse.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::sse {

/// Feeds `input` cut at these ascending positions and writes each event on a line. Ends at an
/// error; `all`, if there is one, gets the events.
inline std::string transcript(parser& reader, std::string_view input,
                              const std::vector<std::size_t>& cuts,
                              std::vector<event>* all = nullptr) {
    std::string out;
    std::size_t at = 0;
    for (std::size_t piece = 0; piece <= cuts.size(); ++piece) {
        const std::size_t end = piece < cuts.size() ? cuts[piece] : input.size();
        for (bool more = true; more;) {
            // A block of its own, so that a sanitizer sees what is read behind the piece.
            const std::vector<char> block(input.begin() + static_cast<std::ptrdiff_t>(at),
                                          input.begin() + static_cast<std::ptrdiff_t>(end));
            const step one = reader.parse({block.data(), block.size()});
            EDDY_ASSERT(one.consumed <= block.size());
            at += one.consumed;
            switch (one.what) {
                case step_kind::need_more:
                    EDDY_ASSERT(at == end);
                    more = false;
                    break;
                case step_kind::error: EDDY_ASSERT(!reader.error().empty()); return out + "error\n";
                case step_kind::event: {
                    const event& got = reader.event();
                    if (all) all->push_back(got);
                    out += got.type.empty() ? "message" : got.type;
                    out.append(" '").append(got.data).append("'");
                    if (got.id) out.append(" id=").append(*got.id);
                    if (got.retry) out.append(" retry=").append(std::to_string(got.retry->count()));
                    out += '\n';
                }
            }
        }
    }
    out.append("last id '").append(reader.last_event_id()).append("', comments ");
    out += std::to_string(reader.comments());
    if (reader.retry()) out += ", retry " + std::to_string(reader.retry()->count());
    return out + '\n';
}

}  // namespace eddy::sse
