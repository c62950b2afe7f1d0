// Fuzzes the codec of event streams: no input may crash the parser, nor may the way it is cut
// change the events; and what is written of the events reads back as the same.
//
// The first byte is how the rest is cut.
#include "cuts.hpp"
#include "wire/sse/transcript.hpp"

#include <cstdint>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace eddy;
    if (size == 0) return 0;
    const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
    const sse::limits bounds{.line = 64, .data = 100};
    std::vector<sse::event> events;
    sse::parser whole(bounds);
    const std::string expected = sse::transcript(whole, input, {}, &events);
    for (const std::uint8_t how : {std::uint8_t{1}, data[0]}) {
        sse::parser reader(bounds);
        EDDY_ASSERT(sse::transcript(reader, input, cut(input.size(), how)) == expected);
    }

    byte_buffer out;
    for (const sse::event& each : events) EDDY_ASSERT(sse::write_event(out, each));
    std::vector<sse::event> again;
    sse::parser reader;
    sse::transcript(reader, out.text(), cut(out.size(), data[0]), &again);
    EDDY_ASSERT(again.size() == events.size());
    for (std::size_t i = 0; i < events.size(); ++i) {
        EDDY_ASSERT(again[i].data == events[i].data && again[i].type == events[i].type);
        EDDY_ASSERT(again[i].retry == events[i].retry);
    }
    return 0;
}
