// EVAL and its relatives, and SCRIPT.
#include "base/text/text.hpp"
#include "cache/catalog/command_table.hpp"
#include "cache/catalog/commands.hpp"
#include "cache/engine/call.hpp"
#include "cache/script/script_text.hpp"
#include "cache/script/scripting.hpp"
#include "cache/script/scripts.hpp"

#include <optional>
#include <string>

namespace eddy::cache::commands {
namespace {

constexpr std::string_view no_script_text = "NOSCRIPT No matching script. Please use EVAL.";
constexpr std::size_t digest_digits = 40;

// The number of keys at arg(2); none with the error replied.
std::optional<std::size_t> key_count(call& c) {
    const auto count = c.integer(2);
    if (!count) return std::nullopt;
    if (*count > static_cast<std::int64_t>(c.count) - 3) {
        c.error("ERR Number of keys can't be greater than number of args");
        return std::nullopt;
    }
    if (*count < 0) {
        c.error("ERR Number of keys can't be negative");
        return std::nullopt;
    }
    return static_cast<std::size_t>(*count);
}

void run_script(call& c, scripts& all, const cached_script& script, std::size_t keys,
                bool read_only) {
    script_call what;
    what.in = &all.cache().sandbox();
    what.function = script.function;
    what.name = script.name;
    what.flags = script.flags;
    what.read_only = read_only;
    what.first_key = 3;
    what.keys = keys;
    what.arguments = c.count - 3 - keys;
    all.runner().run(c, what);
}

void eval_now(call& c, bool read_only) {
    const auto keys = key_count(c);
    if (!keys) return;
    scripts& all = scripts_of(c);
    if (const cached_script* const script = all.cache().add(c, c.arg(1), false)) {
        run_script(c, all, *script, *keys, read_only);
    }
}

void evalsha_now(call& c, bool read_only) {
    const std::string_view name = c.arg(1);
    if (name.size() != digest_digits) return c.error(no_script_text);
    const auto keys = key_count(c);
    if (!keys) return;
    scripts& all = scripts_of(c);
    const cached_script* script = all.cache().find(name);
    if (script == nullptr) script = all.cache().find(lower(name));
    if (script == nullptr) return c.error(no_script_text);
    run_script(c, all, *script, *keys, read_only);
}

}  // namespace

void eval(call& c) {
    scripting::run_with_scripts(c, [](call& inner) { eval_now(inner, false); });
}
void eval_ro(call& c) {
    scripting::run_with_scripts(c, [](call& inner) { eval_now(inner, true); });
}
void evalsha(call& c) {
    scripting::run_with_scripts(c, [](call& inner) { evalsha_now(inner, false); });
}
void evalsha_ro(call& c) {
    scripting::run_with_scripts(c, [](call& inner) { evalsha_now(inner, true); });
}

void kill_script(call& c, bool function) {
    scripts& all = scripts_of(c);
    const script_call* const running = all.runner().running();
    if (running == nullptr) return c.error("NOTBUSY No scripts in execution right now.");
    if (all.runner().has_written()) {
        return c.error(
            "UNKILLABLE Sorry the script already executed write commands against the dataset. You "
            "can either wait the script termination or kill the server in a hard way using the "
            "SHUTDOWN NOSAVE command.");
    }
    if (running->is_function != function) return c.error(scripting::busy_text(c.state));
    all.runner().kill();
    c.reply.ok();
}

void script_load(call& c) {
    if (const cached_script* const made = scripts_of(c).cache().add(c, c.arg(2), true))
        c.reply.bulk(made->name);
}

void script_exists(call& c) {
    scripts& all = scripts_of(c);
    c.reply.array(c.count - 2);
    for (std::size_t i = 2; i < c.count; ++i)
        c.reply.integer(all.cache().find(lower(c.arg(i))) != nullptr ? 1 : 0);
}

void script_show(call& c) {
    const cached_script* const found = scripts_of(c).cache().find(lower(c.arg(2)));
    if (found == nullptr) return c.error("NOSCRIPT No matching script.");
    c.reply.bulk(found->text);
}

void script_flush(call& c) {
    const bool known =
        c.count == 2 || (c.count == 3 && (is_word(c.arg(2), "sync") || is_word(c.arg(2), "async")));
    if (!known) return c.error("ERR SCRIPT FLUSH only support SYNC|ASYNC option");
    scripts_of(c).cache().flush();
    c.reply.ok();
}

void script_kill(call& c) { kill_script(c, false); }

void script_debug(call& c) {
    if (is_word(c.arg(2), "no")) return c.reply.ok();
    if (is_word(c.arg(2), "yes") || is_word(c.arg(2), "sync")) {
        return c.error("ERR there is no debugger of scripts here");
    }
    c.error("ERR Use SCRIPT DEBUG YES/SYNC/NO");
}

void script_help(call& c) {
    c.help({"SCRIPT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
            "DEBUG (YES|SYNC|NO)", "    Only NO is known: there is no debugger here.",
            "EXISTS <sha1> [<sha1> ...]", "    Which of them are in the cache of scripts.",
            "FLUSH [ASYNC|SYNC]", "    Empties the cache of scripts.", "KILL",
            "    Ends the script that runs, if it has not written.", "LOAD <script>",
            "    Puts a script into the cache without running it.", "SHOW <sha1>",
            "    The text of a script of the cache.", "HELP", "    Print this help."});
}

}  // namespace eddy::cache::commands
