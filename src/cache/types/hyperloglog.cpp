// Bits of the layout, and the estimator.
#include "cache/types/hyperloglog.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace eddy::cache::hyperloglog {
namespace {

constexpr std::string_view magic = "HYLL";
constexpr std::size_t layout_at = 4;
constexpr std::size_t cardinality_at = 8;
constexpr std::uint8_t changed_bit = 0x80;  // in the cardinality's last byte

// Redis's seed; with another one Redis would miscount the values.
constexpr std::uint64_t hash_seed = 0xadc83b19;
constexpr unsigned rank_bits = 64 - index_bits;
constexpr std::size_t ranks = 64;  // range of six bits

constexpr std::size_t max_short_zeros = 64;
constexpr std::size_t max_value_run = 4;
constexpr std::uint8_t max_sparse_value = 32;
// Number of runs that are checked, after a change, for two to join.
constexpr int joined_at_once = 5;

using histogram = std::array<std::uint32_t, ranks>;

std::uint8_t byte(std::string_view text, std::size_t at) noexcept {
    return static_cast<std::uint8_t>(text[at]);
}

// Calls what(value, registers) for each run in order. False unless the runs cover all registers.
template <class F>
bool for_each_run(std::string_view sparse, F&& what) noexcept {
    std::size_t registers_seen = 0;
    for (std::size_t at = header_bytes; at < sparse.size(); ++at) {
        const std::uint8_t code = byte(sparse, at);
        std::uint8_t value = 0;
        std::size_t length;
        if ((code & 0x80) != 0) {
            value = static_cast<std::uint8_t>((code >> 2 & 0x1f) + 1);
            length = (code & 3U) + 1;
        } else if ((code & 0x40) != 0) {
            if (++at == sparse.size()) return false;
            length = ((code & 0x3fU) << 8 | byte(sparse, at)) + 1;
        } else {
            length = code + 1U;
        }
        if (length > register_count - registers_seen) return false;
        what(value, registers_seen, length);
        registers_seen += length;
    }
    return registers_seen == register_count;
}

// Calls what(register, value) for each register of a dense counter.
template <class F>
void for_each_dense(std::string_view dense, F&& what) noexcept {
    std::size_t index = 0;
    for (std::size_t at = header_bytes; at < dense_bytes; at += 3, index += 4) {
        const unsigned four = byte(dense, at) | static_cast<unsigned>(byte(dense, at + 1)) << 8 |
                              static_cast<unsigned>(byte(dense, at + 2)) << 16;
        what(index, static_cast<std::uint8_t>(four & 63));
        what(index + 1, static_cast<std::uint8_t>(four >> 6 & 63));
        what(index + 2, static_cast<std::uint8_t>(four >> 12 & 63));
        what(index + 3, static_cast<std::uint8_t>(four >> 18));
    }
}

// sigma and tau of the paper's section on the improved raw estimator: sums that are computed until
// they no longer change.
double sigma(double x) noexcept {
    if (x == 1.0) return INFINITY;
    double sum = x;
    double weight = 1;
    for (double before = -1; before != sum;) {
        x *= x;
        before = sum;
        sum += x * weight;
        weight += weight;
    }
    return sum;
}

double tau(double x) noexcept {
    if (x == 0.0 || x == 1.0) return 0.0;
    double sum = 1 - x;
    double weight = 1;
    for (double before = -1; before != sum;) {
        x = std::sqrt(x);
        before = sum;
        weight *= 0.5;
        sum -= (1 - x) * (1 - x) * weight;
    }
    return sum / 3;
}

std::uint64_t estimate(const histogram& of) noexcept {
    constexpr double m = register_count;
    constexpr double alpha = 0.721347520444481703680;  // 1 / (2 ln 2)
    double z = m * tau((m - of[rank_bits + 1]) / m);
    for (unsigned rank = rank_bits; rank >= 1; --rank) z = (z + of[rank]) * 0.5;
    z += m * sigma(of[0] / m);
    return static_cast<std::uint64_t>(std::llround(alpha * m * m / z));
}

char short_zeros(std::size_t length) noexcept { return static_cast<char>(length - 1); }
char value_run(std::uint8_t value, std::size_t length) noexcept {
    return static_cast<char>(0x80U | (value - 1U) << 2 | (length - 1));
}

// Encoded runs that replace one run.
struct runs {
    char bytes[5];
    std::size_t size = 0;

    void add(std::uint8_t value, std::size_t length) noexcept {
        if (length == 0) return;
        if (value != 0) {
            bytes[size++] = value_run(value, length);
        } else if (length <= max_short_zeros) {
            bytes[size++] = short_zeros(length);
        } else {
            bytes[size++] = static_cast<char>(0x40U | (length - 1) >> 8);
            bytes[size++] = static_cast<char>((length - 1) & 0xff);
        }
    }
};

}  // namespace

