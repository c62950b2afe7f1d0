// String commands: GET, SET and their kin.
#include <string>

#include "cache/catalog/command_table.hpp"
#include "cache/catalog/commands.hpp"
#include "cache/commands/keys/expiry_argument.hpp"
#include "cache/commands/strings/value_condition.hpp"
#include "cache/engine/call.hpp"
#include "cache/engine/keys_ahead.hpp"
#include "cache/persistence/propagation.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace eddy::cache::commands {
namespace {

using slot = call::slot;

// Replies with the string in the slot, or null; false for another type.
bool reply_text(call& c, const slot* place) {
    if (place == nullptr) {
        c.reply.null();
        return true;
    }
    if (c.is_not(place, value_type::string)) return false;
    const entry& e = *keyspace::at(place);
    if (e.held_as == encoding::bytes) [[likely]] {
        c.reply.bulk(e.value_bytes());
    } else if (e.held_as == encoding::integer) {
        c.reply.bulk_integer(e.integer());
    } else {
        text_view view;
        c.reply.bulk(view(e));
    }
    return true;
}

// The options of SET, MSETEX and GETEX, in any order.
struct options {
    bool only_if_absent = false;
    bool only_if_present = false;
    bool get = false;
    bool keep_expiry = false;
    bool persist = false;
    value_condition condition;
    expiry_argument expiry;

    // True if SET stores nothing for want of a key, or for one too many.
    bool lacks(const slot* place) const noexcept {
        return (only_if_absent && place != nullptr) || (only_if_present && place == nullptr);
    }
};

enum class option_set : std::uint8_t { set, msetex, getex };

// False, with the error replied, for malformed options.
bool parse_options(call& c, std::size_t first, option_set allowed, options& to) {
    const bool is_set = allowed == option_set::set;
    const bool stores = allowed != option_set::getex;
    for (std::size_t i = first; i < c.count; ++i) {
        const std::string_view word = c.arg(i);
        const bool has_next = i + 1 < c.count;
        const bool no_expiry_yet = !to.keep_expiry && !to.persist;
        // As in Redis 8.6, NX or XX may stand behind a condition on the value, not before it.
        if (stores && is_word(word, "nx") && !to.only_if_present) {
            to.only_if_absent = true;
        } else if (stores && is_word(word, "xx") && !to.only_if_absent) {
            to.only_if_present = true;
        } else if (is_set && is_word(word, "get")) {
            to.get = true;
        } else if (is_set && has_next && !to.only_if_absent && !to.only_if_present &&
                   to.condition.take(word, c.arg(i + 1))) {
            ++i;
        } else if (stores && is_word(word, "keepttl") && !to.persist && !to.expiry.given()) {
            to.keep_expiry = true;
        } else if (!stores && is_word(word, "persist") && !to.expiry.given() && !to.keep_expiry) {
            to.persist = true;
        } else if (has_next && no_expiry_yet && to.expiry.take(word, c.arg(i + 1))) {
            ++i;
        } else {
            c.syntax_error();
            return false;
        }
    }
    return true;
}

// Propagates one string as SET without conditions, with the absolute expiration time.
void propagate_text(call& c, std::string_view key, std::string_view text, const options& o,
                    expiry_time at_ms) {
    if (at_ms != no_expiry)
        propagate_as(c, {"SET", key, text, "PXAT", decimal(at_ms)});
    else if (o.keep_expiry)
        propagate_as(c, {"SET", key, text, "KEEPTTL"});
    else
        propagate_as(c, {"SET", key, text});
}

// Propagates SET with the absolute expiration time, and without GET and conditions on the value.
void propagate_set(call& c, const options& o, expiry_time at_ms) {
    if (o.condition.given()) {
        propagate_text(c, c.arg(1), c.arg(2), o, at_ms);
    } else if (at_ms != no_expiry) {
        if (o.expiry.unit != expiry_unit::unix_milliseconds)
            propagate_as(c, {"SET", c.arg(1), c.arg(2), "PXAT", decimal(at_ms)});
    } else if (o.get) {
        std::vector<std::string_view> args{c.arg(0), c.arg(1), c.arg(2)};
        for (std::size_t i = 3; i < c.count; ++i) {
            if (!is_word(c.arg(i), "get")) args.push_back(c.arg(i));
        }
        propagate_as(c, args);
    }
}

void set_with_options(call& c) {
    options o;
    if (!parse_options(c, 3, option_set::set, o)) return;
    expiry_time at_ms = no_expiry;
    if (o.expiry.given() && !o.expiry.resolve(c, at_ms)) return;
    slot* const place = o.get ? c.find_to_read() : c.find_to_replace();
    bool is_met = !o.lacks(place);
    if (is_met && o.condition.given()) {
        if (place != nullptr && c.is_not(place, value_type::string)) return;
        const auto holds = o.condition.holds(c, place == nullptr ? nullptr : keyspace::at(place));
        if (!holds) return;
        is_met = *holds;
    }
    if (o.get && !reply_text(c, place)) return;
    if (!is_met) {
        if (!o.get) c.reply.null();
        return;
    }
    slot* const stored = c.keys->put_text(place, c.arg(1), c.hash, c.arg(2), o.keep_expiry);
    if (at_ms != no_expiry) c.keys->set_expiry(stored, at_ms);
    c.changed(key_event::string, "set", c.arg(1));
    if (at_ms != no_expiry) c.also_happened(key_event::generic, "expire", c.arg(1));
    if (propagates(c)) propagate_set(c, o, at_ms);
    if (!o.get) c.reply.ok();
}

void set_with_expiry(call& c, expiry_unit unit) {
    expiry_argument expiry{unit, c.arg(2)};
    expiry_time at_ms = no_expiry;
    if (!expiry.resolve(c, at_ms)) return;
    slot* const place = c.keys->put_text(c.find_to_replace(), c.arg(1), c.hash, c.arg(3));
    c.keys->set_expiry(place, at_ms);
    c.changed(key_event::string, "set", c.arg(1));
    c.also_happened(key_event::generic, "expire", c.arg(1));
    if (propagates(c)) propagate_as(c, {"SET", c.arg(1), c.arg(3), "PXAT", decimal(at_ms)});
    c.reply.ok();
}

void set_pairs(call& c) {
    keys_ahead ahead(c, 1, 2);
    for (std::size_t i = 1; i < c.count; i += 2) {
        const std::uint64_t hash = ahead.next_hash();
        c.keys->put_text(c.keys->find_to_read(c.arg(i), hash), c.arg(i), hash, c.arg(i + 1));
        c.changed(key_event::string, "set", c.arg(i));
    }
}

}  // namespace

