// Blocks of one size, shared with the connections that are still sending them.
#include "cache/replication/replication_feed.hpp"

#include <eddy/base/assert.hpp>

#include <algorithm>
#include <cstring>

namespace eddy::cache {

void replication_feed::restart(std::uint64_t at) noexcept {
    blocks_.clear();
    base_ = begin_ = end_ = at;
}

void replication_feed::append(std::string_view bytes) {
    while (!bytes.empty()) {
        const std::uint64_t used = end_ - base_;
        if (used == blocks_.size() * block_bytes) {
            blocks_.push_back(std::make_shared_for_overwrite<block>());
        }
        const std::size_t from = used % block_bytes;
        const std::size_t size = std::min(bytes.size(), block_bytes - from);
        // Others read this block only below end_.
        std::memcpy(blocks_.back()->data() + from, bytes.data(), size);
        bytes.remove_prefix(size);
        end_ += size;
    }
}

void replication_feed::forget_before(std::uint64_t offset) noexcept {
    EDDY_ASSERT(offset <= end_);
    if (offset <= begin_) return;
    begin_ = offset;
    while (!blocks_.empty() && begin_ - base_ >= block_bytes) {
        blocks_.pop_front();
        base_ += block_bytes;
    }
}

replication_feed::piece replication_feed::at(std::uint64_t offset) const {
    EDDY_ASSERT(has(offset));
    if (offset == end_) return {};
    const std::uint64_t from = offset - base_;
    const std::shared_ptr<block>& in = blocks_[from / block_bytes];
    const std::size_t begin = from % block_bytes;
    const std::uint64_t size = std::min<std::uint64_t>(end_ - offset, block_bytes - begin);
    return {in, {in->data() + begin, static_cast<std::size_t>(size)}};
}

}  // namespace eddy::cache
