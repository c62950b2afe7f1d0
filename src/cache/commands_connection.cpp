// What a client says about its own connection.
#include "cache/call.hpp"
#include "cache/command_table.hpp"
#include "cache/commands.hpp"
#include "cache/version.hpp"

#include <string>

namespace eddy::cache::commands {
namespace {

// Looks at every byte of `given`, so that the time tells nothing about where it differs.
bool is_password(std::string_view given, std::string_view right) noexcept {
    unsigned differ = given.size() != right.size() ? 1U : 0U;
    for (std::size_t i = 0; i < given.size(); ++i) {
        const char expected = right.empty() ? '\0' : right[i % right.size()];
        differ |= static_cast<unsigned char>(given[i] ^ expected);
    }
    return differ == 0;
}

// False, with the error replied, for a wrong password.
bool authenticate(call& c, std::string_view user, std::string_view password) {
    const std::string& right = c.state.options.password;
    if (user == "default" && (right.empty() || is_password(password, right))) {
        c.client.authenticated = true;
        return true;
    }
    c.error("WRONGPASS invalid username-password pair or user is disabled.");
    return false;
}

bool is_client_name(std::string_view name) noexcept {
    for (const char each : name) {
        if (each < '!' || each > '~') return false;
    }
    return true;
}

bool set_name(call& c, std::string_view name) {
    if (!is_client_name(name)) {
        c.error("ERR Client names cannot contain spaces, newlines or special characters.");
        return false;
    }
    c.client.name = name;
    return true;
}

void append_client_line(std::string& to, const session& who, std::int64_t now_us) {
    const auto field = [&to](std::string_view name, std::string_view value) {
        if (!to.empty() && to.back() != '\n') to += ' ';
        to += name;
        to += '=';
        to += value;
    };
    constexpr std::int64_t second_us = 1'000'000;
    field("id", std::to_string(who.id));
    field("addr", who.address);
    field("laddr", who.local_address);
    field("fd", "-1");
    field("name", who.name);
    field("age", std::to_string((now_us - who.created_us) / second_us));
    field("idle", std::to_string((now_us - who.last_used_us) / second_us));
    field("flags", who.no_evict ? "e" : "N");
    field("db", std::to_string(who.db));
    field("sub", "0");
    field("psub", "0");
    field("ssub", "0");
    field("multi", "-1");
    field("cmd", who.last_command);
    field("user", "default");
    field("redir", "-1");
    field("resp", std::to_string(who.protocol));
    field("lib-name", who.library_name);
    field("lib-ver", who.library_version);
    to += '\n';
}

void client_list(call& c) {
    std::string text;
    c.state.sessions.for_each(
        [&](const session& each) { append_client_line(text, each, c.state.env.now_us); });
    c.reply.verbatim("txt", text);
}

void client_setinfo(call& c) {
    const std::string_view value = c.arg(3);
    if (!is_client_name(value)) {
        return c.error("ERR " + std::string(c.arg(2)) +
                       " cannot contain spaces, newlines or special characters.");
    }
    if (is_word(c.arg(2), "lib-name")) {
        c.client.library_name = value;
    } else if (is_word(c.arg(2), "lib-ver")) {
        c.client.library_version = value;
    } else {
        return c.error("ERR Unrecognized option '" + std::string(c.arg(2)) + "'");
    }
    c.reply.ok();
}

void client_help(call& c) {
    constexpr std::string_view lines[] = {
        "CLIENT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
        "GETNAME",
        "    Return the name of the current connection.",
        "ID",
        "    Return the ID of the current connection.",
        "INFO",
        "    Return information about the current client connection.",
        "LIST",
        "    Return information about client connections.",
        "NO-EVICT (ON|OFF)",
        "    Protect current client connection from eviction.",
        "REPLY ON",
        "    Replies are always on.",
        "SETINFO <option> <value>",
        "    Set client meta attr.",
        "SETNAME <name>",
        "    Assign the name <name> to the current connection.",
        "HELP",
        "    Print this help.",
    };
    c.reply.array(std::size(lines));
    for (const std::string_view line : lines) c.reply.simple(line);
}

struct subcommand {
    std::string_view name;
    std::size_t count;  // of all arguments
    void (*run)(call&);
};

constexpr subcommand client_subcommands[] = {
    {"id", 2, [](call& c) { c.reply.integer(static_cast<std::int64_t>(c.client.id)); }},
    {"getname", 2,
     [](call& c) { c.client.name.empty() ? c.reply.null() : c.reply.bulk(c.client.name); }},
    {"setname", 3,
     [](call& c) {
         if (set_name(c, c.arg(2))) c.reply.ok();
     }},
    {"setinfo", 4, client_setinfo},
    {"info", 2,
     [](call& c) {
         std::string text;
         append_client_line(text, c.client, c.state.env.now_us);
         c.reply.verbatim("txt", text);
     }},
    {"list", 2, client_list},
    {"no-evict", 3,
     [](call& c) {
         const bool on = is_word(c.arg(2), "on");
         if (!on && !is_word(c.arg(2), "off")) return c.syntax_error();
         c.client.no_evict = on;
         c.reply.ok();
     }},
    {"no-touch", 3,
     [](call& c) {
         if (!is_word(c.arg(2), "on") && !is_word(c.arg(2), "off")) return c.syntax_error();
         c.reply.ok();
     }},
    {"reply", 3,
     [](call& c) {
         if (!is_word(c.arg(2), "on")) return c.syntax_error();
         c.reply.ok();
     }},
    {"help", 2, client_help},
};

}  // namespace

void ping(call& c) {
    if (c.count > 2) return c.wrong_arity();
    if (c.count == 1) {
        c.reply.simple("PONG");
    } else {
        c.reply.bulk(c.arg(1));
    }
}

void echo(call& c) { c.reply.bulk(c.arg(1)); }

void quit(call& c) {
    c.client.closing = true;
    c.reply.ok();
}

void reset(call& c) {
    session& who = c.client;
    who.db = 0;
    who.protocol = 2;
    who.name.clear();
    who.no_evict = false;
    who.authenticated = c.state.options.password.empty();
    c.keys = &c.state.database(0);
    c.reply.set_protocol(2);
    c.reply.simple("RESET");
}

void select(call& c) {
    const auto number = c.database_number(1);
    if (!number) return;
    c.client.db = static_cast<std::uint8_t>(*number);
    c.keys = &c.state.database(c.client.db);
    c.reply.ok();
}

void hello(call& c) {
    int protocol = c.client.protocol;
    if (c.count > 1) {
        const auto version = c.integer(1, "ERR Protocol version is not an integer or out of range");
        if (!version) return;
        if (*version < 2 || *version > 3) return c.error("NOPROTO unsupported protocol version");
        protocol = static_cast<int>(*version);
    }
    std::optional<std::string_view> name;
    for (std::size_t i = 2; i < c.count; ++i) {
        if (is_word(c.arg(i), "auth") && i + 2 < c.count) {
            if (!authenticate(c, c.arg(i + 1), c.arg(i + 2))) return;
            i += 2;
        } else if (is_word(c.arg(i), "setname") && i + 1 < c.count) {
            name = c.arg(++i);
            if (!is_client_name(*name)) {
                return c.error(
                    "ERR Client names cannot contain spaces, newlines or special "
                    "characters.");
            }
        } else {
            const std::string_view given = c.arg(i);
            return c.error("ERR Syntax error in HELLO option '" +
                           std::string(given.substr(0, given.find('\0'))) + "'");
        }
    }
    if (!c.client.authenticated) {
        return c.error(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise "
            "the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the "
            "client and select the RESP protocol version at the same time");
    }
    if (name) c.client.name = *name;
    c.client.protocol = static_cast<std::uint8_t>(protocol);
    c.reply.set_protocol(protocol);
    c.reply.map(7);
    c.reply.bulk("server");
    c.reply.bulk("redis");
    c.reply.bulk("version");
    c.reply.bulk(compatible_version);
    c.reply.bulk("proto");
    c.reply.integer(protocol);
    c.reply.bulk("id");
    c.reply.integer(static_cast<std::int64_t>(c.client.id));
    c.reply.bulk("mode");
    c.reply.bulk("standalone");
    c.reply.bulk("role");
    c.reply.bulk("master");
    c.reply.bulk("modules");
    c.reply.array(0);
}

void auth(call& c) {
    if (c.count > 3) return c.syntax_error();
    if (c.count == 2 && c.state.options.password.empty()) {
        return c.error(
            "ERR AUTH <password> called without any password configured for the default "
            "user. Are you sure your configuration is correct?");
    }
    const std::string_view user = c.count == 2 ? "default" : c.arg(1);
    if (authenticate(c, user, c.arg(c.count - 1))) c.reply.ok();
}

void client(call& c) {
    for (const subcommand& each : client_subcommands) {
        if (!is_word(c.arg(1), each.name)) continue;
        if (c.count != each.count) return c.wrong_arity(each.name);
        return each.run(c);
    }
    c.unknown_subcommand();
}

}  // namespace eddy::cache::commands