void get(call& c) { reply_text(c, c.find_to_read()); }

void set(call& c) {
    if (c.count > 3) return set_with_options(c);
    c.keys->put_text(c.find_to_replace(), c.arg(1), c.hash, c.arg(2));
    c.changed(key_event::string, "set", c.arg(1));
    c.reply.ok();
}

void getset(call& c) {
    slot* const place = c.find_to_read();
    if (!reply_text(c, place)) return;
    c.keys->put_text(place, c.arg(1), c.hash, c.arg(2));
    c.changed(key_event::string, "set", c.arg(1));
    propagate_as(c, {"SET", c.arg(1), c.arg(2)});
}

void getdel(call& c) {
    slot* const place = c.find_to_read();
    if (!reply_text(c, place) || place == nullptr) return;
    c.keys->remove(place, c.hash);
    c.changed(key_event::generic, "del", c.arg(1));
    propagate_as(c, {"DEL", c.arg(1)});
}

void getex(call& c) {
    options o;
    if (!parse_options(c, 2, option_set::getex, o)) return;
    slot* const place = c.find_to_read();
    if (place == nullptr) return c.reply.null();
    if (c.is_not(place, value_type::string)) return;
    expiry_time at_ms = no_expiry;
    if (o.expiry.given() && !o.expiry.resolve(c, at_ms)) return;
    reply_text(c, place);
    if (o.persist) {
        if (c.keys->drop_expiry(place)) {
            c.changed(key_event::generic, "persist", c.arg(1));
            propagate_as(c, {"PERSIST", c.arg(1)});
        }
    } else if (at_ms != no_expiry) {
        if (is_over_at_once(c, at_ms)) {
            c.keys->remove(place, c.hash);
            c.changed(key_event::generic, "del", c.arg(1));
            propagate_as(c, {"DEL", c.arg(1)});
        } else {
            c.keys->set_expiry(place, at_ms);
            c.changed(key_event::generic, "expire", c.arg(1));
            if (propagates(c)) propagate_as(c, {"PEXPIREAT", c.arg(1), decimal(at_ms)});
        }
    }
}

