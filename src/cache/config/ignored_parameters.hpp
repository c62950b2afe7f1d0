// CONFIG parameters without an effect here.
//
// They tune parts of Redis that the cache does not have. They are checked as Redis checks them,
// kept and returned, so that programs that set them go on. The limits of encodings are among them,
// which have an effect: engine_options::limits.
#pragma once

#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <string_view>

namespace eddy::cache {

/// One of them, and which values Redis takes for it.
struct ignored_parameter {
    enum class kind : std::uint8_t {
        text,       ///< anything
        immutable,  ///< Redis takes it at its start only
        yes_no,     ///< a switch
        number,     ///< from low to high
        bytes,      ///< the same, with a unit
        choice,     ///< one of `choices`
        scores,     ///< three numbers from -2000 to 2000
    };
    std::string_view name;
    std::string_view usual;  ///< until it is set
    kind takes = kind::text;
    std::int64_t low = 0;
    std::int64_t high = 0;
    std::string_view choices = {};  ///< as Redis lists them: "no, yes, clients"
    std::string_view other = {};    ///< the newer name of the same parameter, if there is one
};

/// All of them, in the order of CONFIG GET.
std::span<const ignored_parameter> ignored_parameters() noexcept;

/// The value as CONFIG GET gives it back, or why Redis does not take it, in its words. Not for
/// immutable ones.
std::expected<std::string, std::string> read_ignored(const ignored_parameter& of,
                                                     std::string_view value);

}  // namespace eddy::cache
