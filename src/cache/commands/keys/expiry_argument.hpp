// "EX 10", "PXAT 1700000000000": an expiry as the arguments of SET, GETEX, SETEX and PSETEX.
#pragma once

#include "cache/memory/entry.hpp"

#include <cstdint>
#include <string_view>

namespace eddy::cache {

struct call;

enum class expiry_unit : std::uint8_t {
    none,
    seconds,
    milliseconds,
    unix_seconds,
    unix_milliseconds
};

struct expiry_argument {
    expiry_unit unit = expiry_unit::none;
    std::string_view value;

    bool given() const noexcept { return unit != expiry_unit::none; }

    /// Takes the option if `word` is EX, PX, EXAT or PXAT and no other of them came before.
    bool take(std::string_view word, std::string_view next) noexcept;

    /// The time in milliseconds since 1970. False, with the error replied, when the value is no
    /// number, not positive, or too large.
    bool resolve(call& c, expiry_time& at_ms) const;
};

}  // namespace eddy::cache
