// State machine of the reader, one state for each unit of the format.
#include "cache/rdb/reader.hpp"

#include <eddy/base/assert.hpp>

#include "cache/rdb/crc64.hpp"
#include "cache/types/packed.hpp"
#include "cache/types/timed_fields.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

namespace eddy::cache::rdb {
namespace {

// Kept capacity of the buffer for a unit in pieces; more is released.
constexpr std::size_t kept_pending = 64U << 10;

constexpr std::size_t stream_id_bytes = 16;

stream_id stream_id_of(std::string_view bytes) noexcept {
    stream_id id;
    for (std::size_t i = 0; i < stream_id_bytes; ++i) {
        std::uint64_t& part = i < 8 ? id.ms : id.seq;
        part = part << 8 | static_cast<std::uint8_t>(bytes[i]);
    }
    return id;
}

constexpr const char* not_a_score = "a score is no number";
constexpr const char* impossible_end = "a field of a hash has a time that cannot be";
constexpr const char* unknown_type = "a value has an unknown type";

bool parse_score(std::string_view text, double& score) noexcept {
    const char* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, score);
    return error == std::errc{} && at == end && !std::isnan(score);
}

bool score_of(const packed_item& item, double& score) noexcept {
    if (!item.is_number) return parse_score(item.bytes, score);
    score = static_cast<double>(item.number);
    return true;
}

}  // namespace

std::size_t reader::feed(std::string_view piece) {
    const char* const begin = piece.data();
    const char* const end = begin + piece.size();
    const char* at = begin;
    const char* summed = begin;
    const auto left = [&] { return static_cast<std::size_t>(end - at); };
    const auto sum_up = [&] {
        if (!options_.check_sum) return;
        sum_ = crc64(sum_, {summed, static_cast<std::size_t>(at - summed)});
        summed = at;
    };
    bool sums = state_ != state::checksum && !one_value_;
    while (at < end && now() == status::reading) {
        const bool direct = pending_.empty();
        if (!direct) {
            const std::size_t missing = std::min(wanted_ - pending_.size(), left());
            pending_.append(std::string_view(at, missing));
            at += missing;
            if (pending_.size() < wanted_) break;
        }
        window w(direct ? std::string_view(at, left()) : pending_.text(), options_.max_text);
        if (step(w)) {
            offset_ += w.used();
            if (direct) {
                at += w.used();
            } else {
                EDDY_ASSERT(w.used() == pending_.size());
                pending_.clear();
                if (pending_.capacity() > kept_pending) pending_.release_if_empty();
            }
            // The checksum does not cover itself. The end mark before it is a single byte, so it
            // was never pending.
            if (sums && state_ == state::checksum) {
                sum_up();
                sums = false;
            }
        } else if (w.fault() != nullptr) {
            fault_ = {offset_, w.fault(), is_unknown_format_};
        } else {
            wanted_ = w.needed();
            if (direct) {
                pending_.append(std::string_view(at, left()));
                at = end;
            }
        }
    }
    if (sums) sum_up();
    return static_cast<std::size_t>(at - begin);
}

void reader::finish() {
    if (now() == status::reading) fault_ = {offset(), "the input ends too early"};
}

