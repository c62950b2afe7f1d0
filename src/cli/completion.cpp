// Completion: where in a line the word stands, and what may stand there.
#include "cli/completion.hpp"

#include <eddy/io/timeout.hpp>

#include "base/text/terminal_text.hpp"
#include "cli/request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <utility>

namespace eddy::cli {
namespace {

using words_view = std::span<const std::string>;

/// Time for the daemon's answer: a person waits for the shell.
constexpr duration patience = std::chrono::seconds(1);

/// The beginning of a help text: a list of candidates has no room for more.
std::string short_help(std::string_view help) {
    constexpr std::size_t most = 72;
    std::size_t end = std::min({help.find(';'), help.find(". "), help.size()});
    if (end > most) end = std::max<std::size_t>(help.rfind(' ', most), 1);
    return printable(help.substr(0, end));
}

/// One line, taken apart as parse_arguments() does.
class line {
public:
    line(const context& with, std::span<const command> commands, words_view words,
         const runtime_source& runtimes)
        : with_(with),
          commands_(commands),
          before_(words.first(words.size() - 1)),
          current_(words.back()),
          runtimes_(runtimes) {}

    completions run() {
        // Flags in front of the command.
        while (at_ < before_.size() && before_[at_].starts_with('-')) {
            // --lua FILE is `lua run FILE`.
            if (before_[at_] == "--lua") return files();
            if (before_[at_] == "--socket" && ++at_ == before_.size()) return files();
            ++at_;
        }
        if (at_ == before_.size()) return of_commands();
        const std::string& name = before_[at_++];
        if (name == "help") return of_help();
        const command* which = find(commands_, name);
        if (which == nullptr) return {};
        while (!which->children.empty()) {
            if (at_ == before_.size()) return of_children(*which);
            which = find(which->children, which->name + " " + before_[at_++]);
            if (which == nullptr) return {};
        }
        return of_arguments(*which);
    }

private:
    static const command* find(std::span<const command> in, std::string_view name) {
        const auto found = std::ranges::find_if(in, [name](const command& each) {
            return each.name == name || std::ranges::find(each.aliases, name) != each.aliases.end();
        });
        return found == in.end() ? nullptr : &*found;
    }

    static completions files() {
        completions made;
        made.takes_files = true;
        return made;
    }

    /// Adds a candidate that begins as the word does.
    void add(completions& to, std::string word, std::string_view help = {}) const {
        if (word.starts_with(current_)) to.words.push_back({std::move(word), short_help(help)});
    }

    completions of_commands() const {
        completions made;
        if (current_.starts_with('-')) {
            for (const char* const flag : {"--socket", "--json", "--lua", "--help", "--version"})
                add(made, flag);
            return made;
        }
        for (const command& each : commands_) add(made, each.name, each.summary);
        add(made, "help", "show the help of a command");
        return made;
    }

    completions of_children(const command& parent) const {
        completions made;
        for (const command& each : parent.children)
            add(made, each.name.substr(parent.name.size() + 1), each.summary);
        return made;
    }

    completions of_help() const {
        if (at_ == before_.size()) return of_commands();
        const command* const which = find(commands_, before_[at_]);
        if (which == nullptr) return {};
        if (!which->children.empty()) return of_children(*which);
        return which->more_flags ? of_types() : completions();
    }

    completions of_types() const {
        completions made;
        for (const type_flags& each : with_.types) add(made, each.name, each.summary);
        return made;
    }

    /// The flags that a command takes here.
    std::vector<flag> flags_of(const command& which) const {
        std::vector<flag> table = which.flags;
        const words_view own = before_.subspan(arguments_at_);
        if (which.more_flags) {
            const type_flags* type = nullptr;
            for (const std::string& word : own) {
                if (type == nullptr) type = with_.find_type(word);
            }
            if (which.name == "edit") type = type_of(own);
            if (type != nullptr) table.insert(table.end(), type->flags.begin(), type->flags.end());
        }
        table.push_back({.name = "socket", .value_name = "PATH", .is_path = true});
        table.push_back({.name = "json", .help = "print JSON, for programs"});
        table.push_back({.name = "help", .letter = 'h', .help = "show its help"});
        return table;
    }

