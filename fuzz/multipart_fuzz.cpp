// Fuzzes the codec of forms with files: no input may crash the parser, the way it is cut may not
// change the events, and what is written is read. Boundaries that are
// taken, and names that are made safe, keep their rules.
//
// The first byte chooses limits and what is fuzzed, the second how the rest is cut.
#include "cuts.hpp"
#include "wire/http1/multipart_transcript.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace {

using namespace eddy;
using namespace eddy::http1;

constexpr std::uint8_t tight_limits = 1;
constexpr std::uint8_t as_content_type = 2;
constexpr std::uint8_t as_filename = 4;
constexpr std::uint8_t long_boundary = 8;

void read_form(std::string_view input, std::uint8_t flags, std::uint8_t how) {
    multipart_limits limits;
    if ((flags & tight_limits) != 0) {
        limits.parts = 2;
        limits.header_bytes = 80;
        limits.header_count = 2;
        limits.name = 4;
        limits.outside = 8;
    }
    const std::string_view boundary = (flags & long_boundary) != 0 ? "--ab--ab" : "b";
    const auto run = [&](std::uint8_t cuts) {
        multipart_parser parser(boundary, limits);
        return transcript(parser, input, cut(input.size(), cuts));
    };
    const std::string expected = run(0);
    EDDY_ASSERT(run(1) == expected);
    EDDY_ASSERT(run(how) == expected);
}

void read_boundary(std::string_view text) {
    const auto boundary = boundary_of(text);
    if (!boundary) return;
    EDDY_ASSERT(!boundary->empty() && boundary->size() <= boundary_size_limit);
    multipart_parser parser(*boundary);
    const std::string whole = "--" + *boundary + "--";
    EDDY_ASSERT(parser.parse(whole).what == multipart_event::end);
}

void read_filename(std::string_view text) {
    const std::string name = safe_file_name(text);
    EDDY_ASSERT(!name.empty() && name.size() <= 255 && name[0] != '.');
    EDDY_ASSERT(name.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos);
    EDDY_ASSERT(safe_file_name(name) == name);
    byte_buffer out;
    multipart_writer writer(out, "b");
    if (!writer.file(text, text, "a/b", "content").end()) return;
    multipart_limits limits;
    limits.name = limits.header_bytes = 8 * text.size() + 200;
    multipart_parser parser("b", limits);
    const std::string read = transcript(parser, out.text(), {});
    EDDY_ASSERT(read.ends_with("content 'content'\npart end\nend\nwhole\n"));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    const std::string_view input(reinterpret_cast<const char*>(data) + 2, size - 2);
    if ((data[0] & as_content_type) != 0)
        read_boundary(input);
    else if ((data[0] & as_filename) != 0)
        read_filename(input);
    else
        read_form(input, data[0], data[1]);
    return 0;
}
