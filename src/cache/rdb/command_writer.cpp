// A value's commands, argument after argument.
#include "cache/rdb/command_writer.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/wire/resp/reply_writer.hpp>

#include "cache/rdb/value_writer.hpp"

#include <algorithm>

namespace eddy::cache::rdb {
namespace {

constexpr std::string_view line_end = "\r\n";

void put_head(byte_buffer& out, char kind, std::size_t number) {
    out.append(kind);
    out.append(decimal(static_cast<std::int64_t>(number)));
    out.append(line_end);
}

}  // namespace

void put_select_command(byte_buffer& out, std::size_t database) {
    const decimal number(static_cast<std::int64_t>(database));
    const std::string_view select[] = {"SELECT", number};
    resp::write_command(out, select);
}

void put_load_command(byte_buffer& out, std::string_view code) {
    const std::string_view load[] = {"FUNCTION", "LOAD", code};
    resp::write_command(out, load);
}

void command_writer::begin_key(entry& of) {
    EDDY_ASSERT(next_ == part::end && sent_ == queued_);
    of_ = &of;
    next_ = part::value;
}

bool command_writer::write(byte_buffer& out, std::size_t limit, std::size_t& parts) {
    while (!rest_.empty() || sent_ < queued_ || next_ != part::end) {
        if (out.size() >= limit) return false;
        if (rest_.empty()) {
            if (parts == 0) return false;
            --parts;
            if (sent_ < queued_)
                put(out, queue_[sent_++]);
            else
                next(out);
            continue;
        }
        const std::size_t now = std::min(rest_.size(), limit - out.size());
        out.append(rest_.substr(0, now));
        rest_.remove_prefix(now);
        if (rest_.empty()) out.append(line_end);
    }
    return true;
}

// The rest of a longer argument is left for write().
void command_writer::put(byte_buffer& out, std::string_view argument) {
    put_head(out, '$', argument.size());
    if (argument.size() > value_writer::max_whole_text) {
        rest_ = argument;
    } else {
        out.append(argument);
        out.append(line_end);
    }
}

// The arguments are queued after it.
void command_writer::command(byte_buffer& out, std::size_t arguments) {
    put_head(out, '*', arguments);
    queued_ = sent_ = 0;
}

void command_writer::command(byte_buffer& out, std::initializer_list<std::string_view> arguments) {
    command(out, arguments.size());
    for (const std::string_view each : arguments) queue(each);
}

void command_writer::next(byte_buffer& out) {
    switch (next_) {
        case part::value: return begin_value(out);
        case part::elements: return next_element(out);
        case part::field_ends: return next_field_end(out);
        case part::entries: return next_entry(out);
        case part::pairs: return next_pair();
        case part::ids: return write_ids(out);
        case part::groups: return next_group(out);
        case part::consumers: return next_consumer(out);
        case part::pending: return next_pending(out);
        case part::expiry: return write_expiry(out);
        case part::end: return;
    }
}

void command_writer::begin_value(byte_buffer& out) {
    switch (of_->type) {
        case value_type::string:
            command(out, {"SET", of_->key(), text_(*of_)});
            next_ = part::expiry;
            return;
        case value_type::list: {
            const list& elements = *of_->pointer<list>();
            element_ = elements.first();
            return begin_elements("RPUSH", elements.size());
        }
        case value_type::sorted_set: {
            const sorted_set elements(env_, *of_);
            ranked_.emplace(elements);
            return begin_elements("ZADD", elements.size());
        }
        case value_type::set:
        case value_type::hash: {
            const collection elements(env_, *of_);
            // Expired elements are included: the loader applies the same expiration.
            walk_.emplace(elements, collection::also::ended);
            return begin_elements(of_->type == value_type::set ? "SADD" : "HMSET", elements.all());
        }
        case value_type::stream:
            entries_.emplace(*of_->pointer<redis_stream>(), stream_id(), stream_id::max());
            next_ = part::entries;
            return;
    }
    EDDY_ASSERT(false);
}

void command_writer::begin_elements(std::string_view name, std::size_t count) {
    name_ = name;
    left_ = count;
    in_chunk_ = 0;
    next_ = part::elements;
}

void command_writer::next_element(byte_buffer& out) {
    if (in_chunk_ == 0) {
        in_chunk_ = std::min(left_, max_elements);
        left_ -= in_chunk_;
        if (in_chunk_ != 0) {
            const bool has_pairs =
                of_->type == value_type::hash || of_->type == value_type::sorted_set;
            command(out, 2 + in_chunk_ * (has_pairs ? 2 : 1));
            queue(name_);
            queue(of_->key());
            return;
        }
        ranked_.reset();
        walk_.reset();
        next_ = part::expiry;
        if (of_->type != value_type::hash) return;
        const collection fields(env_, *of_);
        if (!fields.has_expiring_fields()) return;
        walk_.emplace(fields, collection::also::ended);
        next_ = part::field_ends;
        return;
    }
    --in_chunk_;
    queued_ = sent_ = 0;
    queue_element();
}

void command_writer::queue_element() {
    if (of_->type == value_type::list) {
        queue(list::get(element_));
        element_ = list::after(element_);
        return;
    }
    if (of_->type == value_type::sorted_set) {
        sorted_set::element one;
        const bool is_there = ranked_->next(one);
        EDDY_ASSERT(is_there);
        queue({score_, static_cast<std::size_t>(write_double(score_, one.score) - score_)});
        queue(one.member);
        return;
    }
    collection::element one;
    const bool is_there = walk_->next(one);
    EDDY_ASSERT(is_there);
    queue(one.field);
    if (of_->type == value_type::hash) queue(one.value);
}

void command_writer::next_field_end(byte_buffer& out) {
    collection::element one;
    if (!walk_->next(one)) {
        walk_.reset();
        next_ = part::expiry;
        return;
    }
    if (walk_->ends_at() == no_expiry) return;
    numbers_[0] = decimal(walk_->ends_at());
    command(out, {"HPEXPIREAT", of_->key(), numbers_[0], "FIELDS", "1", one.field});
}

void command_writer::next_entry(byte_buffer& out) {
    if (!entries_->next()) {
        entries_.reset();
        next_ = part::ids;
        // A stream exists only with an entry: one is added and trimmed away.
        const redis_stream& all = *of_->pointer<redis_stream>();
        if (!all.empty()) return;
        const stream_id last = all.last_id();
        ids_[0] = stream_id_text(last.is_zero() ? stream_id{0, 1} : last);
        command(out, {"XADD", of_->key(), "MAXLEN", "0", ids_[0].view(), "x", "y"});
        return;
    }
    left_ = entries_->pairs();
    ids_[0] = stream_id_text(entries_->id());
    command(out, 3 + 2 * left_);
    for (const std::string_view each : {std::string_view("XADD"), of_->key(), ids_[0].view()})
        queue(each);
    next_ = part::pairs;
}

void command_writer::next_pair() {
    if (left_ == 0) {
        next_ = part::entries;
        return;
    }
    --left_;
    listpack::element field;
    listpack::element value;
    entries_->pair(field, value);
    queued_ = sent_ = 0;
    queue(field.text(digits_[0]));
    queue(value.text(digits_[1]));
}

void command_writer::write_ids(byte_buffer& out) {
    const redis_stream& all = *of_->pointer<redis_stream>();
    ids_ = {stream_id_text(all.last_id()), stream_id_text(all.max_deleted_id())};
    numbers_[0] = decimal(static_cast<std::int64_t>(all.entries_added()));
    command(out, {"XSETID", of_->key(), ids_[0].view(), "ENTRIESADDED", numbers_[0], "MAXDELETEDID",
                  ids_[1].view()});
    group_ = all.groups().first();
    next_ = part::groups;
}

void command_writer::next_group(byte_buffer& out) {
    if (!group_) {
        next_ = part::expiry;
        return;
    }
    const stream_group& group = **group_;
    ids_[0] = stream_id_text(group.last_id);
    numbers_[0] = decimal(group.entries_read);
    command(out, {"XGROUP", "CREATE", of_->key(), group.name(), ids_[0].view(), "ENTRIESREAD",
                  numbers_[0]});
    consumer_ = group.consumers.first();
    next_ = part::consumers;
}

void command_writer::next_consumer(byte_buffer& out) {
    if (!consumer_) {
        group_.forward();
        next_ = part::groups;
        return;
    }
    const stream_consumer& consumer = **consumer_;
    command(out, {"XGROUP", "CREATECONSUMER", of_->key(), (*group_)->name(), consumer.name()});
    pending_ = consumer.pending.first();
    next_ = part::pending;
}

void command_writer::next_pending(byte_buffer& out) {
    if (!pending_) {
        consumer_.forward();
        next_ = part::consumers;
        return;
    }
    const stream_pending& what = *pending_->of;
    ids_[0] = stream_id_text(pending_->id);
    numbers_ = {decimal(what.delivered_ms), decimal(static_cast<std::int64_t>(what.deliveries))};
    command(out, {"XCLAIM", of_->key(), (*group_)->name(), what.owner->name(), "0", ids_[0].view(),
                  "TIME", numbers_[0], "RETRYCOUNT", numbers_[1], "JUSTID", "FORCE"});
    pending_.forward();
}

void command_writer::write_expiry(byte_buffer& out) {
    next_ = part::end;
    if (of_->expiry() == no_expiry) return;
    numbers_[0] = decimal(of_->expiry());
    command(out, {"PEXPIREAT", of_->key(), numbers_[0]});
}

}  // namespace eddy::cache::rdb
