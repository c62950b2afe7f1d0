// `eddy wait`: waits until runtimes run, are stopped or gone. Events say when to look.
#include <eddy/base/assert.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/timeout.hpp>
#include <eddy/wire/http1/target.hpp>

#include "base/text/terminal_text.hpp"
#include "cli/bench/measure.hpp"
#include "cli/commands/commands.hpp"
#include "cli/request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::cli {
namespace {

/// More names are not put into the request, whose target has a limit; all events wake it then.
constexpr std::size_t named_limit = 100;

/// A runtime that is waited for.
struct awaited {
    std::string name;
    std::string id;  ///< stays over a renaming
    std::string status = {};
    bool is_done = false;
};

/// State of a runtime as far as a condition is concerned.
enum class verdict : unsigned char { pending, reached, never };

verdict judge(std::string_view wanted, std::string_view status, bool is_degraded) {
    const bool is_over = status == "created" || status == "stopped";
    if (wanted == "removed") return status == "removed" ? verdict::reached : verdict::pending;
    if (wanted == "stopped") {
        if (status == "failed") return verdict::never;
        return is_over || status == "removed" ? verdict::reached : verdict::pending;
    }
    if (status == "failed" || status == "removed") return verdict::never;
    if (status != "running") return verdict::pending;
    return wanted == "healthy" && is_degraded ? verdict::pending : verdict::reached;
}

class waiting {
public:
    waiting(const context& with, std::vector<awaited> all, std::string wanted)
        : with_(with), all_(std::move(all)), wanted_(std::move(wanted)), client_(with.socket) {
        EDDY_ASSERT(!all_.empty());
    }

    int run(duration timeout) {
        auto here = client_.own_loop();
        if (!here) {
            complain(here.error().message);
            return exit_fatal;
        }
        const auto ended = (*here)->run(with_timeout(timeout, wait()));
        if (!ended && ended.error() == errc::timed_out) {
            for (const awaited& each : all_)
                if (!each.is_done)
                    complain(fmt::format("{} is {} still", printable(each.name),
                                         printable(each.status)));
            status_ = std::max<int>(status_, exit_bad_input);
        }
        if (with_.json) print_json();
        return status_;
    }

private:
    task<result<>> wait() {
        co_await join_scope([this](scope& parts) -> task<> {
            parts.spawn(follow(parts));
            parts.spawn(look(parts));
            co_return;
        });
        // A deadline cancels the parts.
        if (std::ranges::all_of(all_, &awaited::is_done) || status_ == exit_fatal)
            co_return result<>();
        co_return fail(errc::cancelled);
    }

    /// Wakes look() with each event.
    task<void> follow(scope& parts) {
        control_request request;
        request.target = "/v1/events?follow=true";
        if (all_.size() <= named_limit)
            for (const awaited& each : all_)
                request.target += fmt::format("&match={}", http1::percent_encode(each.id));
        const auto answer = co_await client_.exchange(std::move(request), [this](std::string_view) {
            news_.set();
            return true;
        });
        if (!answer && answer.error() == errc::cancelled) co_return;
        if (answer && answer->status / 100 == 2)
            complain("the daemon has ended");
        else
            complain(answer ? error_message(answer->status, answer->body)
                            : client_.explain(answer.error()));
        status_ = exit_fatal;
        parts.cancel();
    }

    /// Looks at all pending ones, once events are followed and with each of them.
    task<void> look(scope& parts) {
        while (co_await news_.wait()) {
            news_.reset();
            bool is_pending = false;
            for (awaited& each : all_) {
                if (!each.is_done && !co_await look_at(each)) co_return;
                is_pending |= !each.is_done;
            }
            if (is_pending) continue;
            parts.cancel();
            co_return;
        }
    }

