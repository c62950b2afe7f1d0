// XDELEX and XACKDEL: removal of entries together with what consumer groups know of them.
//
// Both are recorded as the XACK and XDEL of what they did.
#include "cache/catalog/commands.hpp"
#include "cache/commands/streams/stream_id_argument.hpp"
#include "cache/commands/streams/stream_references.hpp"
#include "cache/engine/call.hpp"
#include "cache/persistence/propagation.hpp"

#include <deque>
#include <span>
#include <string_view>
#include <vector>

namespace eddy::cache::commands {
namespace {

using slot = call::slot;

// Replies for one ID.
constexpr std::int64_t is_missing = -1;
constexpr std::int64_t is_deleted = 1;
constexpr std::int64_t is_spared = 2;

struct deletion {
    stream_references references = stream_references::keep;
    std::size_t first_id = 0;  // argument
    std::size_t ids = 0;

    // The arguments from `i` on; false with the error replied.
    bool parse(call& c, std::size_t i);
};

bool deletion::parse(call& c, std::size_t i) {
    bool has_references = false;
    for (; i < c.count; ++i) {
        if (!has_references && stream_references_argument(c.arg(i), references)) {
            has_references = true;
        } else if (is_word(c.arg(i), "ids") && i + 1 < c.count) {
            const auto given =
                c.integer_in(++i, 1, INT64_MAX, "ERR Number of IDs must be a positive integer");
            if (!given) return false;
            first_id = i + 1;
            ids = static_cast<std::size_t>(*given);
            if (ids > c.count - first_id) {
                c.error("ERR The `numids` parameter must match the number of arguments");
                return false;
            }
            i += ids;
        } else {
            c.syntax_error();
            return false;
        }
    }
    if (ids != 0) return true;
    c.syntax_error();
    return false;
}

bool parse_ids(call& c, const deletion& what, std::vector<stream_id>& to) {
    to.resize(what.ids);
    for (std::size_t i = 0; i < what.ids; ++i)
        if (!stream_id_argument(c, what.first_id + i, to[i])) return false;
    return true;
}

void reply_all_missing(call& c, std::size_t ids) {
    c.reply.array(ids);
    for (; ids > 0; --ids) c.reply.integer(is_missing);
}

// The changes, for their record.
class deletion_record {
public:
    explicit deletion_record(call& c) : call_(c), is_wanted_(propagates(c)) {}

    void acknowledged(const stream_group& by, stream_id id) {
        if (!is_wanted_) return;
        // One group mostly.
        for (of_group& each : acknowledged_) {
            if (each.group != &by) continue;
            each.ids.push_back(id);
            return;
        }
        acknowledged_.push_back({&by, {id}});
    }
    void deleted(stream_id id) {
        if (is_wanted_) deleted_.push_back(id);
    }
    void propagate() const {
        for (const of_group& each : acknowledged_)
            propagate_ids({"XACK", call_.arg(1), each.group->name()}, each.ids);
        if (!deleted_.empty()) propagate_ids({"XDEL", call_.arg(1)}, deleted_);
    }

private:
    struct of_group {
        const stream_group* group;
        std::vector<stream_id> ids;
    };

    void propagate_ids(std::vector<std::string_view> args, std::span<const stream_id> ids) const {
        std::deque<stream_id_text> texts;
        for (const stream_id each : ids) args.push_back(texts.emplace_back(each).view());
        propagate_as(call_, args);
    }

    call& call_;
    const bool is_wanted_;
    std::vector<of_group> acknowledged_;
    std::vector<stream_id> deleted_;
};

// Removal of several entries of one stream.
class entry_deletion {
public:
    entry_deletion(call& c, redis_stream& from, stream_references references)
        : call_(c), from_(from), references_(references), record_(c) {}

    bool acknowledge(stream_group& by, stream_id id) {
        if (!by.acknowledge(call_.memory(), id)) return false;
        ++acknowledged_;
        record_.acknowledged(by, id);
        return true;
    }

    /// Returns the reply.
    std::int64_t erase(stream_id id) {
        if (references_ == stream_references::spare_referenced && from_.is_referenced(id))
            return is_spared;
        if (references_ == stream_references::remove) {
            for (auto at = from_.groups().first(); at; at.forward()) acknowledge(**at, id);
        }
        if (!from_.erase(call_.memory(), id)) return is_missing;
        ++deleted_;
        record_.deleted(id);
        return is_deleted;
    }

    void end() {
        call_.state.data.changes += acknowledged_;
        if (deleted_ != 0) call_.changed(key_event::stream, "xdel", call_.arg(1), deleted_);
        record_.propagate();
    }

private:
    call& call_;
    redis_stream& from_;
    const stream_references references_;
    deletion_record record_;
    std::uint64_t acknowledged_ = 0;
    std::uint64_t deleted_ = 0;
};

}  // namespace

void xdelex(call& c) {
    slot* const place = c.find_to_write();
    if (place != nullptr && c.is_not(place, value_type::stream)) return;
    deletion what;
    if (!what.parse(c, 2)) return;
    if (place == nullptr) return reply_all_missing(c, what.ids);
    std::vector<stream_id> ids;
    if (!parse_ids(c, what, ids)) return;
    entry_deletion entries(c, call::stream_of(place), what.references);
    c.reply.array(ids.size());
    for (const stream_id each : ids) c.reply.integer(entries.erase(each));
    entries.end();
}

void xackdel(call& c) {
    slot* const place = c.find_to_write();
    if (place != nullptr && c.is_not(place, value_type::stream)) return;
    deletion what;
    if (!what.parse(c, 3)) return;
    stream_group* const group =
        place == nullptr ? nullptr : call::stream_of(place).find_group(c.arg(2));
    if (group == nullptr) return reply_all_missing(c, what.ids);
    std::vector<stream_id> ids;
    if (!parse_ids(c, what, ids)) return;
    entry_deletion entries(c, call::stream_of(place), what.references);
    c.reply.array(ids.size());
    for (const stream_id each : ids) {
        std::int64_t reply = is_missing;
        // The entry may have been removed before.
        if (entries.acknowledge(*group, each))
            reply = entries.erase(each) == is_spared ? is_spared : is_deleted;
        c.reply.integer(reply);
    }
    entries.end();
}

}  // namespace eddy::cache::commands
