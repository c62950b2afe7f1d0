// LCS: the longest common subsequence of two strings.
//
// No table of lengths is built. From one column to the next the length grows by zero or one, so a
// row is one bit a column, and the next row follows from it by a few operations on whole words (H.
// Hyyrö, Bit-parallel LCS-length computation revisited, 2004). That is O(rows × columns / 64) time,
// and one bit of memory a cell when the subsequence itself is requested.
#include "cache/catalog/commands.hpp"
#include "cache/engine/call.hpp"

#include <array>
#include <string>
#include <vector>

namespace eddy::cache::commands {
namespace {

using slot = call::slot;

struct lcs_options {
    bool length = false;
    bool ranges = false;
    bool match_lengths = false;
    std::size_t min_match = 0;
};

// False, with the error replied, when they make no sense.
bool parse_options(call& c, lcs_options& to) {
    for (std::size_t i = 3; i < c.count; ++i) {
        if (is_word(c.arg(i), "idx")) {
            to.ranges = true;
        } else if (is_word(c.arg(i), "len")) {
            to.length = true;
        } else if (is_word(c.arg(i), "withmatchlen")) {
            to.match_lengths = true;
        } else if (is_word(c.arg(i), "minmatchlen") && i + 1 < c.count) {
            const auto given = c.integer(++i);
            if (!given) return false;
            to.min_match = *given < 0 ? 0 : static_cast<std::size_t>(*given);
        } else {
            c.syntax_error();
            return false;
        }
    }
    if (to.ranges && to.length) {
        c.error("ERR If you want both the length and indexes, please just use IDX.");
        return false;
    }
    return true;
}

// The rows of the table: one for each byte of `a`, a bit for each byte of `b`, which is zero where
// the length grows.
class lcs_rows {
public:
    lcs_rows(std::string_view a, std::string_view b, bool keep_all)
        : words_((b.size() + 63) / 64), columns_(b.size()), keeps_all_(keep_all) {
        std::array<std::uint32_t, 256> place{};  // of a byte's columns; 0: it is not in `a`
        std::size_t different = 0;
        for (const char each : a) {
            std::uint32_t& its = place[static_cast<unsigned char>(each)];
            if (its == 0) its = static_cast<std::uint32_t>(++different);
        }
        std::vector<std::uint64_t> columns_of(different * words_);
        for (std::size_t j = 0; j < b.size(); ++j) {
            if (const std::uint32_t its = place[static_cast<unsigned char>(b[j])]; its != 0) {
                columns_of[(its - 1) * words_ + j / 64] |= std::uint64_t{1} << j % 64;
            }
        }
        bits_.resize((keep_all ? a.size() + 1 : 1) * words_, ~std::uint64_t{0});
        for (std::size_t i = 0; i < a.size(); ++i) {
            const std::uint32_t its = place[static_cast<unsigned char>(a[i])];
            next_row(keep_all ? i : 0, columns_of.data() + (its - 1) * words_);
        }
        last_ = keep_all ? a.size() : 0;
    }

    std::size_t length() const noexcept {
        std::size_t grown = 0;
        for (std::size_t w = 0; w < words_; ++w) {
            std::uint64_t zeros = ~bits_[last_ * words_ + w];
            if (w + 1 == words_ && columns_ % 64 != 0) {
                zeros &= (std::uint64_t{1} << columns_ % 64) - 1;
            }
            grown += static_cast<std::size_t>(__builtin_popcountll(zeros));
        }
        return grown;
    }

    /// True if the length for the first `i` and `j` bytes is above that for `i` and `j` - 1.
    bool grows(std::size_t i, std::size_t j) const noexcept {
        return (bits_[i * words_ + (j - 1) / 64] >> (j - 1) % 64 & 1) == 0;
    }

private:
    // Addition over all words of the row, with carry.
    void next_row(std::size_t from, const std::uint64_t* matches) noexcept {
        const std::uint64_t* const old = bits_.data() + from * words_;
        std::uint64_t* const made = bits_.data() + (keeps_all_ ? from + 1 : 0) * words_;
        std::uint64_t carry = 0;
        for (std::size_t w = 0; w < words_; ++w) {
            const std::uint64_t row = old[w];
            const std::uint64_t matched = row & matches[w];
            std::uint64_t sum;
            const bool first = __builtin_add_overflow(row, matched, &sum);
            const bool second = __builtin_add_overflow(sum, carry, &sum);
            carry = first || second ? 1 : 0;
            made[w] = sum | (row & ~matches[w]);
        }
    }

