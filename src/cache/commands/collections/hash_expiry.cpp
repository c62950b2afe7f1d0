// Expiration of hash fields: HEXPIRE, HTTL, HPERSIST, and HGETEX and HSETEX, which read or set
// fields with it.
#include "cache/catalog/commands.hpp"
#include "cache/engine/call.hpp"
#include "cache/engine/field_expiry.hpp"
#include "cache/persistence/propagation.hpp"
#include "cache/types/timed_fields.hpp"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace eddy::cache::commands {
namespace {

using slot = call::slot;

constexpr std::string_view number_of_fields_text =
    "ERR Number of fields must be a positive integer";

// Replies for a single field.
constexpr std::int64_t no_field = -2;
constexpr std::int64_t no_end = -1;
constexpr std::int64_t not_met = 0;
constexpr std::int64_t done = 1;
constexpr std::int64_t deleted = 2;

enum class unit : std::int64_t { seconds = 1000, milliseconds = 1 };

// Positions of the fields among the arguments.
struct field_names {
    std::size_t first = 0;
    std::size_t count = 0;
};

// "FIELDS n field ..." up to the last argument; none with the error replied.
std::optional<field_names> fields_from(call& c, std::size_t at, std::string_view no_number) {
    if (at >= c.count || !is_word(c.arg(at), "fields")) {
        c.error("ERR Mandatory argument FIELDS is missing or not at the right position");
        return std::nullopt;
    }
    constexpr std::string_view mismatch =
        "ERR The `numfields` parameter must match the number of arguments";
    if (at + 1 == c.count) {
        c.error(no_number);
        return std::nullopt;
    }
    const auto count = c.integer_in(at + 1, 1, INT64_MAX, no_number);
    if (!count) return std::nullopt;
    const field_names names{at + 2, c.count - at - 2};
    if (static_cast<std::uint64_t>(*count) == names.count) return names;
    c.error(mismatch);
    return std::nullopt;
}

// The argument as a time since 1970 in milliseconds; none with the error replied.
std::optional<expiry_time> end_from(call& c, std::size_t at, unit in, std::int64_t from_ms) {
    const auto given = c.integer(at);
    if (!given) return std::nullopt;
    if (*given < 0) {
        c.error("ERR invalid expire time, must be >= 0");
        return std::nullopt;
    }
    const auto scale = static_cast<std::int64_t>(in);
    if (*given > field_clock::latest_given_end / scale ||
        *given * scale > field_clock::latest_given_end - from_ms) {
        c.error("ERR invalid expire time in '" + std::string(c.spec->name) + "' command");
        return std::nullopt;
    }
    return *given * scale + from_ms;
}

// "EX 10" and the like at this argument; false when it is something else.
bool is_time_option(call& c, std::size_t at, unit& in, std::int64_t& from_ms) {
    const std::string_view word = c.arg(at);
    const bool is_seconds = is_word(word, "ex") || is_word(word, "exat");
    if (!is_seconds && !is_word(word, "px") && !is_word(word, "pxat")) return false;
    in = is_seconds ? unit::seconds : unit::milliseconds;
    from_ms = word.size() == 2 ? c.now_ms() : 0;
    return true;
}

// The fields that a command has changed, in order.
class changed_fields {
public:
    explicit changed_fields(const call& c) : names_are_wanted_(propagates(c)) {}
    void add(std::string_view name) {
        ++count_;
        if (names_are_wanted_) names_.push_back(name);
    }
    std::size_t count() const noexcept { return count_; }
    /// Records that these fields of args[1] were given to this command, behind its options.
    void propagate(call& c, std::string_view command,
                   std::initializer_list<std::string_view> options = {}) const {
        if (!names_are_wanted_) return;
        std::vector<std::string_view> args{command, c.arg(1)};
        args.insert(args.end(), options.begin(), options.end());
        const decimal count(static_cast<std::int64_t>(count_));
        if (command != "HDEL") args.insert(args.end(), {"FIELDS", count});
        args.insert(args.end(), names_.begin(), names_.end());
        propagate_as(c, args);
    }

private:
    const bool names_are_wanted_;
    std::size_t count_ = 0;
    std::vector<std::string_view> names_;
};

// Sets the expiration of an existing field, or removes the field if that is in the past.
void set_field_expiry(call& c, collection& fields, std::string_view name, expiry_time at_ms) {
    if (is_over_at_once(c, at_ms))
        fields.erase(name);
    else
        fields.set_end(name, std::max<expiry_time>(at_ms, 1));
}

// Notifies after all changes of set_field_expiry(), to so many fields.
void notify_expiry_set(call& c, slot* place, expiry_time at_ms, std::size_t changed) {
    if (is_over_at_once(c, at_ms)) {
        c.changed(key_event::hash, "hdel", c.arg(1), changed);
        return c.remove_if_empty(place, c.hash);
    }
    c.keys->watch_fields(place, c.hash);
    c.changed(key_event::hash, "hexpire", c.arg(1), changed);
}

void notify_expiry_set(call& c, slot* place, expiry_time at_ms, const changed_fields& changed) {
    if (is_over_at_once(c, at_ms))
        changed.propagate(c, "HDEL");
    else
        changed.propagate(c, "HPEXPIREAT", {decimal(at_ms)});
    notify_expiry_set(c, place, at_ms, changed.count());
}

enum class condition : std::uint8_t { none, only_without, only_with, only_later, only_earlier };

condition condition_of(std::string_view word) noexcept {
    if (is_word(word, "nx")) return condition::only_without;
    if (is_word(word, "xx")) return condition::only_with;
    if (is_word(word, "gt")) return condition::only_later;
    if (is_word(word, "lt")) return condition::only_earlier;
    return condition::none;
}

// No expiration counts as an infinite one.
bool allows(condition which, expiry_time now_set, expiry_time asked) noexcept {
    const bool has = now_set != no_expiry;
    switch (which) {
        case condition::none: return true;
        case condition::only_without: return !has;
        case condition::only_with: return has;
        case condition::only_later: return has && asked > now_set;
        case condition::only_earlier: return !has || asked < now_set;
    }
    return false;
}

void set_ends(call& c, unit in, std::int64_t from_ms) {
    slot* const place = hash_to_write(c);
    if (place != nullptr && c.is_not(place, value_type::hash)) return;
    const auto at_ms = end_from(c, 2, in, from_ms);
    if (!at_ms) return;
    const condition when = condition_of(c.arg(3));
    const auto names = fields_from(c, when == condition::none ? 3 : 4,
                                   "ERR Parameter `numFields` should be greater than 0");
    if (!names) return;
    c.reply.array(names->count);
    changed_fields changed(c);
    for (std::size_t i = 0; i < names->count; ++i) {
        const std::string_view name = c.arg(names->first + i);
        if (place == nullptr || !c.collection_of(place).contains(name)) {
            c.reply.integer(no_field);
            continue;
        }
        collection fields = c.collection_of(place);
        if (!allows(when, fields.ends_at(name), *at_ms)) {
            c.reply.integer(not_met);
            continue;
        }
        set_field_expiry(c, fields, name, *at_ms);
        changed.add(name);
        c.reply.integer(is_over_at_once(c, *at_ms) ? deleted : done);
    }
    if (changed.count() != 0) notify_expiry_set(c, place, *at_ms, changed);
}

void reply_ends(call& c, unit in, std::int64_t from_ms) {
    const slot* const place = hash_to_read(c);
    if (place != nullptr && c.is_not(place, value_type::hash)) return;
    const auto names = fields_from(c, 2, number_of_fields_text);
    if (!names) return;
    c.reply.array(names->count);
    for (std::size_t i = 0; i < names->count; ++i) {
        const std::string_view name = c.arg(names->first + i);
        if (place == nullptr || !c.collection_of(place).contains(name)) {
            c.reply.integer(no_field);
            continue;
        }
        const expiry_time at_ms = c.collection_of(place).ends_at(name);
        const auto scale = static_cast<std::int64_t>(in);
        c.reply.integer(at_ms == no_expiry ? no_end : (at_ms - from_ms + scale - 1) / scale);
    }
}

void reply_value(call& c, const slot* place, std::string_view name) {
    const auto value = place == nullptr ? std::nullopt : c.collection_of(place).get(name);
    if (value)
        c.reply.bulk(*value);
    else
        c.reply.null();
}

// At most so many bytes of reply for one field.
std::uint64_t reply_size(const call& c, const slot* place, std::string_view name) {
    constexpr std::uint64_t head = 32;
    const auto value = place == nullptr ? std::nullopt : c.collection_of(place).get(name);
    return head + (value ? value->size() : 0);
}

// Parsed options of HSETEX.
struct set_options {
    bool only_absent = false;   // FNX
    bool only_present = false;  // FXX
    bool keeps_expiry = false;
    std::optional<expiry_time> at_ms;
    std::size_t first = 0;  // of the field and value pairs
    std::size_t count = 0;

