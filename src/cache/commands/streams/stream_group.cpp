// Consumer groups of streams and their pending entries: XGROUP, XACK, XCLAIM, XPENDING and their
// kin.
#include "cache/catalog/command_table.hpp"
#include "cache/catalog/commands.hpp"
#include "cache/clients/waits.hpp"
#include "cache/commands/streams/stream_id_argument.hpp"
#include "cache/commands/streams/stream_reply.hpp"
#include "cache/engine/call.hpp"
#include "cache/persistence/propagation.hpp"
#include "cache/persistence/stream_changes.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace eddy::cache::commands {
namespace {

using slot = call::slot;

constexpr std::string_view invalid_idle_claim = "ERR Invalid min-idle-time argument for XCLAIM";

// Common part of XGROUP's forms: the key, the group and the options of CREATE and SETID.
struct group_request {
    bool makes_stream = false;
    std::int64_t entries_read = stream_group::unknown_count;
    std::size_t entries_read_at = 0;  // its argument
    bool is_limited = false;
    std::uint64_t hash = 0;
    slot* place = nullptr;
    stream_group* group = nullptr;

    bool parse_options(call& c, bool may_make);
    bool find_stream(call& c);
    bool find_group(call& c);
    void limit_entries_read(const call& c) noexcept;
    void propagate_limit(call& c) const;
    redis_stream& entries() const noexcept { return call::stream_of(place); }
};

// As in Redis 8, not more than were ever added. What another server or the file has stays as it is.
void group_request::limit_entries_read(const call& c) noexcept {
    if ((c.client.special & client_session::master) != 0 || entries_read < 0) return;
    const std::uint64_t added = entries().entries_added();
    is_limited = static_cast<std::uint64_t>(entries_read) > added;
    if (is_limited) entries_read = static_cast<std::int64_t>(added);
}

// Replicas and the file take what they are given.
void group_request::propagate_limit(call& c) const {
    if (!is_limited || !propagates(c)) return;
    std::vector<std::string_view> args(c.args, c.args + c.count);
    const decimal count(entries_read);
    args[entries_read_at] = count;
    propagate_as(c, args);
}

bool group_request::parse_options(call& c, bool may_make) {
    for (std::size_t i = 5; i < c.count; ++i) {
        if (may_make && is_word(c.arg(i), "mkstream")) {
            makes_stream = true;
        } else if (i + 1 < c.count && is_word(c.arg(i), "entriesread")) {
            const auto given = c.integer(++i);
            if (!given) return false;
            if (*given < 0 && *given != stream_group::unknown_count) {
                c.error("ERR value for ENTRIESREAD must be positive or -1");
                return false;
            }
            entries_read = *given;
            entries_read_at = i;
        } else {
            c.wrong_subcommand();
            return false;
        }
    }
    return true;
}

// False, with the error replied, when the key has another type, or is missing without MKSTREAM.
bool group_request::find_stream(call& c) {
    hash = c.keys->hash(c.arg(2));
    place = c.keys->find(c.arg(2), hash);
    if (place != nullptr) return !c.is_not(place, value_type::stream);
    if (makes_stream) return true;
    c.error(
        "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want "
        "to use the MKSTREAM option to create an empty stream automatically.");
    return false;
}

bool group_request::find_group(call& c) {
    if (!find_stream(c)) return false;
    group = entries().find_group(c.arg(3));
    if (group != nullptr) return true;
    no_group_of(c, c.arg(2), c.arg(3));
    return false;
}

// An ID, or "$" for the stream's last ID.
bool group_id(call& c, const slot* place, id_syntax syntax, stream_id& to) {
    if (c.arg(4) != "$") return stream_id_argument(c, 4, to, 0, syntax);
    to = place == nullptr ? stream_id{} : call::stream_of(place).last_id();
    return true;
}

}  // namespace

void xgroup_create(call& c) {
    group_request request;
    stream_id id;
    if (!request.parse_options(c, true) || !request.find_stream(c)) return;
    if (c.count > 8) return c.wrong_subcommand();
    if (!group_id(c, request.place, id_syntax::strict, id)) return;
    const std::string_view key = c.arg(2);
    if (request.place == nullptr) {
        request.place = c.keys->add(key, request.hash, value_type::stream);
        // Watchers are notified of the new stream, but not of its group.
        if ((c.state.clients.observers & observers::watchers) != 0) {
            c.state.notify_watchers(c.keys->number(), key_event::stream, key);
        }
    }
    request.limit_entries_read(c);
    if (request.entries().add_group(c.memory(), c.arg(3), id, request.entries_read) == nullptr) {
        return c.error("BUSYGROUP Consumer Group name already exists");
    }
    request.propagate_limit(c);
    c.reply.ok();
    c.notify(key_event::stream, "xgroup-create", key);
}

