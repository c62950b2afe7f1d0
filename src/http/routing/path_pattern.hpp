// Path patterns such as "/users/{id:int}/{file}.json", taken apart.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::http {

/// A segment of a pattern: text, or text around one parameter.
struct pattern_segment {
    enum class kind : std::uint8_t {
        text,
        integer,  ///< {name:int}
        any,      ///< {name}
        rest,     ///< {name...}: this segment and all behind it
    };
    kind is = kind::text;
    std::string before;  ///< the whole text of one without a parameter
    std::string name;
    std::string after;

    bool operator==(const pattern_segment&) const = default;

    /// The parameter's value, if the segment fits. `segment` is decoded.
    std::optional<std::string_view> match(std::string_view segment) const noexcept;
    /// True if it is tried before `other` where both fit.
    bool precedes(const pattern_segment& other) const noexcept;
};

/// The segments of a pattern; none when it is malformed: it begins with a slash, a segment has at
/// most one parameter, names are of letters, digits and underscores and differ, and only the last
/// segment may stand for the rest.
std::optional<std::vector<pattern_segment>> parse_pattern(std::string_view pattern);

/// Takes the first segment, with its slash, off a path that begins with one: "/a/" has two, of
/// which the second is empty.
std::string_view take_segment(std::string_view& path) noexcept;

/// A path with its segments decoded; none when it does not begin with a slash, or a segment has an
/// encoded slash or a control byte, or cannot be decoded.
std::optional<std::string> decode_path(std::string_view path);

}  // namespace eddy::http
