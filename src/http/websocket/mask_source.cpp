// The supply of random bytes of each thread.
#include "http/websocket/mask_source.hpp"

#include <eddy/base/assert.hpp>

#include <sys/random.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

namespace eddy::http {
namespace {

/// Bytes that one system call yields: at most 256, which are never cut short.
constexpr std::size_t supply_size = 256;

struct supply {
    std::array<std::uint8_t, supply_size> bytes{};
    std::size_t used = supply_size;

    result<> refill() noexcept {
        for (;;) {
            const ssize_t got = ::getrandom(bytes.data(), bytes.size(), 0);
            if (got == static_cast<ssize_t>(bytes.size())) break;
            if (got < 0 && errno != EINTR) return fail(errno_code(errno));
        }
        used = 0;
        return {};
    }
};

supply& of_thread() noexcept {
    thread_local supply own;
    return own;
}

template <std::size_t Size>
std::array<std::uint8_t, Size> take() noexcept {
    supply& own = of_thread();
    if (own.used + Size > own.bytes.size()) {
        const result<> filled = own.refill();
        EDDY_ASSERT(filled.has_value());  // it worked before
    }
    std::array<std::uint8_t, Size> made;
    std::memcpy(made.data(), own.bytes.data() + own.used, Size);
    own.used += Size;
    return made;
}

}  // namespace

result<> check_mask_source() noexcept { return of_thread().refill(); }

eddy::websocket::mask_key next_mask() noexcept { return take<4>(); }

std::array<std::uint8_t, 16> next_handshake_key() noexcept { return take<16>(); }

}  // namespace eddy::http
