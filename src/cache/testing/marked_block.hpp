// Test fixture for the slab: a block and the bytes written to all of it.
#pragma once

#include <cstddef>

namespace eddy::cache::testing {

struct marked_block {
    unsigned char* block;
    std::size_t size;
    unsigned char mark;
};

}  // namespace eddy::cache::testing
