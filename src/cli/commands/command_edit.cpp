// `eddy edit`: options by flags, or the whole in an editor.
#include "base/text/text.hpp"
#include "cli/commands/cascade.hpp"
#include "cli/commands/commands.hpp"
#include "cli/commands/secret_files.hpp"
#include "cli/request.hpp"
#include "cli/text/table.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::cli {
namespace {

std::vector<flag> edit_flags() {
    return {
        {.name = "owner",
         .letter = 'o',
         .value_name = "NAME",
         .help = "the runtime that owns it; \"\" for none"},
        {.name = "group", .letter = 'g', .value_name = "NAME", .help = "its group; \"\" for none"},
        on_parent_stop_flag(),
        {.name = "unset",
         .value_name = "OPTION",
         .help = "reset an option to its default; may be repeated"},
        {.name = "discard-keys",
         .help = "restart a cache even if its keys cannot be kept, or replace them by those of the "
                 "new --dir"},
        {.name = "dry-run", .help = "only print what the change would do, such as a restart"},
        {.name = "live-only", .help = "refuse a change that would restart the runtime"}};
}

/// Terms of an edit, by the flags that are no options of a runtime.
struct edit_terms {
    bool discards_keys = false;
    bool is_dry_run = false;
    bool is_live_only = false;

    explicit edit_terms(const arguments& given)
        : discards_keys(given.is_set("discard-keys")),
          is_dry_run(given.is_set("dry-run")),
          is_live_only(given.is_set("live-only")) {}

