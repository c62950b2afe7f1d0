// Fuzzes the text of a cluster's members: no bytes may crash the reader, and what it reads can be
// written and reads back as the same.
#include "cluster/member_codec.hpp"

#include <eddy/base/assert.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace eddy::cluster;
    const auto member = decode_member(std::string_view(reinterpret_cast<const char*>(data), size));
    if (!member) {
        EDDY_ASSERT(!member.error().message.empty());
        return 0;
    }
    const auto text = encode_member(*member);
    EDDY_ASSERT(text);
    const auto again = decode_member(*text);
    EDDY_ASSERT(again && *again == *member);
    return 0;
}
