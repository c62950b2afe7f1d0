// `eddy up`, `down`, `diff`, `validate` and `export`: the runtimes of a file.
#include "cli/commands/commands.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/wire/http1/target.hpp>

#include "base/text/terminal_text.hpp"
#include "base/text/text.hpp"
#include "cli/request.hpp"
#include "cli/stack/export.hpp"
#include "cli/stack/file_watch.hpp"
#include "cli/stack/plan_text.hpp"
#include "cli/stack/stack_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <expected>
#include <functional>
#include <iostream>
#include <map>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace eddy::cli {
namespace {

constexpr std::string_view default_path = "eddy.toml";
constexpr std::string_view default_export = "machine";

flag file_flag() {
    return {.name = "file",
            .letter = 'f',
            .value_name = "FILE",
            .help = "the file, its folder, or - for standard input",
            .default_value = std::string(default_path)};
}
flag stack_flag() {
    return {.name = "stack",
            .value_name = "NAME",
            .help = "name of the stack, in place of the file's own, its folder's or its name"};
}
flag yes_flag() {
    return {.name = "yes",
            .letter = 'y',
            .help = "do not ask before connections are closed or data is lost"};
}
flag adopt_flag() {
    return {.name = "adopt",
            .help = "runtimes of the file's names that are there already become the stack's"};
}

/// The path, which may be an operand or a flag.
std::string path_of(const arguments& given) {
    if (!given.positional().empty()) return given.positional().front();
    return std::string(given.value("file", default_path));
}

/// In the order of the file that they are in.
void complain_of(std::vector<file_fault> faults) {
    std::ranges::sort(faults, {}, [](const file_fault& each) {
        return std::tuple(each.at.file, each.at.line, each.at.column);
    });
    for (const file_fault& each : faults)
        complain(fmt::format("{}: {}", each.at.to_string(), each.message));
}

/// The file without faults; otherwise they have been printed.
std::expected<stack_file, int> read_file(context& with, const arguments& given) {
    stack_file file = read_stack(with, path_of(given), process_environment());
    if (given.has("stack")) file.name = given.value("stack");
    complain_of(file.warnings);
    if (file.faults.empty()) return file;
    complain_of(file.faults);
    return std::unexpected(exit_bad_input);
}

/// The conditions under which a stack is brought about.
struct stack_terms {
    bool adopts;
    bool starts;
    bool is_dry_run;
    bool is_accepted;  ///< whatever its risks

