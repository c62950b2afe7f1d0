// The program around the commands: finds the command, parses its flags, prints help, and decides
// the exit status. A command is one entry of a list.
#pragma once

#include "cli/control_client.hpp"
#include "cli/flags.hpp"

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cli {

/// Exit statuses of the process.
enum exit_status : int {
    exit_ok = 0,
    exit_bad_input = 1,  ///< a mistake in the command, no such runtime, or the daemon refused
    exit_fatal = 2,      ///< the daemon cannot be reached, or something broke
};

/// A type of runtime as the command line knows it.
struct type_flags {
    std::string name;
    std::string summary;
    std::vector<flag> flags;
    /// Parameters, set by commands of `eddy db`, whose values are passwords.
    std::vector<std::string> secret_parameters = {};
    /// Names of the callbacks of its scripts.
    std::vector<std::string> callbacks = {};
    /// Makes the names of the functions of its scripts; null: there are none.
    std::vector<std::string> (*functions)() = nullptr;
};

/// Context of every command.
struct context {
    std::string version;
    std::vector<std::string> parts;  ///< optional parts that this build has
    std::string default_socket;      ///< of this user's own daemon
    /// The system daemon's, for users without one of their own; empty for none.
    std::string system_socket = {};
    std::vector<type_flags> types;

    /// Checks a request for a stack as a daemon without runtimes does, and answers as that would:
    /// for `eddy validate`. Set by the program.
    std::function<control_answer(const std::string& name, const std::string& body)> check_stack =
        {};

    // Set from the flags that every command has, before it runs.
    std::string socket = {};
    bool json = false;
    bool colours = false;   ///< standard output is a terminal that wants them
    std::size_t width = 0;  ///< columns of that terminal; 0 where it is none, or does not say

    const type_flags* find_type(std::string_view name) const noexcept;
    /// True for an option of some type that takes a list.
    bool is_repeated(std::string_view flag) const noexcept;
    /// Secret parameters of all types, since a daemon of another version may have types that are
    /// unknown here.
    std::vector<std::string> secret_parameters() const;
};

struct example {
    std::string command;
    std::string what;
};

/// One command. Exactly one of `run`, `run_raw` and `children` is set.
struct command {
    std::string name;
    std::string operands;  ///< as help shows them: "<name|pattern>..."
    std::string summary;   ///< one line
    /// Names in other programs, which help does not list.
    std::vector<std::string> aliases = {};
    std::vector<flag> flags = {};
    std::size_t least = 0;  ///< how many words without a dash it needs
    std::size_t most = 0;   ///< and takes
    /// Behind so many words without a dash nothing is a flag.
    std::size_t literal_after = static_cast<std::size_t>(-1);
    /// Names of flags may have one dash, as those of Go's programs do.
    bool single_dash = false;
    std::vector<example> examples = {};
    /// Further ones, each shown for the type alone that is its third word.
    std::vector<example> type_examples = {};
    std::string more = {};  ///< further lines of help

    /// Does the work and returns the exit status; it prints its own errors with complain().
    std::function<int(context&, const arguments&)> run = {};
    /// Flags that depend on the words behind the command, besides `flags`. The error is a sentence.
    std::function<std::expected<std::vector<flag>, std::string>(context&,
                                                                std::span<const std::string>)>
        more_flags = {};
    /// The same flags for the help, where they depend on no type.
    std::function<std::vector<flag>(const context&)> described_flags = nullptr;
    /// For a command that takes its words apart by itself.
    std::function<int(context&, std::span<const std::string>)> run_raw = {};
    /// Subcommands, of which the first word behind this one chooses; their names begin with this
    /// one's, as in "bench http".
    std::vector<command> children = {};
};

/// Runs the command line `words` (without the program's name); returns the exit status.
int run_program(context& with, std::span<const command> commands,
                std::span<const std::string> words);

/// The help of a command. `type` is a type of runtime or empty.
std::string describe_command(const context& with, const command& which, std::string_view type);

/// Writes "eddy: MESSAGE" to standard error, without what could drive a terminal.
void complain(std::string_view message);
/// The complaint about a flag that is given twice and has one value: the first would be lost.
std::string given_twice(std::string_view flag);

/// Writes to standard output, as it is.
void print(std::string_view text);

}  // namespace eddy::cli
