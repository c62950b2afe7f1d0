// Replies of caches that are on their way from another loop to a script: their bytes are limited.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::runtime {

/// Bytes of replies of other loops that are on their way to one state at most.
inline constexpr std::size_t max_waiting_replies = std::size_t{64} << 20;

/// Bytes of replies on their way to one state. Any thread.
using reply_bytes = std::shared_ptr<std::atomic<std::size_t>>;

/// Reply on its way between two loops, which counts until it is read.
class waiting_reply {
public:
    /// In the place of one for which there is no room there is an error.
    waiting_reply(std::string_view reply, reply_bytes sum) : sum_(std::move(sum)) {
        const std::size_t before = sum_->fetch_add(reply.size(), std::memory_order_relaxed);
        size_ = reply.size();
        text_ = before + size_ > max_waiting_replies ? std::string_view(full) : reply;
    }
    explicit waiting_reply(std::string_view error) : text_(error) {}
    waiting_reply(waiting_reply&& other) noexcept = default;
    waiting_reply& operator=(waiting_reply&&) = delete;
    ~waiting_reply() {
        if (sum_ != nullptr) sum_->fetch_sub(size_, std::memory_order_relaxed);
    }

    std::string_view text() const noexcept { return text_; }

    static constexpr std::string_view full =
        "-64 MiB of replies wait to be read by the script, which is the limit\r\n";

private:
    reply_bytes sum_ = nullptr;  // null after a move
    std::size_t size_ = 0;
    std::string text_;
};

}  // namespace eddy::runtime
