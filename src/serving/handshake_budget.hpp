// Handshake budget: the limit of the TLS handshakes that the loops of one server have under way.
#pragma once

#include <eddy/io/timer.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

namespace eddy::serving {

/// Counts handshakes from accept to their end. At the limit accepting pauses; the connections that
/// come then wait in the kernel's backlog. Any thread. It outlives the handshakes.
class handshake_budget {
public:
    /// At most so many at once.
    static constexpr std::uint64_t most = 1024;
    /// Time for one; the shorter one while more than half of the budget is in use.
    static constexpr duration timeout = std::chrono::seconds(10);
    static constexpr duration pressed_timeout = std::chrono::seconds(1);
    /// At most so many connections are rejected after a handshake at once: the rest is for
    /// connections within their limit.
    static constexpr std::uint64_t most_rejected = most / 4;

    struct ender {
        void operator()(handshake_budget* of) const noexcept { --of->under_way_; }
    };

    std::uint64_t under_way() const noexcept { return under_way_; }
    bool is_spent() const noexcept { return under_way_ >= most; }
    bool may_reject() const noexcept { return under_way_ < most_rejected; }
    /// The time for a handshake that begins now.
    duration patience() const noexcept { return under_way_ > most / 2 ? pressed_timeout : timeout; }
    /// Counts one until the returned object is destroyed.
    std::unique_ptr<handshake_budget, ender> begin() noexcept {
        ++under_way_;
        return std::unique_ptr<handshake_budget, ender>(this);
    }

private:
    std::atomic<std::uint64_t> under_way_{0};
};

/// One handshake that counts; null where the listener makes its handshakes itself.
using handshake = std::unique_ptr<handshake_budget, handshake_budget::ender>;

}  // namespace eddy::serving
