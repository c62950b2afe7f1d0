// Publish and subscribe (channels, patterns), and MONITOR.
#include <eddy/base/glob.hpp>

#include "cache/catalog/command_table.hpp"
#include "cache/catalog/commands.hpp"
#include "cache/clients/messages.hpp"
#include "cache/clients/session_extras.hpp"
#include "cache/engine/call.hpp"
#include "cache/persistence/propagation.hpp"

#include <string>
#include <vector>

namespace eddy::cache::commands {
namespace {

// One of the three kinds of subscriptions.
struct kind {
    std::string_view subscribe;
    std::string_view unsubscribe;
    name_registry client_state::* all;
    name_set session_extras::* mine;
    bool sharded;
};
constexpr kind channel_kind{"subscribe", "unsubscribe", &client_state::channels,
                            &session_extras::channels, false};
constexpr kind pattern_kind{"psubscribe", "punsubscribe", &client_state::patterns,
                            &session_extras::patterns, false};
constexpr kind shard_kind{"ssubscribe", "sunsubscribe", &client_state::shard_channels,
                          &session_extras::shard_channels, true};

std::int64_t count_of(const session_extras& extras, const kind& what) noexcept {
    return static_cast<std::int64_t>(what.sharded
                                         ? extras.shard_channels.size()
                                         : extras.channels.size() + extras.patterns.size());
}

void subscribe_to(call& c, const kind& what) {
    session_extras& extras = extras_of(c.client);
    std::size_t bytes =
        extras.channels.bytes() + extras.patterns.bytes() + extras.shard_channels.bytes();
    for (std::size_t i = 1; i < c.count; ++i) bytes += c.arg(i).size() + name_set::overhead;
    if (bytes > c.state.settings.options.clients.max_names) {
        return c.error("ERR too many subscriptions: a client may have " +
                       std::to_string(c.state.settings.options.clients.max_names) +
                       " bytes of names at most");
    }
    for (std::size_t i = 1; i < c.count; ++i) {
        (c.state.clients.*what.all).add(extras.*what.mine, c.client, {0, c.arg(i)});
        c.reply.push(3);
        c.reply.bulk(what.subscribe);
        c.reply.bulk(c.arg(i));
        c.reply.integer(count_of(extras, what));
    }
    c.client.special |= client_session::subscriber;
}

void reply_unsubscribed(call& c, const kind& what, std::string_view name) {
    c.reply.push(3);
    c.reply.bulk(what.unsubscribe);
    c.reply.bulk(name);
    c.reply.integer(count_of(*c.client.extras, what));
}

void unsubscribe_from(call& c, const kind& what) {
    session_extras& extras = extras_of(c.client);
    name_registry& all = c.state.clients.*what.all;
    name_set& mine = extras.*what.mine;
    if (c.count > 1) {
        for (std::size_t i = 1; i < c.count; ++i) {
            all.remove(mine, {0, c.arg(i)});
            reply_unsubscribed(c, what, c.arg(i));
        }
    } else if (mine.empty()) {
        c.reply.push(3);
        c.reply.bulk(what.unsubscribe);
        c.reply.null();
        c.reply.integer(count_of(extras, what));
    } else {
        std::vector<std::string> names;
        names.reserve(mine.size());
        mine.for_each(
            [&](name_topic& topic, name_topic::member&) { names.emplace_back(topic.name); });
        for (const std::string& name : names) {
            all.remove(mine, {0, name});
            reply_unsubscribed(c, what, name);
        }
    }
    if (extras.subscriptions() == 0) {
        c.client.special &= static_cast<std::uint16_t>(~client_session::subscriber);
    }
}

void reply_names(call& c, name_registry& all) {
    std::vector<std::string_view> found;
    all.for_each([&](name_topic& topic) {
        if (c.count == 2 || glob_match(c.arg(2), topic.name)) found.push_back(topic.name);
    });
    c.reply.array(found.size());
    for (const std::string_view name : found) {
        if (c.reply_is_too_large()) return;
        c.reply.bulk(name);
    }
}

void reply_counts(call& c, name_registry& all) {
    c.reply.array((c.count - 2) * 2);
    for (std::size_t i = 2; i < c.count && !c.reply_is_too_large(); ++i) {
        const name_topic* const topic = all.find({0, c.arg(i)});
        c.reply.bulk(c.arg(i));
        c.reply.integer(topic == nullptr ? 0 : static_cast<std::int64_t>(topic->count));
    }
}

}  // namespace

void subscribe(call& c) { subscribe_to(c, channel_kind); }
void psubscribe(call& c) { subscribe_to(c, pattern_kind); }
void ssubscribe(call& c) {
    if (c.in_exec) return c.error("ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client");
    subscribe_to(c, shard_kind);
}
void unsubscribe(call& c) { unsubscribe_from(c, channel_kind); }
void punsubscribe(call& c) { unsubscribe_from(c, pattern_kind); }
void sunsubscribe(call& c) { unsubscribe_from(c, shard_kind); }

void publish(call& c) {
    c.reply.integer(static_cast<std::int64_t>(cache::publish(c.state, c.arg(1), c.arg(2))));
    propagate_message(c);
}

void spublish(call& c) {
    c.reply.integer(
        static_cast<std::int64_t>(cache::publish_to_shard(c.state, c.arg(1), c.arg(2))));
    propagate_message(c);
}

static void reply_matching(call& c, name_registry& all) {
    if (c.count > 3) return c.wrong_subcommand();
    reply_names(c, all);
}

void pubsub_channels(call& c) { reply_matching(c, c.state.clients.channels); }
void pubsub_shardchannels(call& c) { reply_matching(c, c.state.clients.shard_channels); }
void pubsub_numsub(call& c) { reply_counts(c, c.state.clients.channels); }
void pubsub_shardnumsub(call& c) { reply_counts(c, c.state.clients.shard_channels); }
void pubsub_numpat(call& c) {
    c.reply.integer(static_cast<std::int64_t>(c.state.clients.patterns.size()));
}

void pubsub_help(call& c) {
    c.help(
        {"PUBSUB <subcommand> [<arg> [value] [opt] ...]. Subcommands are:", "CHANNELS [<pattern>]",
         "    The channels with subscribers, of those that match the pattern.", "NUMPAT",
         "    How many patterns have subscribers.", "NUMSUB [<channel> ...]",
         "    How many subscribers each of the channels has.", "SHARDCHANNELS [<pattern>]",
         "    As CHANNELS, for shard channels.", "SHARDNUMSUB [<shardchannel> ...]",
         "    As NUMSUB, for shard channels.", "HELP", "    Print this help."});
}

// A second MONITOR has no reply, as in Redis.
void monitor(call& c) {
    if (c.in_exec) return c.error("ERR MONITOR isn't allowed for DENY BLOCKING client");
    if ((c.client.special & client_session::monitoring) != 0) return;
    extras_of(c.client);
    c.client.special |= client_session::monitoring;
    c.state.clients.monitors.push_back(&c.client);
    c.state.clients.slow_path |= slow_path::monitors;
    c.reply.ok();
}

}  // namespace eddy::cache::commands
