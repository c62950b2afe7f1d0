// The program around the commands: dispatch and help.
#include "cli/program.hpp"

#include <eddy/base/nearest.hpp>

#include "base/text/terminal_text.hpp"
#include "cli/completion.hpp"
#include "cli/control_client.hpp"
#include "cli/manual.hpp"
#include "cli/text/table.hpp"
#include "cli/text/terminal.hpp"

#include <fmt/format.h>
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

void apply_global_flags(context& with, const arguments& parsed) {
    if (parsed.has("socket")) with.socket = parsed.value("socket");
    if (parsed.is_set("json")) with.json = true;
}

const command* find_command(std::span<const command> commands, std::string_view name) {
    const auto found = std::find_if(commands.begin(), commands.end(), [&](const command& c) {
        return c.name == name || std::ranges::find(c.aliases, name) != c.aliases.end();
    });
    return found == commands.end() ? nullptr : &*found;
}

/// A command and its summary.
std::string overview_line(std::string_view what, std::string_view summary) {
    constexpr std::size_t margin = 31;
    std::string line = fmt::format("  {:<{}}", what, margin - 2);
    if (what.size() + 2 >= margin) line += "\n" + std::string(margin, ' ');
    append_words(line, summary, margin);
    return line + "\n";
}

/// A text of paragraphs, with lines of help_width.
std::string paragraphs(std::string_view text) {
    constexpr std::string_view between = "\n\n";
    std::string made;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(between), text.size());
        std::string each(text.substr(0, end));
        text.remove_prefix(std::min(end + between.size(), text.size()));
        std::ranges::replace(each, '\n', ' ');
        made += "\n";
        append_words(made, each, 0);
        made += "\n";
    }
    return made;
}

std::string overview(const context& with, std::span<const command> commands) {
    std::string text =
        "Eddy runs a machine's network endpoints (caches, servers, sites, proxies, event\n"
        "streams) and programs.\n"
        "\n"
        "Usage: eddy [--socket PATH] [--json] <command> [arguments]\n"
        "\n"
        "Commands:\n";
    for (const command& c : commands)
        text += overview_line(c.operands.empty() ? c.name : c.name + " " + c.operands, c.summary);
    text += "\nTypes of runtime:\n";
    for (const type_flags& type : with.types) text += overview_line(type.name, type.summary);
    text += fmt::format(
        "\nExamples:\n"
        "  eddy daemon &\n"
        "  eddy create cache db -p 6379 -s\n"
        "  eddy ls\n"
        "  eddy up\n"
        "      the runtimes of the file eddy.toml\n\n"
        "`eddy help COMMAND` and `eddy help create TYPE` tell more.\n"
        "The daemon's socket is --socket, else $EDDY_SOCKET, else {}.\n",
        usual_socket(with.default_socket, with.system_socket));
    return text;
}

/// A word of Docker, systemctl or Redis, and what to write for it: a command's name, or a sentence.
struct foreign_word {
    std::string_view word;
    std::string_view meant;
    std::string_view sentence = {};
};

