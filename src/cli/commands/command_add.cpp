// The command add: a runtime of the type program, from a path and arguments.
#include "base/text/text.hpp"
#include "cli/commands/commands.hpp"
#include "cli/local_path.hpp"
#include "cli/request.hpp"
#include "cli/text/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cli {
namespace {

constexpr std::size_t any_number = 1'000'000;
constexpr std::string_view program_type = "program";

/// The longest name of a runtime.
constexpr std::size_t longest_name = 128;

/// The file's name, without what a runtime's name does not take.
std::string name_for(std::string_view path) {
    std::string name(path.substr(path.rfind('/') + 1));
    for (char& each : name) {
        const bool is_taken = (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z') ||
                              (each >= '0' && each <= '9') || each == '.' || each == '-' ||
                              each == '_';
        if (!is_taken) each = '-';
    }
    return name.substr(0, longest_name);
}

/// The options of the type without the path and the arguments, which are words.
std::vector<flag> program_flags(const context& with) {
    const type_flags* const type = with.find_type(program_type);
    std::vector<flag> flags;
    if (type == nullptr) return flags;
    std::ranges::copy_if(type->flags, std::back_inserter(flags), [](const flag& each) {
        return each.name != "command" && each.name != "arg";
    });
    return flags;
}

int add(context& with, const arguments& given) {
    const auto path = find_program(given.positional()[0]);
    const auto here = absolute_path(".");
    if (!path || !here) {
        complain(!path ? path.error() : here.error());
        return exit_bad_input;
    }
    json options = {{"command", *path}, {"directory", *here}};
    for (std::size_t i = 1; i < given.positional().size(); ++i)
        options["arg"].push_back(given.positional()[i]);
    for (const flag& each : program_flags(with)) {
        const auto is_its = [&](const auto& value) { return value.first == each.name; };
        const auto count = std::ranges::count_if(given.values(), is_its);
        if (count == 0) continue;
        json& written = options[option_key(each.name)];
        if (!each.repeats && count > 1) {
            complain(given_twice(each.name));
            return exit_bad_input;
        }
        if (each.repeats)
            written = json::array();
        else
            written = given.value(each.name);
        for (const auto& [name, value] : given.values())
            if (each.repeats && name == each.name) written.push_back(value);
    }
    json body = {{"type", program_type},
                 {"name", given.has("name") ? std::string(given.value("name")) : name_for(*path)},
                 {"start", given.is_set("start")},
                 {"options", std::move(options)}};
    add_ownership(body, given);
    return request_create(with, body);
}

}  // namespace

command add_command() {
    command c;
    c.name = "add";
    c.operands = "<path> [flags] [-- argument...]";
    c.summary = "create a runtime that runs a program, with -s also start it";
    c.flags =
        with_ownership({{.name = "name",
                         .letter = 'n',
                         .value_name = "NAME",
                         .help = "the runtime's name; without it the name of the program's file"},
                        {.name = "start", .letter = 's', .help = "start it at once"}});
    c.least = 1;
    c.most = any_number;
    c.examples = {{"eddy add ./app -s", "a program of this folder, which is its working folder"},
                  {"eddy add python3 --name web -s --restart on-failure -- -m http.server 8000",
                   "one of $PATH, with arguments, started again when it fails"},
                  {"eddy add ./app -s --listen :8080 --restart always",
                   "it gets the listening socket as descriptor 3, as from systemd"},
                  {"eddy add ./app -s --env MODE=test --env-file app.env --health-check tcp:8080",
                   "variables, and a check of its health"}};
    c.more =
        "A path without a slash is looked up in $PATH. The same as: eddy create program NAME\n"
        "--command PATH --arg ARGUMENT. Its output is in `eddy logs NAME`.";
    c.run = add;
    c.more_flags = [](context& from, std::span<const std::string>) {
        return std::expected<std::vector<flag>, std::string>(program_flags(from));
    };
    c.described_flags = program_flags;
    return c;
}

}  // namespace eddy::cli