void xgroup_setid(call& c) {
    group_request request;
    stream_id id;
    if (!request.parse_options(c, false) || !request.find_group(c)) return;
    if (c.count != 5 && c.count != 7) return c.wrong_subcommand();
    if (!group_id(c, request.place, id_syntax::loose, id)) return;
    request.limit_entries_read(c);
    request.group->last_id = id;
    request.group->entries_read = request.entries_read;
    request.propagate_limit(c);
    c.reply.ok();
    c.notify(key_event::stream, "xgroup-setid", c.arg(2));
}

void xgroup_destroy(call& c) {
    group_request request;
    if (!request.find_stream(c)) return;
    stream_group* const gone = request.entries().find_group(c.arg(3));
    if (gone == nullptr) return c.reply.integer(0);
    c.state.data.env.discard(request.entries().take_group(c.memory(), *gone));
    c.reply.integer(1);
    c.notify(key_event::stream, "xgroup-destroy", c.arg(2));
    // Clients that wait for entries of the group are notified that it is gone.
    note_ready(c.state, {c.keys->number(), c.arg(2)});
}

void xgroup_createconsumer(call& c) {
    group_request request;
    if (!request.find_group(c)) return;
    if (request.group->find(c.arg(4)) != nullptr) return c.reply.integer(0);
    request.group->add(c.memory(), c.arg(4), c.now_ms());
    c.notify(key_event::stream, "xgroup-createconsumer", c.arg(2));
    c.reply.integer(1);
}

void xgroup_delconsumer(call& c) {
    group_request request;
    if (!request.find_group(c)) return;
    stream_consumer* const gone = request.group->find(c.arg(4));
    if (gone == nullptr) return c.reply.integer(0);
    c.reply.integer(static_cast<std::int64_t>(gone->pending.size()));
    request.group->erase(c.memory(), *gone);
    c.notify(key_event::stream, "xgroup-delconsumer", c.arg(2));
}

void xgroup_help(call& c) {
    c.help({"XGROUP <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
            "CREATE <key> <group> <id|$> [MKSTREAM] [ENTRIESREAD <count>]",
            "    Make a group that reads what comes behind the ID; with MKSTREAM also the stream.",
            "CREATECONSUMER <key> <group> <consumer>", "    Make a consumer of the group.",
            "DELCONSUMER <key> <group> <consumer>",
            "    Remove a consumer with what is pending for it.", "DESTROY <key> <group>",
            "    Remove a group.", "SETID <key> <group> <id|$> [ENTRIESREAD <count>]",
            "    Let the group go on behind the ID.", "HELP", "    Print this help."});
}

namespace {

// The stream and group under the command's first key; null, with the error replied, when one is
// missing.
std::pair<redis_stream*, stream_group*> group_in(call& c, slot* place) {
    if (place != nullptr) {
        if (c.is_not(place, value_type::stream)) return {};
        redis_stream& entries = call::stream_of(place);
        if (stream_group* const group = entries.find_group(c.arg(2))) return {&entries, group};
    }
    no_group(c, c.arg(1), c.arg(2));
    return {};
}

void reply_pending_summary(call& c, const stream_group& group) {
    c.reply.array(4);
    c.reply.integer(static_cast<std::int64_t>(group.pending.size()));
    if (group.pending.empty()) {
        c.reply.null();
        c.reply.null();
        return c.reply.null_array();
    }
    reply_id(c, group.pending.first()->id);
    reply_id(c, group.pending.last()->id);
    late_head head(c);
    std::size_t count = 0;
    for (auto at = group.consumers.first(); at; at.forward()) {
        const stream_consumer& consumer = **at;
        if (consumer.pending.empty()) continue;
        if (c.reply_is_too_large()) return;
        c.reply.array(2);
        c.reply.bulk(consumer.name());
        c.reply.bulk_integer(static_cast<std::int64_t>(consumer.pending.size()));
        ++count;
    }
    head.array(count);
}

struct claim_options {
    std::int64_t min_idle = 0;
    std::int64_t delivered_ms = 0;  // delivery time of the claimed entries
    std::int64_t deliveries = -1;   // their delivery count; negative: not given
    bool force = false;
    bool only_ids = false;
    stream_id last_id;