    explicit stack_terms(const arguments& given)
        : adopts(given.is_set("adopt")),
          starts(!given.is_set("no-start")),
          is_dry_run(given.is_set("dry-run")),
          is_accepted(given.is_set("yes")) {}
};

/// Asks the daemon. A refusal has been printed, but for risks.
std::expected<control_answer, int> put(const context& with, const stack_file& file,
                                       const stack_terms& terms, bool plans, const json& accepted) {
    json body = file.request();
    body["adopt"] = terms.adopts;
    body["start"] = terms.starts;
    body["accept"] = accepted;
    auto text = request_body(body);
    if (!text) return std::unexpected(text.error());
    if (text->size() > message_limit) {
        complain(
            fmt::format("the stack has {} runtimes and takes {} bytes as a request, and a "
                        "daemon takes at most {} MiB; divide it among several files",
                        file.runtimes.size(), text->size(), message_limit >> 20));
        return std::unexpected(exit_bad_input);
    }
    control_client client(with.socket);
    control_request request;
    request.method = "PUT";
    request.target = fmt::format("/v1/stacks/{}{}", http1::percent_encode(file.name),
                                 plans ? "?dry_run=true" : "");
    request.body = std::move(*text);
    auto answer = client.ask(std::move(request));
    if (answer) return std::move(*answer);
    complain(answer.error().message);
    return std::unexpected(exit_fatal);
}

/// The body of a successful answer; otherwise its faults have been printed.
std::expected<json, int> plan_in(const control_answer& answer, const stack_file& file) {
    json body = json::parse(answer.body, nullptr, false);
    if (answer.status == 200 && body.is_object()) return body;
    const json error = body.is_object() ? body.value("error", json::object()) : json::object();
    const auto faults = faults_of(error, file);
    complain_of(faults);
    for (const json& each : error.value("risks", json::array()))
        complain(fmt::format("{}: {}", text_of(each, "name"), text_of(each, "risk")));
    if (faults.empty()) complain(error_message(answer.status, answer.body));
    return std::unexpected(exit_status_for(answer.status));
}

std::expected<json, int> ask_for_plan(const context& with, const stack_file& file,
                                      const stack_terms& terms) {
    auto answer = put(with, file, terms, true, json::array());
    if (!answer) return std::unexpected(answer.error());
    return plan_in(*answer, file);
}

bool is_yes() {
    std::fputs("Go on? [y/N] ", stderr);
    std::string line;
    if (!std::getline(std::cin, line)) return false;
    return is_word(line, "y") || is_word(line, "yes");
}

/// The names of what is at risk, once that is accepted; otherwise it has been printed.
std::expected<json, int> accepted_risks(const json& plan, const stack_terms& terms,
                                        std::string_view command) {
    json names = json::array();
    for (const json& each : plan.value("changes", json::array())) {
        if (!each.contains("risk")) continue;
        names.push_back(text_of(each, "name"));
        if (!terms.is_accepted)
            complain(fmt::format("{}: {}", text_of(each, "name"), text_of(each, "risk")));
    }
    if (names.empty() || terms.is_accepted) return names;
    if (::isatty(STDIN_FILENO) == 0 || ::isatty(STDERR_FILENO) == 0) {
        complain(fmt::format("nothing was changed; to accept that: eddy {} --yes", command));
        return std::unexpected(exit_bad_input);
    }
    if (is_yes()) return names;
    complain("nothing was changed");
    return std::unexpected(exit_bad_input);
}

void print_plan(const context& with, const stack_file& file, const json& plan, bool is_done) {
    if (with.json) {
        print(pretty(plan));
    } else {
        for (const json& each : plan.value("changes", json::array()))
            print(change_text(each, is_done));
        const std::string name = printable(file.name);
        if (plan.value("changes", json::array()).empty() && number_of(plan, "unchanged") == 0)
            print(fmt::format("{}: no runtimes, and nothing to change\n", name));
        else if (plan.value("changes", json::array()).empty())
            print(fmt::format("{}: nothing to change, {} as declared\n", name, summary_text(plan)));
        else
            print(fmt::format("{}: {}{}\n", name, is_done ? "" : "would be: ", summary_text(plan)));
        for (const json& each : plan.value("notes", json::array()))
            if (each.is_string()) complain(each.get<std::string>());
    }
    std::fflush(stdout);
}

/// A line on a terminal about changes that take longer than a second: the runtimes of the stack, by
/// their status. Gone with the object.
class progress_line {
public:
    progress_line(const context& with, std::string stack) : with_(with), stack_(std::move(stack)) {
        if (::isatty(STDERR_FILENO) != 0)
            poller_ = std::jthread(std::bind_front(&progress_line::run, this));
    }
    progress_line(const progress_line&) = delete;
    progress_line& operator=(const progress_line&) = delete;

private:
    static constexpr std::chrono::seconds pause{1};

    void run(const std::stop_token& end) {
        std::mutex mutex;
        std::condition_variable_any ended;
        bool is_shown = false;
        for (std::unique_lock lock(mutex);;) {
            if (ended.wait_for(lock, end, pause, [&end] { return end.stop_requested(); })) break;
            std::fputs(("\r\x1b[K" + text()).c_str(), stderr);
            is_shown = true;
        }
        if (is_shown) std::fputs("\r\x1b[K", stderr);
    }
    std::string text() const {
        control_client client(with_.socket);
        const auto answer = client.ask({.target = "/v1/runtimes"});
        const json all = answer ? json::parse(answer->body, nullptr, false) : json();
        std::map<std::string, std::size_t> counts;
        if (all.is_object())
            for (const json& each : all.value("runtimes", json::array()))
                if (text_of(each, "stack") == stack_) ++counts[text_of(each, "status")];
        std::vector<std::string> parts;
        for (const auto& [status, count] : counts)
            parts.push_back(fmt::format("{} {}", count, status));
        return printable(fmt::format("{}: {}", stack_, fmt::join(parts, ", ")));
    }

