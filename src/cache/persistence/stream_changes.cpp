// The recorded commands, with Redis's arguments.
#include "cache/persistence/stream_changes.hpp"

#include "cache/persistence/propagation.hpp"

namespace eddy::cache {

void propagate_claim(call& c, std::string_view key, const stream_group& group, stream_id id,
                     const stream_pending& what) {
    if (!propagates(c)) return;
    const stream_id_text which(id);
    const stream_id_text last(group.last_id);
    const decimal time(what.delivered_ms);
    const decimal deliveries(static_cast<std::int64_t>(what.deliveries));
    propagate_as(c, {"XCLAIM", key, group.name(), what.owner->name(), "0", which.view(), "TIME",
                     time, "RETRYCOUNT", deliveries, "FORCE", "JUSTID", "LASTID", last.view()});
}

void propagate_position(call& c, std::string_view key, const stream_group& group) {
    if (!propagates(c)) return;
    const stream_id_text last(group.last_id);
    const decimal read(group.entries_read);
    propagate_as(c, {"XGROUP", "SETID", key, group.name(), last.view(), "ENTRIESREAD", read});
}

void propagate_consumer(call& c, std::string_view key, const stream_group& group,
                        const stream_consumer& made) {
    propagate_as(c, {"XGROUP", "CREATECONSUMER", key, group.name(), made.name()});
}

void propagate_acknowledged(call& c, std::string_view key, const stream_group& group,
                            stream_id id) {
    if (!propagates(c)) return;
    const stream_id_text which(id);
    propagate_as(c, {"XACK", key, group.name(), which.view()});
}

}  // namespace eddy::cache
