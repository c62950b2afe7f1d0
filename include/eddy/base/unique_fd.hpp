// Owned file descriptor, closed with its object.
#pragma once

#include <utility>

namespace eddy {

/// Owns a file descriptor and closes it; -1 means none. Any thread, one at a time.
class unique_fd {
public:
    unique_fd() noexcept = default;
    /// Takes `fd` over; -1 for none.
    explicit unique_fd(int fd) noexcept : fd_(fd) {}
    /// `other` is empty afterwards.
    unique_fd(unique_fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    /// Closes what this held. `other` is empty afterwards.
    unique_fd& operator=(unique_fd&& other) noexcept {
        if (this != &other) reset(std::exchange(other.fd_, -1));
        return *this;
    }
    ~unique_fd() { reset(); }

    /// The descriptor, still owned here; -1 when there is none.
    int get() const noexcept { return fd_; }
    /// True if there is a descriptor.
    explicit operator bool() const noexcept { return fd_ >= 0; }

    /// Passes the descriptor to the caller, which closes it.
    [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }
    /// Closes what this holds, and takes `fd` over. Errors of close(2) are dropped.
    void reset(int fd = -1) noexcept;

private:
    int fd_ = -1;
};

}  // namespace eddy