    const context& with_;
    const std::string stack_;
    std::jthread poller_;
};

/// Consequences of options that fresh runtimes lack, as `eddy create` reports them.
void complain_of_absences(const context& with, const stack_file& file, const json& done) {
    std::vector<std::string> texts;
    for (const json& each : done.value("changes", json::array())) {
        const declared_runtime* const declared = file.find(text_of(each, "name"));
        if (text_of(each, "change") != "create" || declared == nullptr) continue;
        const type_flags* const type = with.find_type(declared->type);
        if (type == nullptr) continue;
        for (const flag& option : type->flags)
            if (!option.absence.empty() && !declared->options.contains(option_key(option.name)))
                texts.push_back(fmt::format("{} {}: {} = \"{}\"", declared->name, option.absence,
                                            option_key(option.name), option.value_name));
    }
    constexpr std::size_t most = 3;
    for (std::size_t i = 0; i < std::min(texts.size(), most); ++i) complain(texts[i]);
    if (texts.size() > most)
        complain(fmt::format("and so with {} further runtimes", texts.size() - most));
}

/// Brings the stack about. Yields the names of the runtimes that were changed.
std::expected<std::set<std::string>, int> bring_about(const context& with, const stack_file& file,
                                                      const stack_terms& terms,
                                                      std::string_view command) {
    auto plan = ask_for_plan(with, file, terms);
    if (!plan) return std::unexpected(plan.error());
    std::set<std::string> names;
    for (const json& each : plan->value("changes", json::array()))
        names.insert(text_of(each, "name"));
    if (terms.is_dry_run || names.empty()) {
        print_plan(with, file, *plan, false);
        return names;
    }
    auto accepted = accepted_risks(*plan, terms, command);
    if (!accepted) return std::unexpected(accepted.error());
    std::expected<control_answer, int> answer = std::unexpected(exit_fatal);
    {
        const progress_line shown(with, file.name);
        answer = put(with, file, terms, false, *accepted);
    }
    if (!answer) return std::unexpected(answer.error());
    auto done = plan_in(*answer, file);
    if (!done) return std::unexpected(done.error());
    print_plan(with, file, *done, true);
    complain_of_absences(with, file, *done);
    return names;
}

// --- up --watch --------------------------------------------------------------------------------

/// Script of a runtime, and the folders of its modules.
struct named_script {
    std::string runtime;
    std::string path;
    std::vector<std::string> folders;

