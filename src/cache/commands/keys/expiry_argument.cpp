// Units and overflow checks of expiry arguments.
#include "cache/commands/keys/expiry_argument.hpp"

#include "cache/catalog/command_table.hpp"
#include "cache/engine/call.hpp"

#include <string>

namespace eddy::cache {

bool expiry_argument::take(std::string_view word, std::string_view next) noexcept {
    const expiry_unit asked = is_word(word, "ex")     ? expiry_unit::seconds
                              : is_word(word, "px")   ? expiry_unit::milliseconds
                              : is_word(word, "exat") ? expiry_unit::unix_seconds
                              : is_word(word, "pxat") ? expiry_unit::unix_milliseconds
                                                      : expiry_unit::none;
    if (asked == expiry_unit::none || (given() && unit != asked)) return false;
    unit = asked;
    value = next;
    return true;
}

bool expiry_argument::resolve(call& c, expiry_time& at_ms) const {
    const auto number = parse_integer(value);
    if (!number) {
        c.error(not_an_integer_text);
        return false;
    }
    const bool in_seconds = unit == expiry_unit::seconds || unit == expiry_unit::unix_seconds;
    const bool from_now = unit == expiry_unit::seconds || unit == expiry_unit::milliseconds;
    std::int64_t time = *number;
    if (time <= 0 || (in_seconds && __builtin_mul_overflow(time, std::int64_t{1000}, &time)) ||
        (from_now && __builtin_add_overflow(time, c.now_ms(), &time))) {
        c.error("ERR invalid expire time in '" + std::string(c.spec->name) + "' command");
        return false;
    }
    at_ms = time;
    return true;
}

}  // namespace eddy::cache
