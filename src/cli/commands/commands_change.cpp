// Commands that change runtimes.
#include <eddy/base/nearest.hpp>

#include "base/text/text.hpp"
#include "cli/commands/attachment.hpp"
#include "cli/commands/cascade.hpp"
#include "cli/commands/commands.hpp"
#include "cli/commands/secret_files.hpp"
#include "cli/local_path.hpp"
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
    return with_ownership({{.name = "start", .letter = 's', .help = "start it at once"}});
}

/// The type is the first word that is one; flags may stand anywhere.
std::expected<std::vector<flag>, std::string> flags_for_create(context& with,
                                                               std::span<const std::string> words) {
    for (const std::string& word : words)
        if (const type_flags* type = with.find_type(word)) {
            std::vector<flag> flags = type->flags;
            for (flag& each : secret_file_flags(type->flags)) flags.push_back(std::move(each));
            if (type->name == "cache") flags.push_back({.name = "resp", .is_ignored = true});
            return flags;
        }
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

/// Without a working folder a program has that of the command line.
std::expected<void, std::string> add_working_folder(const type_flags& type, json& options) {
    if (type.name != "program" || options.contains("directory")) return {};
    auto here = absolute_path(".");
    if (!here) return std::unexpected(std::move(here.error()));
    options["directory"] = std::move(*here);
    return {};
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
    add_ownership(body, given);
    for (const auto& [given_name, given_value] : given.values()) {
        std::string name = given_name;
        std::string value = given_value;
        if (const auto secret = option_of_secret_file(type->flags, name); !secret.empty()) {
            auto read = read_secret_file(name, value);
            if (!read) {
                complain(read.error());
                return exit_bad_input;
            }
            name = secret;
            value = std::move(*read);
        }
        const auto option = std::find_if(type->flags.begin(), type->flags.end(),
                                         [&](const flag& f) { return f.name == name; });
        if (option == type->flags.end()) continue;
        json& written = body["options"][option_key(name)];
        if (!option->repeats && !written.is_null()) {
            complain(given_twice(name));
            return exit_bad_input;
        }
        if (option->repeats)
            written.push_back(value);
        else
            written = value;
    }
    if (auto added = add_working_folder(*type, body["options"]); !added) {
        complain(added.error());
        return exit_bad_input;
    }
    const int made = request_create(with, body);
    if (made != exit_ok || with.json) return made;
    const std::string name = printable(given.positional()[1]);
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
                if (action.starts_with("/stop") && text_of(answer, "type") == "external")
                    complain(
                        fmt::format("{} is no longer watched; its process goes on, since Eddy "
                                    "did not start it",
                                    printable(name)));
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
    if (!given.is_set("yes"))
        if (const auto agreed = confirm_cascade(with, given, cascade::of_stop); !agreed)
            return agreed.error();
    const std::string action =
        given.is_set("force") ? fmt::format("/stop{}", force_query) : "/stop";
    return change_each(with, given, "POST", action, "stopped");
}

int remove(context& with, const arguments& given) {
    const bool is_forced = given.is_set("force");
    if (!is_forced && !given.is_set("yes"))
        if (const auto agreed = confirm_cascade(with, given, cascade::of_removal); !agreed)
            return agreed.error();
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

std::expected<json, int> send_message(const context& with, const std::string& name,
                                      std::string message) {
    control_request request;
    request.method = "POST";
    request.target = runtime_target(name, "/send");
    request.body = std::move(message);
    request.content_type = "application/octet-stream";
    return ask(with, std::move(request));
}

/// Sends each line of standard input as it comes. A failure ends it.
int send_lines(const context& with, const std::string& name) {
    std::size_t sent = 0;
    json last = {{"delivered", 0}};
    const auto read = for_each_input_line(message_limit, [&](std::string_view line) {
        auto answer = send_message(with, name, std::string(line));
        if (!answer) {
            complain(fmt::format("line {} and the rest of the input were not sent", sent + 1));
            return answer.error();
        }
        last = std::move(*answer);
        ++sent;
        return int{exit_ok};
    });
    if (!read) complain(read.error());
    if (read && sent == 0 && *read == exit_ok) {
        control_request request;
        request.target = runtime_target(name);
        if (const auto there = ask(with, std::move(request)); !there) return there.error();
    }
    if (with.json) {
        last["messages"] = sent;
        print(pretty(last));
    } else if (sent == 1) {
        print(fmt::format("delivered to {}\n", number_of(last, "delivered")));
    } else {
        print(fmt::format("{} messages sent{}\n", sent,
                          sent == 0 ? std::string()
                                    : fmt::format(", the last one delivered to {}",
                                                  number_of(last, "delivered"))));
    }
    return read ? *read : exit_bad_input;
}

int send(context& with, const arguments& given) {
    const std::string& name = given.positional()[0];
    const bool is_whole = given.is_set("whole");
    std::string message;
    if (given.positional().size() > 1) {
        if (is_whole) {
            complain("--whole is for standard input: leave out the flag or the message");
            return exit_bad_input;
        }
        for (std::size_t i = 1; i < given.positional().size(); ++i) {
            if (i > 1) message += ' ';
            message += given.positional()[i];
        }
    } else if (::isatty(STDIN_FILENO) != 0) {
        complain(
            fmt::format("there is no message: write eddy send {0} MESSAGE, or COMMAND | eddy "
                        "send {0}. `eddy attach {0}` sends what you type",
                        printable(name)));
        return exit_bad_input;
    } else if (!is_whole) {
        return send_lines(with, name);
    } else {
        auto input = read_input(message_limit, "the largest message; send it in pieces");
        if (!input) {
            complain(input.error());
            return exit_bad_input;
        }
        message = std::move(*input);
    }
    auto answer = send_message(with, name, std::move(message));
    if (!answer) return answer.error();
    if (with.json)
        print(pretty(*answer));
    else
        print(fmt::format("delivered to {}\n", number_of(*answer, "delivered")));
    return exit_ok;
}

}  // namespace

std::vector<flag> with_ownership(std::vector<flag> flags) {
    flags.push_back({.name = "owner",
                     .letter = 'o',
                     .value_name = "NAME",
                     .help = "the runtime that owns it; --on-parent-stop says what its end means"});
    flags.push_back({.name = "group",
                     .letter = 'g',
                     .value_name = "NAME",
                     .help = "its group, for @NAME in other commands"});
    flags.push_back(on_parent_stop_flag());
    return flags;
}

void add_ownership(json& body, const arguments& given) {
    for (const char* name : {"owner", "group"})
        if (given.has(name)) body[name] = given.value(name);
    if (given.has("on-parent-stop")) body["on_parent_stop"] = given.value("on-parent-stop");
}

int request_create(context& with, const json& body) {
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
    return exit_ok;
}

namespace {

/// Further examples of each type, for `eddy help create TYPE`.
std::vector<example> examples_of_types() {
    return {
        {"eddy create cache kept -p 6380 --dir ./kept --appendonly yes -s",
         "a cache whose keys outlive the machine"},
        {"eddy create cache lru -p 6381 --maxmemory 256M --eviction allkeys-lru -s",
         "one that drops what is used least"},
        {"eddy create cache copy -p 6382 --replicate 10.0.0.5:6379 --replicate-password-file pw -s",
         "a replica; the password comes from a file"},
        {"eddy create server log -p 5140 --udp --mode in -s", "datagrams, to the server alone"},
        {"eddy create server room -p 9002 --lua room.lua -s", "a server with a script"},
        {"eddy create http docs -p 443 --bind '*' --tls --cert site.pem --key site.key --root "
         "./docs -s",
         "a site over HTTPS, for the network"},
        {"eddy create client ticker -t wss://feed.example/v1 -s", "a WebSocket client"},
        {"eddy create client probe -t udp://10.0.0.9:9999 -s", "datagrams to a server"},
        {"eddy create stream cmd --handoff unix:///run/cmd.sock --source exec --exec ./answer.sh "
         "-s",
         "a program answers each client"},
        {"eddy create program api --command ./api --listen :8080 --health-check tcp:8080 -s",
         "a program with a socket that stays open, and a check of its health"},
        {"eddy create external db --kind postgres -p 5432 -s",
         "whether something listens on a port; `eddy attach` is shorter"},
        {"eddy create external app -p 8000 --pid 4711 -s", "a process, whose end is seen at once"},
        {"eddy create proxy gw -p 8080 --protocol http --backend site --route '/api>/=:7001' -s",
         "a runtime's site, and a program's paths below /api"},
        {"eddy create proxy web -p 443 --bind '*' --tls --cert site.pem --key site.key --protocol "
         "http --backend :7001,:7002*3 --health-check http --health-path /live -s",
         "HTTPS before two servers that are checked, the second with three times the requests"},
        {"eddy create proxy plain -p 80 --bind '*' --protocol http --redirect '/=https://$host' -s",
         "to HTTPS"},
        {"eddy create proxy inner -p 8081 --protocol http --backend "
         "'tls://10.0.0.7:443?ca=ca.pem&name=inner.example' -s",
         "a server over TLS that is given by its address"},
        {"eddy create proxy sni -p 8444 --route a.example=:7443 --backend :7445 -s",
         "TLS passed on by name, undecrypted"},
        {"eddy create proxy keys -p 6379 --sentinel 10.0.0.1:26379,10.0.0.2:26379 --backend "
         "@cache-master -s",
         "the cache that Redis's Sentinels call the master now"},
        {"eddy create proxy dns --listen udp://127.0.0.1:5353 --backend 10.0.0.1:53 -s",
         "datagrams"}};
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
        {"eddy create client feed -t 10.0.0.9:7000 -s",
         "a connection that is kept up; `eddy attach feed` shows it"},
        {"eddy create stream llm --handoff unix:///run/eddy/llm.sock -s",
         "event streams to clients that a web server hands over"},
        {"eddy create program web --command ./web --arg=--quiet --restart on-failure -s",
         "a program that is started again when it fails; `eddy add` is shorter"},
        {"eddy help create cache", "the flags of a cache"}};
    c.type_examples = examples_of_types();
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
                .help = "then attach to it, as `eddy attach` does: show what a client receives, or "
                        "another runtime's log, and send each typed line, until Ctrl-C or Ctrl-D; "
                        "the runtime stays up"}};
    c.least = 1;
    c.most = any_number;
    c.examples = {
        {"eddy start db", ""},
        {"eddy start -i feed", "a client: also shows its server's messages, and sends typed lines"},
        {"eddy start -i chat", "a server: with --log-traffic its log shows what clients send"},
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
                        "runtime is not stopped"},
               {.name = "yes", .letter = 'y', .help = "do not ask about what it owns"}};
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

