// Fuzzes the decoders of content codings: no input may crash them, make more than the limits allow,
// or decode differently when it is cut otherwise. Encoded content is decoded to the same.
//
// The first byte chooses the coding and the limits; the second how the rest is cut.
#include <eddy/base/assert.hpp>

#include "cuts.hpp"
#include "http/codings/decoder.hpp"
#include "http/codings/encoder.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace {

using namespace eddy;
using namespace eddy::http;

constexpr std::uint64_t limit = 1 << 20;

// The content, or the error behind as much of it as came.
std::string decode(content_coding coding, std::string_view data, std::uint8_t how, std::size_t room,
                   const expansion_limits& expansion) {
    auto by = decoder::make(coding);
    if (!by) return "";
    byte_buffer out;
    std::size_t begun = 0;
    auto cuts = cut(data.size(), how);
    cuts.push_back(data.size());
    for (const std::size_t end : cuts) {
        std::string_view piece = data.substr(begun, end - begun);
        begun = end;
        bool is_full = false;
        do {
            const std::size_t before = out.size();
            const auto done = by->decode(piece, out, room, limit, expansion);
            EDDY_ASSERT(out.size() - before <= room && out.size() <= limit + room);
            if (!done) return "error";
            is_full = out.size() - before == room;
            EDDY_ASSERT(is_full || piece.empty());
        } while (is_full || !piece.empty());
    }
    return by->finish() ? std::string(out.text()) : "cut off";
}

void encode(content_coding coding, std::string_view text, std::uint8_t how) {
    auto by = encoder::make(coding, how % 2 == 0 ? std::optional(text.size()) : std::nullopt);
    if (!by) return;
    byte_buffer out;
    std::size_t begun = 0;
    for (const std::size_t end : cut(text.size(), how)) {
        const auto then = end % 3 == 0 ? encoder::after::flush : encoder::after::more;
        EDDY_ASSERT((*by)->add(text.substr(begun, end - begun), then, out).has_value());
        begun = end;
    }
    EDDY_ASSERT((*by)->add(text.substr(begun), encoder::after::end, out).has_value());
    const expansion_limits any{.ratio = UINT32_MAX, .free_bytes = UINT64_MAX};
    EDDY_ASSERT(decode(coding, out.text(), how, 1000, any) == text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    const auto coding = static_cast<content_coding>(1 + data[0] % 4);
    const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
    // The cut decides which of two exceeded limits ends the input, so there is one limit.
    const expansion_limits any{.ratio = UINT32_MAX, .free_bytes = UINT64_MAX};
    const std::string whole = decode(coding, text, 0, 64 * 1024, any);
    EDDY_ASSERT(decode(coding, text, 1, 64 * 1024, any) == whole);
    EDDY_ASSERT(decode(coding, text, data[1], 1 + data[0], any) == whole);
    decode(coding, text, data[1], 4096, {.ratio = 10, .free_bytes = 100});
    encode(coding, text, data[1]);
    return 0;
}
