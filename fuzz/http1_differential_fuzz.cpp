// Differential fuzz target of the HTTP/1.1 request parser: what Eddy accepts, llhttp accepts with
// the same method, target, fields, content and trailers.
#include <eddy/base/assert.hpp>

#include "wire/http1/llhttp_peer.hpp"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view input(reinterpret_cast<const char*>(data), size);
    EDDY_ASSERT(eddy::http1::difference_to_llhttp(input).empty());
    return 0;
}
