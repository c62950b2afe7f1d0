// Reserved descriptors: clients never take the last ones of the process, so that it can still be
// controlled and save its data.
//
// The kernel assigns the lowest free number. Connections use only numbers below their bound, so
// those from the bound on stay for other uses; a number at or above the bound shows that all below
// are taken. No counting is needed.
#pragma once

#include <eddy/base/unique_fd.hpp>

#include <cstdint>
#include <string>
#include <system_error>

namespace eddy::descriptors {

/// Descriptors that accepted clients leave to the process: for control connections, state, dumps,
/// logs and outgoing connections. At most half of all.
inline constexpr int reserved = 32;
/// The part of `reserved` that control connections leave, too. At most a quarter of all.
inline constexpr int reserved_for_files = 16;

/// The kind of an accepted connection.
enum class use : std::uint8_t { client, control };

/// About a failure for want of descriptors: the limit, and how to raise it. Empty for other
/// errors. Any thread.
std::string explain_shortage(std::error_code error);

/// The lowest number that is not for `kind`. Any thread.
int first_reserved(use kind) noexcept;
/// True if `fd` has a reserved number for that kind: too many descriptors are open. Any thread.
inline bool in_reserve(int fd, use kind) noexcept { return fd >= first_reserved(kind); }
/// True if a new descriptor of that kind would get an unreserved number. Opens one for a moment.
/// Any thread.
bool has_room(use kind) noexcept;
/// Gives a client's descriptor in reserve a lower number where one is free. Any thread.
void lower(unique_fd& client) noexcept;

/// A connection with a reserved descriptor that waits for room. At most `most` in the process,
/// since each takes a reserved descriptor.
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
