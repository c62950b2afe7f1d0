// CLIENT: queries about connections, its own and others, and actions on them.
#include "cache/catalog/command_table.hpp"
#include "cache/catalog/commands.hpp"
#include "cache/clients/client_line.hpp"
#include "cache/clients/client_memory.hpp"
#include "cache/clients/client_name.hpp"
#include "cache/clients/closing.hpp"
#include "cache/clients/messages.hpp"
#include "cache/clients/serving.hpp"
#include "cache/clients/session_extras.hpp"
#include "cache/clients/tracking.hpp"
#include "cache/clients/waits.hpp"
#include "cache/commands/client_filter.hpp"
#include "cache/engine/call.hpp"
#include "cache/engine/execution.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace eddy::cache::commands {
namespace {

void append_line_of(call& c, std::string& to, const client_session& who) {
    append_client_line(to, who, c.state.data.env.now_us, &who == &c.client ? c.request_bytes() : 0);
}

// ID alone, with any numbers: one line for each, in their order, as in Redis 7.2.
bool lists_by_ids(const call& c) noexcept {
    if (c.count < 4 || !is_word(c.arg(2), "id")) return false;
    for (std::size_t i = 4; i < c.count; ++i)
        if (is_client_filter(c.arg(i))) return false;
    return true;
}

bool append_lines_by_ids(call& c, std::string& to) {
    std::vector<std::uint64_t> wanted;
    for (std::size_t i = 3; i < c.count; ++i) {
        const auto id = c.integer(i, "ERR Invalid client ID");
        if (!id) return false;
        wanted.push_back(static_cast<std::uint64_t>(*id));
    }
    std::vector<const client_session*> all;
    c.state.clients.sessions.for_each([&](const client_session& each) { all.push_back(&each); });
    std::ranges::sort(all, {}, &client_session::id);
    for (const std::uint64_t id : wanted) {
        const auto found = std::ranges::lower_bound(all, id, {}, &client_session::id);
        if (found != all.end() && (*found)->id == id) append_line_of(c, to, **found);
    }
    return true;
}

}  // namespace

void client_list(call& c) {
    std::string text;
    if (lists_by_ids(c)) {
        if (!append_lines_by_ids(c, text)) return;
    } else {
        client_filter filter(false);
        if (!filter.parse(c, 2)) return;
        c.state.clients.sessions.for_each([&](const client_session& each) {
            if (filter.fits(c, each)) append_line_of(c, text, each);
        });
    }
    c.reply.verbatim("txt", text);
}

void client_info(call& c) {
    std::string text;
    append_line_of(c, text, c.client);
    c.reply.verbatim("txt", text);
}

void client_setname(call& c) {
    if (!is_client_name(c.arg(2))) {
        return c.error("ERR Client names cannot contain spaces, newlines or special characters.");
    }
    c.client.introduce().name = c.arg(2);
    note_client_memory(c.state, c.arg(2).size());
    c.reply.ok();
}

void client_setinfo(call& c) {
    const std::string_view value = c.arg(3);
    if (!is_client_name(value)) {
        return c.error("ERR " + std::string(c.arg(2)) +
                       " cannot contain spaces, newlines or special characters.");
    }
    const bool is_name = is_word(c.arg(2), "lib-name");
    if (!is_name && !is_word(c.arg(2), "lib-ver")) {
        return c.error("ERR Unrecognized option '" + std::string(c.arg(2)) + "'");
    }
    client_session::introduction& its = c.client.introduce();
    (is_name ? its.library_name : its.library_version) = value;
    note_client_memory(c.state, value.size());
    c.reply.ok();
}

// CLIENT CAPA of Valkey; unknown words are ignored there, too.
void client_capa(call& c) {
    for (std::size_t i = 2; i < c.count; ++i)
        if (is_word(c.arg(i), "redirect")) c.client.redirects = true;
    c.reply.ok();
}

void client_kill(call& c) {
    const bool old_form = c.count == 3;
    client_filter filter(!old_form);
    if (old_form)
        filter.take_address(c.arg(2));
    else if (!filter.parse(c, 2))
        return;
    std::int64_t killed = 0;
    c.state.clients.sessions.for_each([&](client_session& each) {
        if (!filter.fits(c, each)) return;
        ++killed;
        kill(c.state, each);
    });
    if (!old_form) return c.reply.integer(killed);
    killed > 0 ? c.reply.ok() : c.error("ERR No such client");
}

static void refuse_syntax(call& c) {
    const std::string_view given = c.arg(1).substr(0, 128);
    c.error("ERR unknown subcommand or wrong number of arguments for '" + std::string(given) +
            "'. Try CLIENT HELP.");
}

void client_unblock(call& c) {
    auto why = unblocked_by::timeout;
    if (c.count > 4) return refuse_syntax(c);
    if (c.count == 4) {
        if (is_word(c.arg(3), "error")) {
            why = unblocked_by::error;
        } else if (!is_word(c.arg(3), "timeout")) {
            return c.error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
        }
    }
    const auto id = c.integer(2);
    if (!id) return;
    client_session* const who = find_session(c.state, static_cast<std::uint64_t>(*id));
    const bool waits =
        who != nullptr && who->blocked &&
        (who->extras->waits_for == wait_kind::key || who->extras->waits_for == wait_kind::replicas);
    if (waits) unblock(c.state, *who, why);
    c.reply.integer(waits ? 1 : 0);
}

