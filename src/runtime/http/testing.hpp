// Fixture of the tests of sites: a folder with files.
#pragma once

#include "runtime/http_testing.hpp"

#include <fstream>
#include <string>
#include <string_view>

namespace eddy::runtime::http::testing {

using namespace runtime::testing;

inline void write_file(const temporary_folder& in, const std::string& name, std::string_view text) {
    std::ofstream file(in.file(name), std::ios::binary);
    file << text;
    if (!file.flush()) throw std::runtime_error("cannot write " + name);
}

}  // namespace eddy::runtime::http::testing
