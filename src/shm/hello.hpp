// HELLO of a shared-memory connection: its encoding, and the exchange of both sides in steps.
// Between steps the driver waits, a coroutine or a blocking call.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/base/unique_fd.hpp>
#include <eddy/shm/layout.h>

#include "shm/channel.hpp"
#include "shm/memory.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace eddy::shm {

/// The message.
struct hello {
    std::uint32_t features = 0;  ///< EDDY_SHM_FEATURE_…
    std::uint32_t doorbell = EDDY_SHM_DOORBELL_SOCKET;
    std::uint64_t ring_size = 0;
    std::uint64_t position = 0;

    bool has(std::uint32_t feature) const noexcept { return (features & feature) != 0; }
};

/// True for valid first positions: positions never wrap, and 1 + the last one is never 0.
constexpr bool is_first_position(std::uint64_t position) noexcept {
    return position <= EDDY_SHM_MAX_POSITION;
}

using hello_bytes = std::array<std::byte, EDDY_SHM_HELLO_SIZE>;

hello_bytes encode(const hello& message) noexcept;
/// errc::malformed for a message of another protocol or with a ring, a doorbell or a position that
/// cannot be; errc::unsupported for another version.
result<hello> decode(std::span<const std::byte, EDDY_SHM_HELLO_SIZE> bytes) noexcept;

/// Side of the Unix socket. The client sends first.
enum class side : std::uint8_t { client, server };

/// Offer of one side.
struct offer {
    std::size_t ring_size = EDDY_SHM_DEFAULT_RING;
    std::uint64_t position = 0;
    bool shares_memory = true;
    bool is_asymmetric = false;
    std::uint32_t doorbell = EDDY_SHM_DOORBELL_SOCKET;
};

/// Exchange of the HELLOs over a Unix stream socket that stays the caller's. One thread.
///
/// A side that cannot share memory for want of descriptors, mappings or memory says so in its
/// HELLO, and the socket carries the stream. The server allocates nothing before the client's HELLO
/// has come, so a client that stalls costs its socket alone, and maps both memories before it
/// answers.
class exchange {
public:
    /// Wait that the next step needs.
    enum class wait : std::uint8_t {
        none,      ///< none: the exchange is complete
        readable,  ///< the peer's HELLO has not arrived
        writable,  ///< the socket was full
    };

    exchange(side of, int socket, const offer& own) noexcept;

    /// Sends and receives as far as possible. Errors: errc::malformed and errc::unsupported as
    /// decode(), errc::truncated if the peer closes, the system's; for a client also EMFILE and
    /// ENOMEM, when it cannot map the memory of its server.
    result<wait> step() noexcept;

    /// After the exchange: the shared memory, or null if the peer has none and the socket carries
    /// the stream. Throws std::bad_alloc.
    std::unique_ptr<channel> take_channel();

private:
    result<wait> exchange_both() noexcept;
    result<wait> send_own() noexcept;
    result<wait> receive_peers() noexcept;
    result<> send() noexcept;
    result<> receive() noexcept;
    result<> accept(unique_fd file) noexcept;
    void allocate() noexcept;

    side side_;
    int socket_;
    offer offer_;
    memory own_;
    unique_fd own_file_;
    memory peer_memory_;
    hello peer_;
    hello_bytes received_{};
    std::size_t received_size_ = 0;
    bool has_allocated_ = false;  // the own memory, where there can be some
    bool is_sent_ = false;
    bool is_received_ = false;
    bool is_file_lost_ = false;  // the peer's came, and there was no descriptor for it
    unique_fd peer_file_;
    unique_fd checked_file_;  // the peer's, of a large ring
};

}  // namespace eddy::shm
