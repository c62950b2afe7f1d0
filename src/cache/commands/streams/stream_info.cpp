// XINFO: description of a stream, its groups and consumers.
#include "cache/catalog/command_table.hpp"
#include "cache/catalog/commands.hpp"
#include "cache/commands/streams/stream_reply.hpp"
#include "cache/engine/call.hpp"

#include <algorithm>

namespace eddy::cache::commands {
namespace {

using slot = call::slot;

void field(call& c, std::string_view name, std::uint64_t value) {
    c.reply.bulk(name);
    c.reply.integer(static_cast<std::int64_t>(value));
}

void id_field(call& c, std::string_view name, stream_id id) {
    c.reply.bulk(name);
    reply_id(c, id);
}

void count_field(call& c, std::string_view name, std::optional<std::int64_t> value) {
    c.reply.bulk(name);
    value ? c.reply.integer(*value) : c.reply.null();
}

std::optional<std::int64_t> entries_read(const stream_group& of) noexcept {
    if (of.entries_read == stream_group::unknown_count) return std::nullopt;
    return of.entries_read;
}

// The stream under args[2], or null with the error replied.
const redis_stream* find_stream(call& c) {
    const slot* const place = c.find_to_read(c.arg(2));
    if (place == nullptr) {
        c.error(no_such_key_text);
        return nullptr;
    }
    return c.is_not(place, value_type::stream) ? nullptr : &call::stream_of(place);
}

}  // namespace

void xinfo_consumers(call& c) {
    const redis_stream* const entries = find_stream(c);
    if (entries == nullptr) return;
    const stream_group* const group = entries->find_group(c.arg(3));
    if (group == nullptr) return no_group_of(c, c.arg(2), c.arg(3));
    c.reply.array(group->consumers.size());
    for (auto at = group->consumers.first(); at; at.forward()) {
        if (c.reply_is_too_large()) return;
        const stream_consumer& consumer = **at;
        c.reply.map(4);
        c.reply.bulk("name");
        c.reply.bulk(consumer.name());
        field(c, "pending", consumer.pending.size());
        count_field(c, "idle", milliseconds_since(c, consumer.seen_ms));
        count_field(c, "inactive",
                    consumer.active_ms == stream_consumer::never ? stream_consumer::never
                                                                 : c.now_ms() - consumer.active_ms);
    }
}

void xinfo_groups(call& c) {
    const redis_stream* const entries = find_stream(c);
    if (entries == nullptr) return;
    c.reply.array(entries->groups().size());
    for (auto at = entries->groups().first(); at; at.forward()) {
        if (c.reply_is_too_large()) return;
        const stream_group& group = **at;
        c.reply.map(6);
        c.reply.bulk("name");
        c.reply.bulk(group.name());
        field(c, "consumers", group.consumers.size());
        field(c, "pending", group.pending.size());
        id_field(c, "last-delivered-id", group.last_id);
        count_field(c, "entries-read", entries_read(group));
        count_field(c, "lag", entries->lag(group));
    }
}

namespace {

void reply_edge(call& c, const redis_stream& entries, redis_stream::order from) {
    redis_stream::walk at(entries, {}, stream_id::max(), from);
    at.next() ? reply_entry(c, at) : c.reply.null();
}

enum class with_owner : std::uint8_t { yes, no };

// The first `most` (0: all) that are pending. False when the reply is too large.
bool reply_pending(call& c, const pending_tree& from, std::uint64_t most, with_owner owner) {
    const std::size_t count =
        most == 0 ? from.size()
                  : static_cast<std::size_t>(std::min<std::uint64_t>(most, from.size()));
    c.reply.bulk("pending");
    c.reply.array(count);
    auto at = from.first();
    for (std::size_t i = 0; i < count; ++i, at.forward()) {
        if (c.reply_is_too_large()) return false;
        c.reply.array(owner == with_owner::yes ? 4 : 3);
        reply_id(c, at->id);
        if (owner == with_owner::yes) c.reply.bulk(at->of->owner->name());
        c.reply.integer(at->of->delivered_ms);
        c.reply.integer(static_cast<std::int64_t>(at->of->deliveries));
    }
    return true;
}

bool reply_full_consumer(call& c, const stream_consumer& consumer, std::uint64_t most) {
    c.reply.map(5);
    c.reply.bulk("name");
    c.reply.bulk(consumer.name());
    count_field(c, "seen-time", consumer.seen_ms);
    count_field(c, "active-time", consumer.active_ms);
    field(c, "pel-count", consumer.pending.size());
    return reply_pending(c, consumer.pending, most, with_owner::no);
}

bool reply_full_group(call& c, const redis_stream& entries, const stream_group& group,
                      std::uint64_t most) {
    c.reply.map(7);
    c.reply.bulk("name");
    c.reply.bulk(group.name());
    id_field(c, "last-delivered-id", group.last_id);
    count_field(c, "entries-read", entries_read(group));
    count_field(c, "lag", entries.lag(group));
    field(c, "pel-count", group.pending.size());
    if (!reply_pending(c, group.pending, most, with_owner::yes)) return false;
    c.reply.bulk("consumers");
    c.reply.array(group.consumers.size());
    for (auto at = group.consumers.first(); at; at.forward()) {
        if (c.reply_is_too_large() || !reply_full_consumer(c, **at, most)) return false;
    }
    return true;
}

void reply_full(call& c, const redis_stream& entries, std::uint64_t most) {
    c.reply.bulk("entries");
    const std::uint64_t errors = c.state.data.env.counters.errors;
    redis_stream::walk range(entries, {}, stream_id::max());
    reply_entries(c, range, most);
    if (c.state.data.env.counters.errors != errors) return;
    c.reply.bulk("groups");
    c.reply.array(entries.groups().size());
    for (auto at = entries.groups().first(); at; at.forward()) {
        if (!reply_full_group(c, entries, **at, most)) return;
    }
}

}  // namespace

void xinfo_stream(call& c) {
    const redis_stream* const entries = find_stream(c);
    if (entries == nullptr) return;
    const bool full = c.count > 3;
    std::int64_t most = 10;
    if (full) {
        const bool fits = (c.count == 4 || c.count == 6) && is_word(c.arg(3), "full") &&
                          (c.count == 4 || is_word(c.arg(4), "count"));
        if (!fits) return c.wrong_subcommand();
        if (c.count == 6) {
            const auto given = c.integer(5);
            if (!given) return;
            if (*given >= 0) most = *given;
        }
    }
    c.reply.map(full ? 9 : 10);
    field(c, "length", entries->size());
    field(c, "radix-tree-keys", entries->blocks());
    field(c, "radix-tree-nodes", entries->radix_nodes());
    id_field(c, "last-generated-id", entries->last_id());
    id_field(c, "max-deleted-entry-id", entries->max_deleted_id());
    field(c, "entries-added", entries->entries_added());
    id_field(c, "recorded-first-entry-id", entries->first_id());
    if (full) return reply_full(c, *entries, static_cast<std::uint64_t>(most));
    field(c, "groups", entries->groups().size());
    c.reply.bulk("first-entry");
    reply_edge(c, *entries, redis_stream::order::forward);
    c.reply.bulk("last-entry");
    reply_edge(c, *entries, redis_stream::order::backward);
}

void xinfo_help(call& c) {
    c.help({"XINFO <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
            "CONSUMERS <key> <group>", "    The consumers of a group.", "GROUPS <key>",
            "    The groups of a stream.", "STREAM <key> [FULL [COUNT <count>]]",
            "    The stream itself; FULL: with entries, groups and what is pending.", "HELP",
            "    Print this help."});
}

}  // namespace eddy::cache::commands
