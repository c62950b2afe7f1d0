// Strings as numbers: INCR and its kin.
#include "cache/catalog/commands.hpp"
#include "cache/engine/call.hpp"
#include "cache/persistence/propagation.hpp"

#include <cmath>

namespace eddy::cache::commands {
namespace {

using slot = call::slot;

void increment(call& c, std::int64_t by) {
    slot* const place = c.find_to_write();
    std::int64_t value = 0;
    if (place != nullptr) {
        if (c.is_not(place, value_type::string)) return;
        entry& e = *keyspace::at(place);
        if (e.held_as == encoding::integer) {
            value = e.integer();
            if (__builtin_add_overflow(value, by, &value)) {
                return c.error("ERR increment or decrement would overflow");
            }
            e.set_integer(value);
            c.changed(key_event::string, "incrby", c.arg(1));
            return c.reply.integer(value);
        }
        text_view view;
        const auto parsed = parse_integer(view(e));
        if (!parsed) return c.error(not_an_integer_text);
        value = *parsed;
    }
    if (__builtin_add_overflow(value, by, &value)) {
        return c.error("ERR increment or decrement would overflow");
    }
    c.keys->put_integer(place, c.arg(1), c.hash, value);
    c.changed(key_event::string, "incrby", c.arg(1));
    c.reply.integer(value);
}

}  // namespace

void incr(call& c) { increment(c, 1); }
void decr(call& c) { increment(c, -1); }

void incrby(call& c) {
    if (const auto by = c.integer(2)) increment(c, *by);
}

void decrby(call& c) {
    const auto by = c.integer(2);
    if (!by) return;
    if (*by == INT64_MIN) return c.error("ERR decrement would overflow");
    increment(c, -*by);
}

void incrbyfloat(call& c) {
    slot* const place = c.find_to_write();
    long double value = 0;
    if (place != nullptr) {
        if (c.is_not(place, value_type::string)) return;
        text_view view;
        const auto parsed = parse_float(view(*keyspace::at(place)));
        if (!parsed) return c.error(not_a_float_text);
        value = *parsed;
    }
    const auto by = parse_float(c.arg(2));
    if (!by) return c.error(not_a_float_text);
    value += *by;
    if (!std::isfinite(value)) return c.error("ERR increment would produce NaN or Infinity");
    char text[max_float_text];
    const std::string_view written(text, static_cast<std::size_t>(write_float(text, value) - text));
    c.keys->put_text(place, c.arg(1), c.hash, written, true);
    c.changed(key_event::string, "incrbyfloat", c.arg(1));
    propagate_as(c, {"SET", c.arg(1), written, "KEEPTTL"});
    c.reply.bulk(written);
}

}  // namespace eddy::cache::commands