    // False with the error replied.
    bool parse(call& c) {
        for (std::size_t i = 2; i < c.count; ++i) {
            unit in{};
            std::int64_t from_ms = 0;
            if (is_word(c.arg(i), "fields")) return parse_fields(c, i);
            if (is_word(c.arg(i), "fnx") || is_word(c.arg(i), "fxx")) {
                if (only_absent || only_present) {
                    c.error("ERR Only one of FXX or FNX arguments can be specified");
                    return false;
                }
                (is_word(c.arg(i), "fnx") ? only_absent : only_present) = true;
                continue;
            }
            const bool keeps = is_word(c.arg(i), "keepttl");
            if (!keeps && !is_time_option(c, i, in, from_ms)) {
                const std::string_view given = c.arg(i);
                c.error("ERR unknown argument: " + std::string(given.substr(0, given.find('\0'))));
                return false;
            }
            if (keeps_expiry || at_ms) {
                c.error("ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified");
                return false;
            }
            if (keeps) {
                keeps_expiry = true;
                continue;
            }
            if (i + 1 == c.count) {
                c.error("ERR missing expire time");
                return false;
            }
            at_ms = end_from(c, ++i, in, from_ms);
            if (!at_ms) return false;
        }
        c.error("ERR missing FIELDS argument");
        return false;
    }

