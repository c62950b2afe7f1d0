// IDs as clients write them, read as generously as Redis does.
#include "cache/types/stream_id.hpp"

#include "cache/engine/call.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace eddy::cache {
namespace {

constexpr std::size_t max_written_id = 127;
constexpr std::string_view invalid_id_text =
    "ERR Invalid stream ID specified as stream command argument";

// Digits, or what strtoull takes beside: white space and a plus before them, leading zeros.
bool parse_part(const char* text, std::uint64_t& to) noexcept {
    const std::size_t size = std::strlen(text);
    const auto [at, error] = std::from_chars(text, text + size, to);
    const bool is_plain = error == std::errc{} && at == text + size;
    if (is_plain) return true;
    if (const auto number = parse_integer({text, size}); number && *number < 0) return false;
    errno = 0;
    char* end = nullptr;
    to = std::strtoull(text, &end, 10);
    return errno == 0 && *text != '\0' && *end == '\0';
}

}  // namespace

bool parse_stream_id(std::string_view text, stream_id& to, std::uint64_t missing_seq,
                     id_syntax syntax, bool* has_seq) noexcept {
    if (text.size() > max_written_id) return false;
    char copy[max_written_id + 1];
    if (!text.empty()) std::memcpy(copy, text.data(), text.size());
    copy[text.size()] = '\0';
    if (has_seq != nullptr) *has_seq = true;
    if ((copy[0] == '-' || copy[0] == '+') && copy[1] == '\0') {
        to = copy[0] == '-' ? stream_id{} : stream_id::max();
        return syntax == id_syntax::loose;
    }
    char* const dash = std::strchr(copy, '-');
    if (dash != nullptr) *dash = '\0';
    stream_id parsed{0, missing_seq};
    if (!parse_part(copy, parsed.ms)) return false;
    if (dash != nullptr && has_seq != nullptr && std::strcmp(dash + 1, "*") == 0) {
        parsed.seq = 0;
        *has_seq = false;
    } else if (dash != nullptr && !parse_part(dash + 1, parsed.seq)) {
        return false;
    }
    to = parsed;
    return true;
}

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
