// Buffers shared by the TLS connections of one thread, so that an idle one holds none: for
// decrypted bytes, and for ciphertext that waits.
#pragma once

#include <eddy/base/byte_buffer.hpp>

#include "io/posix/sockets.hpp"

#include <cstddef>

namespace eddy::tls {

/// The most plaintext that a record holds (RFC 8446, section 5.1).
inline constexpr std::size_t max_record = 16 * 1024;

/// Buffers of max_record bytes, lent as leases, up to max_lent_records by each thread. 64 of them
/// are kept; more are had from the heap and go back to it.
buffer_pool& plaintext_buffers() noexcept;

/// An empty buffer with room for a record's ciphertext, used before if there is one. Up to 16 are
/// kept by each thread.
byte_buffer take_ciphertext_buffer();
/// Takes a buffer back, whatever is in it. One that has grown large is freed.
void give_back_ciphertext_buffer(byte_buffer buffer) noexcept;

}  // namespace eddy::tls
