// Reserved descriptors: clients never take the last ones of the process, so that it can still be
// controlled and save its data.
//
// The kernel gives the lowest number that is free. A number below a bound thus has as many below it
// for others, and one above the bound says that all below are taken: no counting is needed.
#pragma once

#include <eddy/base/unique_fd.hpp>

#include <cstdint>

namespace eddy::descriptors {

/// Descriptors that accepted clients leave to the process: for control connections, state, dumps,
/// logs and outgoing connections. At most half of all.
inline constexpr int reserved = 32;
/// Of these, descriptors that control connections leave to the rest. At most a quarter of all.
inline constexpr int reserved_for_files = 16;

/// The kind of an accepted connection.
enum class use : std::uint8_t { client, control };

/// The lowest number that is not for `kind`. Any thread.
int first_reserved(use kind) noexcept;
/// Whether a descriptor of that kind has a number in reserve: the process has too many open. Any
/// thread.
inline bool in_reserve(int fd, use kind) noexcept { return fd >= first_reserved(kind); }
/// Whether a new descriptor of that kind would not be in reserve. It takes one for a moment. Any
/// thread.
bool has_room(use kind) noexcept;
/// Gives a client's descriptor in reserve a lower number where one is free. Any thread.
void lower(unique_fd& client) noexcept;

/// A connection that was accepted in reserve, and waits for room. At most `most` of the process
/// may: each keeps a descriptor from the rest.
class waiting_connection {
public:
    static constexpr int most = 8;

    waiting_connection() noexcept;
    ~waiting_connection();
    waiting_connection(const waiting_connection&) = delete;
    waiting_connection& operator=(const waiting_connection&) = delete;

    /// False for one too many, which is to be closed.
    bool may_wait() const noexcept { return may_wait_; }

private:
    bool may_wait_;
};

}  // namespace eddy::descriptors