    bool parse(call& c, std::size_t i);
};

// XCLAIM's options from `i` on.
bool claim_options::parse(call& c, std::size_t i) {
    delivered_ms = c.now_ms();
    const auto set_time = [&](std::int64_t to) {
        delivered_ms = to < 0 || to > c.now_ms() ? c.now_ms() : to;
    };
    for (; i < c.count; ++i) {
        const std::string_view word = c.arg(i);
        const bool has_next = i + 1 < c.count;
        if (is_word(word, "force")) {
            force = true;
        } else if (is_word(word, "justid")) {
            only_ids = true;
        } else if (has_next && is_word(word, "idle")) {
            const auto idle = c.integer(++i, "ERR Invalid IDLE option argument for XCLAIM");
            if (!idle) return false;
            set_time(static_cast<std::int64_t>(static_cast<std::uint64_t>(c.now_ms()) -
                                               static_cast<std::uint64_t>(*idle)));
        } else if (has_next && is_word(word, "time")) {
            const auto time = c.integer(++i, "ERR Invalid TIME option argument for XCLAIM");
            if (!time) return false;
            set_time(*time);
        } else if (has_next && is_word(word, "retrycount")) {
            const auto count = c.integer(++i, "ERR Invalid RETRYCOUNT option argument for XCLAIM");
            if (!count) return false;
            deliveries = *count;
        } else if (has_next && is_word(word, "lastid")) {
            if (!stream_id_argument(c, ++i, last_id)) return false;
        } else {
            c.error("ERR Unrecognized XCLAIM option '" +
                    std::string(word.substr(0, word.find('\0'))) + "'");
            return false;
        }
    }
    return true;
}

stream_consumer& claiming_consumer(call& c, stream_group& group) {
    stream_consumer* found = group.find(c.arg(3));
    if (found == nullptr) {
        found = &group.add(c.memory(), c.arg(3), c.now_ms());
        c.notify(key_event::stream, "xgroup-createconsumer", c.arg(1));
        propagate_consumer(c, c.arg(1), group, *found);
    }
    found->seen_ms = c.now_ms();
    return *found;
}

// Assigns the entry at the walk's position to the consumer, and replies with it.
void claim(call& c, stream_group& group, stream_consumer& to, stream_pending& what,
           const claim_options& options, redis_stream::walk& entry) {
    group.set_delivered(c.memory(), entry.id(), what, options.delivered_ms);
    if (options.deliveries >= 0) {
        what.deliveries = static_cast<std::uint64_t>(options.deliveries);
    } else if (!options.only_ids) {
        ++what.deliveries;
    }
    group.pass_on(c.memory(), entry.id(), what, to);
    to.active_ms = c.now_ms();
    ++c.state.data.changes;
    propagate_claim(c, c.arg(1), group, entry.id(), what);
    options.only_ids ? reply_id(c, entry.id()) : reply_entry(c, entry);
}

bool is_idle(const call& c, const stream_pending& what, std::int64_t min_idle) noexcept {
    return min_idle == 0 || c.now_ms() - what.delivered_ms >= min_idle;
}

}  // namespace

void xack(call& c) {
    slot* const place = c.find_to_read_and_change();
    if (place != nullptr && c.is_not(place, value_type::stream)) return;
    stream_group* const group =
        place == nullptr ? nullptr : call::stream_of(place).find_group(c.arg(2));
    if (group == nullptr) return c.reply.integer(0);
    // All IDs are parsed before one is acknowledged.
    stream_id id;
    for (std::size_t i = 3; i < c.count; ++i) {
        if (!stream_id_argument(c, i, id)) return;
    }
    std::uint64_t acknowledged = 0;
    for (std::size_t i = 3; i < c.count; ++i) {
        if (c.count > 4) parse_stream_id(c.arg(i), id, 0, id_syntax::strict);
        acknowledged += group->acknowledge(c.memory(), id) ? 1 : 0;
    }
    c.state.data.changes += acknowledged;
    c.reply.integer(static_cast<std::int64_t>(acknowledged));
}

void xpending(call& c) {
    if (c.count != 3 && (c.count < 6 || c.count > 9)) return c.syntax_error();
    stream_id first;
    stream_id last;
    std::int64_t count = 0;
    std::int64_t min_idle = 0;
    std::size_t at_range = 3;
    if (c.count >= 6) {
        if (is_word(c.arg(3), "idle")) {
            const auto idle = c.integer(4);
            if (!idle) return;
            if (c.count < 8) return c.syntax_error();
            min_idle = *idle;
            at_range += 2;
        }
        const auto given = c.integer(at_range + 2);
        if (!given) return;
        count = std::max<std::int64_t>(*given, 0);
        if (!first_id_argument(c, at_range, first)) return;
        if (!last_id_argument(c, at_range + 1, last)) return;
    }
    const auto [entries, group] = group_in(c, c.find_to_read());
    if (group == nullptr) return;
    if (c.count == 3) return reply_pending_summary(c, *group);
    const stream_consumer* consumer = nullptr;
    if (at_range + 3 < c.count) {
        consumer = group->find(c.arg(at_range + 3));
        if (consumer == nullptr) return c.reply.array(0);
    }
    const pending_tree& from = consumer == nullptr ? group->pending : consumer->pending;
    late_head head(c);
    std::size_t found = 0;
    for (auto at = from.lower_bound(first);
         at && at->id <= last && found < static_cast<std::uint64_t>(count); at.forward()) {
        const stream_pending& what = *at->of;
        if (!is_idle(c, what, min_idle)) continue;
        if (c.reply_is_too_large()) return;
        c.reply.array(4);
        reply_id(c, at->id);
        c.reply.bulk(what.owner->name());
        c.reply.integer(milliseconds_since(c, what.delivered_ms));
        c.reply.integer(static_cast<std::int64_t>(what.deliveries));
        ++found;
    }
    head.array(found);
}

