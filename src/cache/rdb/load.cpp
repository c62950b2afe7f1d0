// Loading of keys with their expiry; strings arrive whole, other values through the builder.
#include "cache/rdb/load.hpp"

#include "cache/engine/engine_state.hpp"
#include "cache/rdb/format.hpp"
#include "cache/script/scripting.hpp"

#include <algorithm>

namespace eddy::cache::rdb {
namespace {

constexpr refusal key_is_there = "a key is there already";

}  // namespace

loader::loader(engine_state& to, load_options options)
    : value_builder(to.data.env),
      state_(to),
      keep_expired_(options.keep_expired),
      goes_on_(options.goes_on),
      when_there_(options.when_there),
      reader_(*this, reader::input::file, options.reading) {}

refusal loader::aux(std::string_view name, std::string_view value) {
    if (name == stream_id_aux) {
        const bool is_id = value.size() == run_id_size &&
                           value.find_first_not_of("0123456789abcdef") == std::string_view::npos;
        if (is_id) stream_id_ = value;
        keep_expired_ |= goes_on_ && position();
        return accepted;
    }
    const auto number = parse_integer(value);
    if (!number || *number < 0) return accepted;
    if (name == "used-mem") {
        state_.persistence.load.used_memory = static_cast<std::uint64_t>(*number);
    } else if (name == stream_database_aux) {
        if (*number < static_cast<std::int64_t>(engine_databases))
            stream_database_ = static_cast<std::uint8_t>(*number);
    } else if (name == stream_offset_aux) {
        stream_offset_ = static_cast<std::uint64_t>(*number);
        keep_expired_ |= goes_on_ && position();
    }
    return accepted;
}

std::optional<stream_position> loader::position() const {
    if (stream_id_.empty() || !stream_offset_) return std::nullopt;
    return stream_position{stream_id_, *stream_offset_, stream_database_};
}

refusal loader::select(std::uint64_t number) {
    if (number >= engine_databases) return "the file has a database with a number above 15";
    database_ = number;
    return accepted;
}

refusal loader::library(std::string_view code) {
    const bool replaces = when_there_ != load_options::existing::all_are_faults;
    const std::string why = scripting::load_library(state_, code, replaces);
    if (!why.empty()) {
        library_fault_ = "a library of functions cannot be loaded: " + why;
        return library_fault_.c_str();
    }
    ++counts_.libraries;
    return accepted;
}

refusal loader::begin(const key_header& of) {
    // A time before 1970 has expired as well, and 0 would mean none.
    expires_at_ms_ = of.expires ? std::max<expiry_time>(of.expires_at_ms, 1) : no_expiry;
    is_over_ = of.expires && expires_at_ms_ < env_.now_ms && !keep_expired_;
    is_text_ = of.kind == value_kind::text;
    if (is_over_) return accepted;
    key_ = of.key;
    return is_text_ ? accepted : value_builder::begin(of);
}

refusal loader::text(std::string_view whole) {
    if (is_over_) return accepted;
    keyspace& to = state_.data.database(database_);
    const std::uint64_t hash = to.hash(key_);
    if (!make_way(to, hash)) return key_is_there;
    set_expiry(to, to.put_text(nullptr, key_, hash, whole));
    ++counts_.keys;
    return accepted;
}

refusal loader::listpack() { return is_over_ ? accepted : value_builder::listpack(); }

refusal loader::element(std::string_view of_list) {
    return is_over_ ? accepted : value_builder::element(of_list);
}

refusal loader::member(std::string_view of_set) {
    return is_over_ ? accepted : value_builder::member(of_set);
}

refusal loader::scored(std::string_view of_sorted_set, double score) {
    return is_over_ ? accepted : value_builder::scored(of_sorted_set, score);
}

refusal loader::field(std::string_view of_hash, std::string_view value) {
    return is_over_ ? accepted : value_builder::field(of_hash, value);
}

// Expired fields are left out; so is a hash with only such fields.
refusal loader::timed_field(std::string_view of_hash, std::string_view value,
                            std::int64_t ends_at_ms) {
    if (is_over_ || (ends_at_ms < env_.now_ms && !keep_expired_)) return accepted;
    return value_builder::timed_field(of_hash, value, ends_at_ms);
}

refusal loader::stream_block(stream_id id, std::string_view pack) {
    return is_over_ ? accepted : value_builder::stream_block(id, pack);
}

refusal loader::stream_facts(const redis_stream::facts& known) {
    return is_over_ ? accepted : value_builder::stream_facts(known);
}

refusal loader::group(std::string_view name, stream_id last,
                      std::optional<std::int64_t> entries_read) {
    return is_over_ ? accepted : value_builder::group(name, last, entries_read);
}

refusal loader::pending(stream_id id, std::int64_t delivered_ms, std::uint64_t deliveries) {
    return is_over_ ? accepted : value_builder::pending(id, delivered_ms, deliveries);
}

refusal loader::group_consumer(std::string_view name, std::int64_t seen_ms,
                               std::int64_t active_ms) {
    return is_over_ ? accepted : value_builder::group_consumer(name, seen_ms, active_ms);
}

refusal loader::owned(stream_id id) { return is_over_ ? accepted : value_builder::owned(id); }

refusal loader::end() {
    if (is_over_) {
        ++counts_.expired;
        return accepted;
    }
    if (is_text_) return accepted;
    if (const refusal why = value_builder::end()) return why;
    if (empty()) {
        drop();
        ++counts_.empty;
        return accepted;
    }
    keyspace& to = state_.data.database(database_);
    const std::uint64_t hash = to.hash(key_);
    if (!make_way(to, hash)) return key_is_there;
    set_expiry(to, give(to, key_, hash));
    ++counts_.keys;
    return accepted;
}

// False if the key exists and stays.
bool loader::make_way(keyspace& in, std::uint64_t hash) const {
    keyspace::slot* const place = in.find(key_, hash);
    if (place == nullptr) return true;
    if (when_there_ != load_options::existing::replaced) return false;
    in.remove(place, hash);
    return true;
}

void loader::set_expiry(keyspace& in, keyspace::slot* of) const {
    if (expires_at_ms_ != no_expiry) in.set_expiry(of, expires_at_ms_);
}

}  // namespace eddy::cache::rdb
