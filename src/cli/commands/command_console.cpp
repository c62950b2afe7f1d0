// `eddy console`: opens the daemon's web page on a port of this machine.
#include "cli/commands/commands.hpp"
#include "cli/request.hpp"
#include "cli/text/table.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <utility>

namespace eddy::cli {
namespace {

constexpr std::string_view target = "/v1/console";

int close_console(const context& with) {
    auto closed = ask(with, {.method = "DELETE", .target = std::string(target)});
    if (!closed) return closed.error();
    if (with.json)
        print(pretty(json::object()));
    else
        print("the console is closed\n");
    return exit_ok;
}

int run_console(context& with, const arguments& given) {
    if (given.is_set("close")) return close_console(with);
    json wanted = json::object();
    if (given.has("port")) {
        const std::string_view text = given.value("port");
        std::uint16_t port = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
        if (error != std::errc{} || end != text.data() + text.size()) {
            complain(fmt::format("--port must be a number of 0 to 65535, not \"{}\"", text));
            return exit_bad_input;
        }
        wanted["port"] = port;
    }
    auto body = request_body(wanted);
    if (!body) return body.error();
    auto opened =
        ask(with, {.method = "POST", .target = std::string(target), .body = std::move(*body)});
    if (!opened) return opened.error();
    if (with.json)
        print(pretty(*opened));
    else
        print(printable(text_of(*opened, "url")) + "\n");
    return exit_ok;
}

}  // namespace

command console_command() {
    command c;
    c.name = "console";
    c.summary = "open the console, a web page about the daemon, and print its address";
    c.flags = {{.name = "port",
                .letter = 'p',
                .value_name = "N",
                .help = "port of 127.0.0.1; by default any free one, or the one that is open"},
               {.name = "close", .help = "close the console; its address is void then"}};
    c.examples = {
        {"xdg-open \"$(eddy console)\"", "in a browser of this machine"},
        {"eddy console -p 9090", "with `ssh -L 9090:127.0.0.1:9090 HOST`, in one of another"},
        {"eddy console --close", ""}};
    c.more =
        "The address has a token, by which the page may do all that this command may. It is\n"
        "another one each time that the console is opened, and void when the daemon ends.";
    c.run = run_console;
    return c;
}

}  // namespace eddy::cli
