// Redis's documentation of commands for the prompt of `eddy db`: hints, completion and help, from
// the reply to COMMAND DOCS, so that they are those of the cache that is spoken to.
#pragma once

#include "cli/text/reply_text.hpp"

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cli {

/// Documentation of commands and their subcommands. Names are compared without case.
class command_docs {
public:
    command_docs() = default;
    /// Reads a reply to COMMAND DOCS, as RESP2 or RESP3; empty for any other reply.
    explicit command_docs(const reply& docs);

    bool empty() const noexcept { return commands_.empty(); }

    /// The lines that `line` may be the beginning of: names of commands, and of subcommands behind
    /// theirs. In lower case if `line` is.
    std::vector<std::string> completions(std::string_view line) const;

    /// The arguments that may follow `line`, which has a whole command: "key value [NX | XX]".
    /// Empty where the command is not known or all is there.
    std::string hint(std::string_view line) const;

    /// The text of `help WORDS...`: of a command, a subcommand or a @group; of nothing, how the
    /// prompt is used. With a newline at the end.
    std::string help(std::span<const std::string> words) const;

private:
    struct entry {
        std::vector<std::string>
            arguments;  ///< "key", "[NX | XX]", "field value [field value ...]"
        std::string summary;
        std::string since;
        std::string group;
    };

    void add(const reply& docs);
    std::string describe(std::string_view name, const entry& of) const;

    /// By name in upper case: "CONFIG SET".
    std::map<std::string, entry, std::less<>> commands_;
};

/// True for a command with a password among its arguments, which no history may keep.
/// `secret_parameters` are those of CONFIG SET whose values are passwords.
bool has_secret(std::span<const std::string> command,
                std::span<const std::string> secret_parameters);

}  // namespace eddy::cli
