// Fuzzes the parser of ClientHellos: no input may crash it, and the way it is cut, in pieces or in
// records of TLS, must not change the result.
//
// The first byte is how the rest is cut.
#include "cuts.hpp"
#include "wire/client_hello/transcript.hpp"

#include <cstdint>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace eddy;
    if (size == 0) return 0;
    const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
    const std::string expected = client_hello::transcript(input, {});
    for (const std::uint8_t how : {std::uint8_t{1}, data[0]})
        EDDY_ASSERT(client_hello::transcript(input, cut(input.size(), how)) == expected);

    // The same bytes as the message of a handshake.
    if (input.empty() || input.size() > 2048) return 0;
    const std::string message = client_hello::transcript(client_hello::records_of(input), {});
    EDDY_ASSERT(client_hello::transcript(client_hello::records_of(input, 1 + data[0]), {}) ==
                message);
    return 0;
}
