// Upgrade of the running daemon: `eddy daemon --upgrade`.
#include "cli/commands/commands.hpp"
#include "cli/request.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace eddy::cli {
namespace {

/// "3 runtimes (a, b, c)", with at most ten names.
std::string names_of(const json& answer, std::string_view member) {
    constexpr std::size_t most_names = 10;
    std::vector<std::string> names;
    if (const auto found = answer.find(member); found != answer.end() && found->is_array())
        for (const json& each : *found)
            if (each.is_string()) names.push_back(each.get<std::string>());
    const std::size_t count = names.size();
    if (count > most_names) {
        names.resize(most_names);
        names.emplace_back("...");
    }
    return fmt::format("{} runtime{} ({})", count, count == 1 ? "" : "s", fmt::join(names, ", "));
}

bool has_names(const json& answer, std::string_view member) {
    const auto found = answer.find(member);
    return found != answer.end() && found->is_array() && !found->empty();
}

}  // namespace

int upgrade_daemon(const context& with, const upgrade_order& order) {
    json wanted = {{"program", order.program}};
    if (order.timeout_s > 0) wanted["timeout_s"] = order.timeout_s;
    auto body = request_body(wanted);
    if (!body) return body.error();
    control_request request;
    request.method = "POST";
    request.target = "/v1/daemon/upgrade";
    request.body = std::move(*body);
    const auto answer = ask(with, std::move(request));
    if (!answer) return answer.error();
    if (with.json) {
        fmt::print("{}", pretty(*answer));
        return exit_ok;
    }
    fmt::print("upgraded from {} (pid {:.0f}) to {} (pid {:.0f}) in {:.3f} s: {}\n",
               text_of(*answer, "version_before"), number_of(*answer, "pid_before"),
               text_of(*answer, "version"), number_of(*answer, "pid"), number_of(*answer, "took_s"),
               text_of(*answer, "program"));
    if (has_names(*answer, "without_pause"))
        fmt::print("  without a pause: {}\n", names_of(*answer, "without_pause"));
    if (has_names(*answer, "with_data"))
        fmt::print("  with their data, after {:.3f} s: {}\n", number_of(*answer, "pause_s"),
                   names_of(*answer, "with_data"));
    if (has_names(*answer, "again")) fmt::print("  began anew: {}\n", names_of(*answer, "again"));
    if (const double clients = number_of(*answer, "clients"); clients > 0)
        fmt::print("  {:.0f} connections went on\n", clients);
    return exit_ok;
}

}  // namespace eddy::cli
