// LOLWUT, and MODULE, which lists none: commands without use here that clients send.
#include "cache/catalog/commands.hpp"
#include "cache/engine/call.hpp"
#include "cache/engine/version.hpp"

#include <algorithm>
#include <string>

namespace eddy::cache::commands {

// Water that turns, of as many rows as LOLWUT VERSION <n> <rows> asks for, within reason.
void lolwut(call& c) {
    constexpr std::size_t width = 48;
    std::int64_t rows = 8;
    const bool has_version = c.count > 2 && is_word(c.arg(1), "version");
    if (has_version && !c.integer(2)) return;
    if (has_version && c.count > 3) {
        const auto given = c.integer(3);
        if (!given) return;
        rows = std::min<std::int64_t>(std::max<std::int64_t>(*given, 1), 64);
    }
    std::string text;
    for (std::int64_t row = 0; row < rows; ++row) {
        for (std::size_t column = 0; column < width; ++column) {
            const std::uint64_t wave = column + static_cast<std::uint64_t>(row) * 5;
            text += " .~-=~. "[(wave + c.state.data.env.random.below(2)) % 8];
        }
        text += '\n';
    }
    text += "\nAn eddy, going round. Redis ver. ";
    text += c.state.settings.options.redis_version;
    text += '\n';
    c.reply.verbatim("txt", text);
}

void module_list(call& c) { c.reply.array(0); }

void module_help(call& c) {
    c.help({"MODULE <subcommand> [<arg> [value] [opt] ...]. Subcommands are:", "LIST",
            "    The modules, of which there are none.", "HELP", "    Print this help."});
}

void module_load(call& c) { c.error("ERR this cache takes no modules"); }

}  // namespace eddy::cache::commands