    bool is_in(const std::set<std::string>& changed) const {
        if (changed.contains(path)) return true;
        return std::ranges::any_of(changed, [this](const std::string& each) {
            return each.ends_with(".lua") &&
                   std::ranges::find(folders, each.substr(0, each.rfind('/'))) != folders.end();
        });
    }
};

std::vector<named_script> scripts_of(const stack_file& file) {
    std::vector<named_script> all;
    for (const declared_runtime& each : file.runtimes) {
        std::vector<std::string> folders;
        if (const auto given = each.options.find("lua_path"); given != each.options.end())
            for (const json& folder : *given)
                if (folder.is_string()) folders.push_back(folder.get<std::string>());
        for (const char* const option : {"lua", "hooks"})
            if (const auto script = each.options.find(option);
                script != each.options.end() && script->is_string())
                all.push_back({each.name, script->get<std::string>(), folders});
    }
    return all;
}

/// Loads the changed scripts of runtimes that were not changed themselves.
void reload_scripts(const context& with, const stack_file& file,
                    const std::set<std::string>& changed_files,
                    const std::set<std::string>& changed_runtimes) {
    for (const named_script& each : scripts_of(file)) {
        if (!each.is_in(changed_files) || changed_runtimes.contains(each.runtime)) continue;
        control_request request;
        request.method = "POST";
        request.target = runtime_target(each.runtime, "/reload-lua");
        if (ask(with, std::move(request)))
            print(fmt::format("~ {}: script loaded again\n", printable(each.runtime)));
    }
    std::fflush(stdout);
}

std::expected<void, std::string> follow(file_watch& watch, const stack_file& file,
                                        const stack_file& before) {
    std::vector<std::string> files = file.files;
    // A file with a mistake may not name all of them.
    files.insert(files.end(), before.files.begin(), before.files.end());
    std::vector<std::string> patterns = file.patterns;
    patterns.insert(patterns.end(), before.patterns.begin(), before.patterns.end());
    for (const stack_file* const of : {&file, &before})
        for (const named_script& each : scripts_of(*of)) {
            files.push_back(each.path);
            for (const std::string& folder : each.folders) patterns.push_back(folder + "/*.lua");
        }
    return watch.follow(files, patterns);
}

/// Applies the file again with each change. Never returns but for a failure of the watch.
int watch_stack(context& with, const arguments& given, const stack_terms& terms, stack_file last) {
    file_watch watch;
    std::set<std::string> changed;
    // Before the files are read again, so that no change falls between.
    if (auto followed = follow(watch, last, last); !followed) {
        complain(followed.error());
        return exit_fatal;
    }
    for (bool is_first = true;; is_first = false) {
        auto file = read_stack(with, path_of(given), process_environment());
        if (given.has("stack")) file.name = given.value("stack");
        if (auto followed = follow(watch, file, last); !followed) {
            complain(followed.error());
            return exit_fatal;
        }
        const bool is_same = file.faults.empty() && file.request() == last.request();
        complain_of(file.faults);
        std::set<std::string> done;
        bool is_applied = is_same;
        if (!is_same && file.faults.empty()) {
            auto made = bring_about(with, file, terms, "up --watch");
            is_applied = made.has_value();
            if (made) done = std::move(*made);
        }
        if (!is_applied) complain("the runtimes stay as they are, until the files change again");
        if (is_applied) {
            reload_scripts(with, file, changed, done);
            last = std::move(file);
        }
        if (is_first && !with.json)
            complain(fmt::format("watching {} files; Ctrl-C ends it, and the runtimes stay",
                                 last.files.size() + scripts_of(last).size()));
        auto next = watch.wait();
        if (!next) {
            complain(next.error());
            return exit_fatal;
        }
        changed = std::move(*next);
    }
}

int up(context& with, const arguments& given) {
    const stack_terms terms(given);
    const bool watches = given.is_set("watch");
    if (watches && (terms.is_dry_run || path_of(given) == "-")) {
        complain("--watch needs a file, and no --dry-run");
        return exit_bad_input;
    }
    auto file = read_file(with, given);
    if (!file) return file.error();
    auto done = bring_about(with, *file, terms, "up");
    if (!done) return done.error();
    return watches ? watch_stack(with, given, terms, std::move(*file)) : int{exit_ok};
}

int down(context& with, const arguments& given) {
    const stack_terms terms(given);
    stack_file none;
    if (given.has("stack")) {
        none.name = given.value("stack");
    } else {
        // The name alone is needed: mistakes below do not matter.
        const stack_file file = read_stack(with, path_of(given), process_environment());
        if (file.name.empty() || file.runtimes.empty()) {
            complain_of(file.faults);
            if (!file.faults.empty()) {
                complain("nothing was removed; `eddy down --stack NAME` needs no file");
                return exit_bad_input;
            }
        }
        none.name = file.name;
    }
    auto done = bring_about(with, none, terms, "down");
    return done ? int{exit_ok} : done.error();
}

/// As diff(1): 0 without differences, 1 with some, 2 for trouble.
int diff(context& with, const arguments& given) {
    auto file = read_file(with, given);
    if (!file) return exit_fatal;
    auto plan = ask_for_plan(with, *file, stack_terms(given));
    if (!plan) return exit_fatal;
    print_plan(with, *file, *plan, false);
    return plan->value("changes", json::array()).empty() ? 0 : 1;
}

int validate(context& with, const arguments& given) {
    auto file = read_file(with, given);
    if (!file) return file.error();
    const auto text = request_body(file->request());
    if (!text) return text.error();
    EDDY_ASSERT(with.check_stack);
    const auto plan = plan_in(with.check_stack(file->name, *text), *file);
    if (!plan) return exit_bad_input;
    if (with.json)
        print(pretty({{"stack", file->name}, {"runtimes", file->runtimes.size()}}));
    else
        print(fmt::format("{}: {} runtimes, no mistakes\n", printable(file->name),
                          file->runtimes.size()));
    return exit_ok;
}

int export_runtimes(context& with, const arguments& given) {
    std::vector<std::string> words = given.positional();
    if (words.empty()) words.emplace_back("*");
    json all = json::array();
    std::set<std::string> names;
    for (const std::string& word : words) {
        const auto list = list_matching(with, word);
        if (!list) return list.error();
        if (list->empty() && !is_pattern(word)) {
            complain(fmt::format("there is no runtime \"{}\"; `eddy ls` shows those there are",
                                 printable(word)));
            return exit_bad_input;
        }
        for (const json& each : *list)
            if (names.insert(text_of(each, "name")).second) all.push_back(each);
    }
    if (with.json)
        print(pretty(all));
    else
        print(exported(with, all, given.value("stack", default_export)));
    return exit_ok;
}

}  // namespace

