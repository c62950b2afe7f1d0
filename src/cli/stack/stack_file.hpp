// A stack file as it is written: its runtimes, each value with its place, and all its faults.
#pragma once

#include "cli/program.hpp"
#include "cli/stack/variables.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cli {

/// Limits of a stack file and what it includes.
inline constexpr std::size_t stack_file_size = std::size_t{4} << 20;
inline constexpr std::size_t stack_files_size = std::size_t{32} << 20;  ///< together
inline constexpr std::size_t most_stack_files = 256;
inline constexpr std::size_t deepest_include = 8;
inline constexpr std::size_t most_include_entries = 100'000;  ///< of folders, for one pattern

/// The largest file of a secret, such as password_file.
inline constexpr std::size_t secret_file_size = std::size_t{64} * 1024;

/// File, line and column; line 0 is the file as a whole.
struct place {
    std::string file;
    std::size_t line = 0;
    std::size_t column = 0;

    std::string to_string() const;
};

struct file_fault {
    place at;
    std::string message;
};

/// A runtime that the file declares.
struct declared_runtime {
    std::string name;
    std::string type;
    std::string owner = {};
    std::string group = {};
    std::string on_parent_stop = {};  ///< empty: the default
    bool is_to_run = true;
    nlohmann::json options = nlohmann::json::object();
    place at = {};
    std::map<std::string, place, std::less<>> options_at = {};  ///< by key, also "owner", "group"
};

struct stack_file {
    std::string name;  ///< of the stack
    std::vector<declared_runtime> runtimes = {};
    std::vector<file_fault> faults = {};
    /// Files that other users can write, and secrets that they can read.
    std::vector<file_fault> warnings = {};
    /// All files that were read, and the folders and patterns of includes with wildcards: what a
    /// watch follows.
    std::vector<std::string> files = {};
    std::vector<std::string> patterns = {};

    const declared_runtime* find(std::string_view runtime) const noexcept;
    /// The body of a request for the stack.
    nlohmann::json request() const;
};

/// Reads a file of TOML, or of Lua (NAME.lua), and what it includes. `path` may be a folder, for
/// the eddy.toml in it, and "-" for standard input.
stack_file read_stack(context& with, const std::string& path, const environment& of);

}  // namespace eddy::cli
