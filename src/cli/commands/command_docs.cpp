// Documentation of commands: reading COMMAND DOCS, and the texts made of it. Syntax is written as
// redis-cli writes it.
#include "cli/commands/command_docs.hpp"

#include <eddy/base/nearest.hpp>

#include "base/text/terminal_text.hpp"
#include "base/text/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace eddy::cli {
namespace {

std::string upper(std::string_view text) {
    std::string made(text);
    for (char& c : made)
        if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    return made;
}

/// The member of a map, which RESP2 has as an array of keys and values; null where there is none.
const reply* member(const reply& of, std::string_view key) {
    for (std::size_t i = 0; i + 1 < of.elements.size(); i += 2)
        if (of.elements[i].text == key) return &of.elements[i + 1];
    return nullptr;
}

std::string text_member(const reply& of, std::string_view key) {
    const reply* const found = member(of, key);
    return found == nullptr ? std::string() : printable(found->text);
}

bool has_flag(const reply& argument, std::string_view flag) {
    const reply* const flags = member(argument, "flags");
    return flags != nullptr && std::any_of(flags->elements.begin(), flags->elements.end(),
                                           [&](const reply& each) { return each.text == flag; });
}

std::string syntax_of(const reply& argument);

std::string joined_syntax(const reply& argument, std::string_view joint) {
    std::vector<std::string> parts;
    if (const reply* const all = member(argument, "arguments"))
        for (const reply& each : all->elements) parts.push_back(syntax_of(each));
    return fmt::format("{}", fmt::join(parts, joint));
}

/// One argument with all that is nested in it.
std::string syntax_of(const reply& argument) {
    const std::string type = text_member(argument, "type");
    const bool is_optional = has_flag(argument, "optional");
    std::string text;
    if (type == "block") {
        text = joined_syntax(argument, " ");
    } else if (type == "oneof") {
        text = joined_syntax(argument, " | ");
        if (!is_optional) text = '<' + text + '>';
    } else if (type != "pure-token") {
        text = text_member(argument, "display_text");
        if (text.empty()) text = text_member(argument, "name");
    }
    std::string whole = text;
    std::string token;
    if (member(argument, "token") != nullptr) {
        token = text_member(argument, "token");
        if (token.empty()) token = "\"\"";
        whole = text.empty() ? token : token + ' ' + text;
    }
    if (has_flag(argument, "multiple"))
        whole += fmt::format(" [{} ...]", has_flag(argument, "multiple_token") ? whole : text);
    return is_optional ? '[' + whole + ']' : whole;
}

/// The words of a line, as they stand there.
std::vector<std::string_view> words_of(std::string_view line) {
    std::vector<std::string_view> words;
    for (std::size_t at = 0; at < line.size();) {
        const std::size_t end = std::min(line.find(' ', at), line.size());
        if (end > at) words.push_back(line.substr(at, end - at));
        at = end + 1;
    }
    return words;
}

constexpr std::string_view general_help =
    "Commands are those of Redis, as redis-cli takes them: set greeting \"hello world\"\n"
    "  help COMMAND    what it does, and its arguments; Tab completes names\n"
    "  help @GROUP     the commands of a group: @string, @hash, @list, @set, @sorted-set, "
    "@stream,\n"
    "                  @generic, @pubsub, @transactions, @scripting, @connection, @server ...\n"
    "  exit, Ctrl-D    the end; Ctrl-C, too, and of what subscribes\n"
    "Up and down go through the history.\n";

}  // namespace

command_docs::command_docs(const reply& docs) { add(docs); }

void command_docs::add(const reply& docs) {
    for (std::size_t i = 0; i + 1 < docs.elements.size(); i += 2) {
        std::string name = upper(printable(docs.elements[i].text));
        std::replace(name.begin(), name.end(), '|', ' ');
        const reply& its = docs.elements[i + 1];
        if (its.elements.empty()) continue;
        entry made;
        made.summary = text_member(its, "summary");
        made.since = text_member(its, "since");
        made.group = text_member(its, "group");
        if (const reply* const arguments = member(its, "arguments"))
            for (const reply& each : arguments->elements) made.arguments.push_back(syntax_of(each));
        commands_.insert_or_assign(std::move(name), std::move(made));
        if (const reply* const below = member(its, "subcommands")) add(*below);
    }
}

