// Stream commands: adding, removing and reading ranges of entries.
#include "cache/catalog/commands.hpp"
#include "cache/commands/streams/stream_id_argument.hpp"
#include "cache/commands/streams/stream_references.hpp"
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

// Identity of an idempotent producer's message: IDMP and IDMPAUTO of Redis 8.6. A master has
// decided by it: a message that is new comes with its ID, one that was sent again without.
struct message_identity {
    std::size_t at = 0;     // of its first word
    std::size_t words = 0;  // 0: not given

    bool is_given() const noexcept { return words != 0; }
    // The words of the identity that begins at `i`; 0 for another argument.
    static std::size_t words_at(const call& c, std::size_t i) noexcept {
        if (is_word(c.arg(i), "idmp") && i + 2 < c.count) return 3;
        return is_word(c.arg(i), "idmpauto") && i + 1 < c.count ? 2 : 0;
    }
    bool parse(call& c, std::size_t& i);
};

// `i` is left at its last argument.
bool message_identity::parse(call& c, std::size_t& i) {
    if ((c.client.special & client_session::master) == 0) {
        c.error(
            "ERR IDMP and IDMPAUTO are taken from a master and from files only: this server does "
            "not recognize messages that are sent again");
        return false;
    }
    if (is_given()) {
        c.error("ERR syntax error, IDMP/IDMPAUTO specified multiple times");
        return false;
    }
    at = i;
    words = words_at(c, i);
    i += words - 1;
    return true;
}

struct add_options {
    stream_trim trim;
    message_identity identity;
    bool creates = true;
    bool has_references = false;  // KEEPREF, DELREF or ACKED
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
        } else if (!has_references && stream_references_argument(word, trim.references)) {
            has_references = true;
        } else if (adds && is_word(word, "nomkstream")) {
            creates = false;
        } else if (adds && message_identity::words_at(c, i) != 0) {
            if (!identity.parse(c, i)) return false;
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

// Without the identity: other servers and the files of this one have none.
void propagate_plainly(call& c, const message_identity& gone, std::vector<std::string_view>& args) {
    const auto begin = args.begin() + static_cast<std::ptrdiff_t>(gone.at);
    args.erase(begin, begin + static_cast<std::ptrdiff_t>(gone.words));
    propagate_as(c, args);
}

// With the ID that was chosen, and with what was trimmed as an exact limit. Where entries were
// spared, that is the ID behind the last removed one, whatever the strategy: it does not depend on
// the blocks.
void propagate_addition(call& c, const add_options& options, const redis_stream& entries,
                        stream_id id, const stream_trimmed& trimmed) {
    std::vector<std::string_view> args(c.args, c.args + c.count);
    const stream_id_text chosen(id);
    if (!id.is_zero()) args[options.id_at] = chosen.view();
    const bool spares = options.trim.references == stream_references::spare_referenced;
    const bool by_length = options.trim.what == stream_trim::by::length;
    const bool is_exact =
        options.trim.what == stream_trim::by::none || (!options.trim.approximate && !spares);
    if (is_exact) return propagate_plainly(c, options.identity, args);
    const decimal length(static_cast<std::int64_t>(entries.size()));
    redis_stream::walk first(entries, {}, stream_id::max());
    stream_id begin = first.next() ? first.id() : options.trim.id;
    if (spares) {
        begin = trimmed.last;
        if (trimmed.entries != 0) begin.increment();
    }
    const stream_id_text lowest(begin);
    const std::string_view word = args[options.trim_at - 1];
    const bool has_operator = word == "~" || word == "=";
    if (has_operator) args[options.trim_at - 1] = "=";
    if (spares) args[options.trim_at - (has_operator ? 2 : 1)] = "MINID";
    args[options.trim_at] = by_length && !spares ? std::string_view(length) : lowest.view();
    propagate_plainly(c, options.identity, args);
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
    // The master has sent it for its own bookkeeping: there is no entry to add.
    if (options.identity.is_given() && !options.has_id) return c.reply.null();
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
    const stream_trimmed trimmed = entries.trim(c.memory(), options.trim);
    if (trimmed.entries != 0) c.also_happened(key_event::stream, "xtrim", c.arg(1));
    if (propagates(c)) propagate_addition(c, options, entries, id, trimmed);
}

void xtrim(call& c) {
    add_options options;
    if (!options.parse(c, false)) return;
    slot* const place = c.find_to_write();
    if (place == nullptr) return c.reply.integer(0);
    if (c.is_not(place, value_type::stream)) return;
    const stream_trimmed trimmed = call::stream_of(place).trim(c.memory(), options.trim);
    if (trimmed.entries != 0) {
        c.changed(key_event::stream, "xtrim", c.arg(1), trimmed.entries);
        if (propagates(c)) propagate_addition(c, options, call::stream_of(place), {}, trimmed);
    }
    c.reply.integer(static_cast<std::int64_t>(trimmed.entries));
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
