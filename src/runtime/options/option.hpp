// Options of a runtime type: the table's rows.
//
// The table is the single place that knows an option's name, form and help: the CLI's flags, the
// control API's validation, `edit`, the stored JSON and the help texts all come from it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime {

enum class option_kind {
    flag,
    integer,
    size,
    duration,
    text,
    choice,
    list,  ///< texts: the flag is repeated, in JSON it is a list
};

/// Name of a parameter in another program, and the flag to write in its place.
struct foreign_name {
    std::string_view name;
    std::string_view instead;
};

/// One option of a type. `--max-connections` is named "max_connections" in JSON.
struct option {
    std::string_view name = {};  ///< with dashes: "max-connections"
    char letter = 0;             ///< short flag, 0 for none
    option_kind kind = option_kind::text;
    std::string_view value_name = {};     ///< as help shows it: "N", "SECONDS", "ADDRESS"
    std::string_view default_value = {};  ///< as the user would write it; "" means unset
    std::string_view help = {};
    std::vector<std::string_view> choices = {};  ///< for option_kind::choice
    std::int64_t minimum = 0;
    std::int64_t maximum = INT64_MAX;
    bool live = false;     ///< `edit` applies it to a running runtime without a restart
    bool is_path = false;  ///< the CLI makes a path of the user's folder whole
    bool is_socket =
        false;            ///< with is_path: of a Unix socket, which may be an abstract @NAME, too
    bool is_uri = false;  ///< one or several, joined by commas: the same of paths within
    /// Shown form of a value that has a secret: `hidden` in the secret's place. Null: the value.
    std::string (*shown)(const std::string& value) = nullptr;
    /// Name before a renaming: flags, requests and stored options with it are accepted.
    std::string_view former_name = {};
    /// Names that users of other programs may try; none is an option of the same type.
    std::vector<foreign_name> foreign_names = {};
    /// Consequence of its absence, which `eddy create` reports behind the runtime's name and before
    /// the command that sets it. Empty: none.
    std::string_view absence = {};
};

/// Stands for a secret.
inline constexpr std::string_view hidden = "***";

}  // namespace eddy::runtime