    std::size_t words_;
    std::size_t columns_;
    bool keeps_all_;
    std::size_t last_ = 0;
    std::vector<std::uint64_t> bits_;
};

// A run of equal bytes in both strings.
struct lcs_match {
    std::size_t a;
    std::size_t b;
    std::size_t length;
};

// Walks from the ends of both strings to their beginnings and reports the subsequence, or its runs,
// the last first. On ties it takes Redis's direction.
template <class F>
void walk_back(const lcs_rows& rows, std::string_view a, std::string_view b, F&& on_match) {
    lcs_match run{0, 0, 0};
    const auto end_run = [&] {
        if (run.length > 0) on_match(run);
        run.length = 0;
    };
    std::size_t i = a.size();
    std::size_t j = b.size();
    while (i > 0 && j > 0) {
        if (a[i - 1] == b[j - 1]) {
            run = {--i, --j, run.length + 1};
            continue;
        }
        end_run();
        if (rows.grows(i, j)) {
            --i;
        } else {
            --j;
        }
    }
    end_run();
}

// The string under an argument's key; empty when there is none. False for another type.
bool text_of(call& c, std::size_t i, text_view& view, std::string_view& to) {
    const slot* const place = c.find_to_read(c.arg(i));
    if (place == nullptr) return true;
    if (keyspace::at(place)->type != value_type::string) return false;
    to = view(*keyspace::at(place));
    return true;
}

void reply_ranges(call& c, const lcs_rows& rows, std::string_view a, std::string_view b,
                  const lcs_options& o) {
    std::vector<lcs_match> found;
    walk_back(rows, a, b, [&](const lcs_match& run) {
        if (run.length >= o.min_match) found.push_back(run);
    });
    const auto index = [&c](std::size_t value) {
        c.reply.integer(static_cast<std::int64_t>(value));
    };
    c.reply.map(2);
    c.reply.bulk("matches");
    c.reply.array(found.size());
    for (const lcs_match& run : found) {
        if (c.reply_is_too_large()) return;
        c.reply.array(o.match_lengths ? 3 : 2);
        for (const std::size_t first : {run.a, run.b}) {
            c.reply.array(2);
            index(first);
            index(first + run.length - 1);
        }
        if (o.match_lengths) index(run.length);
    }
    c.reply.bulk("len");
    index(rows.length());
}

}  // namespace

void lcs(call& c) {
    text_view views[2];
    std::string_view a, b;
    const bool first = text_of(c, 1, views[0], a);
    const bool second = text_of(c, 2, views[1], b);
    if (!first || !second) {
        return c.error("ERR The specified keys must contain string values");
    }
    lcs_options o;
    if (!parse_options(c, o)) return;
    // Limit on the memory that Redis's table would take. This one takes a thirty-second of it, and
    // as much again for its columns, but the work grows with it.
    constexpr std::size_t cell_bytes = sizeof(std::uint32_t);
    if (a.size() >= UINT32_MAX - 1 || b.size() >= UINT32_MAX - 1) {
        return c.error("ERR String too long for LCS");
    }
    if ((a.size() + 1) * (b.size() + 1) > c.state.settings.options.max_text / cell_bytes) {
        return c.error(
            "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len");
    }
    const lcs_rows rows(a, b, !o.length);
    if (o.length) return c.reply.integer(static_cast<std::int64_t>(rows.length()));
    if (o.ranges) return reply_ranges(c, rows, a, b, o);
    std::string common(rows.length(), '\0');
    std::size_t left = common.size();
    walk_back(rows, a, b, [&](const lcs_match& run) {
        left -= run.length;
        common.replace(left, run.length, a.substr(run.a, run.length));
    });
    c.reply.bulk(common);
}

}  // namespace eddy::cache::commands