    const type_flags* type_of(words_view own) const {
        const auto name = std::ranges::find_if(
            own, [](const std::string& word) { return !word.starts_with('-'); });
        if (name == own.end()) return nullptr;
        for (const known_runtime& each : runtimes_())
            if (each.name == *name) return with_.find_type(each.type);
        return nullptr;
    }

    completions of_arguments(const command& which) {
        arguments_at_ = at_;
        const std::vector<flag> table = flags_of(which);
        std::vector<std::string> positional;
        std::set<std::string> given;
        bool ended = false;
        for (; at_ < before_.size(); ++at_) {
            const std::string& word = before_[at_];
            if (ended || word.size() < 2 || word[0] != '-') {
                positional.push_back(word);
            } else if (word == "--") {
                ended = true;
            } else if (const flag* const of = flag_of(table, word)) {
                given.insert(of->name);
                const bool has_value =
                    word.starts_with("--") ? word.find('=') != std::string::npos : word.size() > 2;
                if (!of->takes_value() || has_value) continue;
                if (++at_ == before_.size()) return values_of(which, *of, current_, "");
            }
        }
        if (positional.size() >= which.literal_after) return {};
        if (!ended && current_.starts_with('-')) {
            const std::size_t equals = current_.find('=');
            if (equals == std::string::npos) return of_flags(table, given);
            const flag* const of = flag_of(table, current_);
            if (of == nullptr || !of->takes_value()) return {};
            return values_of(which, *of, current_.substr(equals + 1),
                             current_.substr(0, equals + 1));
        }
        return of_operand(which, positional);
    }

    static const flag* flag_of(const std::vector<flag>& table, std::string_view word) {
        const std::string_view name =
            word.starts_with("--") ? word.substr(2, word.find('=') - 2) : std::string_view();
        const auto found = std::ranges::find_if(table, [&](const flag& each) {
            return name.empty() ? each.letter != 0 && each.letter == word[1]
                                : each.name == name || each.former_name == name;
        });
        return found == table.end() ? nullptr : &*found;
    }

    completions of_flags(const std::vector<flag>& table, const std::set<std::string>& given) const {
        completions made;
        for (const flag& each : table) {
            if (each.is_ignored || (given.contains(each.name) && !each.repeats)) continue;
            add(made, "--" + each.name, each.help);
            if (each.negatable && current_.starts_with("--no")) add(made, "--no-" + each.name);
        }
        return made;
    }

    /// Values of a flag that begin with `begun`; candidates have `prefix` in front.
    completions values_of(const command& which, const flag& of, std::string_view begun,
                          const std::string& prefix) const {
        completions made;
        const auto offer = [&](std::string_view value, std::string_view help = {}) {
            if (value.starts_with(begun))
                made.words.push_back({prefix + std::string(value), short_help(help)});
        };
        for (const std::string& each : of.choices) offer(each);
        if (!of.choices.empty()) return made;
        if (of.name == "owner") {
            for (const known_runtime& each : runtimes_()) offer(each.name, each.type);
        } else if (of.name == "cache" && of.value_name == "NAME") {
            for (const known_runtime& each : runtimes_())
                if (each.type == "cache") offer(each.name, each.type);
        } else if (of.name == "backend" || of.name == "backup" || of.name == "route") {
            offer_backends(made, of.name == "route", begun, prefix);
        } else if (of.name == "group") {
            for (const std::string& each : groups()) offer(each);
        } else if (of.name == "filter") {
            for (const char* const key : {"type=", "name=", "group=", "owner="}) offer(key);
            offer(which.name == "events" ? "event=" : "status=");
        } else if (of.name == "unset") {
            for (const flag& each : flags_of(which)) offer(each.name, each.help);
        } else if (of.name == "type") {
            for (const type_flags& each : with_.types) offer(each.name, each.summary);
        } else {
            made.takes_files = of.is_path;
        }
        return made;
    }

