// What stops or debugs the cache; in admin mode only.
#include <eddy/base/glob.hpp>

#include "cache/call.hpp"
#include "cache/commands.hpp"
#include "cache/dataset_digest.hpp"
#include "cache/persistence.hpp"

#include <cstdio>
#include <string>

namespace eddy::cache::commands {
namespace {

// A loop that slept would hold up everybody. So only the books say that it took long.
void pretend_to_sleep(call& c) {
    constexpr long double longest_s = 1e6;
    const auto seconds = parse_float(c.arg(2));
    if (!seconds || *seconds < 0 || *seconds > longest_s) return c.error(not_a_float_text);
    c.state.slow.pretend(static_cast<std::int64_t>(*seconds * 1e6L));
    c.reply.ok();
}

}  // namespace

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
    if (is_word(what, "reload") && c.count == 2) return debug_reload(c);
    if (is_word(what, "error") && c.count == 3) return c.error(c.arg(2));
    if (is_word(what, "digest") && c.count == 2) {
        return c.reply.simple(hexadecimal(dataset_digest(c.state)));
    }
    if (is_word(what, "digest-value") && c.count >= 2) {
        c.reply.array(c.count - 2);
        for (std::size_t i = 2; i < c.count; ++i) {
            const call::slot* const place = c.keys->find(c.arg(i));
            c.reply.simple(hexadecimal(
                place == nullptr ? digest{} : value_digest(c.state.env, *keyspace::at(place))));
        }
        return;
    }
    if (is_word(what, "sleep") && c.count == 3) return pretend_to_sleep(c);
    if (is_word(what, "change-repl-id") && c.count == 2) {
        c.state.run_id = make_run_id(c.state.env.random);
        return c.reply.ok();
    }
    if (is_word(what, "stringmatch-len") && c.count == 4) {
        const auto length = c.integer_in(2, 0, 1 << 20, not_an_integer_text);
        if (!length) return;
        const std::string text(static_cast<std::size_t>(*length), 'a');
        return c.reply.integer(glob_match(c.arg(3), text) ? 1 : 0);
    }
    // Settings of encodings that the cache does not have.
    for (const std::string_view ignored :
         {"quicklist-packed-threshold", "listpack-threshold", "set-disable-deny-scripts", "jmap"}) {
        if (is_word(what, ignored) && c.count >= 2) return c.reply.ok();
    }
    if (is_word(what, "help") && c.count == 2) {
        return c.help({"DEBUG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
                       "CHANGE-REPL-ID",
                       "    Take another run id.",
                       "DIGEST",
                       "    A digest of all keys and values.",
                       "DIGEST-VALUE <key> [<key> ...]",
                       "    Digests of values.",
                       "ERROR <string>",
                       "    Reply with the text as an error.",
                       "OBJECT <key>",
                       "    How the key is held.",
                       "RELOAD",
                       "    Save everything, to memory, and load it again.",
                       "SET-ACTIVE-EXPIRE <0|1>",
                       "    Whether expired keys are removed that nobody looks for.",
                       "SLEEP <seconds>",
                       "    Nobody sleeps; SLOWLOG and LATENCY tell of it as if.",
                       "STRINGMATCH-LEN <len> <pattern>",
                       "    Match a text of so many letters a.",
                       "HELP",
                       "    Print this help."});
    }
    c.unknown_subcommand();
}

}  // namespace eddy::cache::commands
