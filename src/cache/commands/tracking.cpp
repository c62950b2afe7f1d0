// CLIENT TRACKING, CACHING, GETREDIR and TRACKINGINFO.
#include "cache/clients/tracking.hpp"

#include "base/text/text.hpp"
#include "cache/catalog/commands.hpp"
#include "cache/engine/call.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace eddy::cache::commands {
namespace {

using namespace tracking_option;

bool tracks(const call& c) noexcept { return (c.client.special & client_session::tracking) != 0; }

std::uint8_t options_of(const call& c) noexcept {
    return tracks(c) ? c.client.extras->tracking : 0;
}

bool overlap(std::string_view a, std::string_view b) noexcept {
    return a.starts_with(b) || b.starts_with(a);
}

// The client's prefixes in order.
std::vector<std::string_view> prefixes_of(call& c) {
    std::vector<std::string_view> names;
    if (!c.client.extras) return names;
    c.client.extras->prefixes.for_each(
        [&](name_topic& topic, name_topic::member&) { names.push_back(topic.name); });
    std::ranges::sort(names);
    return names;
}

bool prefixes_fit(call& c, const std::vector<std::string_view>& given) {
    const std::vector<std::string_view> there = prefixes_of(c);
    std::size_t bytes = c.client.extras ? c.client.extras->prefixes.bytes() : 0;
    for (const std::string_view each : given) bytes += each.size() + name_set::overhead;
    if (given.size() + there.size() > max_tracking_prefixes ||
        bytes > c.state.settings.options.clients.max_names) {
        c.error("ERR too many prefixes: a client may have " +
                std::to_string(max_tracking_prefixes) + " of " +
                std::to_string(c.state.settings.options.clients.max_names) + " bytes at most");
        return false;
    }
    const auto refuse = [&c](std::string_view one, const char* between, std::string_view other) {
        c.error("ERR Prefix '" + std::string(until_nul(one)) + between +
                std::string(until_nul(other)) +
                "'. Prefixes for a single client must not overlap.");
        return false;
    };
    for (std::size_t i = 0; i < given.size(); ++i) {
        for (const std::string_view old : there) {
            if (overlap(old, given[i])) {
                return refuse(given[i], "' overlaps with an existing prefix '", old);
            }
        }
        for (std::size_t j = i + 1; j < given.size(); ++j) {
            if (overlap(given[i], given[j])) {
                return refuse(given[i], "' overlaps with another provided prefix '", given[j]);
            }
        }
    }
    return true;
}

// True if the options fit together, and with the client's earlier ones.
bool options_fit(call& c, std::uint8_t wanted, const std::vector<std::string_view>& prefixes) {
    const std::uint8_t old = options_of(c);
    const auto refuse = [&c](std::string_view why) {
        c.error(why);
        return false;
    };
    if ((wanted & broadcast) == 0 && !prefixes.empty()) {
        return refuse("ERR PREFIX option requires BCAST mode to be enabled");
    }
    if (tracks(c) && ((old ^ wanted) & broadcast) != 0) {
        return refuse(
            "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and "
            "then re-enabling it with a different mode.");
    }
    if ((wanted & broadcast) != 0 && (wanted & (opt_in | opt_out)) != 0) {
        return refuse("ERR OPTIN and OPTOUT are not compatible with BCAST");
    }
    if ((wanted & opt_in) != 0 && (wanted & opt_out) != 0) {
        return refuse("ERR You can't specify both OPTIN mode and OPTOUT mode");
    }
    if (((wanted & opt_in) != 0 && (old & opt_out) != 0) ||
        ((wanted & opt_out) != 0 && (old & opt_in) != 0)) {
        return refuse(
            "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and "
            "then re-enabling it with a different mode.");
    }
    return (wanted & broadcast) == 0 || prefixes_fit(c, prefixes);
}

}  // namespace

void client_tracking(call& c) {
    std::int64_t redirection = 0;
    std::uint8_t options = 0;
    std::vector<std::string_view> prefixes;
    for (std::size_t i = 3; i < c.count; ++i) {
        const std::string_view word = c.arg(i);
        const bool has_more = i + 1 < c.count;
        if (is_word(word, "redirect") && has_more) {
            if (redirection != 0) {
                return c.error("ERR A client can only redirect to a single other client");
            }
            const auto id = c.integer(++i);
            if (!id) return;
            redirection = *id;
            const client_session* const to =
                find_session(c.state, static_cast<std::uint64_t>(redirection));
            if (to == nullptr || (to->closing && to != &c.client)) {
                return c.error("ERR The client ID you want redirect to does not exist");
            }
        } else if (is_word(word, "bcast")) {
            options |= broadcast;
        } else if (is_word(word, "optin")) {
            options |= opt_in;
        } else if (is_word(word, "optout")) {
            options |= opt_out;
        } else if (is_word(word, "noloop")) {
            options |= no_loop;
        } else if (is_word(word, "prefix") && has_more) {
            prefixes.push_back(c.arg(++i));
        } else {
            return c.syntax_error();
        }
    }
    if (is_word(c.arg(2), "on")) {
        if (!options_fit(c, options, prefixes)) return;
        start_tracking(c.state, c.client, static_cast<std::uint64_t>(redirection), options,
                       prefixes);
    } else if (is_word(c.arg(2), "off")) {
        stop_tracking(c.state, c.client);
    } else {
        return c.syntax_error();
    }
    c.reply.ok();
}

void client_caching(call& c) {
    if (!tracks(c)) {
        return c.error(
            "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN "
            "or OPTOUT mode enabled");
    }
    const std::uint8_t options = options_of(c);
    if (is_word(c.arg(2), "yes")) {
        if ((options & opt_in) == 0) {
            return c.error(
                "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.");
        }
    } else if (is_word(c.arg(2), "no")) {
        if ((options & opt_out) == 0) {
            return c.error(
                "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.");
        }
    } else {
        return c.syntax_error();
    }
    c.client.extras->tracking |= caching;
    c.reply.ok();
}

void client_getredir(call& c) {
    c.reply.integer(tracks(c) ? static_cast<std::int64_t>(c.client.extras->redirection) : -1);
}

void client_trackinginfo(call& c) {
    const std::uint8_t options = options_of(c);
    const bool asked = (options & caching) != 0;
    std::vector<std::string_view> flags{tracks(c) ? "on" : "off"};
    if ((options & broadcast) != 0) flags.emplace_back("bcast");
    if ((options & opt_in) != 0) flags.emplace_back("optin");
    if ((options & opt_in) != 0 && asked) flags.emplace_back("caching-yes");
    if ((options & opt_out) != 0) flags.emplace_back("optout");
    if ((options & opt_out) != 0 && asked) flags.emplace_back("caching-no");
    if ((options & no_loop) != 0) flags.emplace_back("noloop");
    if ((options & broken_redirection) != 0) flags.emplace_back("broken_redirect");
    c.reply.map(3);
    c.reply.bulk("flags");
    c.reply.set(flags.size());
    for (const std::string_view each : flags) c.reply.bulk(each);
    c.reply.bulk("redirect");
    client_getredir(c);
    c.reply.bulk("prefixes");
    const std::vector<std::string_view> prefixes = prefixes_of(c);
    c.reply.array(prefixes.size());
    for (const std::string_view each : prefixes) c.reply.bulk(each);
}

}  // namespace eddy::cache::commands
