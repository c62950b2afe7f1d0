// Key extraction: the arguments of a command that are keys.
#pragma once

#include "base/text/text.hpp"
#include "cache/catalog/command_table.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace eddy::cache {

/// A key argument and its access: "RW access update", as in COMMAND GETKEYSANDFLAGS.
struct key_argument {
    std::size_t index;
    std::string_view flags;
};

/// Parsed key specification, one group of a command's keys: see command_row::keys.
struct key_spec {
    std::string_view flags;
    char begin = 'u';          // i, k or u
    std::string_view keyword;  // of k
    int from = 0;              // of i and k
    char find = 'u';           // r, n or u
    int numbers[3] = {};
};

/// Calls what(word) for each word between separators.
template <class F>
constexpr void for_each_word(std::string_view text, char between, F&& what) {
    while (!text.empty()) {
        const std::size_t size = text.find(between);
        what(text.substr(0, size));
        if (size == std::string_view::npos) return;
        text.remove_prefix(size + 1);
    }
}

/// Removes the number at the front of the text, and the character after it, and returns it.
constexpr int take_number(std::string_view& text) noexcept {
    const bool is_negative = text.starts_with('-');
    if (is_negative) text.remove_prefix(1);
    int value = 0;
    for (; !text.empty() && is_digit(text.front()); text.remove_prefix(1))
        value = value * 10 + (text.front() - '0');
    if (!text.empty()) text.remove_prefix(1);
    return is_negative ? -value : value;
}

/// One of the specifications of command_row::keys.
constexpr key_spec parse_key_spec(std::string_view text) noexcept {
    key_spec made;
    int part = 0;
    for_each_word(text, '|', [&](std::string_view word) {
        switch (part++) {
            case 0: made.flags = word; break;
            case 1: {
                made.begin = word[0];
                word.remove_prefix(1);
                if (made.begin == 'k') {
                    made.keyword = word.substr(0, word.find('.'));
                    word.remove_prefix(made.keyword.size() + 1);
                }
                made.from = take_number(word);
                break;
            }
            default:
                made.find = word[0];
                word.remove_prefix(1);
                for (int& each : made.numbers) each = take_number(word);
        }
    });
    return made;
}

/// Parses all specifications of command_row::keys.
std::vector<key_spec> parse_key_specs(std::string_view text);

/// Calls what(index) for each key at a fixed position of the command; args[0] is its name.
template <class F>
void for_each_fixed_key(const command_spec& spec, std::span<const std::string_view> args,
                        F&& what) {
    if (spec.first_key <= 0) return;
    const auto count = static_cast<std::ptrdiff_t>(args.size());
    const std::ptrdiff_t last = spec.last_key < 0 ? count + spec.last_key : spec.last_key;
    const std::ptrdiff_t step = std::max<std::ptrdiff_t>(spec.key_step, 1);
    for (std::ptrdiff_t i = spec.first_key; i <= last && i < count; i += step)
        what(args[static_cast<std::size_t>(i)]);
}

/// True if the command's form that the arguments select has keys at all.
bool has_keys(const command_spec& spec, std::span<const std::string_view> args);

/// The keys among the arguments; args[0] is the command's name. None when the arguments are
/// malformed.
std::optional<std::vector<key_argument>> find_key_arguments(const command_spec& spec,
                                                            std::span<const std::string_view> args);

}  // namespace eddy::cache
