// Prefetching of the keys of one command with many keys, in groups.
#pragma once

#include "cache/engine/call.hpp"
#include "cache/engine/engine.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace eddy::cache {

/// Prefetching sequence of the hashes of args[first], args[first + step], ..., each returned once.
/// At the begin of each group its buckets, then its entries are prefetched together.
class keys_ahead {
public:
    static constexpr std::size_t group = 32;

    keys_ahead(const call& c, std::size_t first, std::size_t step) noexcept
        : call_(c), next_(first), step_(step) {}

    std::uint64_t next_hash() noexcept {
        if (used_ == filled_) fill();
        return hashes_[used_++];
    }

private:
    void fill() noexcept {
        used_ = filled_ = 0;
        const keyspace& keys = *call_.keys;
        const bool fetch = keys.size() >= engine::min_prefetch_keys;
        for (; filled_ < group && next_ < call_.count; next_ += step_) {
            hashes_[filled_] = keys.hash(call_.arg(next_));
            if (fetch) keys.prefetch_bucket(hashes_[filled_]);
            ++filled_;
        }
        for (std::size_t i = 0; fetch && i < filled_; ++i) keys.prefetch_entry(hashes_[i]);
    }

    const call& call_;
    std::size_t next_;
    std::size_t step_;
    std::size_t used_ = 0;
    std::size_t filled_ = 0;
    std::array<std::uint64_t, group> hashes_;
};

}  // namespace eddy::cache