    static bool has_flag(std::string_view name) noexcept {
        return name == "discard-keys" || name == "dry-run" || name == "live-only";
    }
};

std::expected<json, int> fetch(const context& with, std::string_view name) {
    control_request request;
    request.target = runtime_target(name);
    return ask(with, std::move(request));
}

std::vector<flag> with_secret_files(std::vector<flag> flags) {
    for (flag& each : secret_file_flags(flags)) flags.push_back(std::move(each));
    return flags;
}

/// The flags are those of the runtime's type, so the daemon is asked which that is.
std::expected<std::vector<flag>, std::string> flags_for_edit(context& with,
                                                             std::span<const std::string> words) {
    if (words.empty() || words[0].starts_with('-'))
        return std::unexpected("the name comes first: eddy edit NAME [flags]");
    // Without flags there is nothing to look up; run() reports the error.
    if (words.size() == 1) return std::vector<flag>();
    control_client client(with.socket);
    control_request request;
    request.target = runtime_target(words[0]);
    const auto answer = client.ask(std::move(request));
    if (answer && answer->status == 200) {
        const json runtime = json::parse(answer->body, nullptr, false);
        if (runtime.is_object())
            if (const type_flags* type = with.find_type(text_of(runtime, "type")))
                return with_secret_files(type->flags);
    }
    // The daemon refuses the edit itself with the message that fits; any type's flags will do to
    // get there.
    std::vector<flag> every;
    for (const type_flags& type : with.types)
        every.insert(every.end(), type.flags.begin(), type.flags.end());
    return with_secret_files(std::move(every));
}

/// Asks for an edit; with `plans` for its plan alone.
std::expected<json, int> ask_for_edit(const context& with, std::string_view name,
                                      const std::string& change, const edit_terms& terms,
                                      bool plans) {
    std::string query;
    for (const auto& [is_set, parameter] :
         {std::pair(terms.discards_keys, "discard_keys"),
          std::pair(terms.is_live_only, "live_only"), std::pair(plans, "dry_run")})
        if (is_set) query += fmt::format("{}{}=true", query.empty() ? '?' : '&', parameter);
    control_request request;
    request.method = "PATCH";
    request.target = runtime_target(name, query);
    request.body = change;
    return ask(with, std::move(request));
}

/// Announcement of a restart: the options that need it, and what it means for clients.
std::string restart_text(std::string_view name, const json& answer, bool is_dry_run) {
    const json restart = answer.value("restart", json::object());
    std::vector<std::string> flags;
    for (const json& each : restart.value("options", json::array()))
        if (each.is_string()) flags.push_back("--" + option_flag(each.get<std::string>()));
    const double drain_s = number_of(restart, "drain_s");
    const std::string time =
        drain_s > 0 ? fmt::format("for up to {:g} s", drain_s) : "for a moment";
    const std::string change = fmt::format("changing {} {} {}", fmt::join(flags, ", "),
                                           is_dry_run ? "would restart" : "restarts", name);
    const std::string clients = text_of(restart, "clients");
    if (clients == "none") return change;
    if (clients == "wait")
        return fmt::format("{}: clients that connect {} {}{}, and until it serves again", change,
                           is_dry_run ? "would wait" : "wait", time,
                           drain_s > 0 ? " (--drain)" : "");
    return fmt::format("{}: it {} new clients at once; those that it has may finish {}", change,
                       is_dry_run ? "would serve" : "serves", time);
}

int report_edit(const context& with, std::string_view name, const json& answer) {
    if (with.json) {
        print(pretty(answer));
        return exit_ok;
    }
    const std::string effect = text_of(answer, "effect");
    const std::string shown = printable(name);
    const bool is_dry_run = answer.value("dry_run", false);
    const std::string_view change = is_dry_run ? "would change" : "changed";
    if (effect == "none")
        print(fmt::format("{} is like that already\n", shown));
    else if (effect == "live")
        print(fmt::format("{} {} while running\n", shown, change));
    else if (effect == "restarted" && is_dry_run)
        print(printable(restart_text(name, answer, true)) + "\n");
    else if (effect == "restarted")
        print(fmt::format("{} changed and restarted\n", shown));
    else
        print(fmt::format("{} {}\n", shown, change));
    return exit_ok;
}

/// True when the daemon knows the flags of `terms`: an earlier version would ignore them and edit.
/// False after a complaint.
bool knows_flags(const context& with, const edit_terms& terms) {
    if (!terms.is_dry_run && !terms.is_live_only) return true;
    control_request request;
    request.target = "/v1/version";
    const auto daemon = ask(with, std::move(request));
    if (!daemon) return false;
    if (text_of(*daemon, "version") == with.version) return true;
    complain(
        fmt::format("nothing was changed: --dry-run and --live-only need a daemon of version "
                    "{}, and this one is of {}",
                    with.version, text_of(*daemon, "version")));
    return false;
}

/// A restart is announced before it begins.
int apply(const context& with, std::string_view name, const json& change, const edit_terms& terms) {
    auto text = request_body(change);
    if (!text) return text.error();
    if (!knows_flags(with, terms)) return exit_fatal;
    if (terms.is_dry_run || !terms.is_live_only) {
        auto plan = ask_for_edit(with, name, *text, terms, true);
        if (!plan) return plan.error();
        // A daemon of an earlier version knows no plans, and has made the change.
        const bool is_plan = plan->value("dry_run", false);
        if (terms.is_dry_run || !is_plan) return report_edit(with, name, *plan);
        if (text_of(*plan, "effect") == "restarted") complain(restart_text(name, *plan, false));
    }
    auto answer = ask_for_edit(with, name, *text, terms, false);
    if (!answer) return answer.error();
    return report_edit(with, name, *answer);
}

/// A file that only this user can read, gone with the object unless it is kept.
class scratch_file {
public:
    explicit scratch_file(std::string_view content) {
        const std::filesystem::path folder = std::filesystem::temp_directory_path();
        path_ = (folder / "eddy-edit-XXXXXX.json").string();
        const int fd = ::mkstemps(path_.data(), 5);
        if (fd < 0) {
            path_.clear();
            return;
        }
        const bool whole =
            ::write(fd, content.data(), content.size()) == static_cast<ssize_t>(content.size());
        ::close(fd);
        if (!whole) {
            ::unlink(path_.c_str());
            path_.clear();
        }
    }
    ~scratch_file() {
        if (!path_.empty() && !kept_) ::unlink(path_.c_str());
    }
    scratch_file(const scratch_file&) = delete;
    scratch_file& operator=(const scratch_file&) = delete;