    /// False where the daemon could not be asked.
    task<bool> look_at(awaited& which) {
        control_request request;
        request.target = runtime_target(which.id);
        const auto answer = co_await client_.exchange(std::move(request));
        if (!answer || (answer->status != 200 && answer->status != 404)) co_return false;
        json shown = json::parse(answer->body, nullptr, false);
        if (!shown.is_object()) co_return false;
        if (answer->status == 404) shown = {{"status", "removed"}};
        which.status = text_of(shown, "status");
        const std::string reason = text_of(shown, "reason");
        const verdict now = judge(wanted_, which.status, !reason.empty());
        if (now == verdict::pending) co_return true;
        EDDY_ASSERT(!which.is_done);
        which.is_done = true;
        if (now == verdict::never) {
            complain(fmt::format("{} {}{}{}", printable(which.name),
                                 which.status == "removed" ? "was removed" : which.status,
                                 reason.empty() ? "" : ": ", printable(reason)));
            status_ = std::max<int>(status_, exit_bad_input);
        } else if (!with_.json) {
            print(fmt::format("{} {}\n", printable(which.name),
                              wanted_ == "healthy" ? wanted_ : printable(which.status)));
            std::fflush(stdout);
        }
        co_return true;
    }

    void print_json() const {
        json shown = json::array();
        for (const awaited& each : all_)
            shown.push_back({{"name", each.name}, {"status", each.status}, {"done", each.is_done}});
        print(pretty(shown));
    }

    const context& with_;
    std::vector<awaited> all_;
    const std::string wanted_;
    control_client client_;
    event news_;
    int status_ = exit_ok;
};

/// The runtimes of the words. A name that is not there is no fault where `may_be_gone`.
std::expected<std::vector<awaited>, int> find_all(const context& with, const arguments& given,
                                                  bool may_be_gone) {
    std::vector<awaited> all;
    for (const std::string& word : given.positional()) {
        const auto list = list_matching(with, word);
        if (!list) return std::unexpected(list.error());
        for (const json& each : *list)
            all.push_back({text_of(each, "name"), text_of(each, "id"), text_of(each, "status")});
        if (!list->empty() || may_be_gone) continue;
        if (is_pattern(word)) {
            complain(fmt::format("no runtime matches \"{}\"; `eddy ls` shows those there are",
                                 printable(word)));
            return std::unexpected(exit_bad_input);
        }
        control_request request;
        request.target = runtime_target(word);
        const auto one = ask(with, std::move(request));
        if (!one) return std::unexpected(one.error());
    }
    return all;
}

int wait_for(context& with, const arguments& given) {
    const std::string wanted(given.value("for", "stopped"));
    duration timeout = duration::max();
    if (!bench::read_duration(given, "timeout", timeout)) return exit_bad_input;
    constexpr std::string_view conditions[] = {"running", "healthy", "stopped", "removed"};
    if (std::ranges::find(conditions, wanted) == std::end(conditions)) {
        complain(fmt::format("--for cannot be \"{}\"; it may be {}", printable(wanted),
                             fmt::join(conditions, ", ")));
        return exit_bad_input;
    }
    auto all = find_all(with, given, wanted == "removed");
    if (!all) return all.error();
    if (all->empty()) return exit_ok;
    return waiting(with, std::move(*all), wanted).run(timeout);
}

}  // namespace

command wait_command() {
    command c;
    c.name = "wait";
    c.operands = "<name|pattern>...";
    c.summary = "wait until runtimes are stopped, run, or are gone";
    c.flags = {{.name = "for",
                .value_name = "STATE",
                .help = "state to wait for; healthy runs and has what it needs",
                .default_value = "stopped",
                .choices = {"running", "healthy", "stopped", "removed"}},
               {.name = "timeout",
                .value_name = "TIME",
                .help = "longest wait, such as 30s; by default there is no end"}};
    c.least = 1;
    c.most = 1'000'000;
    c.examples = {{"eddy wait db --for healthy --timeout 30s && run-the-tests", ""},
                  {"eddy wait job", "until it is stopped"},
                  {"eddy wait 'api-*' --for removed", ""}};
    c.more =
        "Each is printed once it is in that state. The exit status is 0 if all are, and 1 after\n"
        "the timeout, or as soon as one fails, or is removed before it runs.";
    c.run = wait_for;
    return c;
}

}  // namespace eddy::cli