    // FIELDS and its arguments end the command.
    bool parse_fields(call& c, std::size_t at) {
        if (at + 3 >= c.count) {
            c.wrong_arity();
            return false;
        }
        const auto given = c.integer_in(at + 1, 1, INT32_MAX, "ERR invalid number of fields");
        if (!given) return false;
        first = at + 2;
        count = static_cast<std::size_t>(*given);
        if (first + count * 2 == c.count) return true;
        c.wrong_arity();
        return false;
    }

    bool allow(call& c, const slot* place) const {
        for (std::size_t i = 0; i < count && (only_absent || only_present); ++i) {
            const bool is_there =
                place != nullptr && c.collection_of(place).contains(c.arg(first + i * 2));
            if (is_there == only_absent) return false;
        }
        return true;
    }

    // Propagates the effect, without the conditions.
    void propagate(call& c) const {
        const std::span<const std::string_view> pairs(c.args + first, count * 2);
        std::vector<std::string_view> args;
        const decimal time(at_ms.value_or(0));
        const decimal fields(static_cast<std::int64_t>(count));
        if (at_ms && is_over_at_once(c, *at_ms)) {
            args = {"HDEL", c.arg(1)};
            for (std::size_t i = 0; i < count; ++i) args.push_back(pairs[i * 2]);
            return propagate_as(c, args);
        }
        if (at_ms)
            args = {"HSETEX", c.arg(1), "PXAT", time, "FIELDS", fields};
        else if (keeps_expiry)
            args = {"HSETEX", c.arg(1), "KEEPTTL", "FIELDS", fields};
        else
            args = {"HSET", c.arg(1)};
        args.insert(args.end(), pairs.begin(), pairs.end());
        propagate_as(c, args);
    }
};

}  // namespace

void hexpire(call& c) { set_ends(c, unit::seconds, c.now_ms()); }
void hpexpire(call& c) { set_ends(c, unit::milliseconds, c.now_ms()); }
void hexpireat(call& c) { set_ends(c, unit::seconds, 0); }
void hpexpireat(call& c) { set_ends(c, unit::milliseconds, 0); }

void httl(call& c) { reply_ends(c, unit::seconds, c.now_ms()); }
void hpttl(call& c) { reply_ends(c, unit::milliseconds, c.now_ms()); }
void hexpiretime(call& c) { reply_ends(c, unit::seconds, 0); }
void hpexpiretime(call& c) { reply_ends(c, unit::milliseconds, 0); }

