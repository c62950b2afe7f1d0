// Options that name a script, for all types: the file's text, and what is refused.
#pragma once

#include <eddy/io/task.hpp>

#include "base/problem.hpp"

#include <cstddef>
#include <string>

namespace eddy::runtime {

struct script_file {
    std::string text;
    std::string name;  ///< the file's without its folder, as the script's errors call it
};

/// Reads the regular file that `option`, such as "--script", names: at most `most` bytes, a number
/// of MiB. Refuses others with 400; the text names the option and the file. It waits for the disk.
/// Any thread.
outcome<script_file> read_script(std::string option, std::string path, std::size_t most);

/// The same on another thread, so that the loop does not wait. Refuses with 503 when too many files
/// are being read.
task<outcome<script_file>> read_script_in_background(std::string option, std::string path,
                                                     std::size_t most);

/// Refusal of a reload of a script that is not there.
std::unexpected<problem> has_no_script(const std::string& name);

}  // namespace eddy::runtime
