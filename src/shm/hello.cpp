// HELLO: encoding, checks and the exchange.
#include "shm/hello.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/net/descriptors.hpp>

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

namespace eddy::shm {
namespace {

template <class T>
void put(hello_bytes& to, std::size_t offset, T value) noexcept {
    std::memcpy(to.data() + offset, &value, sizeof(value));
}
template <class T>
T get(std::span<const std::byte> from, std::size_t offset) noexcept {
    T value;
    std::memcpy(&value, from.data() + offset, sizeof(value));
    return value;
}

result<std::size_t> send_bytes(int socket, std::string_view bytes) noexcept {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) return fail_errno(errno == EINTR ? EAGAIN : errno);
    return static_cast<std::size_t>(sent);
}

}  // namespace

hello_bytes encode(const hello& message) noexcept {
    hello_bytes bytes{};
    put<std::uint32_t>(bytes, EDDY_SHM_HELLO_MAGIC, EDDY_SHM_MAGIC);
    put<std::uint32_t>(bytes, EDDY_SHM_HELLO_VERSION, EDDY_SHM_VERSION);
    put<std::uint32_t>(bytes, EDDY_SHM_HELLO_FEATURES, message.features);
    put<std::uint32_t>(bytes, EDDY_SHM_HELLO_DOORBELL, message.doorbell);
    put<std::uint64_t>(bytes, EDDY_SHM_HELLO_RING, message.ring_size);
    put<std::uint64_t>(bytes, EDDY_SHM_HELLO_POSITION, message.position);
    return bytes;
}

result<hello> decode(std::span<const std::byte, EDDY_SHM_HELLO_SIZE> bytes) noexcept {
    if (get<std::uint32_t>(bytes, EDDY_SHM_HELLO_MAGIC) != EDDY_SHM_MAGIC)
        return fail(errc::malformed);
    if (get<std::uint32_t>(bytes, EDDY_SHM_HELLO_VERSION) != EDDY_SHM_VERSION)
        return fail(errc::unsupported);
    hello message;
    message.features = get<std::uint32_t>(bytes, EDDY_SHM_HELLO_FEATURES);
    message.doorbell = get<std::uint32_t>(bytes, EDDY_SHM_HELLO_DOORBELL);
    message.ring_size = get<std::uint64_t>(bytes, EDDY_SHM_HELLO_RING);
    message.position = get<std::uint64_t>(bytes, EDDY_SHM_HELLO_POSITION);
    if (message.has(EDDY_SHM_FEATURE_MEMORY) && !is_ring_size(message.ring_size))
        return fail(errc::malformed);
    if (message.doorbell > EDDY_SHM_DOORBELL_FUTEX) return fail(errc::malformed);
    if (!is_first_position(message.position)) return fail(errc::malformed);
    return message;
}

exchange::exchange(side of, int socket, const offer& own) noexcept
    : side_(of), socket_(socket), offer_(own) {
    EDDY_ASSERT(socket >= 0 && is_ring_size(own.ring_size) && is_first_position(own.position));
    if (offer_.is_asymmetric && !has_asymmetric_fence()) offer_.is_asymmetric = false;
    // Out-of-band bytes would be skipped, and their descriptors dropped, without being received.
    const int on = 1;
    static_cast<void>(::setsockopt(socket, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on)));
}

result<exchange::wait> exchange::step() noexcept {
    auto next = exchange_both();
    // After the peer's HELLO no descriptor is to come.
    if (!next || *next == wait::none) unix_socket::refuse_descriptors(socket_);
    return next;
}

result<exchange::wait> exchange::exchange_both() noexcept {
    const bool is_client = side_ == side::client;
    auto first = is_client ? send_own() : receive_peers();
    if (!first || *first != wait::none) return first;
    return is_client ? receive_peers() : send_own();
}

result<exchange::wait> exchange::send_own() noexcept {
    if (is_sent_) return wait::none;
    allocate();
    if (auto sent = send(); !sent) {
        if (sent.error() == errno_code(EAGAIN)) return wait::writable;
        return fail(sent.error());
    }
    return wait::none;
}

