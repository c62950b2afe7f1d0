// A value's parts, one after another.
#include "cache/rdb/value_writer.hpp"

#include <eddy/base/assert.hpp>

#include "cache/types/number.hpp"
#include "cache/types/timed_fields.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace eddy::cache::rdb {
namespace {

object_type type_of(const entry& e) noexcept {
    switch (e.type) {
        case value_type::string: return object_type::text;
        case value_type::list: return object_type::list;
        case value_type::set: return object_type::set;
        case value_type::sorted_set: return object_type::zset_2;
        case value_type::hash: return object_type::hash;
        case value_type::stream: return object_type::stream_2;
    }
    EDDY_ASSERT(false);
    return object_type::text;
}

void put_special(byte_buffer& out, special_text form, std::int64_t number, std::size_t bytes) {
    out.append(static_cast<char>(static_cast<unsigned>(length_form::special) << 6 |
                                 static_cast<unsigned>(form)));
    put_little(out, static_cast<std::uint64_t>(number), bytes);
}

// A text that is a canonical 32-bit number becomes one; false for other texts.
bool put_number(byte_buffer& out, std::string_view text) {
    constexpr std::size_t longest = 11;  // -2147483648
    if (text.empty() || text.size() > longest) return false;
    const auto first = static_cast<unsigned char>(text[0]);
    if (first != '-' && (first < '0' || first > '9')) return false;
    const auto number = parse_integer(text);
    if (!number || *number < INT32_MIN || *number > INT32_MAX) return false;
    if (*number >= INT8_MIN && *number <= INT8_MAX) {
        put_special(out, special_text::int_8, *number, 1);
    } else if (*number >= INT16_MIN && *number <= INT16_MAX) {
        put_special(out, special_text::int_16, *number, 2);
    } else {
        put_special(out, special_text::int_32, *number, 4);
    }
    return true;
}

void put_count(byte_buffer& out, std::uint64_t elements, bool of_listpack) {
    of_listpack ? put_listpack_length(out, elements) : put_length(out, elements);
}

}  // namespace

void put_little(byte_buffer& out, std::uint64_t number, std::size_t bytes) {
    std::memcpy(out.reserve(bytes), &number, bytes);
    out.commit(bytes);
}

void put_length(byte_buffer& out, std::uint64_t length) {
    char head[9];
    std::size_t size = 0;
    const auto big_endian = [&](std::size_t bytes) {
        for (std::size_t i = bytes; i-- > 0;) {
            head[size++] = static_cast<char>(length >> (8 * i) & 0xff);
        }
    };
    if (length < 1U << 6) {
        big_endian(1);
    } else if (length < 1U << 14) {
        big_endian(2);
        head[0] = static_cast<char>(head[0] | static_cast<int>(length_form::bits_14) << 6);
    } else if (length <= UINT32_MAX) {
        head[size++] = static_cast<char>(length_32);
        big_endian(4);
    } else {
        head[size++] = static_cast<char>(length_64);
        big_endian(8);
    }
    out.append(std::string_view(head, size));
}

void put_listpack_length(byte_buffer& out, std::uint64_t length) {
    const bool is_short = length < 1U << 6;
    char head[5];
    head[0] = is_short ? static_cast<char>(static_cast<unsigned>(length_form::bits_14) << 6)
                       : static_cast<char>(length_32);
    const std::size_t rest = is_short ? 1 : 4;
    for (std::size_t i = rest; i > 0; --i, length >>= 8) head[i] = static_cast<char>(length & 0xff);
    EDDY_ASSERT(length == 0);
    out.append(std::string_view(head, 1 + rest));
}

void put_text(byte_buffer& out, std::string_view text) {
    if (put_number(out, text)) return;
    put_length(out, text.size());
    out.append(text);
}

void put_library(byte_buffer& out, std::string_view code) {
    out.append(static_cast<char>(opcode::function));
    put_length(out, code.size());
    out.append(code);
}

void put_select(byte_buffer& out, std::size_t database) {
    out.append(static_cast<char>(opcode::select));
    put_length(out, database);
}

unsigned value_writer::version_for(environment& env, entry& of) noexcept {
    return of.type == value_type::hash && collection(env, of).has_expiring_fields()
               ? written_version_with_expiring_fields
               : written_version;
}

void value_writer::begin_key(entry& of) {
    EDDY_ASSERT(next_ == part::end);
    of_ = &of;
    next_ = part::head;
    with_key_ = true;
}

void value_writer::begin_value(entry& of) {
    EDDY_ASSERT(next_ == part::end);
    of_ = &of;
    next_ = part::type;
    with_key_ = false;
}

