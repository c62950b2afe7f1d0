// Compact encodings that stand as one string in an RDB file: listpack, ziplist, zipmap, intset.
//
// Each is walked element after element, and every step is checked against the bytes that are there,
// so that a walk is safe on any input. check_packed() walks to the end first, so that no element is
// taken from a block that is damaged anywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace eddy::cache {

/// One element: bytes of the block, or a number that stands for its decimal digits.
struct packed_item {
    std::string_view bytes;
    std::int64_t number = 0;
    bool is_number = false;

    static packed_item of(std::int64_t value) noexcept { return {{}, value, true}; }
    static packed_item of(std::string_view text) noexcept { return {text, 0, false}; }

    /// The element as text; `digits` keeps it when it is a number.
    std::string_view text(char (&digits)[24]) const noexcept;
};

enum class packed_step : std::uint8_t { item, end, broken };

/// Common to the walks: a view of the block, a place in it, what is wrong with it.
class packed_walk {
public:
    /// The first thing that is wrong, a static text; null while nothing is.
    const char* fault() const noexcept { return fault_; }

protected:
    explicit packed_walk(std::string_view block) noexcept : block_(block) {}

    packed_step broken(const char* why) noexcept {
        fault_ = why;
        return packed_step::broken;
    }
    bool has(std::size_t at, std::size_t bytes) const noexcept {
        return at <= block_.size() && bytes <= block_.size() - at;
    }
    std::uint8_t byte(std::size_t at) const noexcept {
        return static_cast<std::uint8_t>(block_[at]);
    }

    std::string_view block_;
    std::size_t at_ = 0;
    std::size_t count_ = 0;  // elements passed
    const char* fault_ = nullptr;
};

/// Redis 7's: bytes, count, then each element with its own size behind it, then 255.
class listpack_walk : public packed_walk {
public:
    explicit listpack_walk(std::string_view block) noexcept : packed_walk(block) {}
    packed_step next(packed_item& to) noexcept;
};

/// Redis's older ziplist: bytes, last element's place, count, then each element with the size of
/// the one before it, then 255.
class ziplist_walk : public packed_walk {
public:
    explicit ziplist_walk(std::string_view block) noexcept : packed_walk(block) {}
    packed_step next(packed_item& to) noexcept;

private:
    std::size_t last_ = 0;           // where the last element began
    std::size_t previous_size_ = 0;  // its bytes
};

/// The oldest: fields and values of a small hash.
class zipmap_walk : public packed_walk {
public:
    explicit zipmap_walk(std::string_view block) noexcept : packed_walk(block) {}
    packed_step next(packed_item& to) noexcept;
};

/// Numbers in ascending order, all of the same width.
class intset_walk : public packed_walk {
public:
    explicit intset_walk(std::string_view block) noexcept : packed_walk(block) {}
    packed_step next(packed_item& to) noexcept;

private:
    std::size_t width_ = 0;
    std::int64_t last_ = 0;
};

/// Walks to the end: null, and the number of elements, when all is sound; else what is wrong.
template <class Walk>
const char* check_packed(std::string_view block, std::size_t& count) noexcept {
    Walk walk(block);
    packed_item item;
    for (count = 0;; ++count) {
        const packed_step step = walk.next(item);
        if (step != packed_step::item) return walk.fault();
    }
}

}  // namespace eddy::cache
