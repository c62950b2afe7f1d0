// Bytes that functions of a script hold while they wait, which are no part of the script's memory:
// together at most a limit.
#pragma once

#include <cstddef>

namespace eddy::script {

/// One function's part of a sum, which must outlive it. One loop's thread.
class waiting_bytes {
public:
    waiting_bytes(std::size_t& sum, std::size_t most) noexcept : sum_(sum), most_(most) {}
    waiting_bytes(const waiting_bytes&) = delete;
    waiting_bytes& operator=(const waiting_bytes&) = delete;
    ~waiting_bytes() { sum_ -= own_; }

    /// False, without effect, where the sum would be too large.
    bool set(std::size_t bytes) noexcept {
        if (bytes > own_ && sum_ - own_ + bytes > most_) return false;
        sum_ += bytes - own_;
        own_ = bytes;
        return true;
    }

private:
    std::size_t& sum_;
    std::size_t most_;
    std::size_t own_ = 0;
};

}  // namespace eddy::script
