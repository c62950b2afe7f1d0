// A type's table of options, put together of parts by subject.
#pragma once

#include "runtime/options/option.hpp"

#include <initializer_list>
#include <vector>

namespace eddy::runtime {

/// The rows of all parts, in this order.
inline std::vector<option> joined(std::initializer_list<std::vector<option>> parts) {
    std::vector<option> all;
    for (const std::vector<option>& part : parts) all.insert(all.end(), part.begin(), part.end());
    return all;
}

}  // namespace eddy::runtime
