// Grammar of host names.
#include "net/host_names.hpp"

#include "base/text/text.hpp"

#include <algorithm>
#include <cstddef>

namespace eddy {
namespace {

constexpr std::size_t longest_name = 253;
constexpr std::size_t longest_label = 63;

}  // namespace

bool is_host_name(std::string_view name) noexcept {
    if (name.ends_with('.')) name.remove_suffix(1);
    if (name.empty() || name.size() > longest_name) return false;
    std::string_view label;
    while (true) {
        label = name.substr(0, name.find('.'));
        if (label.empty() || label.size() > longest_label) return false;
        if (label.starts_with('-') || label.ends_with('-')) return false;
        const bool good = std::all_of(label.begin(), label.end(), [](char c) {
            return is_digit(c) || is_letter(c) || c == '-' || c == '_';
        });
        if (!good) return false;
        if (label.size() == name.size()) break;
        name.remove_prefix(label.size() + 1);
    }
    return !std::all_of(label.begin(), label.end(), is_digit);
}

bool is_localhost(std::string_view name) noexcept {
    constexpr std::string_view local = "localhost";
    if (name.ends_with('.')) name.remove_suffix(1);
    if (name.size() < local.size()) return false;
    const std::string_view end = name.substr(name.size() - local.size());
    return is_word(end, local) &&
           (end.size() == name.size() || name[name.size() - local.size() - 1] == '.');
}

}  // namespace eddy
