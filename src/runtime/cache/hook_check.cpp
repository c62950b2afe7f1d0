// Names of a cache's script, and its functions, which are a text of Lua in front of it.
#include "runtime/cache/hook_check.hpp"

#include "lua/blocking_state.hpp"
#include "runtime/scripting/callback_names.hpp"
#include "runtime/scripting/script_names.hpp"
#include "script/script_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace eddy::runtime::cache {
namespace {

constexpr std::string_view named_by = "--hooks";

/// Fields of the table that the text below makes.
constexpr std::array<std::string_view, 4> fields = {"log", "name", "state", "type"};

/// A text of one line, in a scope of its own: the script has all local variables that Lua allows.
/// It gets the cache's name in quotes.
constexpr std::string_view functions_text =
    "do local say, type, error, known = print, type, error, "
    "{{debug = true, info = true, warn = true, error = true}} "
    "self = {{name = {}, type = 'cache', state = 'running'}} "
    "eddy, socketley = self, self "
    "function self.log(level, text) "
    "local line = level if text ~= nil then line = text end "
    "if type(line) ~= 'string' and type(line) ~= 'number' then "
    "error('log() takes a text, or a level and a text', 2) end "
    "if text == nil or level == 'info' then return say(line) end "
    "if not known[level] then "
    "error('log() knows the levels debug, info, warn and error', 2) end "
    "say(level .. ': ' .. line) end end ";

/// In quotes of Lua's. Names of runtimes have no character that would end them.
std::string quoted(std::string_view name) {
    std::string made = "'";
    for (const char each : name)
        if (each != '\'' && each != '\\' && each != '\n') made += each;
    return made + "'";
}

const script::script_names& names() {
    static const script::script_names all = [] {
        script::script_names made;
        made.callbacks.assign(all_callbacks.begin(), all_callbacks.end());
        made.tables = {"self", "eddy", "socketley"};
        made.functions = hook_script_functions();
        return made;
    }();
    return all;
}

}  // namespace

std::string with_hook_functions(const std::string& text, std::string_view name) {
    constexpr std::string_view mark = "\xef\xbb\xbf";  // of UTF-8, which Lua skips at the beginning
    std::string_view rest = text;
    if (rest.starts_with(mark)) rest.remove_prefix(mark.size());
    // Lua skips a line that names an interpreter, too.
    if (rest.starts_with('#')) rest.remove_prefix(std::min(rest.find('\n'), rest.size()));
    std::string made = fmt::format(functions_text, quoted(name));
    made += rest;
    return made;
}

std::vector<std::string> hook_script_functions() { return {fields.begin(), fields.end()}; }

outcome<> check_hook_file(const std::string& path) {
    auto read = read_script(std::string(named_by), path, max_hook_script_bytes);
    if (!read) return std::unexpected(std::move(read.error()));
    lua::blocking_state state(lua::blocking_state::limits(), [](std::string_view) {});
    if (auto good = state.compile(read->text, read->name); !good)
        return refuse(400, fmt::format("{} {}: {}", named_by, path, good.error()));
    return check_script_names(names(), named_by, *read);
}

task<outcome<>> check_hook_names(const script_file& from) {
    return check_script_names_in_background(names(), named_by, from);
}

}  // namespace eddy::runtime::cache
