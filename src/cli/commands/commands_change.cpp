// Commands that change runtimes.
#include <eddy/base/nearest.hpp>

#include "base/text/text.hpp"
#include "cli/commands/commands.hpp"
#include "cli/commands/journal.hpp"
#include "cli/request.hpp"
#include "cli/text/table.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <expected>
#include <set>
#include <string>
#include <vector>

namespace eddy::cli {
namespace {

/// No bound on how many words a command takes.
constexpr std::size_t any_number = 1'000'000;

std::vector<flag> create_flags() {
    return {{.name = "start", .letter = 's', .help = "start it at once"},
            {.name = "owner",
             .letter = 'o',
             .value_name = "NAME",
             .help = "the runtime that owns it: it is stopped and removed with its owner"},
            {.name = "group",
             .letter = 'g',
             .value_name = "NAME",
             .help = "its group, for @NAME in other commands"}};
}

/// The type is the first word that is one; flags may stand anywhere.
std::expected<std::vector<flag>, std::string> flags_for_create(context& with,
                                                               std::span<const std::string> words) {
    for (const std::string& word : words)
        if (const type_flags* type = with.find_type(word)) return type->flags;
    std::vector<std::string_view> names;
    for (const type_flags& type : with.types) names.push_back(type.name);
    const auto first = std::find_if(words.begin(), words.end(),
                                    [](const std::string& w) { return !w.starts_with('-'); });
    if (first == words.end())
        return std::unexpected(fmt::format("which type? There are {}", fmt::join(names, ", ")));
    const std::string_view meant = nearest_word(*first, names);
    if (!meant.empty())
        return std::unexpected(
            fmt::format("there is no type \"{}\"; did you mean \"{}\"?", printable(*first), meant));
    return std::unexpected(fmt::format("there is no type \"{}\"; there are {}", printable(*first),
                                       fmt::join(names, ", ")));
}

std::string place_of(const json& runtime) {
    const std::string address = text_of(runtime, "address");
    return address.empty() ? "" : " on " + printable(address);
}

int create(context& with, const arguments& given) {
    json body = {{"type", given.positional()[0]},
                 {"name", given.positional()[1]},
                 {"start", given.is_set("start")},
                 {"options", json::object()}};
    const type_flags* type = with.find_type(given.positional()[0]);
    if (!type) {
        complain(fmt::format("the type comes first: eddy create TYPE NAME; there is no type \"{}\"",
                             printable(given.positional()[0])));
        return exit_bad_input;
    }
    for (const char* name : {"owner", "group"})
        if (given.has(name)) body[name] = given.value(name);
    for (const auto& [name, value] : given.values()) {
        const bool is_option = std::any_of(type->flags.begin(), type->flags.end(),
                                           [&](const flag& f) { return f.name == name; });
        if (!is_option) continue;
        body["options"][option_key(name)] = value;
    }
    auto text = request_body(body);
    if (!text) return text.error();
    control_request request;
    request.method = "POST";
    request.target = "/v1/runtimes";
    request.body = std::move(*text);
    auto made = ask(with, std::move(request));
    if (!made) return made.error();
    if (with.json) {
        print(pretty(*made));
        return exit_ok;
    }
    const std::string name = printable(text_of(*made, "name"));
    if (text_of(*made, "status") == "running")
        print(fmt::format("{} created and started{}\n", name, place_of(*made)));
    else
        print(fmt::format("{0} created; start it with: eddy start {0}\n", name));
    for (const flag& f : type->flags)
        if (!f.absence.empty() && !given.has(f.name))
            complain(fmt::format("{0} {1}: eddy edit {0} --{2} {3}", name, f.absence, f.name,
                                 f.value_name));
    return exit_ok;
}

/// Reports the data that a stop has lost.
void report_loss(const std::string& name, const json& answer) {
    const std::string lost = text_of(answer, "lost");
    if (!lost.empty()) complain(fmt::format("{} lost {}", printable(name), lost));
}

/// Sends a request for each runtime that the words mean, and prints `done` for each.
int change_each(context& with, const arguments& given, std::string_view method,
                std::string_view action, std::string_view done) {
    json answers = json::array();
    const int status =
        ask_each(with, given, method, action, [&](const std::string& name, json& answer) {
            if (with.json) {
                answers.push_back(answer.is_null() ? json{{"name", name}} : std::move(answer));
            } else {
                print(fmt::format("{} {}{}\n", printable(name), done,
                                  answer.is_object() ? place_of(answer) : ""));
                if (answer.is_object()) report_loss(name, answer);
            }
        });
    if (with.json) print(pretty(answers));
    return status;
}

int start(context& with, const arguments& given) {
    if (!given.is_set("interactive")) return change_each(with, given, "POST", "/start", "started");
    if (given.positional().size() != 1) {
        complain("--interactive is for one runtime: eddy start -i NAME");
        return exit_bad_input;
    }
    auto names = resolve(with, given.positional()[0]);
    if (!names) return names.error();
    if (names->size() != 1) {
        complain(fmt::format("--interactive is for one runtime, and \"{}\" means {}",
                             printable(given.positional()[0]), names->size()));
        return exit_bad_input;
    }
    const int started = change_each(with, given, "POST", "/start", "started");
    return started == exit_ok ? attach(with, names->front()) : started;
}

constexpr std::string_view force_query = "?force=true";

int stop(context& with, const arguments& given) {
    const std::string action =
        given.is_set("force") ? fmt::format("/stop{}", force_query) : "/stop";
    return change_each(with, given, "POST", action, "stopped");
}

/// The runtime of that name, and all that it owns, by any number of owners.
std::vector<const json*> with_owned(const json& all, std::string_view name) {
    std::vector<const json*> found;
    for (const json& each : all)
        if (text_of(each, "name") == name) found.push_back(&each);
    for (std::size_t i = 0; i < found.size(); ++i) {
        for (const json& each : all) {
            const bool is_owned = text_of(each, "owner") == text_of(*found[i], "name");
            // State that was edited by hand may have a circle.
            if (is_owned && std::find(found.begin(), found.end(), &each) == found.end())
                found.push_back(&each);
        }
    }
    return found;
}

/// Reports what a removal would end while it runs; false where there is nothing. The error is an
/// exit status.
std::expected<bool, int> report_running(const context& with, const arguments& given) {
    const auto all = list_matching(with, "*");
    if (!all) return std::unexpected(all.error());
    std::vector<std::string> meant;    // whose removal it is
    std::vector<std::string> running;  // they, and what they own
    for (const std::string& word : given.positional()) {
        const auto list = list_matching(with, word);
        if (!list) return std::unexpected(list.error());
        for (const json& each : *list) {
            meant.push_back(text_of(each, "name"));
            for (const json* const one : with_owned(*all, text_of(each, "name"))) {
                std::string name = text_of(*one, "name");
                if (text_of(*one, "status") == "running") running.push_back(std::move(name));
            }
        }
    }
    for (std::vector<std::string>* const names : {&meant, &running}) {
        std::sort(names->begin(), names->end());
        names->erase(std::unique(names->begin(), names->end()), names->end());
    }
    if (running.empty()) return false;
    complain(
        fmt::format("nothing was removed, because these are running: {}; to stop and remove them: "
                    "eddy remove -f {}",
                    printable(fmt::format("{}", fmt::join(running, " "))),
                    printable(fmt::format("{}", fmt::join(meant, " ")))));
    return true;
}

int remove(context& with, const arguments& given) {
    const bool is_forced = given.is_set("force");
    // A slip of the hand is to be noticed; scripts know what they do.
    if (!is_forced && ::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0) {
        const auto runs = report_running(with, given);
        if (!runs) return runs.error();
        if (*runs) return exit_bad_input;
    }
    json answers = json::array();
    std::set<std::string> gone;
    const auto take = [&](const std::string& name, json& answer) {
        // Null is one that went alone.
        if (answer.is_null()) answer = json{{"name", name}};
        std::vector<std::string> owned;
        for (const json& each : answer.value("owned", json::array()))
            owned.push_back(text_of(each, "name"));
        gone.insert(owned.begin(), owned.end());
        if (with.json) {
            answers.push_back(std::move(answer));
            return;
        }
        print(fmt::format(
            "{} removed{}\n", printable(name),
            owned.empty()
                ? ""
                : ", and what it owned: " + printable(fmt::format("{}", fmt::join(owned, ", ")))));
        report_loss(name, answer);
        for (const json& each : answer.value("owned", json::array()))
            report_loss(text_of(each, "name"), each);
    };
    const int status = ask_each(with, given, "DELETE", is_forced ? force_query : "", take, gone);
    if (with.json) print(pretty(answers));
    return status;
}

int send(context& with, const arguments& given) {
    std::string message;
    if (given.positional().size() > 1) {
        for (std::size_t i = 1; i < given.positional().size(); ++i) {
            if (i > 1) message += ' ';
            message += given.positional()[i];
        }
    } else {
        auto input = read_input(message_limit, "the largest message; send it in pieces");
        if (!input) {
            complain(input.error());
            return exit_bad_input;
        }
        message = std::move(*input);
    }
    control_request request;
    request.method = "POST";
    request.target = runtime_target(given.positional()[0], "/send");
    request.body = std::move(message);
    request.content_type = "application/octet-stream";
    auto answer = ask(with, std::move(request));
    if (!answer) return answer.error();
    if (with.json)
        print(pretty(*answer));
    else
        print(fmt::format("delivered to {}\n", number_of(*answer, "delivered")));
    return exit_ok;
}

}  // namespace

command create_command() {
    command c;
    c.name = "create";
    c.operands = "<type> <name> [flags]";
    c.summary = "create a runtime, with -s also start it";
    c.flags = create_flags();
    c.least = c.most = 2;
    c.examples = {
        {"eddy create cache db -p 6379 -s", "a cache for any Redis client"},
        {"eddy create server chat -p 9000 --max-connections 100 -s",
         "each client's lines go to all others"},
        {"eddy create server live -p 9001 --http ./public -s",
         "the same, also over WebSocket, with web pages of a folder"},
        {"eddy create http site -p 8080 --root ./public -s", "a folder's files, over HTTP"},
        {"eddy create proxy gw -p 8000 --backend 10.0.0.7:5432,10.0.0.8:5432 -s",
         "a TCP proxy to two databases"},
        {"eddy create stream llm --handoff unix:///run/llm.sock -s",
         "event streams to clients that a web server hands over"},
        {"eddy help create cache", "the flags of a cache"}};
    c.more = "A name is 1 to 128 letters, digits, dots, dashes and underscores.";
    c.run = create;
    c.more_flags = flags_for_create;
    return c;
}

command start_command() {
    command c;
    c.name = "start";
    c.operands = "<name|pattern>...";
    c.summary = "start runtimes";
    c.flags = {{.name = "interactive",
                .letter = 'i',
                .help = "then show its log, and send each typed line to its clients, until Ctrl-D; "
                        "the runtime stays up"}};
    c.least = 1;
    c.most = any_number;
    c.examples = {
        {"eddy start db", ""},
        {"eddy start -i chat", "with --log-traffic of chat, also shows what clients send"},
        {"eddy start 'api-*'", "every runtime whose name begins with api-"},
        {"eddy start @web", "every runtime of the group web"}};
    c.run = start;
    return c;
}

command stop_command() {
    command c;
    c.name = "stop";
    c.operands = "<name|pattern>...";
    c.summary = "stop runtimes; their connections get time to finish";
    c.flags = {{.name = "force",
                .help = "also if data cannot be saved, which is then lost; without it such a "
                        "runtime is not stopped"}};
    c.least = 1;
    c.most = any_number;
    c.examples = {{"eddy stop db", ""}, {"eddy stop '*'", "all of them"}};
    c.run = stop;
    return c;
}

command reload_command() {
    command c;
    c.name = "reload";
    c.operands = "<name|pattern>...";
    c.summary = "make runtimes read their files again, or restart them; caches keep their keys";
    c.flags = {{.name = "discard-keys", .help = "restart a cache even if its keys cannot be kept"}};
    c.least = 1;
    c.most = any_number;
    c.examples = {{"eddy reload chat", ""}};
    c.run = [](context& with, const arguments& given) {
        const std::string_view query = given.is_set("discard-keys") ? discard_query : "";
        return change_each(with, given, "POST", fmt::format("/reload{}", query), "reloaded");
    };
    return c;
}

command remove_command() {
    command c;
    c.name = "remove";
    c.operands = "<name|pattern>...";
    c.summary = "stop and delete runtimes, and the runtimes that they own";
    c.flags = {
        {.name = "force",
         .letter = 'f',
         .help = "also running ones (required on a terminal), and also if data cannot be saved"}};
    c.least = 1;
    c.most = any_number;
    c.examples = {{"eddy remove db", ""}, {"eddy remove 'test-?'", ""}};
    c.run = remove;
    return c;
}

command send_command() {
    command c;
    c.name = "send";
    c.operands = "<name> [message]";
    c.summary = "send a message to a server's clients, or to a client's server";
    c.least = 1;
    c.most = any_number;
    c.examples = {{"eddy send chat 'Hello, all'", "every client gets the line"},
                  {"date | eddy send chat", "without a message it sends standard input"}};
    c.run = send;
    return c;
}

}  // namespace eddy::cli