std::vector<std::string> command_docs::completions(std::string_view line) const {
    // `help` takes names, too.
    constexpr std::string_view help_word = "help ";
    if (line.size() >= help_word.size() && is_word(line.substr(0, help_word.size()), help_word)) {
        std::vector<std::string> names = completions(line.substr(help_word.size()));
        for (std::string& each : names) each.insert(0, line.substr(0, help_word.size()));
        return names;
    }
    const std::string wanted = upper(line);
    const bool is_lower = !line.empty() && line == lower(line);
    std::vector<std::string> found;
    for (auto at = commands_.lower_bound(wanted);
         at != commands_.end() && at->first.starts_with(wanted); ++at) {
        // A subcommand's name comes once its command is there.
        if (at->first.find(' ', wanted.size()) != std::string::npos) continue;
        found.push_back(is_lower ? lower(at->first) : at->first);
    }
    return found;
}

std::string command_docs::hint(std::string_view line) const {
    const auto words = words_of(line);
    for (const std::size_t count : {std::size_t{2}, std::size_t{1}}) {
        if (words.size() < count) continue;
        std::string name = upper(words[0]);
        if (count == 2) name += ' ' + upper(words[1]);
        const auto found = commands_.find(name);
        if (found == commands_.end()) continue;
        const std::vector<std::string>& all = found->second.arguments;
        // From the first argument on that may come in several forms, all stay.
        std::size_t done = 0;
        while (done < all.size() && count + done < words.size() &&
               all[done].find_first_of(" [<") == std::string::npos)
            ++done;
        return fmt::format(
            "{}", fmt::join(all.begin() + static_cast<std::ptrdiff_t>(done), all.end(), " "));
    }
    return {};
}

std::string command_docs::describe(std::string_view name, const entry& of) const {
    std::string text(name);
    for (const std::string& each : of.arguments) text += ' ' + each;
    text += "\n  " + of.summary + "\n";
    if (!of.since.empty() || !of.group.empty())
        text += fmt::format("  since {}, of @{}\n", of.since, of.group);
    return text;
}

std::string command_docs::help(std::span<const std::string> words) const {
    if (words.empty()) return std::string(general_help);
    if (commands_.empty()) return "the cache does not say which commands it has\n";
    std::string text;
    if (words[0].starts_with('@')) {
        for (const auto& [name, its] : commands_)
            if (is_word(its.group, lower(words[0].substr(1)))) text += describe(name, its);
        return text.empty() ? fmt::format("there is no group \"{}\"\n", printable(words[0])) : text;
    }
    const std::string name = upper(fmt::format("{}", fmt::join(words, " ")));
    if (const auto found = commands_.find(name); found != commands_.end())
        text = describe(found->first, found->second);
    for (auto at = commands_.lower_bound(name + ' ');
         at != commands_.end() && at->first.starts_with(name + ' '); ++at)
        text += describe(at->first, at->second);
    if (!text.empty()) return text;
    std::vector<std::string_view> names;
    for (const auto& [each, ignored] : commands_) names.push_back(each);
    const std::string_view meant = nearest_word(name, names);
    return meant.empty() ? fmt::format("there is no command \"{}\"\n", printable(name))
                         : fmt::format("there is no command \"{}\"; did you mean {}?\n",
                                       printable(name), meant);
}

bool has_secret(std::span<const std::string> command,
                std::span<const std::string> secret_parameters) {
    if (command.empty()) return false;
    const auto has = [&](std::string_view word) {
        return std::any_of(command.begin() + 1, command.end(),
                           [&](const std::string& each) { return is_word(each, word); });
    };
    const std::string& name = command[0];
    if (is_word(name, "auth")) return true;
    if (is_word(name, "hello") || is_word(name, "migrate")) return has("auth") || has("auth2");
    if (is_word(name, "acl")) return has("setuser");
    return is_word(name, "config") && has("set") && std::ranges::any_of(secret_parameters, has);
}

}  // namespace eddy::cli
