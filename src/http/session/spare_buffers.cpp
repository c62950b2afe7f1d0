// The spare buffers of each thread.
#include "http/session/spare_buffers.hpp"

#include <eddy/base/assert.hpp>

#include <array>

namespace eddy::http {
namespace {

struct spares {
    std::array<byte_buffer, max_spare_buffers> blocks;
    std::size_t count = 0;
};

spares& of_thread() noexcept {
    thread_local spares own;
    return own;
}

}  // namespace

void take_spare(byte_buffer& into) noexcept {
    spares& own = of_thread();
    if (into.capacity() == 0 && own.count > 0) into.swap(own.blocks[--own.count]);
}

void give_spare(byte_buffer& from) noexcept {
    EDDY_ASSERT(from.empty());
    spares& own = of_thread();
    if (from.capacity() == 0) return;
    if (from.capacity() <= max_spare_capacity && own.count < max_spare_buffers)
        from.swap(own.blocks[own.count++]);
    else
        from.release_if_empty();
}

std::size_t spare_buffers() noexcept { return of_thread().count; }

}  // namespace eddy::http