command restart_command() {
    command c;
    c.name = "restart";
    c.operands = "<name|pattern>...";
    c.summary = "restart runtimes, and start stopped ones; caches keep their keys";
    c.flags = {{.name = "discard-keys", .help = "restart a cache even if its keys cannot be kept"}};
    c.least = 1;
    c.most = any_number;
    c.examples = {{"eddy restart chat", ""}};
    c.more =
        "The next instance has the same listeners, so no client is refused: it serves new clients "
        "at\n"
        "once, and those of the one before may finish; those of a cache wait. `eddy reload` is\n"
        "enough for new files.";
    c.run = [](context& with, const arguments& given) {
        const std::string_view query = given.is_set("discard-keys") ? discard_query : "";
        return change_each(with, given, "POST", fmt::format("/restart{}", query), "restarted");
    };
    return c;
}

command reload_lua_command() {
    command c;
    c.name = "reload-lua";
    c.operands = "<name|pattern>...";
    c.summary = "load the scripts of --lua again, while connections stay";
    c.least = 1;
    c.most = any_number;
    c.examples = {{"eddy reload-lua chat",
                   "a script with a mistake is refused: the present one "
                   "goes on"},
                  {"eddy reload-lua 'room-*'", "each of several runtimes"}};
    c.more =
        "The new script's on_reload(old) gets the global variables of the one before; without an\n"
        "on_reload its on_start() is called. What set_data and join_group have kept stays.";
    c.run = [](context& with, const arguments& given) {
        return change_each(with, given, "POST", "/reload-lua", "script reloaded");
    };
    return c;
}

command remove_command() {
    command c;
    c.name = "remove";
    c.aliases = {"rm"};
    c.operands = "<name|pattern>...";
    c.summary = "stop and delete runtimes, and the runtimes that they own";
    c.flags = {{.name = "force",
                .letter = 'f',
                .help = "do not ask, and also if data cannot be saved, which is then lost"},
               {.name = "yes", .letter = 'y', .help = "do not ask"}};
    c.more = "On a terminal it asks before it removes what runs, or what is owned, which is shown.";
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
    c.flags = {{.name = "whole",
                .letter = 'w',
                .help = "send all of standard input as one message, of at most 1 MiB"}};
    c.least = 1;
    c.most = any_number;
    c.examples = {{"eddy send chat 'Hello, all'", "every client gets the line"},
                  {"tail -f app.log | eddy send feed",
                   "without a message each line of standard input is one, sent as it comes"},
                  {"eddy send feed --whole < reading.json",
                   "one message, over UDP, WebSocket or with --framing raw"}};
    c.more =
        "It prints the number of receivers. Of a client that is 1, or 0 while the message waits\n"
        "in its queue for a connection. A message that is refused ends it.";
    c.run = send;
    return c;
}

}  // namespace eddy::cli
