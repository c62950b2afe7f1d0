// Errors for invalid stream IDs, in Redis's words.
#include "cache/commands/streams/stream_id_argument.hpp"

#include <string_view>

namespace eddy::cache {
namespace {

constexpr std::string_view invalid_id_text =
    "ERR Invalid stream ID specified as stream command argument";

}  // namespace

bool stream_id_argument(call& c, std::size_t i, stream_id& to, std::uint64_t missing_seq,
                        id_syntax syntax, bool* has_seq) {
    if (parse_stream_id(c.arg(i), to, missing_seq, syntax, has_seq)) return true;
    c.error(invalid_id_text);
    return false;
}

namespace {

bool interval_end(call& c, std::size_t i, stream_id& to, std::uint64_t missing_seq,
                  bool (*past)(stream_id&), std::string_view beyond) {
    const std::string_view text = c.arg(i);
    const bool excludes = text.size() > 1 && text[0] == '(';
    if (!parse_stream_id(excludes ? text.substr(1) : text, to, missing_seq,
                         excludes ? id_syntax::strict : id_syntax::loose)) {
        c.error(invalid_id_text);
        return false;
    }
    if (!excludes || past(to)) return true;
    c.error(beyond);
    return false;
}

}  // namespace

bool first_id_argument(call& c, std::size_t i, stream_id& to) {
    return interval_end(
        c, i, to, 0, [](stream_id& id) { return id.increment(); },
        "ERR invalid start ID for the interval");
}

bool last_id_argument(call& c, std::size_t i, stream_id& to) {
    return interval_end(
        c, i, to, stream_id::max_part, [](stream_id& id) { return id.decrement(); },
        "ERR invalid end ID for the interval");
}

}  // namespace eddy::cache