bool value_writer::write(byte_buffer& out, std::size_t limit, std::size_t& parts) {
    while (!rest_.empty() || next_ != part::end) {
        if (out.size() >= limit) return false;
        if (rest_.empty()) {
            if (parts == 0) return false;
            --parts;
            next(out);
            continue;
        }
        const std::size_t now = std::min(rest_.size(), limit - out.size());
        out.append(rest_.substr(0, now));
        rest_.remove_prefix(now);
    }
    return true;
}

// The rest of a longer text is left for write().
void value_writer::start_text(byte_buffer& out, std::string_view text) {
    if (text.size() <= max_whole_text) return put_text(out, text);
    put_length(out, text.size());
    rest_ = text;
}

void value_writer::next(byte_buffer& out) {
    switch (next_) {
        case part::head:
            if (const expiry_time at_ms = of_->expiry(); at_ms != no_expiry) {
                out.append(static_cast<char>(opcode::expires_ms));
                put_little(out, static_cast<std::uint64_t>(at_ms), 8);
            }
            next_ = part::type;
            break;
        case part::type:
            timed_ = of_->type == value_type::hash && collection(env_, *of_).has_expiring_fields();
            put_type(out);
            next_ = with_key_ ? part::key : part::value;
            break;
        case part::key:
            start_text(out, of_->key());
            next_ = part::value;
            break;
        case part::value:
            if (of_->type == value_type::string) {
                start_text(out, text_(*of_));
                next_ = part::end;
            } else {
                begin_elements(out);
                next_ = part::elements;
            }
            break;
        case part::elements: next_element(out); break;
        case part::score:
            put_little(out, std::bit_cast<std::uint64_t>(score_), sizeof score_);
            next_ = part::elements;
            break;
        case part::second:
            start_text(out, second_);
            next_ = timed_ && is_valkeys_ ? part::field_end : part::elements;
            break;
        case part::field_end:
            put_little(out, static_cast<std::uint64_t>(field_end_ == no_expiry ? -1 : field_end_),
                       8);
            next_ = part::elements;
            break;
        case part::end: break;
    }
}

void value_writer::put_type(byte_buffer& out) const {
    object_type type = type_of(*of_);
    if (timed_)
        type = is_valkeys_ ? object_type::valkey_hash_with_expiry : object_type::hash_with_expiry;
    out.append(static_cast<char>(type));
}

void value_writer::begin_elements(byte_buffer& out) {
    if (of_->type == value_type::list) {
        const list& elements = *of_->pointer<list>();
        put_length(out, elements.size());
        element_ = elements.first();
        return;
    }
    if (of_->type == value_type::sorted_set) {
        const sorted_set elements(env_, *of_);
        put_count(out, elements.size(), elements.is_listed());
        ranked_.emplace(elements);
        return;
    }
    if (of_->type == value_type::stream) {
        stream_.emplace(*of_->pointer<redis_stream>());
        return;
    }
    const collection elements(env_, *of_);
    if (timed_ && !is_valkeys_) {
        first_end_ = timed_table::of(*of_)->first_end();
        put_little(out, static_cast<std::uint64_t>(first_end_), 8);
    }
    // Expired elements are included: the loader applies the same expiration.
    put_count(out, elements.all(), elements.is_listed() && !elements.is_integers());
    walk_.emplace(elements, collection::also::ended);
}

void value_writer::next_element(byte_buffer& out) {
    if (of_->type == value_type::list) {
        if (!element_) {
            next_ = part::end;
            return;
        }
        start_text(out, list::get(element_));
        element_ = list::after(element_);
        return;
    }
    if (of_->type == value_type::sorted_set) {
        sorted_set::element next;
        if (!ranked_->next(next)) {
            ranked_.reset();
            next_ = part::end;
            return;
        }
        start_text(out, next.member);
        score_ = next.score;
        next_ = part::score;
        return;
    }
    if (of_->type == value_type::stream) {
        std::string_view text;
        if (!stream_->next(out, text)) {
            stream_.reset();
            next_ = part::end;
        } else if (!text.empty()) {
            start_text(out, text);
        }
        return;
    }
    collection::element one;
    if (!walk_->next(one)) {
        walk_.reset();
        next_ = part::end;
        return;
    }
    if (timed_) field_end_ = walk_->ends_at();
    if (timed_ && !is_valkeys_)
        put_length(out, field_end_ == no_expiry
                            ? 0
                            : static_cast<std::uint64_t>(field_end_ - first_end_) + 1);
    start_text(out, one.field);
    if (of_->type == value_type::hash) {
        second_ = one.value;
        next_ = part::second;
    }
}

}  // namespace eddy::cache::rdb
