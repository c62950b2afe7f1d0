// Positions: sorted sets whose scores are places on the earth, see geo.hpp. Searches are in
// geo_search.cpp.
#include "cache/types/sorted_sets/geo.hpp"

#include "cache/catalog/commands.hpp"
#include "cache/commands/sorted_sets/geo_arguments.hpp"
#include "cache/commands/sorted_sets/sorted_set_reply.hpp"
#include "cache/engine/call.hpp"

#include <cstdio>
#include <optional>
#include <vector>

namespace eddy::cache {

std::optional<geo::position> geo_position(call& c, std::size_t at) {
    const auto longitude = parse_double(c.arg(at));
    const auto latitude = longitude ? parse_double(c.arg(at + 1)) : std::nullopt;
    if (!latitude) {
        c.error(not_a_float_text);
        return std::nullopt;
    }
    const geo::position where{*longitude, *latitude};
    if (geo::is_valid(where)) return where;
    char text[800];  // %f writes 300 digits and more
    const int size = std::snprintf(text, sizeof text, "ERR invalid longitude,latitude pair %f,%f",
                                   where.longitude, where.latitude);
    c.error({text, static_cast<std::size_t>(size)});
    return std::nullopt;
}

std::optional<double> geo_unit(call& c, std::size_t at) {
    const std::string_view unit = c.arg(at);
    if (is_word(unit, "m")) return 1;
    if (is_word(unit, "km")) return 1000;
    if (is_word(unit, "ft")) return 0.3048;
    if (is_word(unit, "mi")) return 1609.34;
    c.error("ERR unsupported unit provided. please use M, KM, FT, MI");
    return std::nullopt;
}

void reply_coordinate(call& c, double degrees) {
    char text[1 + max_float_text + 2];
    char* const end = write_float(text + 1, degrees);
    const std::string_view digits(text + 1, static_cast<std::size_t>(end - text - 1));
    if (c.reply.protocol() == 2) return c.reply.bulk(digits);
    text[0] = ',';
    end[0] = '\r';
    end[1] = '\n';
    c.reply.raw({text, digits.size() + 3});
}

void reply_distance(call& c, double distance) {
    char text[400];
    const int size = std::snprintf(text, sizeof text, "%.4f", distance);
    c.reply.bulk({text, static_cast<std::size_t>(size)});
}

namespace commands {
namespace {

using slot = call::slot;

// The set to read from; none with the reply made, when the key holds something else.
std::optional<const slot*> find_positions(call& c) {
    const slot* const place = c.find_to_read();
    if (place != nullptr && c.is_not(place, value_type::sorted_set)) return std::nullopt;
    return place;
}

std::optional<geo::position> position_of(call& c, const slot* place, std::string_view member) {
    if (place == nullptr) return std::nullopt;
    const sorted_set::place at = c.sorted_set_of(place).find(member);
    if (!at) return std::nullopt;
    return geo::decode(at.score);
}

// Five bits a letter, ten letters of 50 bits, and an eleventh that says nothing.
void reply_geohash(call& c, geo::position where) {
    constexpr std::string_view letters = "0123456789bcdefghjkmnpqrstuvwxyz";
    const std::uint64_t bits = geo::encode_for_text(where);
    char text[11];
    for (unsigned i = 0; i < 10; ++i) text[i] = letters[bits >> (47 - 5 * i) & 31];
    text[10] = letters[0];
    c.reply.bulk({text, sizeof text});
}

}  // namespace

void geoadd(call& c) {
    add_options options;
    std::size_t first = 2;
    for (; first < c.count; ++first) {
        const std::string_view word = c.arg(first);
        if (is_word(word, "nx")) {
            options.absent_only = true;
        } else if (is_word(word, "xx")) {
            options.present_only = true;
        } else if (is_word(word, "ch")) {
            options.count_changed = true;
        } else {
            break;
        }
    }
    const std::size_t left = c.count - first;
    if (left == 0 || left % 3 != 0 || (options.absent_only && options.present_only)) {
        return c.syntax_error();
    }
    std::vector<double> scores;
    for (std::size_t i = first; i < c.count; i += 3) {
        const auto where = geo_position(c, i);
        if (!where) return;
        scores.push_back(static_cast<double>(geo::encode(*where)));
    }
    add_members(c, options, scores, first + 2, 3);
}

void geopos(call& c) {
    const auto place = find_positions(c);
    if (!place) return;
    c.reply.array(c.count - 2);
    for (std::size_t i = 2; i < c.count && !c.reply_is_too_large(); ++i) {
        const auto where = position_of(c, *place, c.arg(i));
        if (!where) {
            c.reply.null_array();
            continue;
        }
        c.reply.array(2);
        reply_coordinate(c, where->longitude);
        reply_coordinate(c, where->latitude);
    }
}

void geodist(call& c) {
    if (c.count > 5) return c.syntax_error();
    double metres = 1;
    if (c.count == 5) {
        const auto unit = geo_unit(c, 4);
        if (!unit) return;
        metres = *unit;
    }
    const auto place = find_positions(c);
    if (!place) return;
    const auto a = position_of(c, *place, c.arg(2));
    const auto b = position_of(c, *place, c.arg(3));
    if (!a || !b) return c.reply.null();
    reply_distance(c, geo::distance(*a, *b) / metres);
}

void geohash(call& c) {
    const auto place = find_positions(c);
    if (!place) return;
    c.reply.array(c.count - 2);
    for (std::size_t i = 2; i < c.count && !c.reply_is_too_large(); ++i) {
        const auto where = position_of(c, *place, c.arg(i));
        where ? reply_geohash(c, *where) : c.reply.null();
    }
}

}  // namespace commands
}  // namespace eddy::cache