constexpr foreign_word foreign_words[] = {
    {"delete", "remove"},
    {"del", "remove"},
    {"destroy", "remove"},
    {"describe", "show"},
    {"info", "version"},
    {"status", "ls"},
    {"update", "edit"},
    {"set", "edit"},
    {"new", "create"},
    {"cli", "db"},
    {"redis-cli", "db"},
    {"connect", "attach"},
    {"journal", "logs"},
    {"publish", "send"},
    {"mv", "rename"},
    {"cat", "show"},
    {"history", "events"},
    {"journalctl", "logs"},
    {"run", "add",
     "`eddy create TYPE NAME -s` creates a runtime and starts it, `eddy add PATH -s` runs a "
     "program"},
    {"exec", "db",
     "`eddy db NAME COMMAND` sends a command to a cache, `eddy send NAME TEXT` a message to a "
     "server's clients; `eddy add PATH -s` runs a program"},
    {"kill", "stop",
     "`eddy stop NAME` stops a runtime; with --force also one whose data cannot be saved"},
    {"pause", "stop", "`eddy stop NAME` stops a runtime, and `eddy start NAME` starts it again"},
    {"port", "ls", "`eddy ls --format '{address}' NAME` prints where a runtime serves"},
    {"pull", "create",
     "there are no images: `eddy create TYPE NAME -s` makes a runtime, and `eddy help` lists the "
     "types"},
    {"build", "create", "there are no images: `eddy create TYPE NAME -s` makes a runtime"},
    {"images", "help", "there are no images: `eddy help` lists the types of runtimes"},
    {"dashboard", "console",
     "`eddy console` opens a web page, `eddy top` shows rates, `eddy events` what happens"},
    {"ui", "console"},
    {"web", "console"},
    {"compose", "up",
     "`eddy up`, `eddy down` and `eddy ps` need no word before them; `eddy help up` describes the "
     "file"},
    {"stack", "up", "`eddy up FILE` makes the runtimes of a file, `eddy down` removes them"},
    {"apply", "up"},
    {"import", "up"},
    {"config", "validate",
     "`eddy validate` checks a file of runtimes, `eddy show NAME` prints the options of one"},
    {"container", "ls", "commands need no word before them: `eddy ls`, `eddy logs NAME`"},
    {"upgrade", "daemon",
     "`eddy daemon --upgrade` starts this program in place of the running daemon"},
    {"daemon-reload", "daemon",
     "`systemctl reload eddy` upgrades the daemon, `eddy reload NAME` makes a runtime read its "
     "files again"},
    {"cp", "help", "files stay where they are: --root, --dir and --lua name them"},
    {"prune", "remove",
     "`eddy remove $(eddy ls -q --filter status=stopped)` removes what is stopped"},
    {"enable", "start",
     "`eddy start NAME` is enough: what runs when the daemon ends starts again with it"},
    {"disable", "stop", "`eddy stop NAME` is enough: what is stopped stays so"}};

