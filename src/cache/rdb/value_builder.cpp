// Values in a keyspace of their own.
#include "cache/rdb/value_builder.hpp"

#include <eddy/base/assert.hpp>

#include "cache/types/collection.hpp"
#include "cache/types/list.hpp"
#include "cache/types/sorted_sets/sorted_set.hpp"

#include <algorithm>
#include <utility>

namespace eddy::cache::rdb {

namespace {

// Scope in which changes of the empty key are not observed.
class unobserved {
public:
    explicit unobserved(environment& env) noexcept
        : env_(env), observer_(std::exchange(env.observer, nullptr)) {}
    ~unobserved() { env_.observer = observer_; }
    unobserved(const unobserved&) = delete;
    unobserved& operator=(const unobserved&) = delete;

private:
    environment& env_;
    key_observer* observer_;
};

// As in Redis, a loaded listpack may have texts of any length.
class listpack_texts {
public:
    listpack_texts(environment& env, bool any_length) noexcept
        : limits_(env.limits),
          set_text_(limits_.set_text),
          hash_text_(limits_.hash_text),
          sorted_set_text_(limits_.sorted_set_text) {
        if (any_length) limits_.set_text = limits_.hash_text = limits_.sorted_set_text = SIZE_MAX;
    }
    ~listpack_texts() {
        limits_.set_text = set_text_;
        limits_.hash_text = hash_text_;
        limits_.sorted_set_text = sorted_set_text_;
    }
    listpack_texts(const listpack_texts&) = delete;
    listpack_texts& operator=(const listpack_texts&) = delete;

private:
    encoding_limits& limits_;
    const std::size_t set_text_;
    const std::size_t hash_text_;
    const std::size_t sorted_set_text_;
};

}  // namespace

void value_builder::drop() {
    if (place_ != nullptr) value_.clear();
    place_ = nullptr;
    was_listpack_ = false;
    elements_ = 0;
    group_ = nullptr;
}

refusal value_builder::begin(const key_header& of) {
    drop();
    const unobserved quiet(env_);
    is_collection_ = of.kind != value_kind::text && of.kind != value_kind::stream;
    const std::uint64_t hash = value_.hash({});
    switch (of.kind) {
        case value_kind::text: break;
        case value_kind::list: place_ = value_.add({}, hash, value_type::list); break;
        case value_kind::set: place_ = value_.add({}, hash, value_type::set); break;
        case value_kind::hash: place_ = value_.add({}, hash, value_type::hash); break;
        case value_kind::sorted_set: place_ = value_.add({}, hash, value_type::sorted_set); break;
        case value_kind::stream: place_ = value_.add({}, hash, value_type::stream); break;
    }
    return accepted;
}

refusal value_builder::listpack() {
    was_listpack_ = true;
    if (made().type == value_type::set) collection(env_, made()).keep_order();
    return accepted;
}

refusal value_builder::text(std::string_view whole) {
    const unobserved quiet(env_);
    place_ = value_.put_text(place_, {}, value_.hash({}), whole);
    return accepted;
}

refusal value_builder::element(std::string_view of_list) {
    made().pointer<list>()->push_back(env_.memory, of_list);
    ++elements_;
    return accepted;
}

refusal value_builder::member(std::string_view of_set) {
    const listpack_texts as_it_was(env_, was_listpack_);
    if (!collection(env_, made()).put(of_set)) return "a set has a member twice";
    ++elements_;
    return accepted;
}

refusal value_builder::scored(std::string_view of_sorted_set, double score) {
    const listpack_texts as_it_was(env_, was_listpack_);
    sorted_set members(env_, made());
    const sorted_set::place at = members.find(of_sorted_set);
    if (at) return "a sorted set has a member twice";
    members.add(of_sorted_set, score, at);
    ++elements_;
    return accepted;
}

refusal value_builder::field(std::string_view of_hash, std::string_view value) {
    const listpack_texts as_it_was(env_, was_listpack_);
    collection fields(env_, made());
    // all() counts expired fields, too.
    const std::size_t before = fields.all();
    fields.put(of_hash, value);
    if (fields.all() == before) return "a hash has a field twice";
    ++elements_;
    return accepted;
}

refusal value_builder::timed_field(std::string_view of_hash, std::string_view value,
                                   std::int64_t ends_at_ms) {
    if (const refusal why = field(of_hash, value)) return why;
    collection(env_, made()).set_end(of_hash, ends_at_ms);
    return accepted;
}

refusal value_builder::stream_block(stream_id id, std::string_view pack) {
    return made_stream().add_block(env_.memory, id, pack);
}

refusal value_builder::stream_facts(const redis_stream::facts& known) {
    return made_stream().set_facts(known);
}

// Every pending entry must have an owner.
refusal value_builder::end_group() noexcept {
    if (group_ == nullptr || group_->pending.size() == owned_) return accepted;
    return "an entry of a stream is pending for nobody";
}

refusal value_builder::group(std::string_view name, stream_id last,
                             std::optional<std::int64_t> entries_read) {
    if (const refusal why = end_group()) return why;
    redis_stream& entries = made_stream();
    const std::int64_t read =
        entries_read ? *entries_read
                     : entries.count_up_to(last).value_or(cache::stream_group::unknown_count);
    group_ = entries.add_group(env_.memory, name, last, read);
    owned_ = 0;
    return group_ != nullptr ? accepted : "a stream has a group twice";
}

refusal value_builder::pending(stream_id id, std::int64_t delivered_ms, std::uint64_t deliveries) {
    if (group_->find(id) != nullptr) return "an entry of a stream is pending twice";
    stream_pending& made = group_->add_pending(env_.memory, id);
    made.delivered_ms = std::max<std::int64_t>(delivered_ms, 0);
    made.deliveries = deliveries;
    return accepted;
}

refusal value_builder::group_consumer(std::string_view name, std::int64_t seen_ms,
                                      std::int64_t active_ms) {
    if (group_->find(name) != nullptr) return "a stream's group has a consumer twice";
    consumer_ = &group_->add(env_.memory, name, std::max<std::int64_t>(seen_ms, 0));
    consumer_->active_ms = std::max(active_ms, stream_consumer::never);
    return accepted;
}

refusal value_builder::owned(stream_id id) {
    stream_pending* const what = group_->find(id);
    if (what == nullptr || what->owner != nullptr) {
        return "a consumer has an entry that is not pending, or another's";
    }
    group_->pass_on(env_.memory, id, *what, *consumer_);
    ++owned_;
    return accepted;
}

keyspace::slot* value_builder::give(keyspace& to, std::string_view key, std::uint64_t hash) {
    EDDY_ASSERT(!empty());
    to.move_value(value_, std::exchange(place_, nullptr), value_.hash({}), key, hash);
    elements_ = 0;
    group_ = nullptr;
    return to.find(key, hash);
}

}  // namespace eddy::cache::rdb