    const std::string& path() const noexcept { return path_; }
    void keep() noexcept { kept_ = true; }
    std::string content() const {
        std::ifstream file(path_, std::ios::binary);
        return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    }

private:
    std::string path_;
    bool kept_ = false;
};

std::string choose_editor() {
    for (const char* variable : {"VISUAL", "EDITOR"})
        if (const char* value = std::getenv(variable); value && *value) return value;
    return "vi";
}

/// Merge patch that makes `before` into `after`: members that are absent become null.
json difference(const json& before, const json& after) {
    json change = json::object();
    for (const auto& [name, value] : after.items())
        if (!before.contains(name) || before.at(name) != value) change[name] = value;
    for (const auto& [name, value] : before.items())
        if (!after.contains(name)) change[name] = nullptr;
    return change;
}

int edit_in_editor(const context& with, const std::string& name, const edit_terms& terms) {
    auto runtime = fetch(with, name);
    if (!runtime) return runtime.error();
    const json before = {{"options", runtime->value("options", json::object())},
                         {"owner", text_of(*runtime, "owner")},
                         {"group", text_of(*runtime, "group")}};
    scratch_file file(pretty(before));
    if (file.path().empty()) {
        complain("could not write a file for the editor; is $TMPDIR full?");
        return exit_fatal;
    }
    // The editor's setting may hold arguments, so a shell takes it apart, as git does.
    const std::string editor = choose_editor();
    const int status = std::system(fmt::format("{} '{}'", editor, file.path()).c_str());
    if (status == -1 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        complain(fmt::format("the editor `{}` failed; nothing was changed", editor));
        return exit_bad_input;
    }
    const json after = json::parse(file.content(), nullptr, false);
    if (!after.is_object() || !after.contains("options") || !after["options"].is_object()) {
        file.keep();
        complain(
            fmt::format("that is no JSON object with \"options\"; nothing was changed, and your "
                        "text is kept in {}",
                        file.path()));
        return exit_bad_input;
    }
    if (after == before) {
        print("nothing was changed\n");
        return exit_ok;
    }
    json change = difference(before, after);
    change["options"] = difference(before["options"], after["options"]);
    const int applied = apply(with, name, change, terms);
    if (applied != exit_ok) {
        file.keep();
        complain(fmt::format("your text is kept in {}", file.path()));
    }
    return applied;
}

/// Adds the default of an option, or of an owner or a group.
void unset(json& change, std::string_view name) {
    if (name == "owner" || name == "group")
        change[name] = "";
    else if (name == "on-parent-stop")
        change["on_parent_stop"] = "";
    else
        change["options"][option_key(name)] = nullptr;
}

int edit(context& with, const arguments& given) {
    const std::string& name = given.positional()[0];
    json change = {{"options", json::object()}};
    bool any = false;
    std::vector<flag> every;
    for (const type_flags& type : with.types)
        every.insert(every.end(), type.flags.begin(), type.flags.end());
    for (const auto& [given_name, given_value] : given.values()) {
        std::string flag_name = given_name;
        std::string value = given_value;
        if (const auto secret = option_of_secret_file(every, flag_name); !secret.empty()) {
            auto read = read_secret_file(flag_name, value);
            if (!read) {
                complain(read.error());
                return exit_bad_input;
            }
            flag_name = secret;
            value = std::move(*read);
        }
        if (flag_name == "socket" || flag_name == "json" || edit_terms::has_flag(flag_name))
            continue;
        any = true;
        if (flag_name == "owner" || flag_name == "group")
            change[flag_name] = value;
        else if (flag_name == "on-parent-stop")
            change["on_parent_stop"] = value;
        else if (flag_name == "unset")
            unset(change, value.starts_with("--") ? value.substr(2) : value);
        else if (!change["options"].contains(option_key(flag_name))) {
            // A text alone may stand for a list, and other types may have a text there.
            change["options"][option_key(flag_name)] = value;
        } else if (with.is_repeated(flag_name)) {
            json& written = change["options"][option_key(flag_name)];
            if (written.is_string()) written = json::array({written});
            written.push_back(value);
        } else {
            complain(given_twice(flag_name));
            return exit_bad_input;
        }
    }
    const edit_terms terms(given);
    return any ? apply(with, name, change, terms) : edit_in_editor(with, name, terms);
}

}  // namespace

command edit_command() {
    command c;
    c.name = "edit";
    c.operands = "<name> [flags]";
    c.summary = "change a runtime, by flags or in $EDITOR";
    c.flags = edit_flags();
    c.least = c.most = 1;
    c.examples = {{"eddy edit chat --max-connections 50", "applied without a restart"},
                  {"eddy edit site --root ./next --dry-run", "prints that this needs a restart"},
                  {"eddy edit db", "opens the options in $VISUAL, $EDITOR or vi"},
                  {"eddy edit db --unset max-connections", ""}};
    c.more =
        "The flags are those of `eddy create` for the runtime's type. Options that cannot change\n"
        "while it runs restart it, which is printed before: the next instance serves new clients\n"
        "at once, while those of the one before finish, for up to 10 minutes. A cache\n"
        "keeps its keys; clients that connect meanwhile wait. If it does not start with the\n"
        "options, it goes on with the old ones.";
    c.run = edit;
    c.more_flags = flags_for_edit;
    return c;
}

}  // namespace eddy::cli