void setnx(call& c) {
    const bool absent = c.find_to_replace() == nullptr;
    if (absent) {
        c.keys->put_text(nullptr, c.arg(1), c.hash, c.arg(2));
        c.changed(key_event::string, "set", c.arg(1));
    }
    c.reply.integer(absent ? 1 : 0);
}

void setex(call& c) { set_with_expiry(c, expiry_unit::seconds); }
void psetex(call& c) { set_with_expiry(c, expiry_unit::milliseconds); }

void mget(call& c) {
    c.reply.array(c.count - 1);
    keys_ahead ahead(c, 1, 1);
    for (std::size_t i = 1; i < c.count && !c.reply_is_too_large(); ++i) {
        const slot* const place = c.find_to_read(c.arg(i), ahead.next_hash());
        if (place == nullptr || keyspace::at(place)->type != value_type::string) {
            c.reply.null();
        } else {
            reply_text(c, place);
        }
    }
}

void mset(call& c) {
    if (c.count % 2 == 0) return c.wrong_arity();
    set_pairs(c);
    c.reply.ok();
}

void msetnx(call& c) {
    if (c.count % 2 == 0) return c.wrong_arity();
    for (std::size_t i = 1; i < c.count; i += 2) {
        if (c.keys->find_to_read(c.arg(i)) != nullptr) return c.reply.integer(0);
    }
    set_pairs(c);
    c.reply.integer(1);
}

void msetex(call& c) {
    constexpr std::int64_t most = INT32_MAX;
    const auto keys = c.integer_in(1, 1, most, "ERR invalid numkeys value");
    if (!keys) return;
    const auto end = static_cast<std::size_t>(*keys) * 2 + 2;
    if (end > c.count) return c.error("ERR wrong number of key-value pairs");
    options o;
    if (!parse_options(c, end, option_set::msetex, o)) return;
    expiry_time at_ms = no_expiry;
    if (o.expiry.given() && !o.expiry.resolve(c, at_ms)) return;
    if (o.only_if_absent || o.only_if_present) {
        for (std::size_t i = 2; i < end; i += 2)
            if (o.lacks(c.keys->find_to_read(c.arg(i)))) return c.reply.integer(0);
    }
    keys_ahead ahead(c, 2, 2);
    for (std::size_t i = 2; i < end; i += 2) {
        const std::string_view key = c.arg(i);
        const std::uint64_t hash = ahead.next_hash();
        slot* const stored = c.keys->put_text(c.keys->find_to_read(key, hash), key, hash,
                                              c.arg(i + 1), o.keep_expiry);
        if (at_ms != no_expiry) c.keys->set_expiry(stored, at_ms);
        c.changed(key_event::string, "set", key);
        if (at_ms != no_expiry) c.also_happened(key_event::generic, "expire", key);
        if (propagates(c)) propagate_text(c, key, c.arg(i + 1), o, at_ms);
    }
    c.reply.integer(1);
}

void digest(call& c) {
    const slot* const place = c.find_to_read();
    if (place == nullptr) return c.reply.null();
    if (c.is_not(place, value_type::string)) return;
    text_view view;
    c.reply.bulk(string_digest(view(*keyspace::at(place))));
}

namespace {

void delete_key(call& c, slot* place) {
    c.keys->remove(place, c.hash);
    c.changed(key_event::generic, "del", c.arg(1));
    propagate_as(c, {"DEL", c.arg(1)});
    c.reply.integer(1);
}

}  // namespace