void hpersist(call& c) {
    slot* const place = hash_to_write(c);
    if (place != nullptr && c.is_not(place, value_type::hash)) return;
    const auto names = fields_from(c, 2, number_of_fields_text);
    if (!names) return;
    c.reply.array(names->count);
    std::size_t changed = 0;
    for (std::size_t i = 0; i < names->count; ++i) {
        const std::string_view name = c.arg(names->first + i);
        if (place == nullptr || !c.collection_of(place).contains(name)) {
            c.reply.integer(no_field);
        } else if (!c.collection_of(place).drop_end(name)) {
            c.reply.integer(no_end);
        } else {
            ++changed;
            c.reply.integer(done);
        }
    }
    if (changed != 0) c.changed(key_event::hash, "hpersist", c.arg(1), changed);
}

void hgetex(call& c) {
    slot* const place = hash_to_write(c);
    if (place != nullptr && c.is_not(place, value_type::hash)) return;
    std::size_t at = 2;
    std::optional<expiry_time> at_ms;
    bool persists = false;
    unit in{};
    std::int64_t from_ms = 0;
    if (is_word(c.arg(at), "persist")) {
        persists = true;
        ++at;
    } else if (is_time_option(c, at, in, from_ms)) {
        at_ms = end_from(c, at + 1, in, from_ms);
        if (!at_ms) return;
        at += 2;
    }
    const auto names = fields_from(c, at, number_of_fields_text);
    if (!names) return;
    c.reply.array(names->count);
    changed_fields changed(c);
    for (std::size_t i = 0; i < names->count && !c.reply_is_too_large(); ++i) {
        const std::string_view name = c.arg(names->first + i);
        reply_value(c, place, name);
        if (place == nullptr || !c.collection_of(place).contains(name)) continue;
        collection fields = c.collection_of(place);
        if (at_ms) {
            set_field_expiry(c, fields, name, *at_ms);
            changed.add(name);
        } else if (persists && fields.drop_end(name)) {
            changed.add(name);
        }
    }
    if (changed.count() == 0) return;
    if (at_ms) return notify_expiry_set(c, place, *at_ms, changed);
    changed.propagate(c, "HPERSIST");
    c.changed(key_event::hash, "hpersist", c.arg(1), changed.count());
}

void hgetdel(call& c) {
    slot* const place = hash_to_write(c);
    if (place != nullptr && c.is_not(place, value_type::hash)) return;
    const auto names = fields_from(c, 2, number_of_fields_text);
    if (!names) return;
    std::uint64_t told = 0;
    for (std::size_t i = 0; i < names->count; ++i)
        told += reply_size(c, place, c.arg(names->first + i));
    if (c.reply_is_too_large(told)) return;
    c.reply.array(names->count);
    changed_fields removed(c);
    for (std::size_t i = 0; i < names->count; ++i) {
        const std::string_view name = c.arg(names->first + i);
        reply_value(c, place, name);
        if (place != nullptr && c.collection_of(place).erase(name)) removed.add(name);
    }
    if (removed.count() == 0) return;
    removed.propagate(c, "HDEL");
    c.changed(key_event::hash, "hdel", c.arg(1), removed.count());
    c.remove_if_empty(place, c.hash);
}

void hsetex(call& c) {
    set_options options;
    if (!options.parse(c)) return;
    slot* place = hash_to_write(c);
    if (place != nullptr && c.is_not(place, value_type::hash)) return;
    if (!options.allow(c, place)) return c.reply.integer(0);
    if (place == nullptr) place = c.keys->add(c.arg(1), c.hash, value_type::hash);
    collection fields = c.collection_of(place);
    const auto name = [&](std::size_t i) { return c.arg(options.first + i * 2); };
    for (std::size_t i = 0; i < options.count; ++i) {
        fields.put(name(i), c.arg(options.first + i * 2 + 1), options.keeps_expiry);
    }
    c.changed(key_event::hash, "hset", c.arg(1), options.count);
    if (propagates(c)) options.propagate(c);
    if (options.at_ms) {
        for (std::size_t i = 0; i < options.count; ++i) {
            if (fields.contains(name(i))) set_field_expiry(c, fields, name(i), *options.at_ms);
        }
        notify_expiry_set(c, place, *options.at_ms, 0);
    }
    c.reply.integer(1);
}

}  // namespace eddy::cache::commands
