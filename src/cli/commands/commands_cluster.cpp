// `eddy cluster`: the daemons that belong together, and the runtimes of each.
#include <eddy/wire/http1/target.hpp>

#include "base/text/terminal_text.hpp"
#include "cli/commands/commands.hpp"
#include "cli/commands/events.hpp"
#include "cli/request.hpp"
#include "cli/text/list_text.hpp"
#include "cli/text/table.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <expected>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::cli {
namespace {

using rows = std::vector<std::vector<cell>>;

std::expected<json, int> ask_cluster(const context& with, std::string target) {
    control_request request;
    request.target = "/v1/cluster" + std::move(target);
    return ask(with, std::move(request));
}

/// The list of objects of that name in an answer; empty where it is none.
json objects_in(const json& answer, const char* name) {
    json all = json::array();
    if (const auto list = answer.find(name); list != answer.end() && list->is_array())
        for (const json& each : *list)
            if (each.is_object()) all.push_back(each);
    return all;
}

bool is_true(const json& object, const char* name) {
    const auto found = object.find(name);
    return found != object.end() && *found == json(true);
}

/// A line above a table whose content may be old.
void print_staleness(const context& with, const json& answer) {
    if (!is_true(answer, "stale")) return;
    print(tinted(fmt::format("as last known, since the cluster cannot be reached: {}\n",
                             printable(text_of(answer, "stale_reason"))),
                 tint::yellow, with.colours));
}

void print_table(const context& with, std::vector<fitted_column> columns, rows content) {
    print(fitted_table(std::move(columns), std::move(content), with.width, with.colours));
}

std::string joined_texts(const json& object, const char* name) {
    std::string all;
    const auto list = object.find(name);
    if (list == object.end() || !list->is_array()) return all;
    for (const json& each : *list)
        if (each.is_string()) all += (all.empty() ? "" : ",") + each.get<std::string>();
    return all;
}

// --- ls -------------------------------------------------------------------------------------

cell state_of_member(const json& member) {
    if (is_true(member, "leaving")) return {"leaving", tint::yellow};
    return {is_true(member, "self") ? "this one" : "up", tint::green};
}

int list_members(context& with, const arguments&) {
    const auto answer = ask_cluster(with, "");
    if (!answer) return answer.error();
    if (with.json) {
        print(pretty(*answer));
        return exit_ok;
    }
    print_staleness(with, *answer);
    const auto now = std::chrono::system_clock::now();
    rows content;
    for (const json& each : objects_in(*answer, "members"))
        content.push_back({{text_of(each, "name"), tint::bold},
                           {text_of(each, "host")},
                           state_of_member(each),
                           {text_of(each, "running")},
                           {text_of(each, "runtimes")},
                           {text_of(each, "connections")},
                           {text_of(each, "label")},
                           {text_of(each, "version")},
                           {age_text(text_of(each, "started"), now)}});
    print_table(with,
                {{"NAME", 0, true},
                 {"HOST", 1},
                 {"STATE", 0},
                 {"RUNNING", 2},
                 {"RUNTIMES", 3},
                 {"CONNECTIONS", 4},
                 {"LABEL", 5},
                 {"VERSION", 6},
                 {"STARTED", 7}},
                std::move(content));
    return exit_ok;
}

// --- ps and group ---------------------------------------------------------------------------

void add_runtime(rows& to, const json& runtime) {
    const std::string status = text_of(runtime, "status");
    to.push_back({{text_of(runtime, "member"), tint::bold},
                  {text_of(runtime, "name"), tint::bold},
                  {text_of(runtime, "type")},
                  {text_of(runtime, "group")},
                  {status, tint_of_status(status)},
                  {text_of(runtime, "connections")},
                  {joined_texts(runtime, "addresses")}});
}

void print_runtimes(const context& with, const json& runtimes) {
    rows content;
    for (const json& each : runtimes) add_runtime(content, each);
    print_table(with,
                {{"MEMBER", 0, true},
                 {"NAME", 0, true},
                 {"TYPE", 4},
                 {"GROUP", 3},
                 {"STATUS", 0},
                 {"CONNECTIONS", 5},
                 {"ADDRESSES", 2}},
                std::move(content));
}

int list_runtimes(context& with, const arguments& given) {
    const std::string_view pattern =
        given.positional().empty() ? std::string_view("*") : given.positional()[0];
    auto answer = ask_cluster(with, "/runtimes?match=" + http1::percent_encode(pattern));
    if (!answer) return answer.error();
    json chosen = json::array();
    for (json& each : objects_in(*answer, "runtimes"))
        if (given.is_set("all") || text_of(each, "status") == "running")
            chosen.push_back(std::move(each));
    if (with.json) {
        (*answer)["runtimes"] = std::move(chosen);
        print(pretty(*answer));
        return exit_ok;
    }
    print_staleness(with, *answer);
    print_runtimes(with, chosen);
    return exit_ok;
}

int list_groups(const context& with, const json& answer) {
    rows content;
    for (const json& each : objects_in(answer, "groups")) {
        const json runtimes = objects_in(each, "runtimes");
        std::map<std::string, int> members;
        for (const json& its : runtimes) ++members[text_of(its, "member")];
        content.push_back({{text_of(each, "name"), tint::bold},
                           {text_of(each, "running")},
                           {std::to_string(runtimes.size())},
                           {std::to_string(members.size())}});
    }
    print_table(with, {{"GROUP", 0, true}, {"RUNNING", 0}, {"RUNTIMES", 1}, {"MEMBERS", 2}},
                std::move(content));
    return exit_ok;
}

int show_groups(context& with, const arguments& given) {
    std::string name(given.positional().empty() ? "*" : given.positional()[0]);
    if (name.starts_with('@')) name.erase(0, 1);
    const auto answer = ask_cluster(with, "/groups?match=" + http1::percent_encode(name));
    if (!answer) return answer.error();
    const json groups = objects_in(*answer, "groups");
    if (groups.empty() && !given.positional().empty()) {
        complain(
            fmt::format("no runtime of the cluster is in a group \"{}\"; `eddy cluster group` "
                        "lists those there are",
                        printable(name)));
        return exit_bad_input;
    }
    if (with.json) {
        print(pretty(*answer));
        return exit_ok;
    }
    print_staleness(with, *answer);
    if (given.positional().empty()) return list_groups(with, *answer);
    json all = json::array();
    for (const json& group : groups)
        for (json& each : objects_in(group, "runtimes")) all.push_back(std::move(each));
    print_runtimes(with, all);
    return exit_ok;
}

// --- show and stats -------------------------------------------------------------------------

int show_one(context& with, const arguments& given) {
    const auto answer =
        ask_cluster(with, "/members/" + http1::percent_encode(given.positional()[0]));
    if (!answer) return answer.error();
    print(pretty(*answer));
    return exit_ok;
}

/// Sums of the runtimes of one type.
struct type_sums {
    std::uint64_t runtimes = 0;
    std::uint64_t running = 0;
    std::uint64_t connections = 0;
};

int show_stats(context& with, const arguments&) {
    const auto members = ask_cluster(with, "");
    if (!members) return members.error();
    const auto runtimes = ask_cluster(with, "/runtimes");
    if (!runtimes) return runtimes.error();
    std::map<std::string, type_sums> types;
    std::map<std::string, int> groups;
    type_sums all;
    for (const json& each : objects_in(*runtimes, "runtimes")) {
        const bool is_running = text_of(each, "status") == "running";
        if (const std::string group = text_of(each, "group"); !group.empty()) ++groups[group];
        for (type_sums* const to : {&types[text_of(each, "type")], &all}) {
            to->runtimes += 1;
            to->running += is_running ? 1U : 0U;
            if (const auto its = each.find("connections");
                its != each.end() && its->is_number_unsigned())
                to->connections += its->get<std::uint64_t>();
        }
    }
    const json listed = objects_in(*members, "members");
    if (with.json) {
        json shown = {{"stale", is_true(*members, "stale")},
                      {"members", listed.size()},
                      {"groups", groups.size()},
                      {"runtimes", all.runtimes},
                      {"running", all.running},
                      {"connections", all.connections},
                      {"types", json::object()}};
        for (const auto& [type, its] : types)
            shown["types"][type] = {{"runtimes", its.runtimes},
                                    {"running", its.running},
                                    {"connections", its.connections}};
        print(pretty(shown));
        return exit_ok;
    }
    print_staleness(with, *members);
    print(fmt::format("{} members, {} groups\n", listed.size(), groups.size()));
    rows content;
    const auto add = [&content](const std::string& type, const type_sums& its) {
        content.push_back({{type, tint::bold},
                           {format_count(static_cast<double>(its.runtimes))},
                           {format_count(static_cast<double>(its.running))},
                           {format_count(static_cast<double>(its.connections))}});
    };
    for (const auto& [type, its] : types) add(type, its);
    add("all", all);
    print_table(with, {{"TYPE"}, {"RUNTIMES"}, {"RUNNING"}, {"CONNECTIONS"}}, std::move(content));
    return exit_ok;
}

// --- The commands ---------------------------------------------------------------------------

command ls() {
    command c;
    c.name = "cluster ls";
    c.summary = "list the members";
    c.examples = {{"eddy cluster ls", ""}, {"eddy cluster ls --json", "for programs"}};
    c.more = "A line above the table says when the members are those known last.";
    c.run = list_members;
    return c;
}

command ps() {
    command c;
    c.name = "cluster ps";
    c.operands = "[pattern]";
    c.summary = "list the running runtimes of all members";
    c.flags = {{.name = "all", .letter = 'a', .help = "also those that do not run"}};
    c.most = 1;
    c.examples = {{"eddy cluster ps", ""},
                  {"eddy cluster ps @web", "those of a group"},
                  {"eddy cluster ps 'b/*'", "those of the member b"}};
    c.more =
        "ADDRESSES are those at which other members reach a runtime: one that listens on\n"
        "127.0.0.1 has none; --bind '*' serves all addresses of its machine. Numbers of\n"
        "connections are a few seconds old.";
    c.run = list_runtimes;
    return c;
}

command group() {
    command c;
    c.name = "cluster group";
    c.operands = "[name]";
    c.summary = "show the runtimes of a group, on all members, or list the groups";
    c.most = 1;
    c.examples = {{"eddy cluster group web", ""}, {"eddy cluster group", "all groups"}};
    c.run = show_groups;
    return c;
}

command show_member() {
    command c;
    c.name = "cluster show";
    c.operands = "<member>";
    c.summary = "print a member and its runtimes as JSON";
    c.least = c.most = 1;
    c.examples = {{"eddy cluster show b", ""}};
    c.run = show_one;
    return c;
}

command stats() {
    command c;
    c.name = "cluster stats";
    c.summary = "show the numbers of members, groups, runtimes and connections";
    c.examples = {{"eddy cluster stats", ""}};
    c.run = show_stats;
    return c;
}

command watch() {
    command c;
    c.name = "cluster watch";
    c.operands = "[name|pattern]...";
    c.summary = "follow what happens to the members and their runtimes";
    c.flags = event_flags();
    c.most = most_event_names;
    c.examples = {{"eddy cluster watch", "all that happens from now on"},
                  {"eddy cluster watch --filter type=member", "members alone"},
                  {"eddy cluster watch @web 'b/*'", ""}};
    c.more =
        "Members have the events joined, leaving and left; runtimes, called MEMBER/NAME, those of\n"
        "`eddy events` that other members can see. degraded and recovered of the type cluster\n"
        "say when it cannot be reached, and when it can again.";
    c.run = [](context& with, const arguments& given) {
        return follow_events(with, given, "/v1/cluster/events");
    };
    return c;
}

}  // namespace

command cluster_command() {
    command c;
    c.name = "cluster";
    c.operands = "ls|ps|group|show|stats|watch";
    c.summary = "show the daemons of a cluster, and what runs on them";
    c.children = {ls(), ps(), group(), show_member(), stats(), watch()};
    c.examples = {{"eddy daemon --name a --cluster /srv/eddy", "a member"},
                  {"eddy cluster ls", ""},
                  {"eddy cluster ps @web", ""}};
    c.more = "docs/cluster.md begins with three daemons on one machine.";
    return c;
}

}  // namespace eddy::cli
