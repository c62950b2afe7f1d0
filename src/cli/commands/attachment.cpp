// Attachment to a runtime: its output to the terminal, and the terminal's lines to it.
#include "cli/commands/attachment.hpp"

#include <eddy/io/event.hpp>
#include <eddy/io/scope.hpp>

#include "base/text/terminal_text.hpp"
#include "base/text/text.hpp"
#include "cli/commands/commands.hpp"
#include "cli/commands/journal.hpp"
#include "cli/request.hpp"
#include "cli/text/table.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace eddy::cli {
namespace {

/// Begins a line of a client's journal that repeats a message.
constexpr std::string_view received_mark = "received: ";

/// Calls `each` for the whole lines of pieces of text.
template <class Each>
body_sink line_sink(Each each) {
    return [each = std::move(each), rest = std::string()](std::string_view piece) mutable {
        rest += piece;
        for (std::size_t at; (at = rest.find('\n')) != std::string::npos;) {
            each(std::string_view(rest).substr(0, at));
            rest.erase(0, at + 1);
        }
        return std::fflush(stdout) == 0;
    };
}

/// Prints messages: as they are, but for what could drive a terminal if standard output is one; or
/// each line as a JSON object.
body_sink message_printer(bool as_json) {
    if (as_json)
        return line_sink(
            [](std::string_view line) { print(dump_for_terminal({{"message", line}}) + "\n"); });
    if (::isatty(STDOUT_FILENO) != 0) return journal_printer(false);
    return [](std::string_view piece) {
        print(piece);
        return std::fflush(stdout) == 0;
    };
}

/// Its parts run until one of them ends.
class attachment {
public:
    attachment(const context& with, const std::string& name, bool shows_messages)
        : with_(with), name_(name), shows_messages_(shows_messages), client_(with.socket) {}

    int run() {
        auto here = client_.own_loop();
        if (!here) {
            complain(here.error().message);
            return exit_fatal;
        }
        std::fflush(stdout);  // what was printed before, for a reader that is no terminal
        (*here)->run(join_scope([this](scope& all) -> task<> {
            all.spawn(show(all));
            if (shows_messages_) all.spawn(show_events());
            all.spawn(send(all));
            co_return;
        }));
        return status_;
    }

private:
    task<void> show(scope& all) {
        control_request request;
        request.target =
            runtime_target(name_, shows_messages_ ? "/messages" : "/logs?tail=0&follow=true");
        body_sink printer =
            shows_messages_ ? message_printer(with_.json) : journal_printer(with_.json);
        note(co_await client_.exchange(std::move(request), when_begun(std::move(printer))));
        all.cancel();
    }

    /// Sets `shown_` with the first piece.
    body_sink when_begun(body_sink next) {
        return [this, next = std::move(next)](std::string_view piece) {
            shown_.set();
            return next(piece);
        };
    }

    /// Connections made and lost, to standard error.
    task<void> show_events() {
        control_request request;
        request.target = runtime_target(name_, "/logs?tail=0&follow=true");
        // show() reports failures.
        static_cast<void>(co_await client_.exchange(
            std::move(request), line_sink([this](std::string_view line) {
                const std::string_view text =
                    line.substr(std::min(line.find(' ') + 1, line.size()));
                if (!text.starts_with(received_mark)) complain(fmt::format("{}: {}", name_, text));
            })));
    }

