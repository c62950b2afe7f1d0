// The program around the commands: dispatch and help.
#include "cli/program.hpp"

#include <eddy/base/nearest.hpp>

#include "base/text/terminal_text.hpp"
#include "cli/text/table.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <utility>

namespace eddy::cli {
namespace {

std::vector<flag> global_flags() {
    return {{.name = "socket",
             .value_name = "PATH",
             .help = "the daemon's control socket; else $EDDY_SOCKET, else the default path"},
            {.name = "json", .help = "print JSON, for programs"},
            {.name = "help", .letter = 'h', .help = "show this text"}};
}

bool has_content(const char* variable) {
    const char* value = std::getenv(variable);
    return value && *value;
}

bool wants_colours() {
    const char* terminal = std::getenv("TERM");
    return ::isatty(STDOUT_FILENO) && !has_content("NO_COLOR") &&
           (!terminal || std::string_view(terminal) != "dumb");
}

std::size_t terminal_width() {
    winsize size{};
    return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

void apply_global_flags(context& with, const arguments& parsed) {
    if (parsed.has("socket")) with.socket = parsed.value("socket");
    if (parsed.is_set("json")) with.json = true;
}

const command* find_command(std::span<const command> commands, std::string_view name) {
    const auto found = std::find_if(commands.begin(), commands.end(),
                                    [&](const command& c) { return c.name == name; });
    return found == commands.end() ? nullptr : &*found;
}

std::string overview(const context& with, std::span<const command> commands) {
    std::string text =
        "Eddy runs network endpoints: caches, servers, sites, proxies and event streams.\n"
        "\n"
        "Usage: eddy [--socket PATH] [--json] <command> [arguments]\n"
        "\n"
        "Commands:\n";
    std::size_t width = 0;
    for (const command& c : commands)
        width = std::max(width, c.name.size() + 1 + c.operands.size());
    width = std::min<std::size_t>(width, 34);
    for (const command& c : commands)
        text += fmt::format("  {:<{}}  {}\n", c.name + " " + c.operands, width, c.summary);
    text += "\nTypes of runtime:\n";
    for (const type_flags& type : with.types)
        text += fmt::format("  {:<{}}  {}\n", type.name, width, type.summary);
    text += fmt::format(
        "\nExamples:\n"
        "  eddy daemon &\n"
        "  eddy create cache db -p 6379 -s\n"
        "  eddy ls\n\n"
        "`eddy help COMMAND` and `eddy help create TYPE` tell more.\n"
        "The daemon's socket is --socket, else $EDDY_SOCKET, else {}.\n",
        with.default_socket);
    return text;
}

/// The command that does what a word of Docker, systemctl or Redis does; empty for none.
std::string_view command_for_foreign_word(std::string_view word) {
    static constexpr std::pair<std::string_view, std::string_view> words[] = {
        {"rm", "remove"},      {"delete", "remove"}, {"del", "remove"},    {"destroy", "remove"},
        {"restart", "reload"}, {"inspect", "show"},  {"describe", "show"}, {"top", "stats"},
        {"info", "stats"},     {"kill", "stop"},     {"run", "create"},    {"add", "create"},
        {"new", "create"},     {"list", "ls"},       {"status", "ls"},     {"update", "edit"},
        {"set", "edit"},       {"exec", "db"},       {"cli", "db"},        {"redis-cli", "db"},
        {"attach", "logs"},    {"journal", "logs"},  {"publish", "send"}};
    const auto* const found = std::find_if(std::begin(words), std::end(words),
                                           [&](const auto& each) { return each.first == word; });
    return found == std::end(words) ? std::string_view() : found->second;
}

int unknown_command(std::span<const command> commands, std::string_view name) {
    std::vector<std::string_view> names;
    for (const command& c : commands) names.push_back(c.name);
    std::string_view meant = command_for_foreign_word(name);
    if (meant.empty()) meant = nearest_word(name, names);
    if (meant.empty())
        complain(fmt::format("there is no command \"{}\"; `eddy help` lists those there are",
                             printable(name)));
    else
        complain(fmt::format("there is no command \"{}\"; did you mean `eddy {}`?", printable(name),
                             meant));
    return exit_bad_input;
}

std::string usage(const command& which) {
    return fmt::format("Usage: eddy {}{}{}", which.name, which.operands.empty() ? "" : " ",
                       which.operands);
}

int usage_error(const command& which, std::string_view message) {
    complain(fmt::format("{}\n{}\n`eddy help {}` tells more.", message, usage(which), which.name));
    return exit_bad_input;
}

std::string last_word(std::string_view name) {
    return std::string(name.substr(name.rfind(' ') + 1));
}

/// The child that `word` chooses; null, after a complaint, when there is none.
const command* find_child(const command& parent, std::string_view word) {
    std::vector<std::string> names;
    for (const command& each : parent.children) {
        names.push_back(last_word(each.name));
        if (names.back() == word) return &each;
    }
    complain(fmt::format("there is no `eddy {} {}`; there are: {}", parent.name, printable(word),
                         fmt::join(names, ", ")));
    return nullptr;
}

int show_help(const context& with, std::span<const command> commands,
              std::span<const std::string> words) {
    if (words.empty()) {
        print(overview(with, commands));
        return exit_ok;
    }
    const command* which = find_command(commands, words[0]);
    if (!which) return unknown_command(commands, words[0]);
    if (words.size() > 1 && !which->children.empty()) {
        which = find_child(*which, words[1]);
        if (!which) return exit_bad_input;
        print(describe_command(with, *which, ""));
        return exit_ok;
    }
    if (words.size() > 1 && !with.find_type(words[1])) {
        complain(fmt::format("there is no type \"{}\"; `eddy help` lists those there are",
                             printable(words[1])));
        return exit_bad_input;
    }
    print(describe_command(with, *which, words.size() > 1 ? words[1] : ""));
    return exit_ok;
}

bool asks_for_help(std::span<const std::string> words, const command& which) {
    std::size_t without_dash = 0;
    for (const std::string& word : words) {
        if (word == "--" || without_dash >= which.literal_after) return false;
        if (!word.starts_with('-')) ++without_dash;
        if (word == "--help" || word == "-h" || (which.single_dash && word == "-help")) return true;
    }
    return false;
}

int run_command(context& with, const command& which, std::span<const std::string> words) {
    if (which.run_raw) return which.run_raw(with, words);
    if (!which.children.empty()) {
        if (words.empty()) return usage_error(which, fmt::format("{} needs a name", which.name));
        if (words[0] == "--help" || words[0] == "-h") {
            print(describe_command(with, which, ""));
            return exit_ok;
        }
        const command* const child = find_child(which, words[0]);
        return child ? run_command(with, *child, words.subspan(1)) : exit_bad_input;
    }
    if (asks_for_help(words, which)) {
        std::string_view type;
        for (const std::string& word : words)
            if (with.find_type(word)) type = word;
        print(describe_command(with, which, which.more_flags ? type : ""));
        return exit_ok;
    }
    std::vector<flag> table = which.flags;
    for (flag& f : global_flags()) table.push_back(std::move(f));
    if (which.more_flags) {
        // Where the daemon is must be known before it is asked which flags there are.
        for (std::size_t i = 0; i < words.size(); ++i) {
            if (words[i].starts_with("--socket=")) with.socket = words[i].substr(9);
            if (words[i] == "--socket" && i + 1 < words.size()) with.socket = words[i + 1];
        }
        auto more = which.more_flags(with, words);
        if (!more) return usage_error(which, more.error());
        table.insert(table.begin(), more->begin(), more->end());
    }
    auto parsed = parse_arguments(words, table, which.literal_after, which.single_dash);
    if (!parsed) return usage_error(which, parsed.error());
    apply_global_flags(with, *parsed);
    const std::size_t given = parsed->positional().size();
    if (given < which.least)
        return usage_error(which, fmt::format("{} needs {}", which.name, which.operands));
    if (given > which.most)
        return usage_error(which, fmt::format("{} does not take \"{}\"", which.name,
                                              printable(parsed->positional()[which.most])));
    return which.run(with, *parsed);
}

}  // namespace

std::vector<std::string> context::secret_parameters() const {
    std::vector<std::string> all;
    for (const type_flags& each : types)
        all.insert(all.end(), each.secret_parameters.begin(), each.secret_parameters.end());
    return all;
}

const type_flags* context::find_type(std::string_view name) const noexcept {
    const auto found = std::find_if(types.begin(), types.end(),
                                    [&](const type_flags& t) { return t.name == name; });
    return found == types.end() ? nullptr : &*found;
}

int run_program(context& with, std::span<const command> commands,
                std::span<const std::string> words) {
    const char* socket = std::getenv("EDDY_SOCKET");
    with.socket = socket && *socket ? socket : with.default_socket;
    with.colours = wants_colours();
    with.width = terminal_width();

    // Flags in front of the command.
    std::size_t at = 0;
    while (at < words.size() && words[at].starts_with('-') && words[at] != "-") {
        const std::string& word = words[at++];
        if (word == "--help" || word == "-h") {
            print(overview(with, commands));
            return exit_ok;
        }
        if (word == "--version") {
            print(fmt::format("eddy {}\n", with.version));
            return exit_ok;
        }
        if (word == "--json") {
            with.json = true;
        } else if (word.starts_with("--socket=")) {
            with.socket = word.substr(9);
        } else if (word == "--socket" && at < words.size()) {
            with.socket = words[at++];
        } else if (word == "--socket") {
            complain("--socket needs a value: --socket PATH");
            return exit_bad_input;
        } else {
            complain(
                fmt::format("there is no flag {} in front of a command; `eddy help` shows "
                            "what there is",
                            printable(word)));
            return exit_bad_input;
        }
    }
    if (at == words.size()) {
        complain("no command is given\n" + overview(with, commands));
        return exit_bad_input;
    }
    const std::string& name = words[at++];
    const std::span<const std::string> rest = words.subspan(at);
    int status = exit_ok;
    if (name == "help") {
        status = show_help(with, commands, rest);
    } else {
        const command* which = find_command(commands, name);
        if (!which) return unknown_command(commands, name);
        status = run_command(with, *which, rest);
    }
    if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
        complain("could not write to standard output");
        return exit_fatal;
    }
    return status;
}

std::string describe_command(const context& with, const command& which, std::string_view type) {
    std::string text = fmt::format("{}\n\n{}\n", which.summary, usage(which));
    if (!which.more.empty()) text += "\n" + which.more + "\n";
    if (!which.children.empty()) {
        text += "\nCommands:\n";
        for (const command& child : which.children)
            text += fmt::format("  {:<30}{}\n", "eddy " + child.name, child.summary);
        text += fmt::format("\n`eddy {} NAME --help` tells more.\n", which.name);
    }
    if (!which.flags.empty()) text += "\nFlags:\n" + describe_flags(which.flags);
    if (which.more_flags) {
        if (const type_flags* chosen = with.find_type(type)) {
            text += fmt::format("\nFlags of {}:\n", chosen->name) + describe_flags(chosen->flags);
        } else {
            text += "\nFurther flags depend on the type:\n";
            for (const type_flags& t : with.types)
                text += fmt::format("  {:<30}{}\n", "eddy help create " + t.name, t.summary);
        }
    }
    text += "\nFlags of every command:\n" + describe_flags(global_flags());
    if (!which.examples.empty()) {
        text += "\nExamples:\n";
        for (const example& e : which.examples)
            text += e.what.empty() ? fmt::format("  {}\n", e.command)
                                   : fmt::format("  {}\n      {}\n", e.command, e.what);
    }
    return text;
}

void complain(std::string_view message) {
    fmt::print(stderr, "eddy: {}\n", escaped_for_terminal(message));
}

void print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

}  // namespace eddy::cli
