// Watch over streams whose end the kernel may have kept to itself.
#pragma once

#include <eddy/io/timer.hpp>

#include <cstdint>
#include <vector>

namespace eddy {

class uring_stream;

/// Streams whose multishot receive may be asleep over a reset. A look at each costs a system call,
/// and most of them are sent to before long, which would find the reset; so they are looked at
/// together, some milliseconds later. One loop's thread.
class end_watch final : private timer {
public:
    /// Index of a stream that is not watched.
    static constexpr std::uint32_t nowhere = UINT32_MAX;

    /// Allocates for as many as a loop has in doubt at a time, in practice.
    void prepare() { streams_.reserve(256); }
    /// False without memory. The stream is removed before it is freed.
    bool add(uring_stream& doubtful) noexcept;
    void remove(uring_stream& doubtful) noexcept;

private:
    void fire() noexcept override;

    std::vector<uring_stream*> streams_;
};

}  // namespace eddy
