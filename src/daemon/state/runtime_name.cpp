// Names of runtimes: the check.
#include "daemon/state/runtime_name.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace eddy::daemon {
namespace {

bool is_name_byte(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
}

outcome<> check(std::string_view what, std::string_view name) {
    constexpr std::string_view rule =
        "use 1 to 128 letters, digits, dots, dashes and underscores, not beginning with a dot";
    if (name.empty()) return refuse(400, fmt::format("the {} is empty: {}", what, rule));
    if (name.size() > runtime_name_limit)
        return refuse(400, fmt::format("the {} is {} bytes long: {}", what, name.size(), rule));
    if (name.front() == '.' || !std::all_of(name.begin(), name.end(), is_name_byte))
        return refuse(400, fmt::format("\"{}\" cannot be a {}: {}", name, what, rule));
    return {};
}

}  // namespace

outcome<> check_runtime_name(std::string_view name) { return check("name", name); }

outcome<> check_group_name(std::string_view name) { return check("group name", name); }

}  // namespace eddy::daemon
