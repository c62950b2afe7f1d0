// Environment of a child process: this process's own with one variable set.
#pragma once

#include <unistd.h>

#include <string>
#include <string_view>
#include <vector>

namespace eddy {

/// This process's environment, as "NAME=value" each, with `name` set to `value`. Not while another
/// thread changes the environment.
inline std::vector<std::string> environment_with(std::string_view name, std::string_view value) {
    const std::string begin = std::string(name) + '=';
    std::vector<std::string> made;
    for (char** each = environ; *each != nullptr; ++each)
        if (!std::string_view(*each).starts_with(begin)) made.emplace_back(*each);
    made.push_back(begin + std::string(value));
    return made;
}

}  // namespace eddy
