// Comparison of a string, or of its digest, with an option's value.
#include "cache/commands/strings/value_condition.hpp"

#include "cache/engine/call.hpp"
#include "cache/types/xxh3.hpp"

namespace eddy::cache {

std::string string_digest(std::string_view text) {
    constexpr std::string_view digits = "0123456789abcdef";
    constexpr std::size_t size = 16;
    std::string made(size, '0');
    std::uint64_t left = xxh3(text);
    for (std::size_t i = size; i-- > 0; left /= digits.size())
        made[i] = digits[left % digits.size()];
    return made;
}

bool value_condition::take(std::string_view word, std::string_view next) noexcept {
    const kind asked = is_word(word, "ifeq")    ? kind::equal
                       : is_word(word, "ifne")  ? kind::differs
                       : is_word(word, "ifdeq") ? kind::digest_equal
                       : is_word(word, "ifdne") ? kind::digest_differs
                                                : kind::none;
    if (asked == kind::none || (given() && asked != what)) return false;
    what = asked;
    operand = next;
    return true;
}

std::optional<bool> value_condition::holds(call& c, const entry* of) const {
    const bool wants_equal = what == kind::equal || what == kind::digest_equal;
    if (of == nullptr) return !wants_equal;
    text_view view;
    const std::string_view text = view(*of);
    if (what == kind::equal || what == kind::differs) return (text == operand) == wants_equal;
    const std::string digest = string_digest(text);
    if (operand.size() != digest.size()) {
        c.error("ERR must be exactly 16 hexadecimal characters");
        return std::nullopt;
    }
    return equal_in_any_case(operand, digest) == wants_equal;
}

}  // namespace eddy::cache