    /// Runtimes and groups as the last of a list, such as ":7001,si"; of a route behind its place,
    /// such as "/api=si".
    void offer_backends(completions& to, bool is_route, std::string_view begun,
                        const std::string& prefix) const {
        const std::size_t end = begun.find_last_of(is_route ? "=," : ",");
        if (is_route && end == std::string_view::npos) return;
        const std::string_view before = begun.substr(0, end + 1);  // none: npos + 1 is 0
        begun.remove_prefix(before.size());
        const auto offer = [&](const std::string& name, std::string_view help) {
            if (name.starts_with(begun))
                to.words.push_back({prefix + std::string(before) + name, short_help(help)});
        };
        for (const known_runtime& each : runtimes_())
            if (each.type != "client" && each.type != "stream") offer(each.name, each.type);
        if (begun.starts_with('@'))
            for (const std::string& each : groups()) offer("@" + each, "group");
    }

    std::set<std::string> groups() const {
        std::set<std::string> all;
        for (const known_runtime& each : runtimes_())
            if (!each.group.empty()) all.insert(each.group);
        return all;
    }

    /// Words without a dash, by how the help calls them.
    completions of_operand(const command& which, const std::vector<std::string>& before) const {
        if (before.size() >= which.most) return {};
        if (which.name == "create") return before.empty() ? of_types() : completions();
        if (which.name == "completion") {
            completions made;
            for (const char* const shell : {"bash", "zsh", "fish"}) add(made, shell);
            return made;
        }
        const std::string_view operands = which.operands;
        if (operands.find("file") != std::string_view::npos || operands.starts_with("<path"))
            return files();
        const bool is_first = before.empty();
        const bool has_more =
            operands.find("...") != std::string_view::npos || which.name == "owner";
        const bool takes_names = operands.starts_with("<name") || operands.starts_with("[name") ||
                                 operands.starts_with("[pattern");
        if (!takes_names || (!is_first && !has_more) || (!is_first && which.name == "db") ||
            (!is_first && which.name == "send"))
            return {};
        return of_runtimes(which, before);
    }

    completions of_runtimes(const command& which, const std::vector<std::string>& before) const {
        completions made;
        const std::string& name = which.name;
        for (const known_runtime& each : runtimes_()) {
            const bool runs = each.status == "running" || each.status == "starting";
            if ((name == "start" && runs) || (name == "stop" && !runs)) continue;
            if (name == "db" && each.type != "cache") continue;
            if (name == "attach" && each.type != "client" && each.type != "server") continue;
            if (std::ranges::find(before, each.name) != before.end()) continue;
            add(made, each.name, each.type + ", " + each.status);
        }
        if (which.operands.find("pattern") != std::string::npos && current_.starts_with('@'))
            for (const std::string& each : groups()) add(made, "@" + each, "group");
        return made;
    }

