// Pages in man(7) macros.
#include "cli/manual.hpp"

#include <eddy/base/assert.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <string_view>
#include <vector>

namespace eddy::cli {
namespace {

/// A text in which nothing is a request or an escape.
std::string plain(std::string_view text) {
    std::string made;
    bool begins_line = true;
    for (const char c : text) {
        if (begins_line && (c == '.' || c == '\'')) made += "\\&";
        if (c == '\\')
            made += "\\e";
        else if (c == '-')
            made += "\\-";
        else if (c == '\'')
            made += "\\(aq";
        else if (c == '^')
            made += "\\(ha";
        else if (c == '~')
            made += "\\(ti";
        else if (c == '`')
            made += "\\(ga";
        else
            made += c;
        begins_line = c == '\n';
    }
    return made;
}

std::string upper(std::string_view text) {
    std::string made(text);
    for (char& c : made) {
        if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
        if (c == ' ') c = '-';
    }
    return made;
}

/// A paragraph of words; lines end as sentences do, as the macros want it.
std::string paragraph(std::string_view text) {
    std::string made = plain(text);
    for (std::size_t at = 0; (at = made.find(". ", at)) != std::string::npos; ++at)
        made.replace(at + 1, 1, "\n");
    return made + "\n";
}

/// Paragraphs with an empty line between them, as the help has them.
std::string paragraphs(std::string_view text) {
    constexpr std::string_view between = "\n\n";
    std::string made;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(between), text.size());
        std::string each(text.substr(0, end));
        text.remove_prefix(std::min(end + between.size(), text.size()));
        std::replace(each.begin(), each.end(), '\n', ' ');
        made += ".PP\n" + paragraph(each);
    }
    return made;
}

std::string options_text(const std::vector<flag>& table) {
    std::string text;
    for (const flag& each : table) {
        if (each.is_ignored) continue;
        text += ".TP\n";
        std::string names = each.letter != 0 ? fmt::format("\\fB\\-{}\\fR, ", each.letter) : "";
        names += fmt::format("\\fB\\-\\-{}\\fR", plain(each.name));
        if (each.takes_value()) names += fmt::format(" \\fI{}\\fR", plain(each.value_name));
        text += names + "\n";
        std::string help = each.help;
        if (!each.choices.empty()) help += fmt::format(" ({})", fmt::join(each.choices, ", "));
        if (!each.default_value.empty()) help += fmt::format(" [{}]", each.default_value);
        text += paragraph(help.empty() ? each.name : help);
    }
    return text;
}

std::string examples_text(const std::vector<example>& all) {
    if (all.empty()) return "";
    std::string text = ".SH EXAMPLES\n";
    for (const example& each : all) {
        text += fmt::format(".TP\n\\fB{}\\fR\n", plain(each.command));
        text += each.what.empty() ? "\\&\n" : paragraph(each.what);
    }
    return text;
}

/// Pages of a command, and of its children.
void add_pages(std::vector<const command*>& to, const command& which) {
    to.push_back(&which);
    for (const command& each : which.children) add_pages(to, each);
}

}  // namespace

std::string manual_file(const command& which) {
    std::string name = which.name;
    std::replace(name.begin(), name.end(), ' ', '-');
    return fmt::format("eddy-{}.1", name);
}

std::string manual_page(const context& with, const command& which) {
    std::string text = fmt::format(
        ".\\\" Made from the tables of the program by `eddy help \\-\\-man`.\n"
        ".TH EDDY-{} 1 \"{}\" \"eddy {}\" \"User commands\"\n"
        ".SH NAME\neddy\\-{} \\- {}\n"
        ".SH SYNOPSIS\n.B eddy {}\n",
        upper(which.name), "2026-11-30", with.version,
        plain(manual_file(which).substr(5, manual_file(which).size() - 7)), plain(which.summary),
        plain(which.name));
    if (!which.operands.empty()) text += plain(which.operands) + "\n";
    text += ".SH DESCRIPTION\n";
    std::string summary = which.summary;
    EDDY_ASSERT(!summary.empty());
    summary[0] = upper(summary.substr(0, 1))[0];
    text += paragraph(summary + ".");
    text += paragraphs(which.more);
    if (!which.children.empty()) {
        text += ".SH COMMANDS\n";
        for (const command& each : which.children)
            text +=
                fmt::format(".TP\n\\fBeddy {}\\fR\n{}", plain(each.name), paragraph(each.summary));
    }
    std::vector<flag> common = {
        {.name = "socket", .value_name = "PATH", .help = "the daemon's control socket"},
        {.name = "json", .help = "print JSON, for programs"},
        {.name = "help", .letter = 'h', .help = "show the help of the command"}};
    text += ".SH OPTIONS\n" + options_text(which.flags) + options_text(common);
    if (which.more_flags) {
        for (const type_flags& each : with.types)
            text +=
                fmt::format(".SH OPTIONS OF {}\n{}", upper(each.name), options_text(each.flags));
    }
    std::vector<example> examples = which.examples;
    examples.insert(examples.end(), which.type_examples.begin(), which.type_examples.end());
    text += examples_text(examples);
    text +=
        ".SH EXIT STATUS\n0 for success, 1 for a mistake in the command or a refusal, 2 where the "
        "daemon cannot be reached or something broke.\n"
        ".SH SEE ALSO\n.BR eddy (1)\n";
    return text;
}

int write_manual(const context& with, std::span<const command> commands,
                 const std::string& folder) {
    std::vector<const command*> all;
    for (const command& each : commands) add_pages(all, each);
    for (const command* const each : all) {
        const std::string path = folder + "/" + manual_file(*each);
        std::ofstream file(path, std::ios::binary | std::ios::trunc);
        file << manual_page(with, *each);
        file.close();
        if (file) continue;
        complain(fmt::format("could not write {}", path));
        return exit_fatal;
    }
    return exit_ok;
}

}  // namespace eddy::cli
