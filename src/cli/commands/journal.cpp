// Output of a journal.
#include "cli/commands/journal.hpp"

#include <eddy/io/scope.hpp>

#include "base/text/terminal_text.hpp"
#include "cli/request.hpp"
#include "cli/text/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace eddy::cli {
namespace {

struct line_form {
    bool as_json = false;
    std::string name = {};  ///< of the runtime, to stand in each line; empty for none
    std::size_t width = 0;  ///< of the column of names
    bool colours = false;
};

/// A line of a journal, without what ends it, as it is printed.
std::string shown_line(const line_form& form, std::string_view text) {
    if (!form.as_json)
        return tinted(fmt::format("{:<{}} |", printable(form.name), form.width), tint::faint,
                      form.colours) +
               " " + escaped_for_terminal(text) + "\n";
    const std::size_t space = std::min(text.find(' '), text.size());
    json line = {{"time", text.substr(0, space)},
                 {"line", text.substr(std::min(space + 1, text.size()))}};
    if (!form.name.empty()) line["name"] = form.name;
    return dump_for_terminal(line) + "\n";
}

/// A sink that prints each line once it is whole.
body_sink line_printer(line_form form) {
    return [form = std::move(form), rest = std::string()](std::string_view piece) mutable {
        rest += piece;
        for (std::size_t at; (at = rest.find('\n')) != std::string::npos;) {
            print(shown_line(form, std::string_view(rest).substr(0, at)));
            rest.erase(0, at + 1);
        }
        return std::fflush(stdout) == 0;
    };
}

/// The journals of several runtimes.
class journals {
public:
    journals(const context& with, std::vector<std::string> names, std::string_view query)
        : with_(with), names_(std::move(names)), query_(query), client_(with.socket) {
        for (const std::string& each : names_) width_ = std::max(width_, printable(each).size());
    }

    int run(bool follow) {
        if (!follow) return show();
        auto here = client_.own_loop();
        if (!here) {
            complain(here.error().message);
            return exit_fatal;
        }
        (*here)->run(join_scope([this](scope& all) -> task<> {
            for (const std::string& each : names_) all.spawn(follow_one(each));
            co_return;
        }));
        return status_;
    }

private:
    /// In the order of their times.
    int show() {
        std::multimap<std::string, std::string, std::less<>> lines;  // by time
        for (const std::string& name : names_) {
            const auto answer = client_.ask(request(name, false));
            if (!answer) {
                complain(answer.error().message);
                return exit_fatal;
            }
            if (answer->status / 100 != 2) {
                complain(error_message(answer->status, answer->body));
                status_ = std::max(status_, exit_status_for(answer->status));
                continue;
            }
            for (std::string_view rest = answer->body; !rest.empty();) {
                const std::string_view text = rest.substr(0, rest.find('\n'));
                rest.remove_prefix(std::min(text.size() + 1, rest.size()));
                lines.emplace(text.substr(0, text.find(' ')), shown_line(form(name), text));
            }
        }
        for (const auto& [time, text] : lines) print(text);
        return status_;
    }

    task<void> follow_one(std::string name) {
        const auto answer =
            co_await client_.exchange(request(name, true), line_printer(form(name)));
        if (answer && answer->status / 100 == 2) co_return;
        complain(answer ? error_message(answer->status, answer->body)
                        : client_.explain(answer.error()));
        status_ = std::max<int>(status_, answer ? exit_status_for(answer->status) : exit_fatal);
    }

    control_request request(const std::string& name, bool follow) const {
        control_request made;
        made.target = runtime_target(name, fmt::format("/logs?follow={}{}", follow, query_));
        return made;
    }
    line_form form(const std::string& name) const {
        return {.as_json = with_.json, .name = name, .width = width_, .colours = with_.colours};
    }

    const context& with_;
    std::vector<std::string> names_;
    std::string query_;
    control_client client_;
    std::size_t width_ = 0;
    int status_ = exit_ok;
};

}  // namespace

body_sink journal_printer(bool as_json) {
    if (as_json) return line_printer({.as_json = true});
    return [escaper = terminal_escaper()](std::string_view piece) mutable {
        print(escaper.next(piece));
        return std::fflush(stdout) == 0;
    };
}

int show_journals(const context& with, std::vector<std::string> names, std::string_view query,
                  bool follow) {
    return journals(with, std::move(names), query).run(follow);
}

}  // namespace eddy::cli
