// A stream's blocks, attributes and groups as RDB.
#include "cache/rdb/stream_writer.hpp"

#include "cache/rdb/value_writer.hpp"

namespace eddy::cache::rdb {
namespace {

void put_id_lengths(byte_buffer& out, stream_id id) {
    put_length(out, id.ms);
    put_length(out, id.seq);
}

void put_id(byte_buffer& out, stream_id id) {
    for (const std::uint64_t part : {id.ms, id.seq}) {
        put_little(out, __builtin_bswap64(part), sizeof part);
    }
}

}  // namespace

bool stream_writer::next(byte_buffer& out, std::string_view& text) {
    text = {};
    switch (next_) {
        case part::begin:
            put_length(out, of_.blocks());
            next_ = part::blocks;
            return true;
        case part::blocks: {
            if (!block_) {
                next_ = part::facts;
                return next(out, text);
            }
            byte_buffer id;
            put_id(id, block_.id());
            put_text(out, id.text());
            text = block_.pack();
            block_.forward();
            return true;
        }
        case part::facts: begin_groups(out); return true;
        case part::group:
            if (!group_) {
                next_ = part::end;
                return false;
            }
            begin_group(out);
            return true;
        case part::pending:
            if (!pending_) {
                begin_consumers(out);
                return true;
            }
            put_id(out, pending_->id);
            put_little(out, static_cast<std::uint64_t>(pending_->of->delivered_ms), 8);
            put_length(out, pending_->of->deliveries);
            pending_.forward();
            return true;
        case part::consumer:
            if (!consumer_) {
                group_.forward();
                next_ = part::group;
                return next(out, text);
            }
            put_text(out, (*consumer_)->name());
            put_little(out, static_cast<std::uint64_t>((*consumer_)->seen_ms), 8);
            put_length(out, (*consumer_)->pending.size());
            pending_ = (*consumer_)->pending.first();
            next_ = part::owned;
            return true;
        case part::owned:
            if (!pending_) {
                consumer_.forward();
                next_ = part::consumer;
                return next(out, text);
            }
            put_id(out, pending_->id);
            pending_.forward();
            return true;
        case part::end: break;
    }
    return false;
}

void stream_writer::begin_groups(byte_buffer& out) {
    put_length(out, of_.size());
    put_id_lengths(out, of_.last_id());
    put_id_lengths(out, of_.first_id());
    put_id_lengths(out, of_.max_deleted_id());
    put_length(out, of_.entries_added());
    put_length(out, of_.groups().size());
    group_ = of_.groups().first();
    next_ = part::group;
}

void stream_writer::begin_group(byte_buffer& out) {
    const stream_group& group = **group_;
    put_text(out, group.name());
    put_id_lengths(out, group.last_id);
    put_length(out, static_cast<std::uint64_t>(group.entries_read));
    put_length(out, group.pending.size());
    pending_ = group.pending.first();
    next_ = part::pending;
}

void stream_writer::begin_consumers(byte_buffer& out) {
    const stream_group& group = **group_;
    put_length(out, group.consumers.size());
    consumer_ = group.consumers.first();
    next_ = part::consumer;
}

}  // namespace eddy::cache::rdb