std::uint64_t hash(std::string_view bytes, std::uint64_t seed) noexcept {
    constexpr std::uint64_t factor = 0xc6a4'a793'5bd1'e995ULL;
    constexpr unsigned shift = 47;
    const auto word_at = [&bytes](std::size_t at, std::size_t size) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes.data() + at, size);
        if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
        return word;
    };
    std::uint64_t state = seed ^ bytes.size() * factor;
    const std::size_t whole = bytes.size() / 8 * 8;
    for (std::size_t at = 0; at < whole; at += 8) {
        std::uint64_t word = word_at(at, 8) * factor;
        word = (word ^ word >> shift) * factor;
        state = (state ^ word) * factor;
    }
    if (whole < bytes.size()) state = (state ^ word_at(whole, bytes.size() - whole)) * factor;
    state = (state ^ state >> shift) * factor;
    return state ^ state >> shift;
}

observation observe(std::string_view element) noexcept {
    const std::uint64_t bits = hash(element, hash_seed);
    // A bit above the remaining ones ends the search if all of them are zero.
    const std::uint64_t rest = bits >> index_bits | std::uint64_t{1} << rank_bits;
    return {static_cast<std::uint32_t>(bits % register_count),
            static_cast<std::uint8_t>(__builtin_ctzll(rest) + 1)};
}

std::string empty() {
    std::string made(header_bytes, '\0');
    made.replace(0, magic.size(), magic);
    made[layout_at] = static_cast<char>(layout::sparse);
    runs zeros;
    zeros.add(0, register_count);
    return made.append(zeros.bytes, zeros.size);
}

bool is_counter(std::string_view text) noexcept {
    if (text.size() < header_bytes || !text.starts_with(magic)) return false;
    if (byte(text, layout_at) > static_cast<std::uint8_t>(layout::sparse)) return false;
    return layout_of(text) == layout::sparse || text.size() == dense_bytes;
}

layout layout_of(std::string_view counter) noexcept {
    return static_cast<layout>(counter[layout_at]);
}

std::optional<std::uint64_t> cached(std::string_view counter) noexcept {
    if ((byte(counter, cardinality_at + 7) & changed_bit) != 0) return std::nullopt;
    std::uint64_t value = 0;
    for (std::size_t i = 8; i > 0; --i) value = value << 8 | byte(counter, cardinality_at + i - 1);
    return value;
}

void set_cached(char* counter, std::uint64_t cardinality) noexcept {
    for (std::size_t i = 0; i < 8; ++i) {
        counter[cardinality_at + i] = static_cast<char>(cardinality >> 8 * i);
    }
}

void drop_cached(char* counter) noexcept {
    char& last = counter[cardinality_at + 7];
    last = static_cast<char>(last | changed_bit);
}

bool merge_into(registers& to, std::string_view counter) noexcept {
    if (layout_of(counter) == layout::dense) {
        for_each_dense(counter, [&to](std::size_t index, std::uint8_t value) {
            to[index] = std::max(to[index], value);
        });
        return true;
    }
    return for_each_run(counter, [&to](std::uint8_t value, std::size_t first, std::size_t length) {
        if (value == 0) return;
        for (std::size_t i = first; i < first + length; ++i) to[i] = std::max(to[i], value);
    });
}

std::optional<std::uint64_t> count(std::string_view counter) noexcept {
    histogram seen{};
    if (layout_of(counter) == layout::dense) {
        for_each_dense(counter, [&seen](std::size_t, std::uint8_t value) { ++seen[value]; });
    } else if (!for_each_run(counter, [&seen](std::uint8_t value, std::size_t, std::size_t length) {
                   seen[value] += static_cast<std::uint32_t>(length);
               })) {
        return std::nullopt;
    }
    return estimate(seen);
}

std::uint64_t count(const registers& of) noexcept {
    histogram seen{};
    for (const std::uint8_t value : of) ++seen[value];
    return estimate(seen);
}

std::string describe(std::string_view sparse) {
    std::string words;
    for_each_run(sparse, [&words](std::uint8_t value, std::size_t, std::size_t length) {
        if (!words.empty()) words += ' ';
        if (value != 0) {
            words += "v:" + std::to_string(value) + "," + std::to_string(length);
        } else {
            words += (length <= max_short_zeros ? "z:" : "Z:") + std::to_string(length);
        }
    });
    return words;
}

