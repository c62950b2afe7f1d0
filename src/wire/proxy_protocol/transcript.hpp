// A PROXY protocol header as text, for tests and fuzz targets.
#pragma once

#include <eddy/base/assert.hpp>

#include "wire/proxy_protocol/parser.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::proxy_protocol {

inline std::string to_text(const ip_address& of) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    inet_ntop(of.is_v6 ? AF_INET6 : AF_INET, of.bytes.data(), text.data(), text.size());
    return std::string(text.data()) + "|" + std::to_string(of.port);
}

/// Feeds the input in pieces that end at `cuts`; with `is_careful` each piece has at most as many
/// bytes as the parser wants.
inline std::string transcript(std::string_view input, const std::vector<std::size_t>& cuts,
                              bool is_careful = false) {
    parser reader;
    std::size_t at = 0;
    std::size_t next_cut = 0;
    while (at < input.size() && !reader.is_complete()) {
        while (next_cut < cuts.size() && cuts[next_cut] <= at) ++next_cut;
        const std::size_t end =
            next_cut < cuts.size() ? std::min(cuts[next_cut], input.size()) : input.size();
        std::string_view piece = input.substr(at, end - at);
        EDDY_ASSERT(reader.wanted() > 0);
        if (is_careful) piece = piece.substr(0, reader.wanted());
        const auto taken = reader.feed(piece);
        if (!taken) {
            EDDY_ASSERT(!reader.is_complete() && !reader.found() && reader.wanted() == 0);
            EDDY_ASSERT(!reader.feed("x"));
            return taken.error() == errc::malformed ? "malformed" : "too long";
        }
        EDDY_ASSERT(*taken == piece.size() || (!is_careful && reader.is_complete()));
        at += *taken;
    }
    if (!reader.is_complete()) return "incomplete";
    EDDY_ASSERT(reader.wanted() == 0);
    std::string made = reader.found() ? to_text(reader.found()->source) + " > " +
                                            to_text(reader.found()->destination)
                                      : "own addresses";
    std::string_view rest = reader.tlvs();
    while (const auto each = take_tlv(rest))
        made += ", " + std::to_string(each->type) + "=" + std::string(each->value);
    EDDY_ASSERT(rest.empty());
    return made + ", " + std::to_string(input.size() - at) + " behind it";
}

}  // namespace eddy::proxy_protocol
