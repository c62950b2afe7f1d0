// A ClientHello as text, and hellos to read, for tests and fuzz targets.
#pragma once

#include <eddy/base/assert.hpp>

#include "wire/client_hello/parser.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::client_hello {

/// Feeds the input in pieces that end at `cuts`.
inline std::string transcript(std::string_view input, const std::vector<std::size_t>& cuts) {
    parser reader;
    std::size_t at = 0;
    std::size_t next_cut = 0;
    while (at < input.size()) {
        while (next_cut < cuts.size() && cuts[next_cut] <= at) ++next_cut;
        const std::size_t end =
            next_cut < cuts.size() ? std::min(cuts[next_cut], input.size()) : input.size();
        const auto done = reader.feed(input.substr(at, end - at));
        at = end;
        if (!done) {
            EDDY_ASSERT(reader.found() == contents{});
            EDDY_ASSERT(reader.feed("x").error() == done.error());
            if (done.error() == errc::unsupported) return "no hello";
            return done.error() == errc::malformed ? "malformed" : "too long";
        }
        if (!*done) continue;
        std::string made = reader.found().server_name;
        for (const std::string& each : reader.found().alpn) made += "," + each;
        return made;
    }
    return "incomplete";
}

/// A number of so many bytes.
inline std::string bytes_of(std::size_t number, std::size_t size) {
    std::string made;
    for (std::size_t i = size; i-- > 0;) made += static_cast<char>(number >> (8 * i));
    return made;
}
/// Bytes behind their length, which has `size` bytes.
inline std::string vector_of(const std::string& content, std::size_t size) {
    return bytes_of(content.size(), size) + content;
}
inline std::string extension_of(std::size_t type, const std::string& content) {
    return bytes_of(type, 2) + vector_of(content, 2);
}
inline std::string server_name_of(const std::string& name) {
    return extension_of(0, vector_of(std::string(1, '\0') + vector_of(name, 2), 2));
}
inline std::string alpn_of(const std::vector<std::string>& protocols) {
    std::string list;
    for (const std::string& each : protocols) list += vector_of(each, 1);
    return extension_of(16, vector_of(list, 2));
}
/// A message of the handshake, in records of at most `largest` bytes.
inline std::string records_of(std::string_view message, std::size_t largest = 1 << 14) {
    std::string made;
    for (; !message.empty(); message.remove_prefix(std::min(message.size(), largest)))
        made += "\x16\x03\x01" + vector_of(std::string(message.substr(0, largest)), 2);
    return made;
}
/// The message of a ClientHello with these extensions.
inline std::string hello_of(const std::string& extensions) {
    return "\x01" + vector_of("\x03\x03" + std::string(32, 'r') + vector_of("session", 1) +
                                  vector_of("\x13\x01", 2) + vector_of(std::string(1, '\0'), 1) +
                                  vector_of(extensions, 2),
                              3);
}

}  // namespace eddy::client_hello
