// Output of a journal, and `eddy start -i`, which prints it while it reads its user's input.
#include "cli/journal.hpp"

#include <eddy/io/scope.hpp>

#include "base/terminal_text.hpp"
#include "cli/request.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string_view>
#include <system_error>
#include <utility>

namespace eddy::cli {
namespace {

/// Both halves of attach(). Whichever ends first ends the other.
class attachment {
public:
    attachment(const context& with, const std::string& name) : name_(name), client_(with.socket) {
        printer_ = journal_printer(with.json);
    }

    int run() {
        auto here = client_.own_loop();
        if (!here) {
            complain(here.error().message);
            return exit_fatal;
        }
        std::fflush(stdout);  // what was printed before, for a reader that is no terminal
        (*here)->run(join_scope([this](scope& both) -> task<> {
            both.spawn(show(both));
            both.spawn(send(both));
            co_return;
        }));
        return status_;
    }

private:
    task<void> show(scope& both) {
        control_request request;
        request.target = runtime_target(name_, "/logs?tail=0&follow=true");
        note(co_await client_.exchange(std::move(request), printer_));
        both.cancel();
    }

    task<void> send(scope& both) {
        std::string input;
        char chunk[16 * 1024];
        while (co_await loop::current().wait_readable(STDIN_FILENO)) {
            const ssize_t got = ::read(STDIN_FILENO, chunk, sizeof chunk);
            if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
            if (got < 0)
                complain(fmt::format("could not read standard input: {}",
                                     std::generic_category().message(errno)));
            if (got <= 0) break;
            input.append(chunk, static_cast<std::size_t>(got));
            for (std::size_t end; (end = input.find('\n')) != std::string::npos;) {
                co_await send_line(input.substr(0, end));
                input.erase(0, end + 1);
            }
            if (input.size() > message_limit) {
                complain(fmt::format("a line has more than {} bytes, the largest message",
                                     message_limit));
                status_ = exit_bad_input;
                input.clear();
                break;
            }
        }
        if (!input.empty()) co_await send_line(std::move(input));
        both.cancel();
    }

    task<void> send_line(std::string line) {
        control_request request;
        request.method = "POST";
        request.target = runtime_target(name_, "/send");
        request.body = std::move(line);
        request.content_type = "application/octet-stream";
        note(co_await client_.exchange(std::move(request)));
    }

    /// Tells of a failure, which sets the exit status.
    void note(const result<control_answer>& answer) {
        if (!answer && answer.error() == errc::cancelled) return;
        if (answer && answer->status / 100 == 2) return;
        complain(answer ? error_message(answer->status, answer->body)
                        : client_.explain(answer.error()));
        status_ = answer ? exit_status_for(answer->status) : exit_fatal;
    }

    std::string name_;
    control_client client_;
    body_sink printer_;
    int status_ = exit_ok;
};

}  // namespace

body_sink journal_printer(bool as_json) {
    return [as_json, rest = std::string(),
            escaper = terminal_escaper()](std::string_view piece) mutable {
        if (!as_json) {
            print(escaper.next(piece));
        } else {
            // One JSON object a line: {"time": ..., "line": ...}.
            rest += piece;
            for (std::size_t at; (at = rest.find('\n')) != std::string::npos;) {
                const std::string text = rest.substr(0, at);
                rest.erase(0, at + 1);
                const std::size_t space = text.find(' ');
                const json line = {
                    {"time", text.substr(0, space)},
                    {"line", space == std::string::npos ? "" : text.substr(space + 1)}};
                print(dump_for_terminal(line) + "\n");
            }
        }
        return std::fflush(stdout) == 0;
    };
}

int attach(const context& with, const std::string& name) { return attachment(with, name).run(); }

}  // namespace eddy::cli
