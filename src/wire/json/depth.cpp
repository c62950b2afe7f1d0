// Depth of nesting, and number of members, of a JSON text.
#include <eddy/wire/json.hpp>

#include <limits>

namespace eddy {

bool nests_deeper(std::string_view text, std::size_t levels) noexcept {
    constexpr std::size_t any = std::numeric_limits<std::size_t>::max();
    return excess_of(text, {.depth = levels, .members = any}) == json_excess::depth;
}

json_excess excess_of(std::string_view text, json_shape most) noexcept {
    std::size_t depth = 0;
    std::size_t members = 0;
    bool in_string = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (in_string) {
            if (c == '\\')
                ++i;
            else if (c == '"')
                in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            if (++depth > most.depth) return json_excess::depth;
        } else if ((c == ']' || c == '}') && depth > 0) {
            --depth;
        } else if (c == ':') {
            if (++members > most.members) return json_excess::members;
        }
    }
    return json_excess::none;
}

}  // namespace eddy
