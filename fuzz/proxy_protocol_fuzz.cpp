// Fuzzes the parser of PROXY protocol headers: no input may crash it, nor may the way it is cut
// change the result; a reader that takes only what is wanted reads nothing behind the header; and
// addresses that are written read back as the same.
//
// The first byte is how the rest is cut.
#include "cuts.hpp"
#include "wire/proxy_protocol/client_values.hpp"
#include "wire/proxy_protocol/transcript.hpp"
#include "wire/proxy_protocol/writer.hpp"

#include <cstdint>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace eddy;
    if (size == 0) return 0;
    const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
    const std::string expected = proxy_protocol::transcript(input, {});
    for (const std::uint8_t how : {std::uint8_t{0}, std::uint8_t{1}, data[0]})
        for (const bool is_careful : {false, true})
            EDDY_ASSERT(proxy_protocol::transcript(input, cut(input.size(), how), is_careful) ==
                        expected);

    proxy_protocol::parser reader;
    if (!reader.feed(input) || !reader.is_complete()) return 0;
    const proxy_protocol::client_values values = proxy_protocol::read_client_values(reader.tlvs());
    EDDY_ASSERT(values.unique_id.size() <= proxy_protocol::max_unique_id);
    EDDY_ASSERT(values.has_tls || !values.is_verified);
    for (const auto as : {proxy_protocol::version::text, proxy_protocol::version::binary}) {
        byte_buffer out;
        proxy_protocol::write_header(out, as, reader.found());
        proxy_protocol::parser again;
        EDDY_ASSERT(again.feed(out.text()) == out.size());
        EDDY_ASSERT(again.is_complete() && again.found() == reader.found());
    }
    return 0;
}
