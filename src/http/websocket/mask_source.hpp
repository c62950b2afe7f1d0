// Masks of a client's frames and keys of its handshakes: bytes of getrandom(2), a thread's supply
// at a time.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/wire/websocket.hpp>

#include <array>
#include <cstdint>

namespace eddy::http {

/// Makes sure that there is a supply; getrandom(2)'s error, such as that of a sandbox. Any thread.
[[nodiscard]] result<> check_mask_source() noexcept;

/// Unpredictable bytes, each but once; after check_mask_source() has succeeded. Any thread.
eddy::websocket::mask_key next_mask() noexcept;
std::array<std::uint8_t, 16> next_handshake_key() noexcept;

}  // namespace eddy::http