bool reader::step(window& w) {
    std::uint64_t number = 0;
    std::uint64_t second = 0;
    std::string_view name;
    std::string_view value;
    std::uint8_t byte = 0;
    const auto back_to_opcodes = [&](refusal why) {
        state_ = state::opcode;
        return passed(w, why);
    };
    switch (state_) {
        case state::magic: return read_magic(w);
        case state::opcode: return read_opcode(w);
        case state::aux: return read_pair(w, name, value) && back_to_opcodes(to_.aux(name, value));
        case state::select: return w.length(number) && back_to_opcodes(to_.select(number));
        case state::sizes:
            return w.length(number) && w.length(second) &&
                   back_to_opcodes(to_.sizes(number, second));
        case state::slot_info:
            return w.length(number) && w.length(number) && w.length(number) &&
                   back_to_opcodes(accepted);
        case state::expires_s:
        case state::expires_ms: return read_expiry(w);
        case state::idle: return w.length(number) && back_to_opcodes(accepted);
        case state::frequency: return w.byte(byte) && back_to_opcodes(accepted);
        case state::library:
            return read_text(w, scratch_[0], value) && back_to_opcodes(to_.library(value));
        case state::key_metadata: return read_key_metadata(w);
        case state::metadata_begin: return read_metadata_begin(w);
        case state::module_begin: return read_module_begin(w);
        case state::module_item: return read_module_item(w);
        case state::key: return read_text(w, scratch_[0], name) && begin_value(w, name);
        case state::text:
            return read_text(w, scratch_[0], value) && passed(w, to_.text(value)) && end_value(w);
        case state::count: return read_count(w);
        case state::element:
            return read_text(w, scratch_[0], value) && passed(w, to_.element(value)) &&
                   end_element(w);
        case state::member:
            return read_text(w, scratch_[0], value) && passed(w, to_.member(value)) &&
                   end_element(w);
        case state::field:
            return read_pair(w, name, value) && passed(w, to_.field(name, value)) && end_element(w);
        case state::scored_text:
        case state::scored_binary: return read_scored(w);
        case state::first_end: return read_first_end(w);
        case state::timed_field: return read_timed_field(w);
        case state::field_and_end: return read_field_and_end(w);
        case state::packed: return read_packed(w) && end_value(w);
        case state::ziplist_node:
        case state::quicklist_node: return read_node(w) && end_element(w);
        case state::stream_block: return read_stream_block(w);
        case state::stream_facts: return read_stream_facts(w);
        case state::group: return read_group(w);
        case state::pending: return read_pending(w);
        case state::consumers: return read_consumers(w);
        case state::group_consumer: return read_group_consumer(w);
        case state::owned: return read_owned(w);
        case state::producers: return read_producers(w);
        case state::producer: return read_producer(w);
        case state::produced: return read_produced(w);
        case state::produced_counts: return read_produced_counts(w);
        case state::checksum: return read_checksum(w);
        case state::done: break;
    }
    EDDY_ASSERT(false);
    return false;
}

bool reader::read_expiry(window& w) {
    const bool is_in_seconds = state_ == state::expires_s;
    std::uint64_t number = 0;
    if (!w.little(is_in_seconds ? 4 : 8, number)) return false;
    header_.expires = true;
    header_.expires_at_ms = is_in_seconds ? std::int64_t{static_cast<std::int32_t>(number)} * 1000
                                          : static_cast<std::int64_t>(number);
    state_ = state::opcode;
    return passed(w, accepted);
}

bool reader::read_consumers(window& w) {
    if (!w.length(consumers_left_)) return false;
    state_ = state::group_consumer;
    return consumers_left_ != 0 || end_group(w);
}

bool reader::read_magic(window& w) {
    std::string_view magic;
    if (!w.take(magic_bytes, magic)) return false;
    head_ = file_head(magic);
    is_unknown_format_ = head_.is_unknown_format();
    if (head_.fault() != nullptr) return w.fail(head_.fault());
    family_ = head_.family();
    state_ = state::opcode;
    return true;
}

bool reader::read_opcode(window& w) {
    std::uint8_t byte = 0;
    if (!w.byte(byte)) return false;
    constexpr auto first_opcode = static_cast<std::uint8_t>(opcode::key_metadata);
    if (byte < first_opcode) return begin_type(w, type_written_as(byte, family_));
    if (byte == first_opcode) return read_family_opcode(w);
    if (one_value_) return w.fail(unknown_type);
    switch (static_cast<opcode>(byte)) {
        case opcode::key_metadata: break;
        case opcode::slot_info: state_ = state::slot_info; return true;
        case opcode::function: state_ = state::library; return true;
        case opcode::old_function:
            return w.fail("a function was written by a release candidate of Redis 7.0");
        case opcode::module_aux: state_ = state::module_begin; return true;
        case opcode::idle: state_ = state::idle; return true;
        case opcode::frequency: state_ = state::frequency; return true;
        case opcode::aux: state_ = state::aux; return true;
        case opcode::sizes: state_ = state::sizes; return true;
        case opcode::expires_ms: state_ = state::expires_ms; return true;
        case opcode::expires_s: state_ = state::expires_s; return true;
        case opcode::select: state_ = state::select; return true;
        case opcode::end:
            state_ = head_.version() < first_version_with_checksum ? state::done : state::checksum;
            return true;
    }
    return w.fail(unknown_type);
}