// A register's six bits are in one byte or in two.
bool raise_dense(char* counter, observation what) noexcept {
    const std::size_t bit = std::size_t{what.index} * 6;
    char* const at = counter + header_bytes + bit / 8;
    const unsigned shift = bit % 8;
    const bool in_two = shift > 2;
    unsigned both = static_cast<std::uint8_t>(at[0]);
    if (in_two) both |= static_cast<unsigned>(static_cast<std::uint8_t>(at[1])) << 8;
    if ((both >> shift & 63) >= what.rank) return false;
    both = (both & ~(63U << shift)) | static_cast<unsigned>(what.rank) << shift;
    at[0] = static_cast<char>(both & 0xff);
    if (in_two) at[1] = static_cast<char>(both >> 8);
    return true;
}

bool sparse_editor::read_run(std::size_t at, std::size_t first, run& to) const noexcept {
    if (at >= text_.size()) return false;
    const std::uint8_t code = byte(text_, at);
    to = {at, first, code + std::size_t{1}, 1, 0};
    if ((code & 0x80) != 0) {
        to.value = static_cast<std::uint8_t>((code >> 2 & 0x1f) + 1);
        to.length = (code & 3U) + 1;
    } else if ((code & 0x40) != 0) {
        if (at + 1 >= text_.size()) return false;
        to.bytes = 2;
        to.length = ((code & 0x3fU) << 8 | byte(text_, at + 1)) + 1;
    }
    return true;
}

// The run with the register; before_*_ is set to the run before it, or to itself if it is the first
// one.
bool sparse_editor::find_run(std::size_t index, run& to) {
    std::size_t begin_at = before_at_;
    std::size_t begin_first = before_first_;
    if (index < begin_first) {
        begin_at = header_bytes;
        begin_first = 0;
    }
    for (;;) {
        if (!read_run(begin_at, begin_first, to)) return false;
        // Found at the start of the search, so the run before it is unknown.
        if (index < to.first + to.length && begin_at != header_bytes) {
            begin_at = header_bytes;
            begin_first = 0;
            continue;
        }
        break;
    }
    before_at_ = to.at;
    before_first_ = to.first;
    while (index >= to.first + to.length) {
        before_at_ = to.at;
        before_first_ = to.first;
        if (!read_run(to.at + to.bytes, to.first + to.length, to)) return false;
    }
    return true;
}

update sparse_editor::raise(observation what) {
    const auto promote = [&] {
        if (!become_dense()) return update::damaged;
        return raise_dense(text_.data(), what) ? update::raised : update::none;
    };
    if (!is_sparse()) {
        return raise_dense(text_.data(), what) ? update::raised : update::none;
    }
    if (what.rank > max_sparse_value) return promote();
    run found;
    if (!find_run(what.index, found)) return update::damaged;
    if (found.value >= what.rank) return update::none;
    if (found.length == 1 && found.bytes == 1) {
        text_[found.at] = value_run(what.rank, 1);
    } else {
        runs instead;
        instead.add(found.value, what.index - found.first);
        instead.add(what.rank, 1);
        instead.add(found.value, found.first + found.length - 1 - what.index);
        if (instead.size > found.bytes && text_.size() + instead.size - found.bytes > limit_) {
            return promote();
        }
        text_.replace(found.at, found.bytes, instead.bytes, instead.size);
    }
    join_values(before_at_);
    drop_cached();
    return update::raised;
}

// Joins neighbouring runs of equal values up to the maximal length. Only a few runs are checked, as
// in Redis, for the same bytes.
void sparse_editor::join_values(std::size_t from) {
    run here;
    for (int left = joined_at_once; left > 0 && read_run(from, 0, here); --left) {
        run next;
        const bool joins = here.value != 0 && read_run(from + 1, 0, next) &&
                           next.value == here.value && here.length + next.length <= max_value_run;
        if (joins) {
            text_[from] = value_run(here.value, here.length + next.length);
            text_.erase(from + 1, 1);
        } else {
            from += here.bytes;
        }
    }
}

bool sparse_editor::become_dense() {
    if (!is_sparse()) return true;
    std::string dense(dense_bytes, '\0');
    dense.replace(0, header_bytes, text_, 0, header_bytes);
    dense[layout_at] = static_cast<char>(layout::dense);
    const bool whole =
        for_each_run(text_, [&dense](std::uint8_t value, std::size_t first, std::size_t length) {
            if (value == 0) return;
            for (std::size_t i = first; i < first + length; ++i) {
                raise_dense(dense.data(), {static_cast<std::uint32_t>(i), value});
            }
        });
    if (whole) text_ = std::move(dense);
    return whole;
}

}  // namespace eddy::cache::hyperloglog
