// TLS buffers of each thread.
#include "tls/buffers.hpp"

#include <eddy/tls/tls.hpp>

#include <utility>
#include <vector>

namespace eddy::tls {
namespace {

constexpr std::uint32_t kept_plaintext_buffers = 64;
constexpr std::size_t kept_ciphertext_buffers = 16;
/// A record and what TLS may add to it (RFC 5246, section 6.2.3), and an alert behind it.
constexpr std::size_t ciphertext_room = max_record + 2048 + 512;
constexpr std::size_t largest_kept = 2 * ciphertext_room;

std::vector<byte_buffer>& ciphertext_buffers() {
    thread_local std::vector<byte_buffer> kept = [] {
        std::vector<byte_buffer> empty;
        empty.reserve(kept_ciphertext_buffers);
        return empty;
    }();
    return kept;
}

}  // namespace

buffer_pool& plaintext_buffers() noexcept {
    thread_local buffer_pool pool(kept_plaintext_buffers, max_record, max_lent_records);
    return pool;
}

byte_buffer take_ciphertext_buffer() {
    std::vector<byte_buffer>& kept = ciphertext_buffers();
    byte_buffer taken;
    if (kept.empty()) {
        taken.reserve(ciphertext_room);
    } else {
        taken = std::move(kept.back());
        kept.pop_back();
    }
    return taken;
}

void give_back_ciphertext_buffer(byte_buffer buffer) noexcept {
    std::vector<byte_buffer>& kept = ciphertext_buffers();
    if (buffer.capacity() == 0 || buffer.capacity() > largest_kept ||
        kept.size() == kept_ciphertext_buffers)
        return;
    buffer.clear();
    kept.push_back(std::move(buffer));
}

}  // namespace eddy::tls
