// Walk over owned runtimes, and the question.
#include "cli/commands/cascade.hpp"

#include <eddy/base/assert.hpp>

#include "base/text/terminal_text.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <set>
#include <utility>

namespace eddy::cli {
namespace {

using names = std::set<std::string, std::less<>>;

/// Walks from the named runtimes to all that goes with them.
class cascade_walk {
public:
    cascade_walk(const json& all, const std::vector<std::string>& named)
        : all_(all), named_(named.begin(), named.end()) {}

    void end(const std::string& owner, cascade of) {
        for (const json& each : all_) {
            if (text_of(each, "owner") != owner) continue;
            const std::string name = text_of(each, "name");
            const std::string policy = text_of(each, "on_parent_stop");
            if (policy == "keep") {
                kept.insert(name);
            } else if (of == cascade::of_removal || policy == "remove") {
                if (removed.insert(name).second) end(name, cascade::of_removal);
            } else if (text_of(each, "status") == "running" ||
                       text_of(each, "status") == "starting") {
                if (stopped.insert(name).second) end(name, cascade::of_stop);
            }
        }
    }

    /// In the order of the list; the named ones are not among them.
    std::vector<std::string> listed(const names& of) const {
        std::vector<std::string> found;
        for (const json& each : all_)
            if (const std::string name = text_of(each, "name");
                of.contains(name) && !named_.contains(name))
                found.push_back(name);
        return found;
    }

    names stopped;
    names removed;
    names kept;

private:
    const json& all_;
    const names named_;
};

std::string joined(const std::vector<std::string>& all) {
    return printable(fmt::format("{}", fmt::join(all, ", ")));
}

/// The answer of a person at the terminal.
bool agrees() {
    std::fputs("eddy: go on? [y/N] ", stderr);
    std::fflush(stderr);
    char answer[64] = {};
    if (std::fgets(answer, sizeof answer, stdin) == nullptr) return false;
    return answer[0] == 'y' || answer[0] == 'Y';
}

}  // namespace

flag on_parent_stop_flag() {
    return {.name = "on-parent-stop",
            .value_name = "FATE",
            .help =
                "when its owner stops: stop it, and remove it with its owner; remove it; or keep "
                "it, without an owner once that is removed",
            .default_value = "stop",
            .choices = {"stop", "remove", "keep"}};
}

consequences consequences_of(const json& all, const std::vector<std::string>& named, cascade of) {
    EDDY_ASSERT(all.is_array());
    cascade_walk walk(all, named);
    for (const std::string& each : named) walk.end(each, of);
    for (const std::string& each : walk.removed) {
        walk.stopped.erase(each);
        walk.kept.erase(each);
    }
    return {walk.listed(walk.stopped), walk.listed(walk.removed), walk.listed(walk.kept)};
}

std::string describe(const consequences& what) {
    std::vector<std::string> parts;
    if (!what.stopped.empty()) parts.push_back("stops " + joined(what.stopped));
    if (!what.removed.empty()) parts.push_back("removes " + joined(what.removed));
    if (!what.kept.empty()) parts.push_back("keeps " + joined(what.kept));
    return fmt::format("{}", fmt::join(parts, "; "));
}

std::expected<void, int> confirm_cascade(const context& with, const arguments& given, cascade of) {
    // Scripts know what they do.
    if (::isatty(STDIN_FILENO) == 0 || ::isatty(STDOUT_FILENO) == 0) return {};
    const auto all = list_matching(with, "*");
    if (!all) return std::unexpected(all.error());
    std::vector<std::string> named;
    std::vector<std::string> running;
    for (const std::string& word : given.positional()) {
        const auto list = list_matching(with, word);
        if (!list) return std::unexpected(list.error());
        for (const json& each : *list) {
            const std::string name = text_of(each, "name");
            if (std::ranges::find(named, name) != named.end()) continue;
            named.push_back(name);
            if (text_of(each, "status") == "running") running.push_back(name);
        }
    }
    const consequences what = consequences_of(*all, named, of);
    const bool is_removal = of == cascade::of_removal;
    const bool removes_running = is_removal && !running.empty();
    if (what.stopped.empty() && what.removed.empty() && !removes_running) return {};
    if (removes_running)
        complain(fmt::format("{}, which {}, {} removed", joined(running),
                             running.size() == 1 ? "runs" : "run",
                             running.size() == 1 ? "is" : "are"));
    if (!what.empty())
        complain(fmt::format("{} {} also {}", is_removal ? "removing" : "stopping", joined(named),
                             describe(what)));
    if (agrees()) return {};
    complain(fmt::format("nothing was {}; --yes does it without a question",
                         is_removal ? "removed" : "stopped"));
    return std::unexpected(exit_bad_input);
}

}  // namespace eddy::cli
