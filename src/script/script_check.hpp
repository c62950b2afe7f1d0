// Check of a script's text for names that are certain to be wrong: callbacks and functions that
// there are not, such as misspelt ones, and globals that a callback assigns.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::script {

/// Bytes of a script's file at most, where a runtime loads it.
inline constexpr std::size_t max_script_bytes = std::size_t{4} << 20;

/// Names that a script may use.
struct script_names {
    std::vector<std::string> callbacks = {};
    /// Owner of the callbacks, such as "a server"; empty: all.
    std::string owner = {};
    /// Global tables of the functions below, such as "self".
    std::vector<std::string> tables = {};
    /// Their fields: "send", "json.encode". Empty: functions are not checked.
    std::vector<std::string> functions = {};
};

struct name_fault {
    std::size_t line = 0;
    std::string text;         ///< "there is no callback on_mesage; did you mean on_message?"
    bool is_warning = false;  ///< it may be meant so
};

/// Faults by their lines. The text compiles; it is not run. These are certain: a global function
/// on_… that is no callback, and that the text does not use otherwise; a call of a field of a table
/// that it does not have, and that the text only calls. Any thread.
std::vector<name_fault> check_names(std::string_view text, const script_names& known);

}  // namespace eddy::script
