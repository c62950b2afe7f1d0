// Condition on a key's string: IFEQ, IFNE, IFDEQ and IFDNE of SET and DELEX.
#pragma once

#include "cache/memory/entry.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace eddy::cache {

struct call;

/// The digest of a string as DIGEST replies with it: XXH3 in 16 hexadecimal digits.
std::string string_digest(std::string_view text);

struct value_condition {
    enum class kind : std::uint8_t { none, equal, differs, digest_equal, digest_differs };

    kind what = kind::none;
    std::string_view operand;

    bool given() const noexcept { return what != kind::none; }

    /// Takes the option if `word` is one of the four and no other came before; of the same one
    /// twice the last counts.
    bool take(std::string_view word, std::string_view next) noexcept;

    /// True if the key may be changed; `of` is null where there is no key. None, with the error
    /// replied, for a malformed digest. An entry must hold a string.
    std::optional<bool> holds(call& c, const entry* of) const;
};

}  // namespace eddy::cache