// Redis's is part of a value, too.
bool reader::read_family_opcode(window& w) {
    if (family_ == format_family::redis) {
        state_ = state::key_metadata;
        return true;
    }
    if (one_value_) return w.fail(unknown_type);
    is_unknown_format_ = true;
    return w.fail("it was written while slots of a cluster were imported");
}

bool reader::read_key_metadata(window& w) {
    // Redis's limit.
    constexpr std::uint64_t most_modules = 7;
    if (!w.length(metadata_left_)) return false;
    if (metadata_left_ > most_modules) return w.fail("a key has metadata of too many modules");
    state_ = metadata_left_ != 0 ? state::metadata_begin : state::opcode;
    return true;
}

// The module's name and version, then its items.
bool reader::read_metadata_begin(window& w) {
    constexpr std::size_t class_bytes = 4;
    std::string_view name;
    if (!w.take(class_bytes, name)) return false;
    --metadata_left_;
    state_ = state::module_item;
    return true;
}

bool reader::begin_type(window& w, object_type type) {
    switch (type) {
        case object_type::text: kind_ = value_kind::text; break;
        case object_type::list:
        case object_type::list_ziplist:
        case object_type::list_quicklist:
        case object_type::list_quicklist_2: kind_ = value_kind::list; break;
        case object_type::set:
        case object_type::set_intset:
        case object_type::set_listpack: kind_ = value_kind::set; break;
        case object_type::zset:
        case object_type::zset_2:
        case object_type::zset_ziplist:
        case object_type::zset_listpack: kind_ = value_kind::sorted_set; break;
        case object_type::hash:
        case object_type::hash_zipmap:
        case object_type::hash_ziplist:
        case object_type::hash_listpack:
        case object_type::hash_with_expiry_rc:
        case object_type::hash_listpack_with_expiry_rc:
        case object_type::hash_with_expiry:
        case object_type::hash_listpack_with_expiry:
        case object_type::valkey_hash_with_expiry: kind_ = value_kind::hash; break;
        case object_type::stream:
        case object_type::stream_2:
        case object_type::stream_3:
        case object_type::stream_4: kind_ = value_kind::stream; break;
        case object_type::module_1:
        case object_type::module_2: return w.fail("a key holds a module's value");
        default: return w.fail(unknown_type);
    }
    type_ = type;
    if (one_value_) return begin_value(w, {});
    state_ = state::key;
    return true;
}

bool reader::read_pair(window& w, std::string_view& first, std::string_view& second) {
    // Decompressed only when both strings are complete.
    written_text one;
    written_text two;
    return w.text(one) && w.text(two) && w.expand(one, scratch_[0], first) &&
           w.expand(two, scratch_[1], second);
}

// The module's number, then, as one of its items, the time at which its data must be read.
bool reader::read_module_begin(window& w) {
    std::uint64_t module = 0;
    std::uint64_t what = 0;
    std::uint64_t when = 0;
    if (!w.length(module) || !w.length(what)) return false;
    if (what != static_cast<std::uint64_t>(module_opcode::unsigned_integer)) {
        return w.fail("a module's data do not begin as they should");
    }
    if (!w.length(when)) return false;
    state_ = state::module_item;
    return true;
}

