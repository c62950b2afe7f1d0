// Delivery of key events, and of output notifications to connections.
#include "cache/clients/notifications.hpp"

#include "cache/clients/messages.hpp"
#include "cache/clients/tracking.hpp"
#include "cache/clients/waits.hpp"
#include "cache/persistence/propagation.hpp"
#include "cache/read_through/read_through.hpp"
#include "cache/replication/migration.hpp"
#include "cache/replication/replication.hpp"

#include <optional>
#include <utility>

namespace eddy::cache {
namespace {

constexpr std::uint16_t bit(key_event kind) noexcept { return static_cast<std::uint16_t>(kind); }

// In the order in which Redis shows them. "d" is for the types of modules, which there are none of.
constexpr std::uint16_t module_bit = 512;
constexpr std::pair<char, std::uint16_t> letters[] = {
    {'g', bit(key_event::generic)}, {'$', bit(key_event::string)},
    {'l', bit(key_event::list)},    {'s', bit(key_event::set)},
    {'h', bit(key_event::hash)},    {'z', bit(key_event::sorted_set)},
    {'x', bit(key_event::expired)}, {'e', bit(key_event::evicted)},
    {'t', bit(key_event::stream)},  {'d', module_bit},
    {'n', bit(key_event::new_key)},
};
constexpr std::uint16_t every_class = 0x1ff | module_bit;  // A

}  // namespace

std::string event_letters(const notification_options& options) {
    const std::uint16_t chosen = options.events;
    std::string text;
    const bool all = (chosen & every_class) == every_class;
    if (all) text += 'A';
    for (const auto& [letter, its] : letters) {
        if ((chosen & its) != 0 && !all) text += letter;
    }
    if (options.keyspace) text += 'K';
    if (options.keyevent) text += 'E';
    if ((chosen & bit(key_event::key_miss)) != 0) text += 'm';
    return text;
}

bool set_event_letters(notification_options& options, std::string_view given) {
    std::uint16_t chosen = 0;
    bool keyspace = false;
    bool keyevent = false;
    for (const char c : given) {
        std::uint16_t its = 0;
        for (const auto& [letter, bits] : letters) {
            if (c == letter) its = bits;
        }
        if (c == 'A') its = every_class;
        if (c == 'm') its = bit(key_event::key_miss);
        keyspace |= c == 'K';
        keyevent |= c == 'E';
        if (its == 0 && c != 'K' && c != 'E') return false;
        chosen |= its;
    }
    options.events = chosen;
    options.keyspace = keyspace;
    options.keyevent = keyevent;
    return true;
}

void engine_state::note_observers() noexcept {
    std::uint32_t now = 0;
    if (settings.options.notifications.keyspace || settings.options.notifications.keyevent)
        now = settings.options.notifications.events;
    if (!clients.watched.empty()) now |= observers::watchers;
    if (!clients.awaited.empty()) now |= observers::waiters;
    if (clients.tracking.clients > 0) now |= observers::trackers;
    if ((clients.slow_path & slow_path::propagates) != 0) now |= observers::propagation;
    if (hooked != nullptr) now |= observers::read_through;
    if (replication.migrating != nullptr) now |= observers::migrations;
    if (replication.replicating != nullptr && replication.replicating->is_replica() &&
        !settings.options.replication.read_only)
        now |= observers::own_expirations;
    clients.observers = now;
    data.env.observer = now != 0 ? this : nullptr;
}

void engine_state::key_happened(unsigned database, key_event kind, std::string_view name,
                                std::string_view key) {
    const bool is_change = kind != key_event::key_miss && kind != key_event::new_key;
    const bool by_itself = kind == key_event::expired || kind == key_event::evicted;
    std::optional<recorded_alone> told;
    if (by_itself && (clients.observers & observers::propagation) != 0)
        told.emplace(*this, database, std::initializer_list<std::string_view>{"DEL", key});
    if (is_change && (clients.observers & observers::read_through) != 0)
        hooked->key_happened(database, kind, name, key);
    // Fields end there as well.
    if (is_change && (clients.observers & observers::migrations) != 0 && name != "hexpired")
        replication.migrating->note_change(database, key);
    const bool is_own =
        clients.executing != nullptr && (clients.executing->special & client_session::master) == 0;
    if (is_change && !by_itself && is_own && (clients.observers & observers::own_expirations) != 0)
        replication.replicating->expirations().note_change(*data.keyspaces[database], key);
    notify_clients(database, kind, name, key);
}

void engine_state::notify_clients(unsigned database, key_event kind, std::string_view name,
                                  std::string_view key) {
    const bool is_change = kind != key_event::key_miss && kind != key_event::new_key;
    const bool by_itself = kind == key_event::expired || kind == key_event::evicted;
    if (is_change && (clients.observers & observers::watchers) != 0)
        notify_watchers(database, kind, key);
    if (is_change && (clients.observers & observers::waiters) != 0)
        note_ready(*this, {database, key});
    if (is_change && (clients.observers & observers::trackers) != 0) {
        invalidate(*this, key, by_itself ? nullptr : clients.executing);
    }
    if ((clients.observers & observers::events & bit(kind)) != 0)
        publish_event(database, kind, name, key);
}

void engine_state::notify_watchers(unsigned database, key_event kind, std::string_view key) {
    name_topic* const topic = clients.watched.find({database, key});
    if (topic == nullptr) return;
    topic->members.for_each([&](name_topic::member& each) {
        // A key whose time was over when it was watched was not there already.
        if (each.flag && kind == key_event::expired) {
            each.flag = false;
        } else {
            each.who->extras->watched_changed = true;
        }
    });
}

void engine_state::publish_event(unsigned database, key_event, std::string_view name,
                                 std::string_view key) {
    const std::string number = std::to_string(database);
    if (settings.options.notifications.keyspace) {
        std::string channel = "__keyspace@" + number + "__:";
        channel += key;
        publish(*this, channel, name);
    }
    if (settings.options.notifications.keyevent) {
        std::string channel = "__keyevent@" + number + "__:";
        channel += name;
        publish(*this, channel, key);
    }
}

void touch_watched(engine_state& s, const keyspace& gone, const keyspace* instead) {
    if (s.replication.migrating != nullptr) s.replication.migrating->note_changes(gone.number());
    if ((s.clients.observers & observers::watchers) == 0) return;
    s.clients.watched.for_each([&](name_topic& topic) {
        if (topic.scope != gone.number()) return;
        const bool was_there = gone.look_at(topic.name) != nullptr;
        const entry* const next = instead == nullptr ? nullptr : instead->look_at(topic.name);
        if (!was_there && next == nullptr) return;
        const bool next_is_over = next != nullptr && instead->is_over(*next);
        topic.members.for_each([&](name_topic::member& each) {
            if (each.flag) {
                // A key that was over is gone, or still over.
                if (next == nullptr) each.flag = false;
                if (next == nullptr || next_is_over) return;
            } else if (!was_there && next_is_over) {
                each.flag = true;
                return;
            }
            each.who->extras->watched_changed = true;
        });
    });
}

void swap_databases(engine_state& s, std::size_t first, std::size_t second) {
    if (first == second) return;
    if (s.hooked != nullptr) s.hooked->keep_values();
    keyspace& one = s.data.database(first);
    keyspace& other = s.data.database(second);
    touch_watched(s, one, &other);
    touch_watched(s, other, &one);
    std::swap(s.data.keyspaces[first], s.data.keyspaces[second]);
    one.set_number(static_cast<unsigned>(second));
    other.set_number(static_cast<unsigned>(first));
    note_all_ready(s, static_cast<unsigned>(first));
    note_all_ready(s, static_cast<unsigned>(second));
}

}  // namespace eddy::cache
