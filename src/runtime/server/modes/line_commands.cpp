// Recognition of commands among lines.
#include "runtime/server/modes/line_commands.hpp"

namespace eddy::runtime::server {
namespace {

constexpr std::string_view master_word = "master ";
constexpr std::string_view cache_word = "cache ";

/// `line` has no newline.
line_command command_of(std::string_view line, const line_command_rules& rules) noexcept {
    if (line.size() > rules.longest) return line_command::none;
    if (rules.takes_master && line.starts_with(master_word)) return line_command::master;
    if (rules.takes_cache && line.starts_with(cache_word)) return line_command::cache;
    return line_command::none;
}

}  // namespace

line_command_split split_commands(std::string_view input,
                                  const line_command_rules& rules) noexcept {
    std::size_t at = 0;
    while (at < input.size()) {
        const std::size_t end = input.find('\n', at);
        if (end == std::string_view::npos) break;
        std::string_view line = input.substr(at, end - at);
        const line_command what = command_of(line, rules);
        if (what != line_command::none) {
            if (at > 0) return {.size = at};
            if (line.ends_with('\r')) line.remove_suffix(1);
            const std::size_t name =
                (what == line_command::master ? master_word : cache_word).size();
            return {what, end + 1, line.size() < name ? std::string_view() : line.substr(name)};
        }
        at = end + 1;
    }
    return {.size = input.size()};
}

}  // namespace eddy::runtime::server
