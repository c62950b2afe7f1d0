// Stream commands: adding, removing and reading ranges of entries.
#include "cache/catalog/commands.hpp"
#include "cache/commands/streams/stream_id_argument.hpp"
#include "cache/commands/streams/stream_reply.hpp"
#include "cache/engine/call.hpp"
#include "cache/persistence/propagation.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

namespace eddy::cache::commands {
namespace {

using slot = call::slot;

// Default limit of an approximate trim: the entries of so many blocks.
constexpr std::uint64_t usual_limit_blocks = 100;
constexpr std::uint64_t usual_limit = 10'000;  // where blocks have no limit of entries
constexpr std::uint64_t max_usual_limit = 1'000'000;

struct add_options {
    stream_trim trim;
    bool creates = true;
    bool has_id = false;
    bool has_seq = true;
    stream_id id;
    std::size_t id_at = 0;    // XADD: where the ID stands
    std::size_t trim_at = 0;  // where the limit's value stands

    bool parse(call& c, bool adds);

private:
    bool parse_trim(call& c, std::size_t& i, stream_trim::by what);
};

// MAXLEN or MINID at `i`, with what follows it; `i` is left at its last argument.
bool add_options::parse_trim(call& c, std::size_t& i, stream_trim::by what) {
    if (trim.what != stream_trim::by::none) {
        c.error("ERR syntax error, MAXLEN and MINID options at the same time are not compatible");
        return false;
    }
    trim.approximate = false;
    if (i + 2 < c.count && (c.arg(i + 1) == "~" || c.arg(i + 1) == "=")) {
        trim.approximate = c.arg(++i) == "~";
    }
    trim_at = ++i;
    if (what == stream_trim::by::id) {
        if (!stream_id_argument(c, i, trim.id)) return false;
    } else {
        const auto length = c.integer(i);
        if (!length) return false;
        if (*length < 0) {
            c.error("ERR The MAXLEN argument must be >= 0.");
            return false;
        }
        trim.length = static_cast<std::uint64_t>(*length);
    }
    trim.what = what;
    return true;
}

bool add_options::parse(call& c, bool adds) {
    bool limit_given = false;
    std::size_t i = 2;
    for (; i < c.count; ++i) {
        const std::string_view word = c.arg(i);
        const bool has_next = i + 1 < c.count;
        if (adds && word == "*") break;
        if (has_next && is_word(word, "maxlen")) {
            if (!parse_trim(c, i, stream_trim::by::length)) return false;
        } else if (has_next && is_word(word, "minid")) {
            if (!parse_trim(c, i, stream_trim::by::id)) return false;
        } else if (has_next && is_word(word, "limit")) {
            const auto limit = c.integer(++i);
            if (!limit) return false;
            if (*limit < 0) {
                c.error("ERR The LIMIT argument must be >= 0.");
                return false;
            }
            trim.limit = static_cast<std::uint64_t>(*limit);
            limit_given = true;
        } else if (adds && is_word(word, "nomkstream")) {
            creates = false;
        } else if (adds) {
            if (!stream_id_argument(c, i, id, 0, id_syntax::strict, &has_seq)) return false;
            has_id = true;
            break;
        } else {
            c.syntax_error();
            return false;
        }
    }
    id_at = i;
    if (trim.what == stream_trim::by::none && trim.limit != 0) {
        c.error("ERR syntax error, LIMIT cannot be used without specifying a trimming strategy");
        return false;
    }
    if (trim.what == stream_trim::by::none && !adds) {
        c.error("ERR syntax error, XTRIM must be called with a trimming strategy");
        return false;
    }
    // Another server, or the file, has put in what was really trimmed.
    if ((c.client.special & client_session::master) != 0) {
        trim.limit = 0;
        return true;
    }
    if (limit_given && !trim.approximate) {
        c.error("ERR syntax error, LIMIT cannot be used without the special ~ option");
        return false;
    }
    if (!limit_given && trim.approximate) {
        const std::uint64_t entries = c.state.settings.options.streams.node_max_entries;
        trim.limit =
            entries == 0 ? usual_limit : std::min(entries, max_usual_limit) * usual_limit_blocks;
        trim.limit = std::min(trim.limit, max_usual_limit);
    }
    return true;
}

// The ID of a new entry; false, with the error replied, when there is none above the last one.
bool choose_id(call& c, const add_options& options, stream_id last, stream_id& to) {
    if (last == stream_id::max()) {
        c.error("ERR The stream has exhausted the last possible ID, unable to add more items");
        return false;
    }
    if (!options.has_id) {
        const auto now = static_cast<std::uint64_t>(c.now_ms());
        to = last;
        if (now > last.ms) {
            to = {now, 0};
        } else {
            to.increment();
        }
        return true;
    }
    to = options.id;
    if (!options.has_seq && to.ms == last.ms) {
        to.seq = last.seq + 1;  // which wraps around to what is refused here
    }
    if (to > last) return true;
    c.error("ERR The ID specified in XADD is equal or smaller than the target stream top item");
    return false;
}

// With the ID that was chosen, and with what was trimmed as an exact limit.
void propagate_addition(call& c, const add_options& options, const redis_stream& entries,
                        stream_id id) {
    std::vector<std::string_view> args(c.args, c.args + c.count);
    const stream_id_text chosen(id);
    if (!id.is_zero()) args[options.id_at] = chosen.view();
    const decimal length(static_cast<std::int64_t>(entries.size()));
    redis_stream::walk first(entries, {}, stream_id::max());
    const stream_id_text lowest(first.next() ? first.id() : options.trim.id);
    if (options.trim.what != stream_trim::by::none && options.trim.approximate) {
        args[options.trim_at - 1] = "=";
        args[options.trim_at] =
            options.trim.what == stream_trim::by::length ? std::string_view(length) : lowest.view();
    }
    propagate_as(c, args);
}

void reply_range(call& c, redis_stream::order direction) {
    const bool forward = direction == redis_stream::order::forward;
    stream_id first;
    stream_id last;
    if (!first_id_argument(c, forward ? 2 : 3, first)) return;
    if (!last_id_argument(c, forward ? 3 : 2, last)) return;
    std::int64_t count = -1;
    for (std::size_t i = 4; i < c.count; i += 2) {
        if (!is_word(c.arg(i), "count") || i + 1 == c.count) return c.syntax_error();
        const auto given = c.integer(i + 1);
        if (!given) return;
        count = std::max<std::int64_t>(*given, 0);
    }
    const slot* const place = c.find_to_read();
    if (place == nullptr) return c.reply.array(0);
    if (c.is_not(place, value_type::stream)) return;
    if (count == 0) return c.reply.null_array();
    redis_stream::walk range(call::stream_of(place), first, last, direction);
    reply_entries(c, range, count < 0 ? 0 : static_cast<std::uint64_t>(count));
}

}  // namespace

void xadd(call& c) {
    add_options options;
    if (!options.parse(c, true)) return;
    const std::size_t first = options.id_at + 1;
    if (c.count < first + 2 || (c.count - first) % 2 != 0) return c.wrong_arity();
    if (options.has_id && options.has_seq && options.id.is_zero()) {
        return c.error("ERR The ID specified in XADD must be greater than 0-0");
    }
    slot* place = c.find_to_write();
    if (place != nullptr && c.is_not(place, value_type::stream)) return;
    if (place == nullptr && !options.creates) return c.reply.null();
    stream_id id;
    const stream_id last = place == nullptr ? stream_id{} : call::stream_of(place).last_id();
    if (!choose_id(c, options, last, id)) return;
    std::size_t text = 0;
    for (std::size_t i = first; i < c.count; ++i) text += c.arg(i).size();
    if (text > redis_stream::max_entry_bytes)
        return c.error("ERR Elements are too large to be stored");

    if (place == nullptr) place = c.keys->add(c.arg(1), c.hash, value_type::stream);
    redis_stream& entries = call::stream_of(place);
    const stream_options& limits = c.state.settings.options.streams;
    entries.append(c.memory(), id, c.args + first, (c.count - first) / 2,
                   {limits.node_max_bytes, limits.node_max_entries});
    reply_id(c, id);
    c.changed(key_event::stream, "xadd", c.arg(1));
    if (entries.trim(c.memory(), options.trim) != 0) {
        c.also_happened(key_event::stream, "xtrim", c.arg(1));
    }
    if (propagates(c)) propagate_addition(c, options, entries, id);
}

void xtrim(call& c) {
    add_options options;
    if (!options.parse(c, false)) return;
    slot* const place = c.find_to_write();
    if (place == nullptr) return c.reply.integer(0);
    if (c.is_not(place, value_type::stream)) return;
    const std::uint64_t removed = call::stream_of(place).trim(c.memory(), options.trim);
    if (removed != 0) {
        c.changed(key_event::stream, "xtrim", c.arg(1), removed);
        if (propagates(c)) propagate_addition(c, options, call::stream_of(place), {});
    }
    c.reply.integer(static_cast<std::int64_t>(removed));
}

void xdel(call& c) {
    slot* const place = c.find_to_write();
    if (place == nullptr) return c.reply.integer(0);
    if (c.is_not(place, value_type::stream)) return;
    // All IDs are parsed before an entry is removed.
    stream_id id;
    for (std::size_t i = 2; i < c.count; ++i) {
        if (!stream_id_argument(c, i, id)) return;
    }
    redis_stream& entries = call::stream_of(place);
    std::uint64_t removed = 0;
    for (std::size_t i = 2; i < c.count; ++i) {
        parse_stream_id(c.arg(i), id, 0, id_syntax::strict);
        removed += entries.erase(c.memory(), id) ? 1 : 0;
    }
    if (removed != 0) c.changed(key_event::stream, "xdel", c.arg(1), removed);
    c.reply.integer(static_cast<std::int64_t>(removed));
}

void xlen(call& c) {
    const slot* const place = c.find_to_read();
    if (place == nullptr) return c.reply.integer(0);
    if (c.is_not(place, value_type::stream)) return;
    c.reply.integer(static_cast<std::int64_t>(call::stream_of(place).size()));
}

void xrange(call& c) { reply_range(c, redis_stream::order::forward); }
void xrevrange(call& c) { reply_range(c, redis_stream::order::backward); }

void xsetid(call& c) {
    stream_id id;
    stream_id max_deleted;
    std::optional<std::uint64_t> added;
    if (!stream_id_argument(c, 2, id)) return;
    for (std::size_t i = 3; i < c.count; i += 2) {
        const bool has_next = i + 1 < c.count;
        if (has_next && is_word(c.arg(i), "entriesadded")) {
            const auto given = c.integer(i + 1);
            if (!given) return;
            if (*given < 0) return c.error("ERR entries_added must be positive");
            added = static_cast<std::uint64_t>(*given);
        } else if (has_next && is_word(c.arg(i), "maxdeletedid")) {
            if (!stream_id_argument(c, i + 1, max_deleted)) return;
            if (id < max_deleted) {
                return c.error(
                    "ERR The ID specified in XSETID is smaller than the provided "
                    "max_deleted_entry_id");
            }
        } else {
            return c.syntax_error();
        }
    }
    slot* const place = c.find_to_write();
    if (place == nullptr) return c.error(no_such_key_text);
    if (c.is_not(place, value_type::stream)) return;
    redis_stream& entries = call::stream_of(place);
    if (!entries.empty()) {
        if (id < entries.last_entry_id()) {
            return c.error(
                "ERR The ID specified in XSETID is smaller than the target stream top item");
        }
        if (added && entries.size() > *added) {
            return c.error(
                "ERR The entries_added specified in XSETID is smaller than the target stream "
                "length");
        }
    }
    if (id < entries.max_deleted_id()) {
        return c.error(
            "ERR The ID specified in XSETID is smaller than current max_deleted_entry_id");
    }
    entries.set_ids(id, added, max_deleted);
    c.reply.ok();
    c.notify(key_event::stream, "xsetid", c.arg(1));
}

}  // namespace eddy::cache::commands
