// Values in a keyspace of their own.
#include "cache/rdb/value_builder.hpp"

#include <eddy/base/assert.hpp>

#include "cache/collection.hpp"
#include "cache/list.hpp"
#include "cache/sorted_set.hpp"

#include <utility>

namespace eddy::cache::rdb {

void value_builder::drop() {
    if (place_ != nullptr) value_.clear();
    place_ = nullptr;
    elements_ = 0;
}

refusal value_builder::begin(const key_header& of) {
    drop();
    is_collection_ = of.kind != value_kind::text;
    const std::uint64_t hash = value_.hash({});
    switch (of.kind) {
        case value_kind::text: break;
        case value_kind::list: place_ = value_.add({}, hash, value_type::list); break;
        case value_kind::set: place_ = value_.add({}, hash, value_type::set); break;
        case value_kind::hash: place_ = value_.add({}, hash, value_type::hash); break;
        case value_kind::sorted_set: place_ = value_.add({}, hash, value_type::sorted_set); break;
    }
    return accepted;
}

refusal value_builder::text(std::string_view whole) {
    place_ = value_.put_text(place_, {}, value_.hash({}), whole);
    return accepted;
}

refusal value_builder::element(std::string_view of_list) {
    made().pointer<list>()->push_back(env_.memory, of_list);
    ++elements_;
    return accepted;
}

refusal value_builder::member(std::string_view of_set) {
    if (!collection(env_, made()).put(of_set)) return "a set has a member twice";
    ++elements_;
    return accepted;
}

refusal value_builder::scored(std::string_view of_sorted_set, double score) {
    sorted_set members(env_, made());
    const sorted_set::place at = members.find(of_sorted_set);
    if (at) return "a sorted set has a member twice";
    members.add(of_sorted_set, score, at);
    ++elements_;
    return accepted;
}

refusal value_builder::field(std::string_view of_hash, std::string_view value) {
    if (!collection(env_, made()).put(of_hash, value)) return "a hash has a field twice";
    ++elements_;
    return accepted;
}

keyspace::slot* value_builder::give(keyspace& to, std::string_view key, std::uint64_t hash) {
    EDDY_ASSERT(!empty());
    to.move_value(value_, std::exchange(place_, nullptr), value_.hash({}), key, hash);
    elements_ = 0;
    return to.find(key, hash);
}

}  // namespace eddy::cache::rdb