bool reader::read_module_item(window& w) {
    std::uint64_t what = 0;
    std::uint64_t number = 0;
    written_text text;
    if (!w.length(what)) return false;
    if (what > static_cast<std::uint64_t>(module_opcode::text)) {
        return w.fail("a module's data have an unknown type");
    }
    switch (static_cast<module_opcode>(what)) {
        case module_opcode::end:
            state_ = metadata_left_ != 0 ? state::metadata_begin : state::opcode;
            return true;
        case module_opcode::signed_integer:
        case module_opcode::unsigned_integer: return w.length(number);
        case module_opcode::float_number: return w.little(4, number);
        case module_opcode::double_number: return w.little(8, number);
        case module_opcode::text: return w.text(text);
    }
    return false;
}

bool reader::begin_value(window& w, std::string_view key) {
    header_.key = key;
    header_.kind = kind_;
    const refusal why = to_.begin(header_);
    header_ = {};
    switch (type_) {
        case object_type::text: state_ = state::text; break;
        case object_type::list:
        case object_type::set:
        case object_type::zset:
        case object_type::hash:
        case object_type::zset_2:
        case object_type::list_quicklist:
        case object_type::list_quicklist_2:
        case object_type::stream:
        case object_type::stream_2:
        case object_type::stream_3:
        case object_type::stream_4:
        case object_type::hash_with_expiry_rc:
        case object_type::valkey_hash_with_expiry: state_ = state::count; break;
        case object_type::hash_with_expiry:
        case object_type::hash_listpack_with_expiry: state_ = state::first_end; break;
        default: state_ = state::packed; break;
    }
    return passed(w, why);
}

bool reader::read_count(window& w) {
    bool is_longer = false;
    if (!w.length(left_, is_longer)) return false;
    if (kind_ == value_kind::stream) {
        state_ = left_ == 0 ? state::stream_facts : state::stream_block;
        return true;
    }
    if (left_ == 0) return end_value(w);
    const bool may_be_listpack =
        type_ == object_type::set || type_ == object_type::hash || type_ == object_type::zset_2;
    if (is_longer && may_be_listpack && !passed(w, to_.listpack())) return false;
    switch (type_) {
        case object_type::list: state_ = state::element; break;
        case object_type::set: state_ = state::member; break;
        case object_type::zset: state_ = state::scored_text; break;
        case object_type::zset_2: state_ = state::scored_binary; break;
        case object_type::hash: state_ = state::field; break;
        case object_type::hash_with_expiry_rc:
        case object_type::hash_with_expiry: state_ = state::timed_field; break;
        case object_type::valkey_hash_with_expiry: state_ = state::field_and_end; break;
        case object_type::list_quicklist: state_ = state::ziplist_node; break;
        default: state_ = state::quicklist_node; break;
    }
    return true;
}

bool reader::read_first_end(window& w) {
    if (!w.little(8, first_end_)) return false;
    state_ = type_ == object_type::hash_with_expiry ? state::count : state::packed;
    return true;
}

// An expiration as written for a field; 0 is none.
bool reader::end_of_field(window& w, std::uint64_t written, std::int64_t& to) const {
    to = no_expiry;
    if (written == 0) return true;
    // Since the first release of 7.4 it is relative to the first expiration, which is 1.
    if (type_ == object_type::hash_with_expiry) {
        if (__builtin_add_overflow(written - 1, first_end_, &written)) written = 0;
    }
    if (written == 0 || written > static_cast<std::uint64_t>(field_clock::latest_end)) {
        return w.fail(impossible_end);
    }
    to = static_cast<expiry_time>(written);
    return true;
}

bool reader::read_timed_field(window& w) {
    std::uint64_t written = 0;
    std::string_view field;
    std::string_view value;
    expiry_time ends = no_expiry;
    if (!w.length(written) || !read_pair(w, field, value) || !end_of_field(w, written, ends)) {
        return false;
    }
    return emit_field(w, field, value, ends) && end_element(w);
}

bool reader::emit_field(window& w, std::string_view field, std::string_view value,
                        std::int64_t ends) {
    return passed(
        w, ends == no_expiry ? to_.field(field, value) : to_.timed_field(field, value, ends));
}

