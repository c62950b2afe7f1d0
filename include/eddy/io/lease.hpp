// lease: received bytes in a buffer borrowed from the loop. One loop's thread.
#pragma once

#include <eddy/base/bytes.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace eddy {

/// Owner of receive buffers, which lends them and takes them back.
class lease_owner {
public:
    /// Takes one buffer back, on the loop's thread.
    virtual void give_back(std::byte* data, std::uint32_t id) noexcept = 0;

protected:
    ~lease_owner() = default;
};

/// Received bytes, lent by the loop. They stay valid until the lease dies, which must be before the
/// loop does. Buffers are few and shared by all connections of a loop: copy what must be kept, and
/// release the lease before waiting for anything else. One loop's thread.
class lease {
public:
    lease() noexcept = default;
    /// For the drivers: bytes of `owner`, which gets them back with `id`.
    lease(lease_owner& owner, std::byte* data, std::uint32_t size, std::uint32_t id) noexcept
        : owner_(&owner), data_(data), size_(size), id_(id) {}
    /// `other` is empty afterwards.
    lease(lease&& other) noexcept
        : owner_(std::exchange(other.owner_, nullptr)),
          data_(other.data_),
          size_(std::exchange(other.size_, 0)),
          id_(other.id_) {}
    /// Gives back what this held. `other` is empty afterwards.
    lease& operator=(lease&& other) noexcept {
        if (this != &other) {
            reset();
            owner_ = std::exchange(other.owner_, nullptr);
            data_ = other.data_;
            size_ = std::exchange(other.size_, 0);
            id_ = other.id_;
        }
        return *this;
    }
    ~lease() { reset(); }

    /// The received bytes; valid until the buffer goes back.
    const_bytes bytes() const noexcept { return {data_, size_}; }
    /// The same as text, unchecked.
    std::string_view text() const noexcept { return as_text(bytes()); }
    /// Number of bytes; 0 for an empty lease.
    std::size_t size() const noexcept { return size_; }

    /// Drops the buffer without giving it back: its owner keeps it in use.
    void release() noexcept { owner_ = nullptr; }

    /// Gives the buffer back now.
    void reset() noexcept {
        size_ = 0;
        if (owner_) std::exchange(owner_, nullptr)->give_back(data_, id_);
    }

private:
    lease_owner* owner_ = nullptr;
    std::byte* data_ = nullptr;
    std::uint32_t size_ = 0;
    std::uint32_t id_ = 0;
};

}  // namespace eddy
