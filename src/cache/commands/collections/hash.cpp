// Hash commands: HSET, HGET and their kin. Expiring fields are in hash_expiry.cpp.
#include "cache/catalog/commands.hpp"
#include "cache/commands/keys/random_picks.hpp"
#include "cache/commands/keys/scan_options.hpp"
#include "cache/engine/call.hpp"
#include "cache/engine/field_expiry.hpp"
#include "cache/persistence/propagation.hpp"

#include <cmath>
#include <string>

namespace eddy::cache::commands {
namespace {

using slot = call::slot;

// The hash to write to, made when it is not there; null, with the error replied, for another type.
slot* open_hash(call& c) {
    slot* const place = hash_to_write(c);
    if (place == nullptr) return c.keys->add(c.arg(1), c.hash, value_type::hash);
    return c.is_not(place, value_type::hash) ? nullptr : place;
}

std::int64_t put_pairs(call& c, slot* place) {
    collection fields = c.collection_of(place);
    fields.expect(c.arg(2), (c.count - 2) / 2);
    std::int64_t added = 0;
    for (std::size_t i = 2; i < c.count; i += 2)
        added += fields.put(c.arg(i), c.arg(i + 1)) ? 1 : 0;
    c.changed(key_event::hash, "hset", c.arg(1), (c.count - 2) / 2);
    return added;
}

void reply_field(call& c, const slot* place, std::string_view field) {
    if (place == nullptr) return c.reply.null();
    const auto value = c.collection_of(place).get(field);
    if (value) {
        c.reply.bulk(*value);
    } else {
        c.reply.null();
    }
}

enum class part : std::uint8_t { fields, values, both };

void reply_all(call& c, part wanted) {
    const slot* const place = hash_to_read(c);
    if (place == nullptr) return wanted == part::both ? c.reply.map(0) : c.reply.array(0);
    if (c.is_not(place, value_type::hash)) return;
    const collection fields = c.collection_of(place);
    if (wanted == part::both) {
        c.reply.map(fields.size());
    } else {
        c.reply.array(fields.size());
    }
    collection::walk walk(fields);
    for (collection::element e; walk.next(e) && !c.reply_is_too_large();) {
        if (wanted != part::values) c.reply.bulk(e.field);
        if (wanted != part::fields) c.reply.bulk(e.value);
    }
}

}  // namespace

void hset(call& c) {
    if (c.count % 2 != 0) return c.wrong_arity();
    if (slot* const place = open_hash(c)) c.reply.integer(put_pairs(c, place));
}

void hmset(call& c) {
    if (c.count % 2 != 0) return c.wrong_arity();
    if (slot* const place = open_hash(c)) {
        put_pairs(c, place);
        c.reply.ok();
    }
}

void hsetnx(call& c) {
    slot* const place = open_hash(c);
    if (place == nullptr) return;
    collection fields = c.collection_of(place);
    const bool absent = !fields.contains(c.arg(2));
    if (absent) {
        fields.put(c.arg(2), c.arg(3));
        c.changed(key_event::hash, "hset", c.arg(1));
    }
    c.reply.integer(absent ? 1 : 0);
}

void hget(call& c) {
    const slot* const place = hash_to_read(c);
    if (place != nullptr && c.is_not(place, value_type::hash)) return;
    reply_field(c, place, c.arg(2));
}

void hmget(call& c) {
    const slot* const place = hash_to_read(c);
    if (place != nullptr && c.is_not(place, value_type::hash)) return;
    c.reply.array(c.count - 2);
    for (std::size_t i = 2; i < c.count && !c.reply_is_too_large(); ++i) {
        reply_field(c, place, c.arg(i));
    }
}

void hgetall(call& c) { reply_all(c, part::both); }
void hkeys(call& c) { reply_all(c, part::fields); }
void hvals(call& c) { reply_all(c, part::values); }

void hdel(call& c) {
    slot* const place = hash_to_write(c);
    if (place == nullptr) return c.reply.integer(0);
    if (c.is_not(place, value_type::hash)) return;
    collection fields = c.collection_of(place);
    std::int64_t removed = 0;
    for (std::size_t i = 2; i < c.count && !fields.empty(); ++i) {
        removed += fields.erase(c.arg(i)) ? 1 : 0;
    }
    if (removed > 0) {
        c.changed(key_event::hash, "hdel", c.arg(1), static_cast<std::uint64_t>(removed));
    }
    c.remove_if_empty(place, c.hash);
    c.reply.integer(removed);
}

void hlen(call& c) {
    const slot* const place = hash_to_read(c);
    if (place == nullptr) return c.reply.integer(0);
    if (c.is_not(place, value_type::hash)) return;
    c.reply.integer(static_cast<std::int64_t>(c.collection_of(place).size()));
}

void hexists(call& c) {
    const slot* const place = hash_to_read(c);
    if (place == nullptr) return c.reply.integer(0);
    if (c.is_not(place, value_type::hash)) return;
    c.reply.integer(c.collection_of(place).contains(c.arg(2)) ? 1 : 0);
}

void hstrlen(call& c) {
    const slot* const place = hash_to_read(c);
    if (place == nullptr) return c.reply.integer(0);
    if (c.is_not(place, value_type::hash)) return;
    const auto value = c.collection_of(place).get(c.arg(2));
    c.reply.integer(value ? static_cast<std::int64_t>(value->size()) : 0);
}

void hincrby(call& c) {
    const auto by = c.integer(3);
    if (!by) return;
    slot* const place = hash_to_write(c);
    if (place != nullptr && c.is_not(place, value_type::hash)) return;
    std::int64_t value = 0;
    if (place != nullptr) {
        if (const auto old = c.collection_of(place).get(c.arg(2))) {
            const auto parsed = parse_integer(*old);
            if (!parsed) return c.error("ERR hash value is not an integer");
            value = *parsed;
        }
    }
    if (__builtin_add_overflow(value, *by, &value)) {
        return c.error("ERR increment or decrement would overflow");
    }
    char text[max_integer_text];
    const std::string_view written(text,
                                   static_cast<std::size_t>(write_integer(text, value) - text));
    c.collection_of(open_hash(c)).put(c.arg(2), written, true);
    c.changed(key_event::hash, "hincrby", c.arg(1));
    c.reply.integer(value);
}

void hincrbyfloat(call& c) {
    const auto by = parse_float(c.arg(3));
    if (!by) return c.error(not_a_float_text);
    if (std::isinf(*by)) return c.error("ERR value is NaN or Infinity");
    slot* const place = hash_to_write(c);
    if (place != nullptr && c.is_not(place, value_type::hash)) return;
    long double value = 0;
    if (place != nullptr) {
        if (const auto old = c.collection_of(place).get(c.arg(2))) {
            const auto parsed = parse_float(*old);
            if (!parsed) return c.error("ERR hash value is not a float");
            value = *parsed;
        }
    }
    value += *by;
    if (!std::isfinite(value)) return c.error("ERR increment would produce NaN or Infinity");
    char text[max_float_text];
    const std::string_view written(text, static_cast<std::size_t>(write_float(text, value) - text));
    collection fields = c.collection_of(open_hash(c));
    fields.put(c.arg(2), written, true);
    c.changed(key_event::hash, "hincrbyfloat", c.arg(1));
    if (fields.ends_at(c.arg(2)) == no_expiry)
        propagate_as(c, {"HSET", c.arg(1), c.arg(2), written});
    else
        propagate_as(c, {"HSETEX", c.arg(1), "KEEPTTL", "FIELDS", "1", c.arg(2), written});
    c.reply.bulk(written);
}

void hrandfield(call& c) {
    if (c.count == 2) {
        const slot* const place = hash_to_read(c);
        if (place == nullptr) return c.reply.null();
        if (c.is_not(place, value_type::hash)) return;
        const collection fields = c.collection_of(place);
        if (fields.empty()) return c.reply.null();
        return c.reply.bulk(fields.random().field);
    }
    const auto count = random_count(c, 2);
    if (!count) return;
    if (c.count > 4 || (c.count == 4 && !is_word(c.arg(3), "withvalues"))) return c.syntax_error();
    const picked what = c.count == 4 ? picked::fields_and_values : picked::fields;
    if (what == picked::fields_and_values && (*count < -INT64_MAX / 2 || *count > INT64_MAX / 2)) {
        return c.error("ERR value is out of range");
    }
    const slot* const place = hash_to_read(c);
    if (place == nullptr) return c.reply.array(0);
    if (c.is_not(place, value_type::hash)) return;
    const collection fields = c.collection_of(place);
    if (fields.empty()) return c.reply.array(0);
    reply_random(c, fields, *count, what);
}

void hscan(call& c) {
    const auto cursor = parse_cursor(c, 2);
    if (!cursor) return;
    const slot* const place = hash_to_read(c);
    if (place == nullptr) return reply_empty_scan(c);
    if (c.is_not(place, value_type::hash)) return;
    reply_scan(c, c.collection_of(place), *cursor);
}

}  // namespace eddy::cache::commands