void xclaim(call& c) {
    const auto [entries, group] = group_in(c, c.find_to_read_and_change());
    if (group == nullptr) return;
    claim_options options;
    const auto min_idle = c.integer(4, invalid_idle_claim);
    if (!min_idle) return;
    options.min_idle = std::max<std::int64_t>(*min_idle, 0);
    std::vector<stream_id> ids;
    ids.reserve(c.count - 5);
    stream_id id;
    std::size_t i = 5;
    for (; i < c.count && parse_stream_id(c.arg(i), id, 0, id_syntax::strict); ++i) {
        ids.push_back(id);
    }
    if (!options.parse(c, i)) return;
    if (options.last_id > group->last_id) {
        group->last_id = options.last_id;
        ++c.state.data.changes;
        propagate_position(c, c.arg(1), *group);
    }
    stream_consumer& consumer = claiming_consumer(c, *group);
    late_head head(c);
    std::size_t claimed = 0;
    for (const stream_id each : ids) {
        stream_pending* what = group->find(each);
        redis_stream::walk entry(*entries, each, each);
        if (!entry.next()) {
            if (group->acknowledge(c.memory(), each)) {
                ++c.state.data.changes;
                propagate_acknowledged(c, c.arg(1), *group, each);
            }
            continue;
        }
        if (what == nullptr && options.force) {
            what = &group->add_pending(c.memory(), each);
            what->deliveries = 1;
        }
        if (what == nullptr) continue;
        if (what->owner != nullptr && !is_idle(c, *what, options.min_idle)) continue;
        // The claim is effective even if the reply fails.
        claim(c, *group, consumer, *what, options, entry);
        if (c.reply_is_too_large()) return;
        ++claimed;
    }
    head.array(claimed);
}

void xautoclaim(call& c) {
    constexpr std::int64_t tries_each = 10;  // entries that are checked for each one wanted
    constexpr std::int64_t max_count = INT64_MAX / 16;
    claim_options options;
    const auto min_idle = c.integer(4, "ERR Invalid min-idle-time argument for XAUTOCLAIM");
    if (!min_idle) return;
    options.min_idle = std::max<std::int64_t>(*min_idle, 0);
    options.delivered_ms = c.now_ms();
    stream_id first;
    if (!first_id_argument(c, 5, first)) return;
    std::int64_t count = 100;
    for (std::size_t i = 6; i < c.count; ++i) {
        if (i + 1 < c.count && is_word(c.arg(i), "count")) {
            const auto given = c.integer_in(++i, 1, max_count, "ERR COUNT must be > 0");
            if (!given) return;
            count = *given;
        } else if (is_word(c.arg(i), "justid")) {
            options.only_ids = true;
        } else {
            return c.syntax_error();
        }
    }
    const auto [entries, group] = group_in(c, c.find_to_read_and_change());
    if (group == nullptr) return;
    stream_consumer& consumer = claiming_consumer(c, *group);
    std::vector<stream_id> gone;
    c.reply.array(3);
    late_head cursor(c);
    late_head head(c);
    std::size_t claimed = 0;
    auto at = group->pending.lower_bound(first);
    for (std::int64_t tries = count * tries_each; tries > 0 && count > 0 && at; --tries) {
        const stream_id id = at->id;
        stream_pending& what = *at->of;
        redis_stream::walk entry(*entries, id, id);
        if (!entry.next()) {
            group->acknowledge(c.memory(), id);
            ++c.state.data.changes;
            propagate_acknowledged(c, c.arg(1), *group, id);
            gone.push_back(id);
            --count;
            at = group->pending.lower_bound(id);
            continue;
        }
        at.forward();
        if (!is_idle(c, what, options.min_idle)) continue;
        claim(c, *group, consumer, what, options, entry);
        if (c.reply_is_too_large()) return;
        ++claimed;
        --count;
    }
    head.array(claimed);
    cursor.id(at ? at->id : stream_id{});
    c.reply.array(gone.size());
    for (const stream_id each : gone) reply_id(c, each);
}

}  // namespace eddy::cache::commands