    task<void> send(scope& all) {
        // An answer to the first line is not missed.
        if (!co_await shown_.wait()) co_return;
        std::string input;
        char chunk[16 * 1024];
        for (;;) {
            const auto ready = co_await loop::current().wait_readable(STDIN_FILENO);
            // A file cannot be waited for, and is always readable.
            if (!ready && ready.error() != std::errc::operation_not_permitted) break;
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
        all.cancel();
    }

    task<void> send_line(std::string line) {
        control_request request;
        request.method = "POST";
        request.target = runtime_target(name_, "/send");
        request.body = std::move(line);
        request.content_type = "application/octet-stream";
        note(co_await client_.exchange(std::move(request)));
    }

    /// Reports a failure, which sets the exit status.
    void note(const result<control_answer>& answer) {
        if (!answer && answer.error() == errc::cancelled) return;
        if (answer && answer->status / 100 == 2) return;
        complain(answer ? error_message(answer->status, answer->body)
                        : client_.explain(answer.error()));
        status_ = answer ? exit_status_for(answer->status) : exit_fatal;
    }

    const context& with_;
    std::string name_;
    bool shows_messages_;
    control_client client_;
    event shown_;  // the runtime's output is followed
    int status_ = exit_ok;
};

/// When the process began, in the kernel's ticks, as the text of a number; empty if that cannot be
/// read. The name in the file may have spaces and parentheses.
std::string start_time_of(std::string_view pid) {
    constexpr int fields_before = 19;
    std::ifstream file(fmt::format("/proc/{}/stat", pid));
    std::string text((std::istreambuf_iterator<char>(file)), {});
    text.erase(0, std::min(text.rfind(')'), text.size() - 1) + 1);
    std::istringstream fields(text);
    std::string each;
    for (int i = 0; i <= fields_before; ++i) fields >> each;
    return fields ? each : std::string();
}

/// TYPE NAME PORT: a process that something else has started.
int attach_process(context& with, const arguments& given) {
    json options = {{"kind", given.positional()[0]}, {"port", given.positional()[2]}};
    if (given.has("pid")) {
        const std::string pid(given.value("pid"));
        options["pid"] = pid;
        const bool is_number = !pid.empty() && pid.find_first_not_of("0123456789") == pid.npos;
        if (const std::string time = is_number ? start_time_of(pid) : ""; !time.empty())
            options["pid_start"] = time;
    }
    json body = {
        {"type", "external"}, {"name", given.positional()[1]}, {"options", std::move(options)}};
    add_ownership(body, given);
    auto text = request_body(body);
    if (!text) return text.error();
    control_request create;
    create.method = "POST";
    create.target = "/v1/runtimes";
    create.body = std::move(*text);
    if (auto made = ask(with, std::move(create)); !made) return made.error();
    const std::string& name = given.positional()[1];
    control_request start;
    start.method = "POST";
    start.target = runtime_target(name, "/start");
    const auto started = ask(with, std::move(start));
    if (!started) {
        // A process that cannot be watched is not registered.
        control_request remove;
        remove.method = "DELETE";
        remove.target = runtime_target(name);
        static_cast<void>(ask(with, std::move(remove)));
        return started.error();
    }
    if (with.json)
        print(pretty(*started));
    else
        print(fmt::format("{} is watched, on port {}\n", printable(name), given.positional()[2]));
    return exit_ok;
}

int run_attach(context& with, const arguments& given) {
    const std::size_t words = given.positional().size();
    if (words == 3) return attach_process(with, given);
    if (words == 2 || given.has("pid") || given.has("owner") || given.has("group") ||
        given.has("on-parent-stop")) {
        complain("a process is attached by: eddy attach TYPE NAME PORT [--pid N]");
        return exit_bad_input;
    }
    const std::string& name = given.positional()[0];
    control_request request;
    request.target = runtime_target(name);
    const auto answer = ask(with, std::move(request));
    if (!answer) return answer.error();
    const std::string type = text_of(*answer, "type");
    if (type != "client" && type != "server") {
        complain(
            fmt::format("{0} is a {1}; only clients and servers can be attached to. `eddy logs "
                        "-f {0}` follows its log",
                        printable(name), printable(type)));
        return exit_bad_input;
    }
    if (text_of(*answer, "status") != "running") {
        complain(fmt::format("{0} is not running; `eddy start -i {0}` starts and attaches",
                             printable(name)));
        return exit_bad_input;
    }
    return attach(with, name);
}

}  // namespace

int attach(const context& with, const std::string& name) {
    control_request request;
    request.target = runtime_target(name);
    const auto answer = ask(with, std::move(request));
    if (!answer) return answer.error();
    if (::isatty(STDIN_FILENO) != 0)
        complain(
            fmt::format("attached to {}: lines that you type are sent; Ctrl-C or Ctrl-D "
                        "leaves it running",
                        printable(name)));
    return attachment(with, name, text_of(*answer, "type") == "client").run();
}

command attach_command() {
    command c;
    c.name = "attach";
    c.operands = "<name> | <type> <name> <port>";
    c.summary = "show what a client or server receives; or watch a process of another program";
    c.flags = with_ownership(
        {{.name = "pid",
          .value_name = "N",
          .help = "of TYPE NAME PORT: the process, which must listen on the port; its end is "
                  "seen at once"}});
    c.least = 1;
    c.most = 3;
    c.examples = {
        {"eddy attach postgres db 5432 --pid 4711",
         "a process that Eddy did not start: `eddy ls` shows whether it runs"},
        {"eddy attach feed", "a client: its server's messages, and each line to the server"},
        {"eddy attach chat", "a server: its log, and each line to all clients"},
        {"eddy attach feed > messages.txt", "messages as they are, to a file"}};
    c.more =
        "Ctrl-C, Ctrl-D or the end of standard input ends it; the runtime stays up. A client's\n"
        "messages go to standard output, news of its connection to standard error. At most 512\n"
        "KiB wait for a terminal that is slower; the number of messages lost is shown.\n"
        "\n"
        "With a type, a name and a port it registers a process that something else has started.\n"
        "It gets no signal from Eddy: `eddy stop` and `eddy remove` end only the watch.";
    c.run = run_attach;
    return c;
}

}  // namespace eddy::cli
