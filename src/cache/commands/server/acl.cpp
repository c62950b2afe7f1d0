// ACL: creation, change, listing and removal of users; the log of refusals.
#include "cache/acl/acl.hpp"

#include "base/text/text.hpp"
#include "cache/acl/access.hpp"
#include "cache/acl/acl_file.hpp"
#include "cache/catalog/command_names.hpp"
#include "cache/catalog/command_table.hpp"
#include "cache/catalog/commands.hpp"
#include "cache/clients/waits.hpp"
#include "cache/engine/call.hpp"
#include "cache/engine/execution.hpp"
#include "cache/engine/server_host.hpp"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <span>
#include <string>
#include <vector>

namespace eddy::cache::commands {

void acl_whoami(call& c) { c.reply.bulk(c.client.user->name()); }

void acl_users(call& c) {
    c.reply.array(c.state.settings.users.size());
    c.state.settings.users.for_each([&](const acl::user& each) { c.reply.bulk(each.name()); });
}

void acl_list(call& c) {
    c.reply.array(c.state.settings.users.size());
    c.state.settings.users.for_each([&](const acl::user& each) {
        if (!c.reply_is_too_large()) c.reply.bulk("user " + each.name() + ' ' + each.written());
    });
}

static void reply_selector(call& c, const acl::selector& what) {
    c.reply.bulk("commands");
    c.reply.bulk(what.commands());
    c.reply.bulk("keys");
    c.reply.bulk(what.keys());
    c.reply.bulk("channels");
    c.reply.bulk(what.channels());
}

void acl_getuser(call& c) {
    const acl::user* const user = c.state.settings.users.find(c.arg(2));
    if (user == nullptr) return c.reply.null();
    c.reply.map(6);
    c.reply.bulk("flags");
    const std::vector<std::string_view> flags = user->flags();
    c.reply.set(flags.size());
    for (const std::string_view each : flags) c.reply.bulk(each);
    c.reply.bulk("passwords");
    c.reply.array(user->passwords().size());
    for (const sha256_digest& each : user->passwords()) c.reply.bulk(to_hex(each));
    const std::span<const acl::selector> selectors = user->selectors();
    reply_selector(c, selectors.front());
    c.reply.bulk("selectors");
    c.reply.array(selectors.size() - 1);
    for (const acl::selector& each : selectors.subspan(1)) {
        c.reply.map(3);
        reply_selector(c, each);
    }
}

void acl_setuser(call& c) {
    const std::string_view name = c.arg(2);
    const bool has_spaces =
        std::ranges::any_of(name, [](unsigned char each) { return std::isspace(each) || !each; });
    if (has_spaces) return c.error("ERR Usernames can't contain spaces or null characters");
    engine_state& s = c.state;
    acl::user* const old = s.settings.users.find(name);
    if (old == nullptr &&
        (s.settings.users.size() >= acl::max_users || name.size() > acl::max_user_bytes)) {
        return c.error("ERR too many users, or too long a name: there may be " +
                       std::to_string(acl::max_users));
    }
    const bool all_channels = s.settings.options.new_users_use_channels;
    acl::user changed = old != nullptr ? *old : acl::user(name, all_channels);
    changed.begin_with_all_channels(all_channels);
    if (auto done = changed.apply({c.args + 3, c.count - 3}); !done) {
        return c.error("ERR " + done.error());
    }
    if (old == nullptr) {
        s.settings.users.add(std::move(changed));
    } else {
        *old = std::move(changed);
        close_forbidden_subscribers(s, *old);
        note_all_permissions(s);
    }
    c.reply.ok();
}

void acl_deluser(call& c) {
    engine_state& s = c.state;
    for (std::size_t i = 2; i < c.count; ++i) {
        if (c.arg(i) == "default") return c.error("ERR The 'default' user cannot be removed");
    }
    std::int64_t removed = 0;
    for (std::size_t i = 2; i < c.count; ++i) {
        const auto gone = s.settings.users.remove(c.arg(i));
        if (gone == nullptr) continue;
        ++removed;
        close_sessions_of(s, *gone);
    }
    c.reply.integer(removed);
}

void acl_cat(call& c) {
    if (c.count > 3) return c.wrong_subcommand();
    if (c.count == 2) {
        const auto names = command_category_names();
        c.reply.array(names.size());
        for (const std::string_view each : names) c.reply.bulk(each.substr(1));
        return;
    }
    const auto names = acl::names_in_category(c.arg(2));
    if (!names)
        return c.error("ERR Unknown category '" + std::string(until_nul(c.arg(2), 128)) + "'");
    c.reply.array(names->size());
    for (const std::string& each : *names) c.reply.bulk(each);
}

void acl_genpass(call& c) {
    if (c.count > 3) return c.wrong_subcommand();
    constexpr std::int64_t most = 4096;
    constexpr std::int64_t usual = 256;
    constexpr std::string_view wrong =
        "ERR ACL GENPASS argument must be the number of bits for the output password, a positive "
        "number up to 4096";
    std::int64_t bits = usual;
    if (c.count == 3) {
        const auto given = c.integer(2);
        if (!given) return;
        if (*given <= 0 || *given > most) return c.error(wrong);
        bits = *given;
    }
    std::array<unsigned char, most / 8> random;
    const std::size_t digits = static_cast<std::size_t>(bits + 3) / 4;
    const std::size_t bytes = (digits + 1) / 2;
    for (std::size_t got = 0; got < bytes;) {
        const ssize_t more = ::getrandom(random.data() + got, bytes - got, 0);
        if (more > 0) got += static_cast<std::size_t>(more);
    }
    std::string text;
    for (std::size_t i = 0; i < digits; ++i) {
        text += "0123456789abcdef"[random[i / 2] >> (i % 2 * 4) & 15];
    }
    c.reply.bulk(text);
}

static void reply_refusal(call& c, const access_log::entry& what) {
    constexpr std::string_view reasons[] = {"", "command", "key", "auth", "channel"};
    constexpr std::string_view contexts[] = {"toplevel", "multi", "lua"};
    c.reply.map(10);
    const auto text = [&c](std::string_view name, std::string_view value) {
        c.reply.bulk(name);
        c.reply.bulk(value);
    };
    const auto number = [&c](std::string_view name, std::int64_t value) {
        c.reply.bulk(name);
        c.reply.integer(value);
    };
    number("count", static_cast<std::int64_t>(what.count));
    text("reason", reasons[static_cast<std::size_t>(what.why)]);
    text("context", contexts[static_cast<std::size_t>(what.where)]);
    text("object", what.object);
    text("username", what.user);
    c.reply.bulk("age-seconds");
    c.reply.number(static_cast<double>(c.now_ms() - what.created_ms) / 1000);
    text("client-info", what.client);
    number("entry-id", static_cast<std::int64_t>(what.id));
    number("timestamp-created", what.created_ms);
    number("timestamp-last-updated", what.updated_ms);
}

void acl_log(call& c) {
    if (c.count > 3) return c.wrong_subcommand();
    constexpr std::int64_t usual = 10;
    std::int64_t wanted = usual;
    if (c.count == 3) {
        if (is_word(c.arg(2), "reset")) {
            c.state.clients.refusals.clear();
            return c.reply.ok();
        }
        const auto given = c.integer(2);
        if (!given) return;
        wanted = std::max<std::int64_t>(*given, 0);
    }
    const auto& entries = c.state.clients.refusals.entries();
    const std::size_t count = std::min(static_cast<std::size_t>(wanted), entries.size());
    c.reply.array(count);
    for (std::size_t i = 0; i < count; ++i) reply_refusal(c, entries[i]);
}

void acl_dryrun(call& c) {
    const acl::user* const user = c.state.settings.users.find(c.arg(2));
    if (user == nullptr)
        return c.error("ERR User '" + std::string(until_nul(c.arg(2))) + "' not found");
    const command_spec* const spec =
        find_named(c.state.settings.renamed.get(), fold_command_name(c.arg(3)));
    if (spec == nullptr)
        return c.error("ERR Command '" + std::string(until_nul(c.arg(3))) + "' not found");
    const std::span<const std::string_view> args(c.args + 3, c.count - 3);
    if (!arity_fits(*spec, args.size())) {
        return c.error("ERR wrong number of arguments for '" + acl::full_name(*spec, args) +
                       "' command");
    }
    const acl::verdict its = user->check(*spec, args);
    if (its.why == acl::refusal::none) return c.reply.ok();
    const std::string begin = "User " + user->name() + " has no permissions to ";
    const std::string argument(until_nul(args[its.argument]));
    switch (its.why) {
        case acl::refusal::key: return c.reply.bulk(begin + "access the '" + argument + "' key");
        case acl::refusal::channel:
            return c.reply.bulk(begin + "access the '" + argument + "' channel");
        default: c.reply.bulk(begin + "run the '" + acl::full_name(*spec, args) + "' command");
    }
}

// False, with the error replied, where there is no file, or nothing can wait for it.
static bool may_use_file(call& c) {
    if (!settings_of(c.state.server).acl_file.empty()) {
        if (may_wait(c)) return true;
        c.error("ERR a transaction does not wait for a file: send this command outside of it");
        return false;
    }
    c.error(
        "ERR This Redis instance is not configured to use an ACL file. You may want to specify "
        "users via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a "
        "Redis configuration file set) in order to store users in the Redis configuration.");
    return false;
}

void acl_save(call& c) {
    if (!may_use_file(c)) return;
    wait_for_server(c);
    c.state.server->save_users(c.client.id, acl::to_file(c.state.settings.users));
}

void acl_load(call& c) {
    if (!may_use_file(c)) return;
    wait_for_server(c);
    c.state.server->load_users(c.client.id);
}

void acl_help(call& c) {
    c.help({"ACL <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
            "CAT [<category>]",
            "    The categories of commands, or the commands of one.",
            "DELUSER <username> [<username> ...]",
            "    Remove users, and close their connections.",
            "DRYRUN <username> <command> [<arg> ...]",
            "    Whether the user may run the command.",
            "GENPASS [<bits>]",
            "    A password by chance, of 256 bits or as many.",
            "GETUSER <username>",
            "    What the user may do.",
            "LIST",
            "    All users as rules.",
            "LOAD",
            "    Read the users from the file.",
            "LOG [<count>|RESET]",
            "    What was refused.",
            "SAVE",
            "    Write the users to the file.",
            "SETUSER <username> <rule> [<rule> ...]",
            "    Make or change a user.",
            "USERS",
            "    The names of all users.",
            "WHOAMI",
            "    Whom this connection acts for.",
            "HELP",
            "    Print this help."});
}

}  // namespace eddy::cache::commands
