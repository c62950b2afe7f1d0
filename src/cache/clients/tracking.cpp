// CLIENT TRACKING: records the keys that clients read, and sends invalidations.
#include "cache/clients/tracking.hpp"

#include <eddy/base/byte_buffer.hpp>
#include <eddy/wire/resp/reply_writer.hpp>

#include "cache/acl/acl.hpp"
#include "cache/catalog/command_keys.hpp"
#include "cache/catalog/command_table.hpp"
#include "cache/clients/messages.hpp"

#include <algorithm>
#include <compare>
#include <vector>

namespace eddy::cache {
namespace {

// At most so many bytes of changes below prefixes, with their bookkeeping, wait for the end of a
// batch; beyond it they are sent at once.
constexpr std::size_t max_change_bytes = std::size_t{1} << 20;
constexpr std::size_t change_overhead = sizeof(tracking_table::change);
// At most so many keys are removed by one command from a table above its limit.
constexpr std::size_t max_forgotten = 100;
constexpr std::string_view channel = "__redis__:invalidate";

bool tracks(const client_session& who) noexcept {
    return (who.special & client_session::tracking) != 0;
}

std::uint8_t options_of(const client_session& who) noexcept { return who.extras->tracking; }

// `value` is the payload after the word "invalidate": an array of keys, or null.
void send(engine_state& s, client_session& who, std::string_view value) {
    session_extras& extras = *who.extras;
    client_session* to = &who;
    byte_buffer message;
    if (extras.redirection != 0) {
        const auto found = s.clients.tracking.sessions.find(extras.redirection);
        if (found == s.clients.tracking.sessions.end()) {
            extras.tracking |= tracking_option::broken_redirection;
            if (who.protocol == 2) return;
            resp::reply_writer push(message, who.protocol);
            push.push(2);
            push.bulk("tracking-redir-broken");
            push.integer(static_cast<std::int64_t>(extras.redirection));
            return push_to(s, who, message.text());
        }
        to = found->second;
    }
    resp::reply_writer push(message, to->protocol);
    if (to->protocol > 2) {
        push.push(2);
        push.bulk("invalidate");
    } else if (extras.redirection != 0 && (to->special & client_session::subscriber) != 0) {
        push.push(3);
        push.bulk("message");
        push.bulk(channel);
    } else {
        return;
    }
    push.raw(value);
    push_to(s, *to, message.text());
}

// With NOLOOP the session that changed the key gets no invalidation; expiration and removal from
// the table are always notified.
void notify_readers(engine_state& s, std::string_view key, const client_session* by) {
    byte_buffer value;
    resp::reply_writer array(value);
    array.array(1);
    array.bulk(key);
    s.clients.tracking.keys.take(key, [&](std::uint64_t id) {
        const auto found = s.clients.tracking.sessions.find(id);
        if (found == s.clients.tracking.sessions.end()) return;
        client_session& reader = *found->second;
        if (!tracks(reader) || (options_of(reader) & tracking_option::broadcast) != 0) return;
        if ((options_of(reader) & tracking_option::no_loop) != 0 && &reader == by) return;
        send(s, reader, value.text());
    });
}

void count_prefix(tracking_table& table, std::size_t length, bool added) {
    const auto place = std::ranges::find(table.prefix_lengths, length,
                                         &std::pair<std::size_t, std::size_t>::first);
    if (place == table.prefix_lengths.end()) {
        table.prefix_lengths.emplace_back(length, 1);
    } else if (added) {
        ++place->second;
    } else if (--place->second == 0) {
        table.prefix_lengths.erase(place);
    }
}

// Calls f(topic) for each subscribed prefix of the key. O(number of distinct prefix lengths).
template <class F>
void for_each_prefix(tracking_table& table, std::string_view key, F&& f) {
    for (const auto& [length, count] : table.prefix_lengths) {
        if (length > key.size()) continue;
        if (name_topic* const topic = table.prefixes.find({0, key.substr(0, length)})) f(*topic);
    }
}

void note_change(engine_state& s, std::string_view key, const client_session* by) {
    tracking_table& table = s.clients.tracking;
    bool has_subscriber = false;
    for_each_prefix(table, key, [&](name_topic&) { has_subscriber = true; });
    if (!has_subscriber) return;
    table.changes.push_back({std::string(key), by == nullptr ? 0 : by->id});
    table.change_bytes += key.size() + change_overhead;
    if (table.change_bytes > max_change_bytes) send_broadcasts(s);
}

void subscribe_prefix(engine_state& s, client_session& who, std::string_view prefix) {
    const bool is_new = s.clients.tracking.prefixes.find({0, prefix}) == nullptr;
    s.clients.tracking.prefixes.add(who.extras->prefixes, who, {0, prefix});
    if (is_new) count_prefix(s.clients.tracking, prefix.size(), true);
}

void unsubscribe_prefixes(engine_state& s, client_session& who) {
    name_set& mine = who.extras->prefixes;
    mine.for_each([&](name_topic& topic, name_topic::member&) {
        if (topic.count == 1) count_prefix(s.clients.tracking, topic.name.size(), false);
    });
    s.clients.tracking.prefixes.remove_all(mine);
}

// Writes the changed keys of one prefix, without those changed by session `but`, and only those
// that `limited`, if not null, may access; nothing if none remain.
void write_keys(byte_buffer& to, std::span<const tracking_table::change* const> changes,
                std::uint64_t but, const acl::user* limited) {
    const auto is_wanted = [but, limited](const tracking_table::change* each) {
        return (but == 0 || each->by != but) && (limited == nullptr || limited->has_key(each->key));
    };
    const auto count = std::ranges::count_if(changes, is_wanted);
    if (count == 0) return;
    resp::reply_writer array(to);
    array.array(static_cast<std::size_t>(count));
    for (const tracking_table::change* const each : changes) {
        if (is_wanted(each)) array.bulk(each->key);
    }
}

void send_changes(engine_state& s, name_topic& prefix,
                  std::span<const tracking_table::change* const> changes) {
    byte_buffer all;
    write_keys(all, changes, 0, nullptr);
    prefix.members.for_each([&](name_topic::member& each) {
        client_session& who = *each.who;
        const bool has_own = (options_of(who) & tracking_option::no_loop) == 0;
        if (has_own && who.unlimited) return send(s, who, all.text());
        byte_buffer some;
        write_keys(some, changes, has_own ? 0 : who.id, who.unlimited ? nullptr : who.user);
        if (!some.empty()) send(s, who, some.text());
    });
}

// A redirection target gets output at any time, so it is not idle; a connection that rests already
// is woken.
void add_redirection(client_session& to) {
    if (extras_of(to).redirections++ > 0) return;
    to.special |= client_session::redirect_target;
    to.wake();
}

void remove_redirection(engine_state& s, const client_session& from) {
    const auto found = s.clients.tracking.sessions.find(from.extras->redirection);
    if (from.extras->redirection == 0 || found == s.clients.tracking.sessions.end()) return;
    client_session& to = *found->second;
    if (--to.extras->redirections > 0) return;
    to.special &= static_cast<std::uint16_t>(~client_session::redirect_target);
    to.wake();
}

}  // namespace

client_session* find_session(engine_state& s, std::uint64_t id) noexcept {
    client_session* found = nullptr;
    s.clients.sessions.for_each([&](client_session& each) {
        if (each.id == id) found = &each;
    });
    return found;
}

void start_tracking(engine_state& s, client_session& who, std::uint64_t redirection,
                    std::uint8_t options, std::span<const std::string_view> prefixes) {
    session_extras& extras = extras_of(who);
    s.clients.tracking.sessions[who.id] = &who;
    if (redirection != 0) {
        client_session& to = *find_session(s, redirection);
        s.clients.tracking.sessions[redirection] = &to;
        add_redirection(to);
    }
    if (tracks(who))
        remove_redirection(s, who);
    else
        ++s.clients.tracking.clients;
    who.special |= client_session::tracking;
    // The effect of CLIENT CACHING survives another CLIENT TRACKING, as in Redis.
    extras.tracking = options | (extras.tracking & tracking_option::caching);
    extras.redirection = redirection;
    if ((options & tracking_option::broadcast) != 0) {
        if (prefixes.empty()) subscribe_prefix(s, who, {});
        for (const std::string_view each : prefixes) subscribe_prefix(s, who, each);
    }
    s.note_observers();
}

void stop_tracking(engine_state& s, client_session& who) {
    if (!tracks(who)) return;
    who.special &= static_cast<std::uint16_t>(~client_session::tracking);
    unsubscribe_prefixes(s, who);
    remove_redirection(s, who);
    who.extras->tracking = 0;
    who.extras->redirection = 0;
    if (--s.clients.tracking.clients == 0) {
        s.clients.tracking.keys.clear();
        s.clients.tracking.sessions.clear();
    }
    s.note_observers();
}

void forget_tracked(engine_state& s, client_session& who) {
    stop_tracking(s, who);
    if (!s.clients.tracking.sessions.empty()) s.clients.tracking.sessions.erase(who.id);
}

void remember_reads(call& c, const command_spec& spec, std::span<const std::string_view> args) {
    using namespace tracking_option;
    if ((spec.flags & command_flag::readonly) == 0 || (spec.flags & command_flag::pubsub) != 0) {
        return;
    }
    const std::uint8_t options = options_of(c.client);
    const bool asked = (options & caching) != 0;
    if ((options & broadcast) != 0 || ((options & opt_in) != 0 && !asked) ||
        ((options & opt_out) != 0 && asked)) {
        return;
    }
    engine_state& s = c.state;
    const auto is_gone = [&s](std::uint64_t id) {
        return !s.clients.tracking.sessions.contains(id);
    };
    const auto remember = [&](std::string_view key) {
        s.clients.tracking.keys.add(key, s.data.env.hash(key), c.client.id, is_gone);
    };
    if (spec.first_key == 1 && spec.last_key == 1) {
        remember(args[1]);
    } else if (const auto keys = find_key_arguments(spec, args)) {
        for (const key_argument& each : *keys) remember(args[each.index]);
    }
    limit_tracking_table(s);
}

void limit_tracking_table(engine_state& s) {
    if (!is_over_tracking_limit(s)) return;
    slice_limit slice(s.data.env.slice_time, longest_slice_ns);
    shrink_tracking_table(s, max_forgotten, slice);
}

bool is_over_tracking_limit(const engine_state& s) noexcept {
    const std::size_t limit = s.settings.options.tracking_table_max_keys;
    return limit != 0 && s.clients.tracking.keys.size() > limit;
}

bool shrink_tracking_table(engine_state& s, std::size_t most, slice_limit& slice) {
    for (; most > 0 && is_over_tracking_limit(s); --most) {
        const std::size_t before = s.clients.tracking.keys.items();
        notify_readers(s, s.clients.tracking.keys.some_key(), nullptr);
        if (slice.is_over_after(before - s.clients.tracking.keys.items())) break;
    }
    return is_over_tracking_limit(s);
}

void invalidate(engine_state& s, std::string_view key, const client_session* by) {
    if (!s.clients.tracking.prefixes.empty()) note_change(s, key, by);
    if (s.clients.tracking.keys.size() > 0) notify_readers(s, key, by);
}

void invalidate_all(engine_state& s) {
    if (s.clients.tracking.clients == 0) return;
    s.clients.sessions.for_each([&](client_session& each) {
        if (tracks(each)) send(s, each, each.protocol == 2 ? "$-1\r\n" : "_\r\n");
    });
    s.clients.tracking.keys.clear();
}

void send_broadcasts(engine_state& s) {
    tracking_table& table = s.clients.tracking;
    std::vector<tracking_table::change> changes = std::move(table.changes);
    table.changes.clear();
    table.change_bytes = 0;
    // The last of several changes of a key counts.
    std::vector<const tracking_table::change*> ordered;
    ordered.reserve(changes.size());
    for (const tracking_table::change& each : changes) ordered.push_back(&each);
    std::ranges::sort(ordered, [](const auto* x, const auto* y) {
        return x->key != y->key ? x->key < y->key : x < y;
    });
    struct place {
        name_topic* prefix;
        std::size_t rank;  // in the order of keys
    };
    std::vector<place> places;
    for (std::size_t i = 0; i < ordered.size(); ++i) {
        if (i + 1 < ordered.size() && ordered[i]->key == ordered[i + 1]->key) continue;
        for_each_prefix(table, ordered[i]->key,
                        [&](name_topic& topic) { places.push_back({&topic, i}); });
    }
    // In a deterministic order, as in Redis.
    std::ranges::sort(places, {}, [](const place& p) { return std::pair(p.prefix->name, p.rank); });
    std::vector<const tracking_table::change*> of_one;
    for (std::size_t i = 0; i < places.size();) {
        name_topic* const prefix = places[i].prefix;
        of_one.clear();
        for (; i < places.size() && places[i].prefix == prefix; ++i) {
            of_one.push_back(ordered[places[i].rank]);
        }
        send_changes(s, *prefix, of_one);
    }
}

}  // namespace eddy::cache
