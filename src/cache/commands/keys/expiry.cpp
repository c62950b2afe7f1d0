// Expiration of keys: EXPIRE, TTL, PERSIST and their kin.
#include "cache/catalog/command_table.hpp"
#include "cache/catalog/commands.hpp"
#include "cache/engine/call.hpp"
#include "cache/persistence/propagation.hpp"

#include <string>
#include <vector>

namespace eddy::cache::commands {
namespace {

using slot = call::slot;

enum class unit : std::int64_t { seconds = 1000, milliseconds = 1 };

// EXPIRE's conditions.
struct conditions {
    bool only_without = false;  // NX
    bool only_with = false;     // XX
    bool only_later = false;    // GT
    bool only_earlier = false;  // LT

    bool parse(call& c) {
        for (std::size_t i = 3; i < c.count; ++i) {
            if (is_word(c.arg(i), "nx")) {
                only_without = true;
            } else if (is_word(c.arg(i), "xx")) {
                only_with = true;
            } else if (is_word(c.arg(i), "gt")) {
                only_later = true;
            } else if (is_word(c.arg(i), "lt")) {
                only_earlier = true;
            } else {
                const std::string_view given = c.arg(i);
                c.error("ERR Unsupported option " + std::string(given.substr(0, given.find('\0'))));
                return false;
            }
        }
        if (only_without && (only_with || only_later || only_earlier)) {
            c.error("ERR NX and XX, GT or LT options at the same time are not compatible");
            return false;
        }
        if (only_later && only_earlier) {
            c.error("ERR GT and LT options at the same time are not compatible");
            return false;
        }
        return true;
    }

    // No expiry counts as one that never comes.
    bool allow(expiry_time now_set, expiry_time asked) const noexcept {
        const bool has = now_set != no_expiry;
        if (only_without && has) return false;
        if (only_with && !has) return false;
        if (only_later && (!has || asked <= now_set)) return false;
        return !(only_earlier && has && asked >= now_set);
    }
};

void propagate_expiry(call& c, expiry_time at_ms) {
    const decimal time(at_ms);
    std::vector<std::string_view> args(c.args, c.args + c.count);
    args[0] = "PEXPIREAT";
    args[2] = time;
    propagate_as(c, args);
}

void set_expiry(call& c, unit in, std::int64_t from_ms) {
    conditions when;
    if (!when.parse(c)) return;
    const auto given = c.integer(2);
    if (!given) return;
    std::int64_t at_ms = *given;
    if (__builtin_mul_overflow(at_ms, static_cast<std::int64_t>(in), &at_ms) ||
        __builtin_add_overflow(at_ms, from_ms, &at_ms)) {
        return c.error("ERR invalid expire time in '" + std::string(c.spec->name) + "' command");
    }
    slot* const place = c.find_to_replace();
    if (place == nullptr || !when.allow(keyspace::at(place)->expiry(), at_ms)) {
        return c.reply.integer(0);
    }
    if (is_over_at_once(c, at_ms)) {
        c.keys->remove(place, c.hash);
        c.changed(key_event::generic, "del", c.arg(1));
        propagate_as(c, {"DEL", c.arg(1)});
    } else {
        c.keys->set_expiry(place, at_ms);
        c.changed(key_event::generic, "expire", c.arg(1));
        if (propagates(c)) propagate_expiry(c, at_ms);
    }
    c.reply.integer(1);
}

void reply_time(call& c, unit in, bool left_only) {
    const slot* const place = c.find_to_read();
    if (place == nullptr) return c.reply.integer(-2);
    const expiry_time at_ms = keyspace::at(place)->expiry();
    if (at_ms == no_expiry) return c.reply.integer(-1);
    const std::int64_t time = left_only ? at_ms - c.now_ms() : at_ms;
    // Rounded in unsigned arithmetic: a time may be anything up to 2^63 - 1.
    const auto rounded = (static_cast<std::uint64_t>(time) + 500) / 1000;
    c.reply.integer(in == unit::seconds ? static_cast<std::int64_t>(rounded) : time);
}

}  // namespace

void expire(call& c) { set_expiry(c, unit::seconds, c.now_ms()); }
void pexpire(call& c) { set_expiry(c, unit::milliseconds, c.now_ms()); }
void expireat(call& c) { set_expiry(c, unit::seconds, 0); }
void pexpireat(call& c) { set_expiry(c, unit::milliseconds, 0); }

void ttl(call& c) { reply_time(c, unit::seconds, true); }
void pttl(call& c) { reply_time(c, unit::milliseconds, true); }
void expiretime(call& c) { reply_time(c, unit::seconds, false); }
void pexpiretime(call& c) { reply_time(c, unit::milliseconds, false); }

void persist(call& c) {
    slot* const place = c.find_to_replace();
    const bool dropped = place != nullptr && c.keys->drop_expiry(place);
    if (dropped) c.changed(key_event::generic, "persist", c.arg(1));
    c.reply.integer(dropped ? 1 : 0);
}

}  // namespace eddy::cache::commands
