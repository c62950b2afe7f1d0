// Plans and faults as text.
#include "cli/stack/plan_text.hpp"

#include "base/text/terminal_text.hpp"
#include "base/text/text.hpp"
#include "cli/request.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>
#include <utility>

namespace eddy::cli {
namespace {

std::string shown(const json& value) {
    if (value.is_null()) return "(none)";
    return dump_for_terminal(value);
}

std::string_view sign_of(std::string_view step) {
    if (step == "create") return "+";
    if (step == "remove") return "-";
    return "~";
}

/// Behind the name, in brackets.
std::string manner(const json& change, std::string_view step, bool is_done) {
    const bool starts = change.value("starts", false);
    std::vector<std::string> all;
    if (step == "create")
        all.emplace_back(is_done ? "created" : "create");
    else if (step == "remove")
        all.emplace_back(is_done ? "removed" : "remove");
    else if (step == "stop")
        all.emplace_back(is_done ? "stopped" : "stop");
    else if (step == "edit")
        all.emplace_back(is_done ? "changed" : "change");
    if (starts || step == "start") all.emplace_back(is_done ? "started" : "start");
    if (text_of(change, "effect") == "restarted")
        all.emplace_back(is_done ? "restarted" : "restart");
    return fmt::format("{}", fmt::join(all, ", "));
}

}  // namespace

std::string change_text(const json& change, bool is_done) {
    const std::string step = text_of(change, "change");
    std::string text =
        fmt::format("{} {} {}: {}", sign_of(step), printable(text_of(change, "type")),
                    printable(text_of(change, "name")), manner(change, step, is_done));
    if (change.contains("removed_with"))
        text += fmt::format(", with its owner {}", printable(text_of(change, "removed_with")));
    text += '\n';
    if (is_done && step == "create") return text;
    for (const json& each : change.value("values", json::array())) {
        const json before = each.value("before", json());
        const json after = each.value("after", json());
        const std::string name = printable(text_of(each, "name"));
        if (before.is_null() && step == "create")
            text += fmt::format("    {} = {}\n", name, shown(after));
        else if (before == after)
            text += fmt::format("    {}: another secret\n", name);
        else
            text += fmt::format("    {}: {} -> {}\n", name, shown(before), shown(after));
    }
    if (const std::string risk = text_of(change, "risk"); !is_done && !risk.empty())
        text += fmt::format("    ! {}\n", printable(risk));
    return text;
}

std::string summary_text(const json& plan) {
    std::vector<std::string> all;
    constexpr std::pair<std::string_view, std::string_view> words[] = {{"create", "created"},
                                                                       {"edit", "changed"},
                                                                       {"start", "started"},
                                                                       {"stop", "stopped"},
                                                                       {"remove", "removed"}};
    for (const auto& [step, word] : words) {
        std::size_t count = 0;
        for (const json& each : plan.value("changes", json::array()))
            if (text_of(each, "change") == step) ++count;
        if (count > 0) all.push_back(fmt::format("{} {}", count, word));
    }
    all.push_back(fmt::format("{} unchanged", number_of(plan, "unchanged")));
    return fmt::format("{}", fmt::join(all, ", "));
}

std::vector<file_fault> faults_of(const json& error, const stack_file& file) {
    std::vector<file_fault> all;
    for (const json& each : error.value("faults", json::array())) {
        const std::string name = text_of(each, "name");
        const std::string message = text_of(each, "message");
        const declared_runtime* const declared = file.find(name);
        place at{file.files.empty() ? std::string("-") : file.files.front()};
        if (declared != nullptr) {
            at = declared->at;
            // Options of addresses are in no message of two on one.
            if (message.find("is the address of") != std::string::npos)
                for (const char* const key : {"port", "listen", "unix", "handoff"})
                    if (const auto where = declared->options_at.find(key);
                        where != declared->options_at.end())
                        at = where->second;
            // An option of the message is where the mistake is.
            for (const auto& [key, where] : declared->options_at) {
                const std::string flag_name = "--" + option_flag(key);
                const std::size_t found = message.find(flag_name);
                const std::size_t end = found + flag_name.size();
                if (found == std::string::npos) continue;
                if (end < message.size() && (is_letter(message[end]) || message[end] == '-'))
                    continue;
                at = where;
                break;
            }
        }
        all.push_back({std::move(at), fmt::format("{}: {}", name, message)});
    }
    return all;
}

}  // namespace eddy::cli
