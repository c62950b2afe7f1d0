// `eddy lua`: scripts that this program runs or checks itself.
#include "cli/commands/commands.hpp"

#include "base/files/regular_file.hpp"
#include "base/text/terminal_text.hpp"
#include "cli/lua/script_run.hpp"
#include "cli/stack/lua_declarations.hpp"
#include "script/script_check.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <expected>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

namespace eddy::cli {
namespace {

constexpr std::size_t longest_script = std::size_t{16} << 20;
constexpr std::size_t most_arguments = 15;

struct file_closer {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};

/// "-" is standard input.
std::expected<std::string, std::string> read_script(const std::string& path) {
    std::unique_ptr<std::FILE, file_closer> opened;
    std::FILE* file = stdin;
    errno = 0;
    if (path != "-") {
        opened.reset(std::fopen(path.c_str(), "re"));
        file = opened.get();
    }
    std::string text;
    char piece[64 * 1024];
    while (file != nullptr && text.size() <= longest_script) {
        const std::size_t got = std::fread(piece, 1, sizeof piece, file);
        if (got == 0) break;
        text.append(piece, got);
    }
    if (file == nullptr || std::ferror(file) != 0)
        return std::unexpected(fmt::format("{} cannot be read: {}", printable(path),
                                           std::generic_category().message(errno)));
    if (text.size() > longest_script)
        return std::unexpected(
            fmt::format("{} has more than {} MiB", printable(path), longest_script >> 20));
    return text;
}

std::string name_of(const std::string& path) {
    if (path == "-") return "stdin";
    return path.substr(path.rfind('/') + 1);
}

int run(context& with, const arguments& given) {
    const std::string& path = given.positional()[0];
    auto text = read_script(path);
    if (!text) {
        complain(text.error());
        return exit_bad_input;
    }
    control_client daemon(with.socket);
    script_run_options options;
    options.text = std::move(*text);
    options.name = name_of(path);
    options.arguments.assign(given.positional().begin() + 1, given.positional().end());
    for (const auto& [name, value] : given.values())
        if (name == "lua-path") options.modules.push_back(value);
    const auto ran = run_script(daemon, std::move(options), [](std::string_view line) {
        print(line);
        std::fflush(stdout);
    });
    if (ran) return exit_ok;
    complain(ran.error());
    return exit_bad_input;
}

/// A script that a runtime would take: a regular file, which is never waited for, or "-".
std::expected<std::string, std::string> read_checked(const std::string& path) {
    auto text = path == "-" ? read_script(path) : std::expected<std::string, std::string>();
    if (path != "-") {
        auto read = read_regular(path, script::max_script_bytes);
        if (!read && read.error() != errc::limit_reached)
            return std::unexpected(
                fmt::format("{} cannot be read: {}", printable(path), read.error().message()));
        if (read)
            text = std::move(*read);
        else
            text = std::string(script::max_script_bytes + 1, ' ');
    }
    if (text && text->size() > script::max_script_bytes)
        return std::unexpected(fmt::format("{} has more than {} MiB, which no runtime loads",
                                           printable(path), script::max_script_bytes >> 20));
    return text;
}

/// Says the faults of a file, and returns whether it has none but warnings.
bool check_file(const std::string& path, const script::script_names& known) {
    const auto text = read_checked(path);
    if (!text) {
        complain(text.error());
        return false;
    }
    const std::string name = name_of(path);
    if (const auto good = check_script(*text, name); !good) {
        // Some errors of the compiler have no place.
        const bool is_named = good.error().starts_with(name + ":");
        complain(is_named ? good.error() : fmt::format("{}: {}", printable(name), good.error()));
        return false;
    }
    bool is_good = true;
    for (const script::name_fault& each : script::check_names(*text, known)) {
        complain(fmt::format("{}:{}: {}{}", printable(name), each.line,
                             each.is_warning ? "warning: " : "", each.text));
        is_good &= each.is_warning;
    }
    return is_good;
}

/// Names of a type's scripts, of all types without one.
script::script_names names_of(const context& with, std::string_view chosen) {
    script::script_names known;
    known.tables = {"self", "eddy", "socketley"};
    bool has_all = true;
    for (const type_flags& each : with.types) {
        if (!chosen.empty() && each.name != chosen) continue;
        known.callbacks.insert(known.callbacks.end(), each.callbacks.begin(), each.callbacks.end());
        if (each.functions == nullptr) {
            has_all = has_all && chosen.empty();
            continue;
        }
        const std::vector<std::string> made = each.functions();
        known.functions.insert(known.functions.end(), made.begin(), made.end());
        // Sites and caches have none of their name.
        if (each.name != "http" && each.name != "cache") known.tables.push_back(each.name);
    }
    if (!has_all) known.functions.clear();
    return known;
}

int check(context& with, const arguments& given) {
    const std::string chosen(given.value("type"));
    script::script_names known = names_of(with, chosen);
    if (known.callbacks.empty()) {
        complain(fmt::format("there is no type of runtime \"{}\"", printable(chosen)));
        return exit_bad_input;
    }
    const bool has_vowel = chosen == "http";  // as it is spoken
    known.owner =
        chosen.empty() ? "" : fmt::format("{} {} runtime", has_vowel ? "an" : "a", chosen);
    int status = exit_ok;
    for (const std::string& path : given.positional())
        if (!check_file(path, known)) status = exit_bad_input;
    return status;
}

command run_command() {
    command c;
    c.name = "lua run";
    c.operands = "<file> [argument]...";
    c.summary = "run a script that creates and changes the daemon's runtimes";
    c.flags = {{.name = "lua-path",
                .value_name = "DIR",
                .help = "folder of modules for require(); may be given again",
                .is_path = true,
                .repeats = true}};
    c.least = 1;
    c.most = 1 + most_arguments;
    c.literal_after = 1;
    c.more =
        "eddy.create(TYPE, NAME, {OPTION = VALUE}), start(), stop(), reload(), edit(), remove(), "
        "send(), show(), list() and\nstats() return what the daemon answers, or nil and a "
        "sentence; runtimes{NAME = {type = TYPE, OPTION = VALUE}} makes\nall of them so. "
        "Arguments are `...`. A file that is - is standard input.";
    c.examples = {{"eddy lua run machine.lua", ""},
                  {"echo 'print(eddy.show(...).port)' | eddy lua run - web", ""}};
    c.run = run;
    return c;
}

command check_command() {
    command c;
    c.name = "lua check";
    c.operands = "<file>...";
    c.summary = "say where a file is no Lua, or has callbacks or functions that there are not";
    c.flags = {
        {.name = "type",
         .value_name = "TYPE",
         .help = "type of runtime whose script it is; else callbacks of all types are known"}};
    c.least = 1;
    c.most = 1000;
    c.more =
        "A global function on_… that is no callback, and that the file does not use otherwise, is "
        "a mistake, and so is a call of\na function that self, eddy and socketley do not have. A "
        "global variable that only a callback sets is a warning. The\nfile is not run. A file of "
        "`eddy lua run` has none of these.";
    c.examples = {{"eddy lua check chat.lua", ""}, {"eddy lua check --type proxy gate.lua", ""}};
    c.run = check;
    return c;
}

}  // namespace

std::expected<std::vector<nlohmann::json>, std::string> declarations_of_script(
    context& with, std::string text, const std::string& path) {
    control_client daemon(with.socket);
    script_run_options options;
    options.text = std::move(text);
    options.name = name_of(path);
    options.modules.push_back(path.substr(0, path.rfind('/')));
    auto declared = run_declarations(daemon, std::move(options), [](std::string_view line) {
        static_cast<void>(std::fwrite(line.data(), 1, line.size(), stderr));
    });
    if (!declared) return std::unexpected(std::move(declared.error()));
    std::vector<nlohmann::json> all;
    for (const std::string& each : *declared)
        all.push_back(nlohmann::json::parse(each, nullptr, false));
    return all;
}

command script_command() {
    command c;
    c.name = "lua";
    c.operands = "run|check";
    c.summary = "run a script against the daemon, or check one";
    c.children.push_back(run_command());
    c.children.push_back(check_command());
    c.examples = {{"eddy lua run machine.lua", ""}, {"eddy lua check chat.lua", ""}};
    return c;
}

}  // namespace eddy::cli
