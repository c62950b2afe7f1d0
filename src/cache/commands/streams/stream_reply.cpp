// Replies with entries and errors of streams.
#include "cache/commands/streams/stream_reply.hpp"

#include <string>

namespace eddy::cache {
namespace {

void reply_element(call& c, const listpack::element& one) {
    one.is_number ? c.reply.bulk_integer(one.number) : c.reply.bulk(one.bytes);
}

// As printf would take it.
std::string c_text(std::string_view text) { return std::string(text.substr(0, text.find('\0'))); }

void reply_id_and_pairs(call& c, redis_stream::walk& at) {
    reply_id(c, at.id());
    c.reply.array(2 * at.pairs());
    for (std::size_t i = at.pairs(); i > 0; --i) {
        listpack::element field;
        listpack::element value;
        at.pair(field, value);
        reply_element(c, field);
        reply_element(c, value);
    }
}

}  // namespace

void reply_entry(call& c, redis_stream::walk& at) {
    c.reply.array(2);
    reply_id_and_pairs(c, at);
}

void reply_entry(call& c, redis_stream::walk& at, std::int64_t idle_ms, std::uint64_t deliveries) {
    c.reply.array(4);
    reply_id_and_pairs(c, at);
    c.reply.integer(idle_ms);
    c.reply.integer(static_cast<std::int64_t>(deliveries));
}

std::size_t reply_entries(call& c, redis_stream::walk& range, std::uint64_t most) {
    late_head head(c);
    std::size_t count = 0;
    while (range.next()) {
        if (c.reply_is_too_large()) return count;
        reply_entry(c, range);
        if (++count == most) break;
    }
    head.array(count);
    return count;
}

void no_group(call& c, std::string_view key, std::string_view group, std::string_view more) {
    c.error("NOGROUP No such key '" + c_text(key) + "' or consumer group '" + c_text(group) + "'" +
            std::string(more));
}

void no_group_of(call& c, std::string_view key, std::string_view group) {
    c.error("NOGROUP No such consumer group '" + c_text(group) + "' for key name '" + c_text(key) +
            "'");
}

}  // namespace eddy::cache