int unknown_command(std::span<const command> commands, std::string_view name) {
    std::vector<std::string_view> names;
    for (const command& c : commands) names.push_back(c.name);
    const auto* const foreign = std::ranges::find(foreign_words, name, &foreign_word::word);
    if (foreign != std::end(foreign_words) && !foreign->sentence.empty()) {
        complain(fmt::format("there is no command \"{}\": {}", name, foreign->sentence));
        return exit_bad_input;
    }
    const std::string_view meant =
        foreign != std::end(foreign_words) ? foreign->meant : nearest_word(name, names);
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

/// `eddy help --man COMMAND` prints a manual page; `--man --all FOLDER` writes all of them.
int show_manual(const context& with, std::span<const command> commands,
                std::span<const std::string> words) {
    if (words.size() == 2 && words[0] == "--all") return write_manual(with, commands, words[1]);
    if (words.empty()) {
        complain("--man needs a command: eddy help --man create | man -l -");
        return exit_bad_input;
    }
    const command* which = find_command(commands, words[0]);
    if (!which) return unknown_command(commands, words[0]);
    if (words.size() > 1) which = find_child(*which, words[1]);
    if (which) print(manual_page(with, *which));
    return which ? exit_ok : exit_bad_input;
}

int show_help(const context& with, std::span<const command> commands,
              std::span<const std::string> words) {
    if (words.empty()) {
        print(overview(with, commands));
        return exit_ok;
    }
    if (words[0] == "--man") return show_manual(with, commands, words.subspan(1));
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

bool context::is_repeated(std::string_view flag) const noexcept {
    return std::any_of(types.begin(), types.end(), [flag](const type_flags& t) {
        return std::any_of(t.flags.begin(), t.flags.end(),
                           [flag](const auto& each) { return each.name == flag && each.repeats; });
    });
}

namespace {

/// The socket of a command that names none. A new daemon's is this user's own.
std::string socket_for(const context& with, std::string_view command) {
    return command == "daemon" ? with.default_socket
                               : usual_socket(with.default_socket, with.system_socket);
}

}  // namespace

int run_program(context& with, std::span<const command> commands,
                std::span<const std::string> words) {
    const char* socket = std::getenv("EDDY_SOCKET");
    bool is_named = socket && *socket;
    if (is_named) with.socket = socket;
    with.colours = wants_colours();
    with.width = size_of_terminal().columns;

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
        } else if (word == "--lua") {
            // The name of the whole command in another program.
            std::vector<std::string> run = {"run"};
            run.insert(run.end(), words.begin() + static_cast<std::ptrdiff_t>(at), words.end());
            const command* const which = find_command(commands, "lua");
            if (!is_named) with.socket = socket_for(with, "lua");
            return which == nullptr ? unknown_command(commands, "lua")
                                    : run_command(with, *which, run);
        } else if (word.starts_with("--socket=")) {
            with.socket = word.substr(9);
            is_named = true;
        } else if (word == "--socket" && at < words.size()) {
            with.socket = words[at++];
            is_named = true;
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
    if (name == "complete") {
        status = run_completion(with, commands, rest);
    } else if (name == "help") {
        status = show_help(with, commands, rest);
    } else {
        const command* which = find_command(commands, name);
        if (!which) return unknown_command(commands, name);
        if (!is_named) with.socket = socket_for(with, name);
        status = run_command(with, *which, rest);
    }
    if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
        complain("could not write to standard output");
        return exit_fatal;
    }
    return status;
}

namespace {

/// Examples of a command; with a type only its own.
std::vector<example> examples_of(const command& which, const type_flags* type) {
    if (!which.more_flags || type == nullptr) return which.examples;
    const std::string beginning = fmt::format("eddy {} {} ", which.name, type->name);
    std::vector<example> found;
    for (const auto* const all : {&which.examples, &which.type_examples})
        std::ranges::copy_if(*all, std::back_inserter(found), [&](const example& each) {
            return each.command.starts_with(beginning);
        });
    return found;
}

}  // namespace

std::string describe_command(const context& with, const command& which, std::string_view type) {
    std::string text;
    append_words(text, which.summary, 0);
    text += fmt::format("\n\n{}\n{}", usage(which), paragraphs(which.more));
    if (!which.children.empty()) {
        text += "\nCommands:\n";
        for (const command& child : which.children)
            text += overview_line("eddy " + child.name, child.summary);
        text += fmt::format("\n`eddy {} NAME --help` tells more.\n", which.name);
    }
    if (!which.flags.empty()) text += "\nFlags:\n" + describe_flags(which.flags);
    if (which.described_flags) {
        text += "\nFlags of the program:\n" + describe_flags(which.described_flags(with));
    } else if (which.more_flags) {
        if (const type_flags* chosen = with.find_type(type)) {
            text += fmt::format("\nFlags of {}:\n", chosen->name) + describe_flags(chosen->flags);
            std::string secrets;
            for (const flag& each : chosen->flags)
                if (each.is_secret)
                    secrets +=
                        fmt::format("{}--{}-file FILE", secrets.empty() ? "" : ", ", each.name);
            if (!secrets.empty())
                text += fmt::format("\nSecrets may come from files: {}\n", secrets);
        } else {
            text += "\nFurther flags depend on the type:\n";
            for (const type_flags& t : with.types)
                text += overview_line("eddy help create " + t.name, t.summary);
        }
    }
    text += "\nFlags of every command:\n" + describe_flags(global_flags());
    const std::vector<example> examples = examples_of(which, with.find_type(type));
    if (!examples.empty()) {
        text += "\nExamples:\n";
        for (const example& e : examples)
            text += e.what.empty() ? fmt::format("  {}\n", e.command)
                                   : fmt::format("  {}\n      {}\n", e.command, e.what);
    }
    return text;
}

void complain(std::string_view message) {
    fmt::print(stderr, "eddy: {}\n", escaped_for_terminal(message));
}

std::string given_twice(std::string_view flag) {
    return fmt::format("--{} is given twice; it has one value, of which commas may separate parts",
                       printable(flag));
}

void print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

}  // namespace eddy::cli
