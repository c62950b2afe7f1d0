// Names and owners of runtimes: rename, owner.
#include "base/text/terminal_text.hpp"
#include "cli/commands/cascade.hpp"
#include "cli/commands/commands.hpp"
#include "cli/request.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

namespace eddy::cli {
namespace {

int rename(context& with, const arguments& given) {
    const auto text = request_body({{"name", given.positional()[1]}});
    if (!text) return text.error();
    control_request request;
    request.method = "POST";
    request.target = runtime_target(given.positional()[0], "/rename");
    request.body = *text;
    const auto renamed = ask(with, std::move(request));
    if (!renamed) return renamed.error();
    if (with.json)
        print(pretty(*renamed));
    else
        print(fmt::format("{} is {} now\n", printable(given.positional()[0]),
                          printable(text_of(*renamed, "name"))));
    if (const std::string stack = text_of(*renamed, "stack"); !with.json && !stack.empty())
        complain(
            fmt::format("it is of the stack \"{}\": rename it in the stack's file, too; else "
                        "`eddy up` makes the old one anew and removes this one",
                        printable(stack)));
    return exit_ok;
}

int set_owner(const context& with, const std::string& name, const std::string& owner) {
    const auto text = request_body({{"owner", owner}});
    if (!text) return text.error();
    control_request request;
    request.method = "PATCH";
    request.target = runtime_target(name);
    request.body = *text;
    const auto edited = ask(with, std::move(request));
    if (!edited) return edited.error();
    if (with.json)
        print(pretty(*edited));
    else
        print(owner.empty()
                  ? fmt::format("{} has no owner\n", printable(name))
                  : fmt::format("{} is owned by {}\n", printable(name), printable(owner)));
    return exit_ok;
}

/// Prints the owner, and what is owned.
int show_owner(const context& with, const std::string& name) {
    control_request request;
    request.target = runtime_target(name);
    const auto runtime = ask(with, std::move(request));
    if (!runtime) return runtime.error();
    const auto all = list_matching(with, "*");
    if (!all) return all.error();
    const std::string full_name = text_of(*runtime, "name");
    json owned = json::array();
    for (const json& each : *all)
        if (text_of(each, "owner") == full_name)
            owned.push_back({{"name", text_of(each, "name")},
                             {"on_parent_stop", text_of(each, "on_parent_stop")}});
    const std::string owner = text_of(*runtime, "owner");
    if (with.json) {
        print(pretty({{"name", full_name}, {"owner", owner}, {"owns", owned}}));
        return exit_ok;
    }
    print(fmt::format("owner: {}\n", owner.empty() ? "none" : printable(owner)));
    for (const json& each : owned)
        print(fmt::format("owns: {} (--on-parent-stop {})\n", printable(text_of(each, "name")),
                          printable(text_of(each, "on_parent_stop"))));
    return exit_ok;
}

int owner(context& with, const arguments& given) {
    const auto& words = given.positional();
    const bool clears = given.is_set("clear");
    if (clears && words.size() > 1) {
        complain("--clear takes the owner away: leave out the flag or the new owner");
        return exit_bad_input;
    }
    if (clears) return set_owner(with, words[0], "");
    return words.size() > 1 ? set_owner(with, words[0], words[1]) : show_owner(with, words[0]);
}

}  // namespace

command rename_command() {
    command c;
    c.name = "rename";
    c.operands = "<name> <new-name>";
    c.summary = "give a runtime another name, while it runs";
    c.least = c.most = 2;
    c.examples = {{"eddy rename db cache-1", ""}};
    c.more =
        "Its clients, data, log and the runtimes that it owns stay with it. Scripts see the new\n"
        "name as self.name after a restart. Options of other runtimes that name it, such as a\n"
        "proxy's --backend, are not changed.";
    c.run = rename;
    return c;
}

command owner_command() {
    command c;
    c.name = "owner";
    c.operands = "<name> [owner]";
    c.summary = "show or change the owner of a runtime";
    c.flags = {{.name = "clear", .help = "take its owner away"}};
    c.least = 1;
    c.most = 2;
    c.examples = {{"eddy owner worker", "its owner, and what it owns"},
                  {"eddy owner worker boss", ""},
                  {"eddy owner worker --clear", ""}};
    c.more =
        "What an owner's stop and removal mean for it is its --on-parent-stop: eddy edit NAME\n"
        "--on-parent-stop stop|remove|keep.";
    c.run = owner;
    return c;
}

}  // namespace eddy::cli