// Valkey's: the expiration follows, as an absolute time of any length.
bool reader::read_field_and_end(window& w) {
    constexpr std::int64_t none = -1;
    written_text one;
    written_text two;
    std::uint64_t written = 0;
    if (!w.text(one) || !w.text(two) || !w.little(8, written)) return false;
    const auto given = static_cast<std::int64_t>(written);
    if (given <= 0 && given != none) return w.fail(impossible_end);
    const expiry_time ends = given == none ? no_expiry : std::min(given, field_clock::latest_end);
    std::string_view field;
    std::string_view value;
    return w.expand(one, scratch_[0], field) && w.expand(two, scratch_[1], value) &&
           emit_field(w, field, value, ends) && end_element(w);
}

bool reader::read_timed_packed(window& w) {
    std::string_view block;
    std::size_t count = 0;
    if (!read_text(w, scratch_[0], block)) return false;
    if (const char* const why = check_packed<listpack_walk>(block, count)) return w.fail(why);
    constexpr std::size_t parts = 3;
    if (count % parts != 0) return w.fail("a packed hash has a field without a value or a time");
    packed_item item[parts];
    const auto next = [&](listpack_walk& walk) {
        for (packed_item& each : item) {
            if (walk.next(each) != packed_step::item) return false;
        }
        return true;
    };
    expiry_time ends = no_expiry;
    for (listpack_walk walk(block); next(walk);) {
        if (!item[2].is_number || item[2].number < 0) {
            return w.fail("a field of a hash has a time that is no number");
        }
        if (!end_of_field(w, static_cast<std::uint64_t>(item[2].number), ends)) return false;
    }
    char digits[2][24];
    for (listpack_walk walk(block); next(walk);) {
        static_cast<void>(end_of_field(w, static_cast<std::uint64_t>(item[2].number), ends));
        const std::string_view field = item[0].text(digits[0]);
        const std::string_view value = item[1].text(digits[1]);
        if (!emit_field(w, field, value, ends)) return false;
    }
    return true;
}

bool reader::read_scored(window& w) {
    // Codes in place of a decimal score's size.
    constexpr std::uint8_t is_nan = 253;
    constexpr std::uint8_t is_infinite = 254;
    constexpr std::uint8_t is_minus_infinite = 255;
    written_text member;
    double score = 0;
    if (!w.text(member)) return false;
    if (state_ == state::scored_binary) {
        std::string_view bytes;
        if (!w.take(sizeof score, bytes)) return false;
        std::memcpy(&score, bytes.data(), sizeof score);
        if (std::isnan(score)) return w.fail(not_a_score);
    } else {
        std::uint8_t size = 0;
        std::string_view digits;
        if (!w.byte(size)) return false;
        switch (size) {
            case is_nan: return w.fail(not_a_score);
            case is_infinite: score = std::numeric_limits<double>::infinity(); break;
            case is_minus_infinite: score = -std::numeric_limits<double>::infinity(); break;
            default:
                if (!w.take(size, digits)) return false;
                if (!parse_score(digits, score)) return w.fail(not_a_score);
                break;
        }
    }
    std::string_view text;
    return w.expand(member, scratch_[0], text) && passed(w, to_.scored(text, score)) &&
           end_element(w);
}

bool reader::read_node(window& w) {
    std::string_view node;
    if (state_ == state::ziplist_node) {
        return read_text(w, scratch_[0], node) && emit_packed<ziplist_walk>(w, node);
    }
    std::uint64_t form = 0;
    if (!w.length(form)) return false;
    if (form == static_cast<std::uint64_t>(quicklist_node::plain)) {
        return read_text(w, scratch_[0], node) && passed(w, to_.element(node));
    }
    if (form != static_cast<std::uint64_t>(quicklist_node::packed)) {
        return w.fail("a list's node has an unknown form");
    }
    return read_text(w, scratch_[0], node) && emit_packed<listpack_walk>(w, node);
}

