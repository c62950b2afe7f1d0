// DUMP and RESTORE: values as payloads of bytes.
#include <eddy/base/byte_buffer.hpp>

#include "cache/catalog/commands.hpp"
#include "cache/engine/call.hpp"
#include "cache/persistence/propagation.hpp"
#include "cache/rdb/payload.hpp"
#include "cache/rdb/reader.hpp"
#include "cache/rdb/value_builder.hpp"

#include <string_view>
#include <vector>

namespace eddy::cache::commands {
namespace {

using slot = call::slot;

struct restore_options {
    bool replace = false;
    bool absolute = false;

    // IDLETIME and FREQ are checked and dropped: the cache keeps no times of use.
    bool parse(call& c) {
        bool has_idle_time = false;
        bool has_frequency = false;
        for (std::size_t i = 4; i < c.count; ++i) {
            const bool has_next = i + 1 < c.count;
            if (is_word(c.arg(i), "replace")) {
                replace = true;
            } else if (is_word(c.arg(i), "absttl")) {
                absolute = true;
            } else if (is_word(c.arg(i), "idletime") && has_next && !has_frequency) {
                const auto seconds = c.integer(++i);
                if (!seconds) return false;
                if (*seconds < 0) {
                    c.error("ERR Invalid IDLETIME value, must be >= 0");
                    return false;
                }
                has_idle_time = true;
            } else if (is_word(c.arg(i), "freq") && has_next && !has_idle_time) {
                const auto given = c.integer(++i);
                if (!given) return false;
                if (*given < 0 || *given > 255) {
                    c.error("ERR Invalid FREQ value, must be >= 0 and <= 255");
                    return false;
                }
                has_frequency = true;
            } else {
                c.syntax_error();
                return false;
            }
        }
        return true;
    }
};

// Redis checks lists and tables within a payload deeply as this parameter says. Here every payload
// is checked; the statistics count it when Redis would.
void count_check(const call& c, std::string_view payload) {
    const std::string& when = c.state.settings.options.sanitize_payload;
    const bool is_master = (c.client.special & client_session::master) != 0;
    if (when == "no" || (when == "clients" && (is_master || !c.client.user->sanitizes()))) return;
    constexpr auto first_packed = static_cast<unsigned char>(rdb::object_type::hash_zipmap);
    const bool is_packed =
        !payload.empty() && static_cast<unsigned char>(payload[0]) >= first_packed;
    c.state.data.env.counters.payloads_checked += is_packed ? 1 : 0;
}

}  // namespace

void dump(call& c) {
    const slot* const place = c.find_to_read();
    if (place == nullptr) return c.reply.null();
    byte_buffer payload;
    // If the payload is too large, so is the reply.
    rdb::write_payload(c.state.data.env, *keyspace::at(place), payload,
                       c.state.settings.options.max_reply);
    c.reply.bulk(payload.text());
    static_cast<void>(c.reply_is_too_large());
}

void restore(call& c) {
    restore_options options;
    if (!options.parse(c)) return;
    if (!options.replace && c.find_to_replace() != nullptr) {
        return c.error("BUSYKEY Target key name already exists.");
    }
    const auto time = c.integer(2);
    if (!time) return;
    if (*time < 0) return c.error("ERR Invalid TTL value, must be >= 0");
    const auto payload = rdb::checked_payload(c.arg(3));
    if (!payload) return c.error(rdb::payload_error(c.arg(3)));

    count_check(c, payload->value);
    rdb::value_builder value(c.state.data.env);
    rdb::reader_options limits;
    limits.max_text = c.longest_text();
    limits.family = payload->family;
    rdb::reader reader(value, rdb::reader::input::value, limits);
    const std::size_t taken = reader.feed(payload->value);
    const bool is_whole = taken == payload->value.size();
    if (reader.now() != rdb::reader::status::done || !is_whole || value.empty()) {
        return c.error("ERR Bad data format");
    }

    bool removed = false;
    if (slot* const old = options.replace ? c.find_to_replace() : nullptr) {
        c.keys->remove(old, c.hash);
        removed = true;
    }
    // As in Redis, a TTL beyond the range counts as expired.
    expiry_time at_ms = *time;
    const bool overflows = at_ms != no_expiry && !options.absolute &&
                           __builtin_add_overflow(at_ms, c.now_ms(), &at_ms);
    if (overflows || (at_ms != no_expiry && is_over_at_once(c, at_ms))) {
        if (removed) {
            c.changed(key_event::generic, "del", c.arg(1));
            propagate_as(c, {"DEL", c.arg(1)});
        }
        return c.reply.ok();
    }
    slot* const made = value.give(*c.keys, c.arg(1), c.hash);
    if (at_ms != no_expiry) c.keys->set_expiry(made, at_ms);
    c.changed(key_event::generic, "restore", c.arg(1));
    if (at_ms != no_expiry && !options.absolute && propagates(c)) {
        const decimal ends_at(at_ms);
        std::vector<std::string_view> args(c.args, c.args + c.count);
        args[2] = ends_at;
        args.push_back("ABSTTL");
        propagate_as(c, args);
    }
    c.reply.ok();
}

}  // namespace eddy::cache::commands
