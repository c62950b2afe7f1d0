// Parser of stream IDs, as lenient as Redis's.
#include "cache/types/streams/stream_id.hpp"

#include "cache/types/number.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace eddy::cache {
namespace {

constexpr std::size_t max_written_id = 127;

// Digits, and other forms that strtoull accepts: white space and a plus before them, leading zeros.
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

}  // namespace eddy::cache
