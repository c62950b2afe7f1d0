// Heads of parts.
#include "http/files/multipart_ranges.hpp"

namespace eddy::http {

std::vector<body_part> multipart_ranges(std::span<const byte_range> ranges, std::uint64_t size,
                                        std::string_view content_type, std::string_view boundary) {
    std::vector<body_part> parts;
    for (const byte_range& range : ranges) {
        body_part& part = parts.emplace_back();
        part.before = parts.size() == 1 ? "--" : "\r\n--";
        part.before += boundary;
        part.before += "\r\nContent-Type: ";
        part.before += content_type;
        part.before += "\r\nContent-Range: ";
        part.before += content_range(range, size);
        part.before += "\r\n\r\n";
        part.offset = range.first;
        part.size = range.size;
    }
    body_part& last = parts.emplace_back();
    last.before = "\r\n--";
    last.before += boundary;
    last.before += "--\r\n";
    return parts;
}

}  // namespace eddy::http
