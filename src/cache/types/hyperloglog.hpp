// HyperLogLog counters in strings, in Redis's layout, byte for byte, so that values can move
// between the two.
//
//     "HYLL" | encoding | 3 zeros | cardinality, 8 bytes, lowest first | registers
//
// There are 16384 registers of 6 bits. Dense: packed one after another, lowest bits first. Sparse:
// runs of equal registers, each one of
//
//     00llllll            l + 1 (1 to 64) registers that are 0
//     01llllll llllllll   l + 1 (1 to 16384) registers that are 0
//     1vvvvvll            l + 1 (1 to 4) registers that are v + 1 (1 to 32)
//
// The cardinality is the last count's; its highest bit is set after a change.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace eddy::cache::hyperloglog {

inline constexpr unsigned index_bits = 14;
inline constexpr std::size_t register_count = std::size_t{1} << index_bits;
inline constexpr std::size_t header_bytes = 16;
inline constexpr std::size_t dense_bytes = header_bytes + register_count * 6 / 8;

enum class layout : std::uint8_t { dense, sparse };

/// All registers, one byte each.
using registers = std::array<std::uint8_t, register_count>;

/// Register of an element, and the rank that it raises the register to (1 to 51).
struct observation {
    std::uint32_t index;
    std::uint8_t rank;
};
observation observe(std::string_view element) noexcept;

/// MurmurHash2 for 64-bit machines (Appleby's MurmurHash64A).
std::uint64_t hash(std::string_view bytes, std::uint64_t seed) noexcept;

/// An empty counter, sparse.
std::string empty();

/// True if the string begins as a counter does and, if it is dense, has the correct size. The
/// functions below require such a string.
bool is_counter(std::string_view text) noexcept;
layout layout_of(std::string_view counter) noexcept;

/// The cached cardinality, unless a register has changed since.
std::optional<std::uint64_t> cached(std::string_view counter) noexcept;
void set_cached(char* counter, std::uint64_t cardinality) noexcept;
void drop_cached(char* counter) noexcept;

/// Raises `to` where the counter's registers are higher; false when it is damaged.
bool merge_into(registers& to, std::string_view counter) noexcept;

/// The estimate by Ertl's improved raw estimator (arXiv:1702.01284); none when the counter is
/// damaged.
std::optional<std::uint64_t> count(std::string_view counter) noexcept;
std::uint64_t count(const registers& of) noexcept;

/// The runs of a sparse counter as text: "z:10 v:3,1 Z:16373"; z and Z are zeros, v is value and
/// length.
std::string describe(std::string_view sparse);

/// Raises a register of a dense counter; true if it was lower. The cached cardinality stays.
bool raise_dense(char* counter, observation what) noexcept;

enum class update : std::uint8_t { none, raised, damaged };

/// Copy of a sparse counter, to be changed and stored again.
class sparse_editor {
public:
    /// `limit`: size in bytes above which the counter becomes dense.
    sparse_editor(std::string_view counter, std::size_t limit) : text_(counter), limit_(limit) {}

    /// The counter, which may have become dense.
    const std::string& text() const noexcept { return text_; }
    bool is_sparse() const noexcept { return layout_of(text_) == layout::sparse; }

    /// Raises one register. Mostly O(1) if the indexes ascend from call to call, else O(bytes).
    update raise(observation what);
    /// False when the counter is damaged.
    bool become_dense();
    void drop_cached() noexcept { hyperloglog::drop_cached(text_.data()); }

private:
    struct run {
        std::size_t at;      // its offset in the text
        std::size_t first;   // its first register
        std::size_t length;  // its registers
        std::size_t bytes;   // 1 or 2
        std::uint8_t value;
    };

    bool read_run(std::size_t at, std::size_t first, run& to) const noexcept;
    bool find_run(std::size_t index, run& to);
    void join_values(std::size_t from);

    std::string text_;
    std::size_t limit_;
    // The run before the last found one, where the next search begins if possible.
    std::size_t before_at_ = header_bytes;
    std::size_t before_first_ = 0;
};

}  // namespace eddy::cache::hyperloglog
