// What stops or debugs the cache; in admin mode only.
#include "cache/call.hpp"
#include "cache/commands.hpp"

#include <cstdio>
#include <string>

namespace eddy::cache::commands {

// The daemon would start it again at its next start, as what runs should.
void shutdown(call& c) {
    c.error("ERR a cache is stopped by its daemon: run `eddy stop` with its name");
}

void debug(call& c) {
    const std::string_view what = c.arg(1);
    if (is_word(what, "object") && c.count == 3) {
        const call::slot* const place = c.keys->find(c.arg(2));
        if (place == nullptr) return c.error(no_such_key_text);
        const entry& e = *keyspace::at(place);
        char text[160];
        std::snprintf(text, sizeof text, "Value at:%p type:%d held_as:%d flags:%d bytes:%zu",
                      static_cast<const void*>(&e), static_cast<int>(e.type),
                      static_cast<int>(e.held_as), e.flags, memory_usage(c.state.env, e, 0));
        return c.reply.simple(text);
    }
    if (is_word(what, "set-active-expire") && c.count == 3) {
        c.state.sweeps = c.arg(2) != "0";
        return c.reply.ok();
    }
    if (is_word(what, "error") && c.count == 3) return c.error(c.arg(2));
    if (is_word(what, "help") && c.count == 2) {
        constexpr std::string_view lines[] = {
            "DEBUG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
            "ERROR <string>",
            "    Reply with the text as an error.",
            "OBJECT <key>",
            "    How the key is held.",
            "SET-ACTIVE-EXPIRE <0|1>",
            "    Whether expired keys are removed that nobody looks for.",
            "HELP",
            "    Print this help."};
        c.reply.array(std::size(lines));
        for (const std::string_view line : lines) c.reply.simple(line);
        return;
    }
    c.unknown_subcommand();
}

}  // namespace eddy::cache::commands
