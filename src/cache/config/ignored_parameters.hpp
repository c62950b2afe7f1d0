// CONFIG parameters without an effect here.
//
// They tune parts of Redis that the cache does not have. They are checked as in Redis, kept and
// returned, so that programs that set them work. The limits of encodings are among them, and have
// an effect: engine_options::limits.
#pragma once

#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <string_view>

namespace eddy::cache {

/// An ignored parameter, and the values that Redis accepts for it.
struct ignored_parameter {
    enum class kind : std::uint8_t {
        text,       ///< anything
        immutable,  ///< Redis accepts it at its start only
        yes_no,     ///< a switch
        number,     ///< from low to high
        bytes,      ///< the same, with a unit
        choice,     ///< one of `choices`
        scores,     ///< three numbers from -2000 to 2000
    };
    std::string_view name;
    std::string_view usual;  ///< default
    kind takes = kind::text;
    std::int64_t low = 0;
    std::int64_t high = 0;
    std::string_view choices = {};  ///< as Redis lists them: "no, yes, clients"
    std::string_view other = {};    ///< the newer name of the same parameter, if there is one
};

/// All of them, in the order of CONFIG GET.
std::span<const ignored_parameter> ignored_parameters() noexcept;

/// The value as CONFIG GET returns it; fails with Redis's text. Not for immutable ones.
std::expected<std::string, std::string> read_ignored(const ignored_parameter& of,
                                                     std::string_view value);

}  // namespace eddy::cache
