// XREAD and XREADGROUP, which may wait for entries.
//
// A waiting command runs again as a whole when one of its keys has changed. So it also reports a
// deleted group, and returns the new entries of all its streams. With CLAIM it also runs again when
// the next pending entry has been idle for long enough.
#include "cache/catalog/command_table.hpp"
#include "cache/catalog/commands.hpp"
#include "cache/clients/waits.hpp"
#include "cache/commands/streams/stream_id_argument.hpp"
#include "cache/commands/streams/stream_reply.hpp"
#include "cache/engine/call.hpp"
#include "cache/persistence/propagation.hpp"
#include "cache/persistence/stream_changes.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

namespace eddy::cache::commands {
namespace {

using slot = call::slot;

struct read_request {
    static constexpr std::int64_t not_claiming = -1;

    bool by_group;  // XREADGROUP
    bool waits = false;
    bool acknowledged = false;  // NOACK: nothing becomes pending
    std::int64_t deadline_us = client_session::no_deadline;
    std::int64_t min_idle = not_claiming;  // CLAIM: milliseconds
    std::uint64_t count = 0;
    std::size_t first_key = 0;
    std::size_t streams = 0;
    std::size_t group_at = 0;  // the consumer's name follows it

    bool claims() const noexcept { return min_idle != not_claiming; }
    bool parse(call& c);

private:
    bool parse_claim(call& c, std::size_t i);
};

bool read_request::parse_claim(call& c, std::size_t i) {
    if (!by_group) {
        c.error("ERR The CLAIM option is only supported by XREADGROUP. You called XREAD instead.");
        return false;
    }
    const auto given = c.integer(i, "ERR min-idle-time is not an integer or out of range");
    if (!given) return false;
    min_idle = *given;
    if (min_idle >= 0) return true;
    c.error("ERR min-idle-time must be a positive integer");
    return false;
}

bool read_request::parse(call& c) {
    for (std::size_t i = 1; i < c.count; ++i) {
        const std::string_view word = c.arg(i);
        const std::size_t more = c.count - i - 1;
        if (more >= 1 && is_word(word, "block")) {
            if (c.in_script) {
                c.error("ERR " + std::string(c.arg(0)) +
                        " command is not allowed with BLOCK option from scripts");
                return false;
            }
            const auto deadline = milliseconds_deadline_argument(c, ++i);
            if (!deadline) return false;
            deadline_us = *deadline;
            waits = true;
        } else if (more >= 1 && is_word(word, "count")) {
            const auto given = c.integer(++i);
            if (!given) return false;
            count = static_cast<std::uint64_t>(std::max<std::int64_t>(*given, 0));
        } else if (more >= 1 && is_word(word, "claim")) {
            if (!parse_claim(c, ++i)) return false;
        } else if (more >= 1 && is_word(word, "streams")) {
            first_key = i + 1;
            streams = (c.count - first_key) / 2;
            if ((c.count - first_key) % 2 == 0) break;
            c.error("ERR Unbalanced '" + std::string(c.spec->name) +
                    "' list of streams: for each stream key an ID or '" + (by_group ? ">" : "$") +
                    "' must be specified.");
            return false;
        } else if (more >= 2 && is_word(word, "group")) {
            if (!by_group) {
                c.error(
                    "ERR The GROUP option is only supported by XREADGROUP. You called XREAD "
                    "instead.");
                return false;
            }
            group_at = i + 1;
            i += 2;
        } else if (is_word(word, "noack")) {
            if (!by_group) {
                c.error(
                    "ERR The NOACK option is only supported by XREADGROUP. You called XREAD "
                    "instead.");
                return false;
            }
            acknowledged = true;
        } else {
            c.syntax_error();
            return false;
        }
    }
    if (first_key == 0) {
        c.syntax_error();
        return false;
    }
    if (by_group && group_at == 0) {
        c.error("ERR Missing GROUP option for XREADGROUP");
        return false;
    }
    return true;
}

// Requested entries of one stream.
struct wanted {
    stream_id after;
    stream_group* group = nullptr;
    bool is_new = false;     // of a group: undelivered entries, not the consumer's history
    bool is_moving = false;  // "$" or "+": would be another entry when the command runs again
};

// A read for a group also changes the stream's state.
slot* find_stream(call& c, const read_request& request, std::string_view key) {
    return request.by_group ? c.find_to_read_and_change(key) : c.find_to_read(key);
}

bool find_wanted(call& c, const read_request& request, std::size_t i, wanted& to) {
    const std::string_view key = c.arg(request.first_key + i);
    const std::size_t id_at = request.first_key + request.streams + i;
    const std::string_view id = c.arg(id_at);
    slot* const place = find_stream(c, request, key);
    if (place != nullptr && c.is_not(place, value_type::stream)) return false;
    if (request.by_group) {
        const std::string_view group = c.arg(request.group_at);
        to.group = place == nullptr ? nullptr : call::stream_of(place).find_group(group);
        if (to.group == nullptr) {
            no_group(c, key, group, " in XREADGROUP with GROUP option");
            return false;
        }
    }
    if (id == "$") {
        if (request.by_group) {
            c.error(
                "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the "
                "history of this consumer by specifying a proper ID, or use the > ID to get new "
                "messages. The $ ID would just return an empty result set.");
            return false;
        }
        if (place != nullptr) to.after = call::stream_of(place).last_id();
        to.is_moving = true;
        return true;
    }
    if (id == "+" && !request.by_group) {
        if (place != nullptr) {
            const redis_stream& entries = call::stream_of(place);
            to.after = entries.last_id();
            if (!entries.empty()) {
                to.after = entries.last_entry_id();
                to.after.decrement();
            }
        }
        to.is_moving = true;
        return true;
    }
    if (id == ">") {
        if (!request.by_group) {
            c.error(
                "ERR The > ID can be specified only when calling XREADGROUP using the GROUP "
                "<group> <consumer> option.");
            return false;
        }
        to.is_new = true;
        return true;
    }
    if (!stream_id_argument(c, id_at, to.after)) return false;
    // Redis takes the highest ID for ">".
    if (request.by_group && to.after == stream_id::max()) to.is_new = true;
    return true;
}

// The consumer's history: entries delivered to it earlier, from `first` on. Entries removed from
// the stream since then come without fields.
void reply_history(call& c, const redis_stream& entries, stream_group& group,
                   stream_consumer& consumer, stream_id first, std::uint64_t most) {
    late_head head(c);
    std::size_t count = 0;
    for (auto at = consumer.pending.lower_bound(first); at && (most == 0 || count < most);
         at.forward()) {
        if (c.reply_is_too_large()) return;
        redis_stream::walk one(entries, at->id, at->id);
        if (one.next()) {
            reply_entry(c, one);
            group.set_delivered(c.memory(), at->id, *at->of, c.now_ms());
            ++at->of->deliveries;
        } else {
            c.reply.array(2);
            reply_id(c, at->id);
            c.reply.null_array();
        }
        ++count;
    }
    head.array(count);
}

// Advances the group to an entry, its last delivered one. The count of read entries is incremented
// only if nothing between that entry and the previous one was removed or trimmed.
void pass(const redis_stream& entries, stream_group& group, stream_id id) {
    if (id <= group.last_id) return;
    if (group.entries_read != stream_group::unknown_count && group.last_id >= entries.first_id() &&
        !entries.has_gaps_from(group.last_id)) {
        // Clients may set it to anything.
        group.entries_read =
            static_cast<std::int64_t>(static_cast<std::uint64_t>(group.entries_read) + 1);
    } else if (entries.entries_added() != 0) {
        group.entries_read = entries.count_up_to(id).value_or(stream_group::unknown_count);
    }
    group.last_id = id;
}

// Entries of a group that CLAIM takes, the longest idle ones first. O(what it finds). Entries that
// were removed from the stream stay pending, but leave the index: their IDs do not come again.
std::vector<stream_delivery> find_idle(call& c, const redis_stream& entries, stream_group& group,
                                       const read_request& request) {
    std::vector<stream_delivery> found;
    if (!request.claims()) return found;
    group.index_deliveries(c.memory());
    const std::int64_t latest = c.now_ms() - request.min_idle;
    auto at = group.deliveries.first();
    while (at && at->delivered_ms <= latest &&
           (request.count == 0 || found.size() < request.count)) {
        const stream_delivery each = *at;
        if (entries.contains(each.id)) {
            found.push_back(each);
            at.forward();
        } else {
            group.deliveries.erase(c.memory(), each);
            at = group.deliveries.lower_bound(each);
        }
    }
    return found;
}

// The time at which a pending entry of the group will have been idle for long enough. Behind
// find_idle(), which has found none that has.
std::int64_t next_idle_us(const call& c, const stream_group& group, std::int64_t min_idle) {
    const std::int64_t latest = c.now_ms() - min_idle;
    for (auto at = group.deliveries.first(); at; at.forward()) {
        std::int64_t at_us = 0;
        if (at->delivered_ms <= latest) continue;
        if (__builtin_sub_overflow(at->delivered_ms, latest, &at_us) ||
            __builtin_mul_overflow(at_us, std::int64_t{1000}, &at_us) ||
            __builtin_add_overflow(at_us, c.state.data.env.steady_us, &at_us))
            break;
        return at_us;
    }
    return client_session::no_deadline;
}

// Returns the number of entries; they become pending for the consumer.
std::size_t reply_claimed(call& c, std::string_view key, const redis_stream& entries,
                          stream_group& group, stream_consumer& consumer,
                          std::span<const stream_delivery> claimed) {
    std::size_t count = 0;
    for (const stream_delivery& each : claimed) {
        if (c.reply_is_too_large()) return count;
        redis_stream::walk entry(entries, each.id, each.id);
        stream_pending* const what = group.find(each.id);
        if (what == nullptr || !entry.next()) continue;
        reply_entry(c, entry, milliseconds_since(c, what->delivered_ms), what->deliveries);
        group.set_delivered(c.memory(), each.id, *what, c.now_ms());
        ++what->deliveries;
        group.pass_on(c.memory(), each.id, *what, consumer);
        consumer.active_ms = c.now_ms();
        propagate_claim(c, key, group, each.id, *what);
        ++count;
    }
    return count;
}

void reply_new(call& c, std::string_view key, const redis_stream& entries, stream_group& group,
               stream_consumer& consumer, const read_request& request,
               std::span<const stream_delivery> claimed) {
    stream_id first = group.last_id;
    first.increment();
    late_head head(c);
    const std::uint64_t errors = c.state.data.env.counters.errors;
    std::size_t count = reply_claimed(c, key, entries, group, consumer, claimed);
    if (c.state.data.env.counters.errors != errors) return;
    redis_stream::walk range(entries, first, stream_id::max());
    while ((request.count == 0 || count < request.count) && range.next()) {
        if (c.reply_is_too_large()) return;
        pass(entries, group, range.id());
        request.claims() ? reply_entry(c, range, 0, 0) : reply_entry(c, range);
        if (!request.acknowledged) {
            group.deliver(c.memory(), range.id(), consumer, c.now_ms());
            consumer.active_ms = c.now_ms();
            if (propagates(c)) propagate_claim(c, key, group, range.id(), *group.find(range.id()));
        }
        ++count;
    }
    head.array(count);
}

void begin_stream(call& c, std::string_view key) {
    if (c.client.protocol == 2) c.reply.array(2);
    c.reply.bulk(key);
}

// Replies with what one stream has; false when it has nothing.
bool reply_stream(call& c, const read_request& request, std::size_t i, const wanted& what) {
    const std::string_view key = c.arg(request.first_key + i);
    slot* const place = find_stream(c, request, key);
    if (place == nullptr) return false;
    const redis_stream& entries = call::stream_of(place);
    stream_id first = what.after;
    first.increment();
    if (!request.by_group) {
        if (entries.empty() || entries.last_entry_id() <= what.after) return false;
        begin_stream(c, key);
        redis_stream::walk range(entries, first, stream_id::max());
        reply_entries(c, range, request.count);
        return true;
    }
    std::vector<stream_delivery> claimed;
    if (what.is_new) claimed = find_idle(c, entries, *what.group, request);
    const bool is_served = !what.is_new || !claimed.empty() ||
                           (!entries.empty() && entries.last_entry_id() > what.group->last_id);
    const std::string_view name = c.arg(request.group_at + 1);
    stream_consumer* consumer = what.group->find(name);
    if (consumer == nullptr) {
        consumer = &what.group->add(c.memory(), name, c.now_ms());
        c.notify(key_event::stream, "xgroup-createconsumer", key);
        // Elsewhere the XCLAIM of its entries creates it.
        if (!is_served || !what.is_new || request.acknowledged)
            propagate_consumer(c, key, *what.group, *consumer);
    }
    consumer->seen_ms = c.now_ms();
    if (!is_served) return false;
    begin_stream(c, key);
    if (what.is_new) {
        reply_new(c, key, entries, *what.group, *consumer, request, claimed);
        propagate_position(c, key, *what.group);
    } else {
        reply_history(c, entries, *what.group, *consumer, first, request.count);
        // Repeated deliveries are not propagated, as in Redis.
        propagate_nothing(c);
    }
    ++c.state.data.changes;
    return true;
}

enum class outcome : std::uint8_t { replied, nothing };

// Requests for a few streams need no allocation.
class all_wanted {
public:
    explicit all_wanted(std::size_t count) {
        if (count > few_.size()) many_.resize(count);
    }
    wanted& operator[](std::size_t i) noexcept { return many_.empty() ? few_[i] : many_[i]; }

private:
    std::array<wanted, 8> few_{};
    std::vector<wanted> many_;
};

outcome reply_streams(call& c, const read_request& request, all_wanted& what) {
    for (std::size_t i = 0; i < request.streams; ++i) {
        if (!find_wanted(c, request, i, what[i])) return outcome::replied;
    }
    late_head head(c);
    std::size_t replied = 0;
    for (std::size_t i = 0; i < request.streams; ++i) {
        const std::uint64_t errors = c.state.data.env.counters.errors;
        replied += reply_stream(c, request, i, what[i]) ? 1 : 0;
        // The reply was too large: an error is in its place.
        if (c.state.data.env.counters.errors != errors) return outcome::replied;
    }
    if (replied == 0) return outcome::nothing;
    head.map_or_array(replied);
    return outcome::replied;
}

// With CLAIM, a read that waits is tried again at a time of its own.
void set_retry(call& c, const read_request& request, all_wanted& what) {
    if (!request.claims()) return;
    std::int64_t next_us = client_session::no_deadline;
    for (std::size_t i = 0; i < request.streams; ++i) {
        if (what[i].is_new && what[i].group != nullptr)
            next_us = std::min(next_us, next_idle_us(c, *what[i].group, request.min_idle));
    }
    std::int64_t& retry_us = c.client.extras->retry_us;
    // The connection waits until the earlier of the two times.
    if (next_us < retry_us) c.client.wake();
    retry_us = next_us;
}

template <bool ByGroup>
bool serve_read(call& c, std::string_view key) {
    // A read without a group waits on until there is a stream; a read for a group reports that it
    // is gone.
    if (!ByGroup) {
        const slot* const place = c.keys->find(key);
        if (place == nullptr || keyspace::at(place)->type != value_type::stream) return false;
    }
    read_request request{.by_group = ByGroup};
    if (!request.parse(c)) return true;
    all_wanted what(request.streams);
    if (reply_streams(c, request, what) == outcome::replied) return true;
    set_retry(c, request, what);
    return false;
}

template <bool ByGroup>
void read(call& c) {
    read_request request{.by_group = ByGroup};
    if (!request.parse(c)) return;
    all_wanted what(request.streams);
    if (reply_streams(c, request, what) == outcome::replied) return;
    if (!request.waits || !may_wait(c)) return c.reply.null_array();
    // The wait is for the IDs that "$" and "+" mean now.
    std::vector<std::string_view> args(c.args, c.args + c.count);
    std::vector<stream_id_text> ids;
    ids.reserve(request.streams);
    for (std::size_t i = 0; i < request.streams; ++i) {
        if (!what[i].is_moving) continue;
        ids.emplace_back(what[i].after);
        args[request.first_key + request.streams + i] = ids.back().view();
    }
    const std::string_view* const given = c.args;
    c.args = args.data();
    wait_for_keys(c, request.first_key, request.streams, value_type::stream, request.deadline_us,
                  serve_read<ByGroup>,
                  ByGroup ? wait_until::changed_or_gone : wait_until::any_changed);
    c.args = given;
    if (c.client.blocked) set_retry(c, request, what);
}

}  // namespace

void xread(call& c) { read<false>(c); }
void xreadgroup(call& c) { read<true>(c); }

}  // namespace eddy::cache::commands
