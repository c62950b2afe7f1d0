// Completion of command lines for shells, from the tables of commands and flags.
#pragma once

#include "cli/program.hpp"

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cli {

/// A word that may stand there.
struct candidate {
    std::string word;
    std::string help = {};
};

/// Candidates of the word at the end of a line.
struct completions {
    std::vector<candidate> words = {};
    bool takes_files = false;  ///< the shell completes names of files
};

/// A runtime, as far as completion is concerned.
struct known_runtime {
    std::string name;
    std::string type;
    std::string group;
    std::string status;
};

/// Asks for the runtimes that there are; it is called where names are wanted, and never fails.
using runtime_source = std::function<std::vector<known_runtime>()>;

/// Completes the last of `words`, which are those of a line behind the program's name. It may be
/// empty; candidates begin with it.
completions complete(const context& with, std::span<const command> commands,
                     std::span<const std::string> words, const runtime_source& runtimes);

/// `eddy complete -- WORD...`: a line for each candidate, of the word, a tab and its help, or
/// ":files". Silent where no daemon answers soon.
int run_completion(context& with, std::span<const command> commands,
                   std::span<const std::string> words);

/// The script that makes a shell, "bash", "zsh" or "fish", complete by that; empty for another one.
std::string_view completion_script(std::string_view shell);

}  // namespace eddy::cli