void delex(call& c) {
    if (c.count != 2 && c.count != 4) return c.wrong_arity();
    slot* const place = c.find_to_replace();
    value_condition condition;
    if (c.count == 4) {
        if (place != nullptr && keyspace::at(place)->type != value_type::string)
            return c.error("ERR Key should be of string type if conditions are specified");
        if (!condition.take(c.arg(2), c.arg(3)))
            return c.error("ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE");
    }
    if (place == nullptr) return c.reply.integer(0);
    if (condition.given()) {
        const auto holds = condition.holds(c, keyspace::at(place));
        if (!holds) return;
        if (!*holds) return c.reply.integer(0);
    }
    delete_key(c, place);
}

void delifeq(call& c) {
    slot* const place = c.find_to_replace();
    if (place == nullptr) return c.reply.integer(0);
    if (c.is_not(place, value_type::string)) return;
    text_view view;
    if (view(*keyspace::at(place)) != c.arg(2)) return c.reply.integer(0);
    delete_key(c, place);
}

void append(call& c) {
    slot* const place = c.find_to_write();
    const std::string_view added = c.arg(2);
    if (place == nullptr) {
        c.keys->put_text(nullptr, c.arg(1), c.hash, added);
        c.changed(key_event::string, "append", c.arg(1));
        return c.reply.integer(static_cast<std::int64_t>(added.size()));
    }
    if (c.is_not(place, value_type::string)) return;
    const std::size_t old = text_size(*keyspace::at(place));
    if (!c.fits_text(old, added.size())) return;
    const std::size_t size = old + added.size();
    char* const text = c.keys->open_text(place, size);
    if (!added.empty()) std::memcpy(text + old, added.data(), added.size());
    c.changed(key_event::string, "append", c.arg(1));
    c.reply.integer(static_cast<std::int64_t>(size));
}

void strlen(call& c) {
    const slot* const place = c.find_to_read();
    if (place == nullptr) return c.reply.integer(0);
    if (c.is_not(place, value_type::string)) return;
    c.reply.integer(static_cast<std::int64_t>(text_size(*keyspace::at(place))));
}

void getrange(call& c) {
    const auto from = c.integer(2);
    if (!from) return;
    const auto to = c.integer(3);
    if (!to) return;
    const slot* const place = c.find_to_read();
    if (place == nullptr) return c.reply.bulk("");
    if (c.is_not(place, value_type::string)) return;
    text_view view;
    const std::string_view text = view(*keyspace::at(place));
    const auto size = static_cast<std::int64_t>(text.size());
    if (*from < 0 && *to < 0 && *from > *to) return c.reply.bulk("");
    const std::int64_t first = std::max<std::int64_t>(*from < 0 ? *from + size : *from, 0);
    const std::int64_t last =
        std::min(std::max<std::int64_t>(*to < 0 ? *to + size : *to, 0), size - 1);
    if (first > last) return c.reply.bulk("");
    c.reply.bulk(
        text.substr(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first + 1)));
}

void setrange(call& c) {
    const auto offset = c.integer(2);
    if (!offset) return;
    if (*offset < 0) return c.error("ERR offset is out of range");
    const std::string_view text = c.arg(3);
    const auto at = static_cast<std::size_t>(*offset);
    slot* place = c.find_to_write();
    if (place != nullptr && c.is_not(place, value_type::string)) return;
    const std::size_t old = place == nullptr ? 0 : text_size(*keyspace::at(place));
    if (text.empty()) return c.reply.integer(static_cast<std::int64_t>(old));
    if (!c.fits_text(at, text.size())) return;
    if (place == nullptr) place = c.keys->put_text(nullptr, c.arg(1), c.hash, "");
    const std::size_t size = std::max(old, at + text.size());
    std::memcpy(c.keys->open_text(place, size) + at, text.data(), text.size());
    c.changed(key_event::string, "setrange", c.arg(1));
    c.reply.integer(static_cast<std::int64_t>(size));
}

}  // namespace eddy::cache::commands