result<exchange::wait> exchange::receive_peers() noexcept {
    if (is_received_) return wait::none;
    while (received_size_ < received_.size()) {
        if (auto received = receive(); !received) {
            if (received.error() == errno_code(EAGAIN)) return wait::readable;
            return fail(received.error());
        }
    }
    if (auto accepted = accept(std::move(peer_file_)); !accepted) return fail(accepted.error());
    is_received_ = true;
    return wait::none;
}

/// Allocates the own memory, unless it is impossible, or the peer of a server has none.
void exchange::allocate() noexcept {
    if (std::exchange(has_allocated_, true) || !offer_.shares_memory) return;
    if (side_ == side::server && !peer_memory_) return;
    auto made = memory::create(offer_.ring_size, own_file_);
    if (!made) return;
    own_ = std::move(*made);
    // The peer may read it as soon as it has the HELLO.
    *own_.word64(EDDY_SHM_HEAD) = offer_.position;
}

result<> exchange::send() noexcept {
    hello own;
    if (own_) own.features |= EDDY_SHM_FEATURE_MEMORY;
    if (offer_.is_asymmetric) own.features |= EDDY_SHM_FEATURE_ASYMMETRIC;
    own.ring_size = own_ ? own_.ring_size() : 0;
    own.doorbell = offer_.doorbell;
    own.position = offer_.position;
    const hello_bytes bytes = encode(own);
    const std::string_view text = as_text(bytes);
    const auto sent = own_ ? unix_socket::send_descriptor(socket_, text, own_file_.get())
                           : send_bytes(socket_, text);
    // Peers that do not read hold all that this user may have in flight: this one is served without
    // memory.
    if (own_ && !sent && sent.error() == errno_code(ETOOMANYREFS)) {
        own_ = {};
        own_file_.reset();
        return send();
    }
    if (!sent && sent.error() == errno_code(EPIPE)) return fail(errc::truncated);
    if (!sent) return fail(sent.error());
    // First bytes on the socket, so there is room for so few.
    if (*sent != bytes.size()) return fail(errc::truncated);
    is_sent_ = true;
    own_file_.reset();
    return {};
}

result<> exchange::receive() noexcept {
    const std::span room = std::span(received_).subspan(received_size_);
    auto part = unix_socket::receive_message(socket_, room);
    // A peer that closes without having read the HELLO resets the connection.
    if (!part && part.error() == errno_code(ECONNRESET)) return fail(errc::truncated);
    if (!part) return fail(part.error());
    if (part->size == 0) return fail(errc::truncated);
    if (part->lost_descriptors) {
        if (side_ == side::client) return fail_errno(EMFILE);
        is_file_lost_ = true;
    }
    if (part->descriptor) {
        if (peer_file_ || part->surplus > 0) return fail(errc::malformed);
        peer_file_ = std::move(part->descriptor);
    }
    received_size_ += part->size;
    return {};
}

result<> exchange::accept(unique_fd file) noexcept {
    const auto message = decode(received_);
    if (!message) return fail(message.error());
    peer_ = *message;
    const bool has_sent_file = file || is_file_lost_;
    if (peer_.has(EDDY_SHM_FEATURE_MEMORY) != has_sent_file) return fail(errc::malformed);
    if (!file) return {};
    auto opened = memory::open(file.get(), peer_.ring_size);
    if (opened) {
        peer_memory_ = std::move(*opened);
        if (peer_.ring_size > written_pages::small_ring) checked_file_ = std::move(file);
        return {};
    }
    // A server can still answer that it shares none.
    if (side_ == side::client || opened.error() == errc::malformed) return fail(opened.error());
    return {};
}

std::unique_ptr<channel> exchange::take_channel() {
    if (!own_ || !peer_memory_) return nullptr;
    channel::parts parts;
    parts.own = std::move(own_);
    parts.peer = std::move(peer_memory_);
    parts.own_position = offer_.position;
    parts.peer_position = peer_.position;
    parts.peer_doorbell = peer_.doorbell;
    parts.peer_file = std::move(checked_file_);
    parts.is_asymmetric = offer_.is_asymmetric && peer_.has(EDDY_SHM_FEATURE_ASYMMETRIC);
    return std::make_unique<channel>(std::move(parts));
}

}  // namespace eddy::shm