bool reader::read_packed(window& w) {
    if (type_ == object_type::hash_listpack_with_expiry ||
        type_ == object_type::hash_listpack_with_expiry_rc)
        return read_timed_packed(w);
    std::string_view block;
    if (!read_text(w, scratch_[0], block)) return false;
    switch (type_) {
        case object_type::hash_zipmap: return emit_packed<zipmap_walk>(w, block);
        case object_type::set_intset: return emit_packed<intset_walk>(w, block);
        case object_type::list_ziplist:
        case object_type::zset_ziplist:
        case object_type::hash_ziplist: return emit_packed<ziplist_walk>(w, block);
        default: return emit_packed<listpack_walk>(w, block);
    }
}

template <class Walk>
bool reader::emit_packed(window& w, std::string_view block) {
    std::size_t count = 0;
    if (const char* const why = check_packed<Walk>(block, count)) return w.fail(why);
    const bool pairs = kind_ == value_kind::hash || kind_ == value_kind::sorted_set;
    if (pairs && count % 2 != 0) return w.fail("a packed value has a field without a value");
    packed_item first;
    packed_item second;
    double score = 0;
    if (kind_ == value_kind::sorted_set) {
        Walk scores(block);
        for (std::size_t i = 0; scores.next(first) == packed_step::item; ++i) {
            if (i % 2 != 0 && !score_of(first, score)) return w.fail(not_a_score);
        }
    }
    const bool was_listpack = kind_ != value_kind::list && type_ != object_type::set_intset;
    if (was_listpack && !passed(w, to_.listpack())) return false;
    Walk walk(block);
    char digits[2][24];
    while (walk.next(first) == packed_step::item) {
        const std::string_view text = first.text(digits[0]);
        if (pairs) static_cast<void>(walk.next(second));
        refusal why = accepted;
        switch (kind_) {
            case value_kind::list: why = to_.element(text); break;
            case value_kind::set: why = to_.member(text); break;
            case value_kind::hash: why = to_.field(text, second.text(digits[1])); break;
            case value_kind::sorted_set:
                static_cast<void>(score_of(second, score));
                why = to_.scored(text, score);
                break;
            case value_kind::text:
            case value_kind::stream: EDDY_ASSERT(false); break;
        }
        if (!passed(w, why)) return false;
    }
    return true;
}

// A stream's ID: 16 bytes in big-endian order, or two lengths.
static bool take_id(window& w, stream_id& to) noexcept {
    std::string_view bytes;
    if (!w.take(stream_id_bytes, bytes)) return false;
    to = stream_id_of(bytes);
    return true;
}

static bool take_length_id(window& w, stream_id& to) noexcept {
    return w.length(to.ms) && w.length(to.seq);
}

bool reader::read_stream_block(window& w) {
    std::string_view id;
    std::string_view pack;
    if (!read_pair(w, id, pack)) return false;
    if (id.size() != stream_id_bytes) return w.fail("a block of a stream has no ID");
    if (!passed(w, to_.stream_block(stream_id_of(id), pack))) return false;
    if (--left_ == 0) state_ = state::stream_facts;
    return true;
}

bool reader::read_stream_facts(window& w) {
    redis_stream::facts all;
    stream_id first;
    std::uint64_t added = 0;
    if (!w.length(all.length) || !take_length_id(w, all.last_id)) return false;
    if (type_ != object_type::stream) {
        if (!take_length_id(w, first) || !take_length_id(w, all.max_deleted_id) ||
            !w.length(added)) {
            return false;
        }
        all.entries_added = added;
    }
    if (!w.length(groups_left_) || !passed(w, to_.stream_facts(all))) return false;
    state_ = state::group;
    return groups_left_ != 0 || end_groups(w);
}