    const context& with_;
    std::span<const command> commands_;
    words_view before_;
    const std::string& current_;
    const runtime_source& runtimes_;
    std::size_t at_ = 0;
    std::size_t arguments_at_ = 0;  // behind the command's name
};

/// The runtimes of the daemon at a socket; none where it does not answer.
std::vector<known_runtime> ask_daemon(const std::string& socket) {
    control_client client(socket);
    auto here = client.own_loop();
    if (!here) return {};
    control_request request;
    request.target = "/v1/runtimes?fields=name,type,group,status";
    const auto answer = (*here)->run(with_timeout(patience, client.exchange(std::move(request))));
    if (!answer || answer->status != 200) return {};
    const auto list = list_rows::parse(answer->body);
    if (!list) return {};
    std::vector<known_runtime> all;
    for (std::size_t row = 0; row < list->size(); ++row) {
        const auto text = [&](std::string_view field) {
            return std::string(list->at(row, list->column(field)));
        };
        all.push_back({text("name"), text("type"), text("group"), text("status")});
    }
    return all;
}

constexpr std::string_view bash_script =
    R"sh(# bash completion for eddy; `eddy completion bash` prints it.
_eddy() {
    local IFS=$'\n' word line
    local -a words=()
    # Bash takes --flag=value apart at "=".
    for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
        local last=$((${#words[@]} - 1))
        if [[ $last -ge 0 && ($word == "=" || ${words[last]} == --*=) ]]; then
            words[last]+=$word
        else
            words+=("$word")
        fi
    done
    COMPREPLY=()
    local joined=${words[${#words[@]} - 1]} begun=""
    if [[ $joined == --*=* && $COMP_WORDBREAKS == *=* ]]; then begun=${joined%%=*}=; fi
    for line in $("${COMP_WORDS[0]}" complete -- "${words[@]}" 2>/dev/null); do
        if [[ $line == ":files" ]]; then
            compopt -o filenames 2>/dev/null
            COMPREPLY=($(compgen -f -- "${joined#"$begun"}"))
            return
        fi
        line=${line%%$'\t'*}
        COMPREPLY+=("$(printf '%q' "${line#"$begun"}")")
    done
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then compopt -o nospace 2>/dev/null; fi
}
complete -F _eddy eddy
)sh";

constexpr std::string_view zsh_script =
    R"sh(#compdef eddy
# zsh completion for eddy; `eddy completion zsh` prints it.
_eddy() {
    local -a lines described
    local line
    lines=("${(@f)$(${words[1]} complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    for line in $lines; do
        if [[ $line == ":files" ]]; then
            [[ $PREFIX == --*=* ]] && compset -P 1 '*='
            _files
            return
        fi
        [[ -n $line ]] || continue
        described+=("${${line%%$'\t'*}//:/\\:}${${line#*$'\t'}:+:${line#*$'\t'}}")
    done
    (( ${#described} )) && _describe eddy described
}
if [[ $funcstack[1] == _eddy ]]; then _eddy "$@"; else compdef _eddy eddy; fi
)sh";

constexpr std::string_view fish_script =
    R"sh(# fish completion for eddy; `eddy completion fish` prints it.
function __eddy_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l lines ($words[1] complete -- $words[2..] "$current" 2>/dev/null)
    if test "$lines[1]" = ":files"
        __fish_complete_path (string replace -r -- '^--[^=]*=' '' "$current")
    else
        printf '%s\n' $lines
    end
end
complete -c eddy -f -a '(__eddy_complete)'
)sh";

}  // namespace

completions complete(const context& with, std::span<const command> commands,
                     std::span<const std::string> words, const runtime_source& runtimes) {
    static const std::string empty[] = {""};
    return line(with, commands, words.empty() ? words_view(empty) : words, runtimes).run();
}

int run_completion(context& with, std::span<const command> commands,
                   std::span<const std::string> words) {
    if (!words.empty() && words[0] == "--") words = words.subspan(1);
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (words[i].starts_with("--socket=")) with.socket = words[i].substr(9);
        if (words[i] == "--socket" && i + 1 < words.size()) with.socket = words[i + 1];
    }
    std::optional<std::vector<known_runtime>> known;
    const completions made = complete(with, commands, words, [&] {
        if (!known) known = ask_daemon(with.socket);
        return *known;
    });
    for (const candidate& each : made.words)
        print(printable(each.word) + (each.help.empty() ? "" : "\t" + each.help) + "\n");
    if (made.takes_files) print(":files\n");
    return exit_ok;
}

std::string_view completion_script(std::string_view shell) {
    if (shell == "bash") return bash_script;
    if (shell == "zsh") return zsh_script;
    if (shell == "fish") return fish_script;
    return {};
}

}  // namespace eddy::cli