command up_command() {
    command c;
    c.name = "up";
    c.operands = "[file]";
    c.summary = "bring about the runtimes of a file, all or none of the changes";
    c.flags = {file_flag(),
               stack_flag(),
               yes_flag(),
               adopt_flag(),
               {.name = "dry-run", .letter = 'n', .help = "print the changes, and make none"},
               {.name = "no-start", .help = "create and change, and start nothing"},
               {.name = "watch",
                .letter = 'w',
                .help = "go on: bring it about again when a file changes, and load changed scripts "
                        "again"}};
    c.most = 1;
    c.examples = {{"eddy up", "the eddy.toml of the working folder"},
                  {"eddy up -f shop/eddy.toml --dry-run", "what would change"},
                  {"eddy up shop.toml --watch --yes", "until Ctrl-C"},
                  {"eddy up machine.lua", "the same in Lua, by runtimes{...}"}};
    c.more =
        "A file has a table for each runtime: [cache.db], with the options of `eddy create cache`\n"
        "below it, such as port = 6379, and owner, group and start = false. Runtimes that the "
        "file\n"
        "has made and does not name any more are removed; others are never touched. It asks "
        "before\n"
        "connections are closed or data is lost. docs/stacks.md is a tour.";
    c.run = up;
    return c;
}

command down_command() {
    command c;
    c.name = "down";
    c.operands = "[file]";
    c.summary = "stop and remove the runtimes that `eddy up` has made of a file";
    c.flags = {file_flag(),
               stack_flag(),
               yes_flag(),
               {.name = "dry-run", .letter = 'n', .help = "print what would be removed"}};
    c.most = 1;
    c.examples = {{"eddy down", ""}, {"eddy down --stack shop --yes", "without the file"}};
    c.run = down;
    return c;
}

command diff_command() {
    command c;
    c.name = "diff";
    c.operands = "[file]";
    c.summary = "print what `eddy up` would change; exit status 1 if anything, 2 for mistakes";
    c.flags = {file_flag(), stack_flag(), adopt_flag()};
    c.most = 1;
    c.examples = {{"eddy diff", ""}, {"eddy diff shop.toml && echo unchanged", ""}};
    c.run = diff;
    return c;
}

command validate_command() {
    command c;
    c.name = "validate";
    c.operands = "[file]";
    c.summary = "check a file of runtimes, without a daemon";
    c.flags = {file_flag(), stack_flag()};
    c.most = 1;
    c.examples = {{"eddy validate shop.toml", "prints each mistake with its line"}};
    c.run = validate;
    return c;
}

command export_command() {
    command c;
    c.name = "export";
    c.operands = "[name|pattern]...";
    c.summary = "print runtimes as a file for `eddy up`";
    c.flags = {{.name = "stack",
                .value_name = "NAME",
                .help = "name of the stack in the file",
                .default_value = std::string(default_export)}};
    c.most = 1'000'000;
    c.examples = {{"eddy export > eddy.toml", "all runtimes"},
                  {"eddy export @web > web.toml", "those of a group"},
                  {"eddy up eddy.toml --adopt", "the file owns them from then on"}};
    c.more = "Passwords are not printed: variables of the environment are in their place.";
    c.run = export_runtimes;
    return c;
}

}  // namespace eddy::cli