void client_pause(call& c) {
    if (c.count > 4) return refuse_syntax(c);
    bool writes_only = false;
    if (c.count == 4) {
        if (is_word(c.arg(3), "write")) {
            writes_only = true;
        } else if (!is_word(c.arg(3), "all")) {
            return c.error("ERR CLIENT PAUSE mode must be WRITE or ALL");
        }
    }
    const auto pause_ms = c.integer(2, "ERR timeout is not an integer or out of range");
    if (!pause_ms) return;
    if (*pause_ms < 0) return c.error("ERR timeout is negative");
    std::int64_t until_us;
    if (__builtin_mul_overflow(*pause_ms, std::int64_t{1000}, &until_us) ||
        __builtin_add_overflow(until_us, c.state.data.env.steady_us, &until_us)) {
        return c.error("ERR timeout is out of range");
    }
    // The stricter of two pauses holds, and the later deadline.
    const bool is_paused = is_client_paused(c.state);
    c.state.clients.pauses_writes_only =
        writes_only && (!is_paused || c.state.clients.pauses_writes_only);
    c.state.clients.paused_until_us = std::max(c.state.clients.paused_until_us, until_us);
    begin_pause(c.state);
    c.reply.ok();
}

void client_reply(call& c) {
    std::uint16_t& special = c.client.special;
    constexpr auto all = static_cast<std::uint16_t>(~(
        client_session::reply_off | client_session::reply_skip | client_session::reply_skip_next));
    if (is_word(c.arg(2), "on")) {
        special &= all;
        c.reply.ok();
    } else if (is_word(c.arg(2), "off")) {
        special |= client_session::reply_off;
    } else if (is_word(c.arg(2), "skip")) {
        if ((special & client_session::reply_off) == 0) special |= client_session::reply_skip_next;
    } else {
        c.syntax_error();
    }
}

// ON or OFF in arg(2), or none, with the error replied.
static std::optional<bool> on_or_off(call& c) {
    const bool on = is_word(c.arg(2), "on");
    if (on || is_word(c.arg(2), "off")) return on;
    c.syntax_error();
    return std::nullopt;
}

void client_no_evict(call& c) {
    const auto on = on_or_off(c);
    if (!on) return;
    c.client.no_evict = *on;
    c.reply.ok();
}

void client_no_touch(call& c) {
    const auto on = on_or_off(c);
    if (!on) return;
    c.client.special &= static_cast<std::uint16_t>(~client_session::no_touch);
    if (*on) c.client.special |= client_session::no_touch;
    c.reply.ok();
}

void client_help(call& c) {
    constexpr std::string_view lines[] = {
        "CLIENT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
        "CACHING (YES|NO)",
        "    Whether the keys of the next command are tracked, with OPTIN or OPTOUT.",
        "CAPA <capability> [<capability> ...]",
        "    Say what this client can do. REDIRECT: a replica answers it with its master's "
        "address.",
        "GETNAME",
        "    The name of this connection.",
        "GETREDIR",
        "    Which connection hears of changed keys in this one's place; 0: none.",
        "ID",
        "    The number of this connection.",
        "INFO",
        "    What LIST says about this connection.",
        "KILL <address>|<option> <value> [<option> <value> ...]",
        "    Close connections that have all of these. Options are ID, TYPE, USER, ADDR, LADDR, "
        "IP,",
        "    NAME, LIB-NAME, LIB-VER, FLAGS, CAPA and DB, each also with NOT- before it, and "
        "MAXAGE, "
        "IDLE",
        "    and SKIPME.",
        "LIST [<option> <value> ...]",
        "    One line for each connection, or for those that KILL's options choose.",
        "NO-EVICT (ON|OFF)",
        "    Whether this connection is spared when clients take too much memory.",
        "NO-TOUCH (ON|OFF)",
        "    Whether this connection's commands leave keys as unused as they were.",
        "PAUSE <milliseconds> [WRITE|ALL]",
        "    Hold up all commands, or those that write.",
        "REPLY (ON|OFF|SKIP)",
        "    Whether commands are answered; SKIP is for the next one.",
        "SETINFO <option> <value>",
        "    Say what library this client uses.",
        "SETNAME <name>",
        "    Name this connection.",
        "TRACKING (ON|OFF) [REDIRECT <id>] [BCAST] [PREFIX <prefix> ...] [OPTIN] [OPTOUT] [NOLOOP]",
        "    Tell this connection when keys that it has read, or below the prefixes, change.",
        "TRACKINGINFO",
        "    How this connection tracks.",
        "UNBLOCK <id> [TIMEOUT|ERROR]",
        "    End a connection's wait for a key.",
        "UNPAUSE",
        "    End a pause.",
        "HELP",
        "    Print this help.",
    };
    c.reply.array(std::size(lines));
    for (const std::string_view line : lines) c.reply.simple(line);
}

void client_id(call& c) { c.reply.integer(static_cast<std::int64_t>(c.client.id)); }

void client_getname(call& c) {
    c.client.name().empty() ? c.reply.null() : c.reply.bulk(c.client.name());
}

void client_unpause(call& c) {
    end_pause(c.state);
    c.reply.ok();
}

}  // namespace eddy::cache::commands
