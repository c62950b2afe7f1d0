// Flags of the command line: tables of what a command takes, and a parser over them.
//
// The tables of `eddy create` and `eddy edit` are the runtime types' own option tables, so a
// runtime's new option is a new flag without a line here. The parser knows names only; the daemon
// checks values.
#pragma once

#include <cstddef>
#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::cli {

struct flag {
    std::string name;             ///< without the dashes in front: "max-connections"
    char letter = 0;              ///< 0 for none
    std::string value_name = {};  ///< what help calls the value; empty for a flag without one
    std::string help = {};
    std::string default_value = {};  ///< as help shows it
    std::vector<std::string> choices = {};
    /// A flag without a value may be taken back: --no-NAME, --NAME=false.
    bool negatable = false;
    /// The value names a file or folder; a relative path is one of the working folder.
    bool is_path = false;
    /// With is_path: of a Unix socket. An abstract name (@NAME) stays as it is.
    bool is_socket = false;
    /// The value is a URI, or several joined by commas; relative paths within are as with is_path.
    bool is_uri = false;
    /// The value is, or may have, a secret.
    bool is_secret = false;
    /// Taken without an effect, as it says what is always so; help does not show it.
    bool is_ignored = false;
    /// It may be given several times, for a list of values.
    bool repeats = false;
    /// Name before a renaming, which is still accepted.
    std::string former_name = {};
    /// Names in other programs, each with what to write in its place.
    std::vector<std::pair<std::string, std::string>> foreign_names = {};
    /// For a runtime's option: the meaning of its absence; runtime::option::absence.
    std::string absence = {};

    bool takes_value() const noexcept { return !value_name.empty(); }
};

/// A parsed command line.
class arguments {
public:
    const std::vector<std::string>& positional() const noexcept { return positional_; }
    /// In the order given; the last one counts where only one can.
    const std::vector<std::pair<std::string, std::string>>& values() const noexcept {
        return values_;
    }
    bool has(std::string_view name) const noexcept;
    /// The last value given, or `otherwise`. A flag without a value has "true" or "false".
    std::string_view value(std::string_view name, std::string_view otherwise = "") const noexcept;
    bool is_set(std::string_view name) const noexcept { return value(name) == "true"; }

private:
    friend std::expected<arguments, std::string> parse_arguments(std::span<const std::string>,
                                                                 std::span<const flag>, std::size_t,
                                                                 bool);
    std::vector<std::string> positional_;
    std::vector<std::pair<std::string, std::string>> values_;
};

/// The value that a flag is given, with the paths in it from `folder`, by default the working
/// folder: the daemon's is another one. The error says why the value names no file.
std::expected<std::string, std::string> whole_value(const flag& of, std::string_view given,
                                                    std::string_view folder = {});

/// Takes a command line apart: --name VALUE, --name=VALUE, -n VALUE, -nVALUE, -abc for several
/// flags without values, `--` before what is no flag. Flags and the rest may mix. The error is a
/// sentence that names the flag and, where one is near, the one that was meant. Behind the first
/// `literal_after` words that are no flags nothing is a flag. With `single_dash` a name may have
/// one dash, too, as Go's programs take it: -name VALUE, -name=VALUE.
std::expected<arguments, std::string> parse_arguments(
    std::span<const std::string> words, std::span<const flag> table,
    std::size_t literal_after = static_cast<std::size_t>(-1), bool single_dash = false);

/// Columns of help texts, as a terminal has by default.
inline constexpr std::size_t help_width = 80;

/// Appends words to a text that ends at column `margin`, where each further line begins.
void append_words(std::string& to, std::string_view text, std::size_t margin);

/// The lines of a help text for a table, two columns, at most help_width wide.
std::string describe_flags(std::span<const flag> table);

}  // namespace eddy::cli