bool reader::read_group(window& w) {
    written_text written;
    stream_id last;
    std::uint64_t read = 0;
    std::uint64_t count = 0;
    const bool counts = type_ != object_type::stream;
    if (!w.text(written) || !take_length_id(w, last)) return false;
    if (counts && !w.length(read)) return false;
    if (!w.length(count)) return false;
    std::string_view name;
    if (!w.expand(written, scratch_[0], name)) return false;
    const auto entries_read =
        counts ? std::optional(static_cast<std::int64_t>(read)) : std::nullopt;
    if (!passed(w, to_.group(name, last, entries_read))) return false;
    left_ = count;
    state_ = count != 0 ? state::pending : state::consumers;
    return true;
}

bool reader::read_pending(window& w) {
    stream_id id;
    std::uint64_t time = 0;
    std::uint64_t count = 0;
    if (!take_id(w, id) || !w.little(8, time) || !w.length(count)) return false;
    if (!passed(w, to_.pending(id, static_cast<std::int64_t>(time), count))) return false;
    if (--left_ == 0) state_ = state::consumers;
    return true;
}

bool reader::read_group_consumer(window& w) {
    written_text written;
    std::uint64_t seen = 0;
    std::uint64_t count = 0;
    if (!w.text(written) || !w.little(8, seen)) return false;
    std::uint64_t active = seen;
    const bool notes_active = type_ == object_type::stream_3 || type_ == object_type::stream_4;
    if (notes_active && !w.little(8, active)) return false;
    if (!w.length(count)) return false;
    std::string_view name;
    if (!w.expand(written, scratch_[0], name)) return false;
    if (!passed(w, to_.group_consumer(name, static_cast<std::int64_t>(seen),
                                      static_cast<std::int64_t>(active)))) {
        return false;
    }
    left_ = count;
    state_ = state::owned;
    return count != 0 || end_consumer(w);
}

bool reader::read_owned(window& w) {
    stream_id id;
    if (!take_id(w, id) || !passed(w, to_.owned(id))) return false;
    return --left_ != 0 || end_consumer(w);
}

bool reader::end_consumer(window& w) {
    state_ = state::group_consumer;
    return --consumers_left_ != 0 || end_group(w);
}

bool reader::end_group(window& w) {
    state_ = state::group;
    return --groups_left_ != 0 || end_groups(w);
}

bool reader::end_groups(window& w) {
    if (type_ != object_type::stream_4) return end_value(w);
    state_ = state::producers;
    return true;
}

// The settings of idempotent production, then its producers, each with its messages' identities.
bool reader::read_producers(window& w) {
    std::uint64_t seconds = 0;
    std::uint64_t most = 0;
    if (!w.length(seconds) || !w.length(most) || !w.length(producers_left_)) return false;
    state_ = producers_left_ != 0 ? state::producer : state::produced_counts;
    return true;
}

bool reader::read_producer(window& w) {
    written_text name;
    if (!w.text(name) || !w.length(left_)) return false;
    state_ = state::produced;
    if (left_ == 0) end_producer();
    return true;
}

bool reader::read_produced(window& w) {
    written_text identity;
    stream_id entry;
    if (!w.text(identity) || !take_length_id(w, entry)) return false;
    if (--left_ == 0) end_producer();
    return true;
}

void reader::end_producer() {
    state_ = --producers_left_ != 0 ? state::producer : state::produced_counts;
}

bool reader::read_produced_counts(window& w) {
    std::uint64_t added = 0;
    std::uint64_t repeated = 0;
    return w.length(added) && w.length(repeated) && end_value(w);
}

bool reader::end_element(window& w) { return --left_ > 0 || end_value(w); }

bool reader::end_value(window& w) {
    state_ = one_value_ ? state::done : state::opcode;
    return passed(w, to_.end());
}

bool reader::read_checksum(window& w) {
    std::uint64_t written = 0;
    if (!w.little(checksum_bytes, written)) return false;
    if (options_.check_sum && written != 0 && written != sum_) {
        return w.fail("the checksum at the end is not that of the file");
    }
    state_ = state::done;
    return true;
}

}  // namespace eddy::cache::rdb
