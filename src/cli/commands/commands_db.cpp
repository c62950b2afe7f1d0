// `eddy db`: Redis commands for a cache, over the address that the cache serves on, in the way of
// redis-cli. Without a command it is a prompt on a terminal, and reads lines elsewhere.
#include <eddy/base/byte_buffer.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>
#include <eddy/transport/transport.hpp>

#include "base/text/text.hpp"
#include "cli/commands/command_docs.hpp"
#include "cli/commands/commands.hpp"
#include "cli/control_client.hpp"
#include "cli/request.hpp"
#include "cli/text/line_editor.hpp"
#include "cli/text/reply_text.hpp"
#include "cli/text/table.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <span>

namespace eddy::cli {
namespace {

/// No bound on how many words a command has.
constexpr std::size_t any_number = 1'000'000;
/// The longest argument that a cache takes, and the longest line of standard input.
constexpr std::size_t argument_limit = 512U << 20;
constexpr std::string_view password_variable = "REDISCLI_AUTH";

using words = std::vector<std::string>;

/// Reads standard input line by line; nothing at its end.
class input_lines {
public:
    std::optional<std::string> next() {
        for (;;) {
            const std::size_t end = text_.find('\n', looked_at_);
            if (end != std::string::npos) {
                std::string line = text_.substr(0, end);
                text_.erase(0, end + 1);
                looked_at_ = 0;
                return line;
            }
            looked_at_ = text_.size();
            char chunk[16 * 1024];
            const ssize_t got = ::read(STDIN_FILENO, chunk, sizeof chunk);
            if (got < 0 && errno == EINTR) continue;
            if (got <= 0 || text_.size() > argument_limit) break;
            text_.append(chunk, static_cast<std::size_t>(got));
        }
        if (text_.empty()) return std::nullopt;
        looked_at_ = 0;
        return std::exchange(text_, {});
    }

private:
    std::string text_;
    std::size_t looked_at_ = 0;
};

/// A connection to a cache.
class cache_client {
public:
    cache_client(std::string name, std::string uri)
        : name_(std::move(name)), uri_(std::move(uri)) {}

    /// For the next connect().
    void move_to(std::string uri) { uri_ = std::move(uri); }

    task<std::expected<void, std::string>> connect() {
        reader_ = {};
        result<stream> opened = co_await transport::connect(uri_);
        if (!opened) co_return std::unexpected(transport::explain(uri_, opened.error()));
        socket_ = std::move(*opened);
        co_return std::expected<void, std::string>();
    }

    task<std::expected<void, std::string>> send(const words& command) {
        byte_buffer out;
        out.append(fmt::format("*{}\r\n", command.size()));
        for (const std::string& word : command) {
            out.append(fmt::format("${}\r\n", word.size()));
            out.append(word);
            out.append("\r\n");
        }
        const auto sent = co_await socket_.write_all(out.bytes());
        // A server that refused the command early may have sent the reason.
        if (!sent && sent.error() != std::errc::broken_pipe &&
            sent.error() != std::errc::connection_reset)
            co_return std::unexpected(lost(sent.error()));
        co_return std::expected<void, std::string>();
    }

    task<std::expected<reply, std::string>> receive() {
        reply whole;
        for (;;) {
            const auto got = reader_.next(whole);
            if (!got)
                co_return std::unexpected(fmt::format(
                    "the server on {} does not speak RESP as a cache does: {}", uri_, got.error()));
            if (*got) co_return whole;
            const auto received = co_await socket_.read();
            if (!received) co_return std::unexpected(lost(received.error()));
            reader_.feed(received->text());
        }
    }

    task<std::expected<reply, std::string>> ask(words command) {
        if (auto sent = co_await send(command); !sent) co_return std::unexpected(sent.error());
        co_return co_await receive();
    }

private:
    std::string lost(std::error_code error) const {
        if (error == errc::end_of_stream || error == std::errc::connection_reset)
            return fmt::format("{} closed the connection; `eddy logs {}` may say why", name_,
                               name_);
        return fmt::format("the connection to {} broke: {}", name_, error.message());
    }

    std::string name_;
    std::string uri_;
    stream socket_;
    reply_reader reader_;
};

enum class form { people, raw, json };

form choose_form(const context& with, const arguments& given) {
    if (with.json) return form::json;
    if (given.is_set("raw")) return form::raw;
    if (given.is_set("no-raw") || ::isatty(STDOUT_FILENO) == 1) return form::people;
    return form::raw;
}

std::string in_form(const reply& of, form chosen) {
    switch (chosen) {
        case form::json: return json_reply(of);
        case form::raw: return raw_reply(of);
        default: return reply_for_people(of);
    }
}

/// Where a cache is to be reached from here, or why not.
std::expected<std::string, std::string> uri_of(const json& runtime, const arguments& given) {
    const std::string name = text_of(runtime, "name");
    if (const std::string type = text_of(runtime, "type"); type != "cache")
        return std::unexpected(fmt::format("{} is a {}, not a cache", printable(name), type));
    if (text_of(runtime, "status") != "running")
        return std::unexpected(
            fmt::format("{0} does not run; start it with: eddy start {0}", printable(name)));
    std::string address = text_of(runtime, "address");
    const json options = runtime.value("options", json::object());
    const std::string listen = text_of(options, "listen");
    if (listen.starts_with("handoff:"))
        return std::unexpected(
            fmt::format("{} serves clients that other programs hand over at {}; nothing connects "
                        "to it",
                        printable(name), printable(address)));
    if (address.starts_with('/') || address.starts_with('@')) return "unix://" + address;
    if (address.starts_with("unix:")) return address;
    for (const std::string_view any : {"0.0.0.0:", "[::]:"}) {
        if (address.starts_with(any)) address.replace(0, any.size(), "127.0.0.1:");
    }
    const bool has_tls_port_alone = options.contains("tls_port") && !options.contains("port") &&
                                    !options.contains("unix") && !options.contains("listen");
    const bool has_tls = options.value("tls", json()) == true;
    if (!listen.starts_with("tls://") && !has_tls && !has_tls_port_alone) return "tcp://" + address;
    // The certificate is for the name that the cache was given, not for the address behind it.
    if (const auto asked = transport::parse(listen); asked && !asked->host.empty()) {
        const std::string port = address.substr(address.rfind(':'));
        if (asked->host != "0.0.0.0" && asked->host != "::" && asked->host != "*")
            address = (asked->host.contains(':') ? "[" + asked->host + "]" : asked->host) + port;
    }
    std::string uri = "tls://" + address;
    char before = '?';
    for (const std::string_view file : {"ca", "cert", "key"}) {
        if (!given.has(file)) continue;
        uri += fmt::format("{}{}={}", before, file, given.value(file));
        before = '&';
    }
    return uri;
}

/// True for a command whose reply is followed by messages until the user ends it.
bool goes_on(std::string_view command) {
    for (const std::string_view each : {"subscribe", "psubscribe", "ssubscribe", "monitor"})
        if (is_word(command, each)) return true;
    return false;
}

/// The commands of one run of `eddy db`.
class conversation {
public:
    conversation(const context& with, const arguments& given, std::string name, std::string uri)
        : with_(with),
          given_(given),
          form_(choose_form(with, given)),
          secret_parameters_(with.secret_parameters()),
          cache_(std::move(name), std::move(uri)) {}

    task<int> run() {
        const int ready = co_await connect();
        if (ready != exit_ok) co_return ready;
        const words& all = given_.positional();
        if (all.size() > 1) co_return co_await run_one(words(all.begin() + 1, all.end()), true);
        if (::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1 && !given_.is_set("stdin"))
            co_return co_await run_prompt();
        co_return co_await run_lines();
    }

private:
    static int broken(std::string_view why) {
        complain(why);
        return exit_fatal;
    }

    task<int> connect() {
        if (auto opened = co_await cache_.connect(); !opened) co_return broken(opened.error());
        co_return co_await prepare();
    }

    /// The same where the cache may have another address by now.
    task<int> reconnect() {
        control_client daemon(with_.socket);
        control_request request;
        request.target = runtime_target(given_.positional().front());
        const auto answer = co_await daemon.exchange(std::move(request));
        // The cache may be there without its daemon's answer.
        if (answer && answer->status / 100 != 2) {
            complain(error_message(answer->status, answer->body));
            co_return exit_bad_input;
        }
        const json runtime =
            answer ? json::parse(answer->body, nullptr, false) : json(json::value_t::discarded);
        if (runtime.is_object()) {
            auto uri = uri_of(runtime, given_);
            if (!uri) {
                complain(uri.error());
                co_return exit_bad_input;
            }
            cache_.move_to(std::move(*uri));
        }
        co_return co_await connect();
    }

    /// The protocol, the user and the database.
    task<int> prepare() {
        const char* const from_environment = std::getenv(password_variable.data());
        std::string password(given_.value("password", from_environment ? from_environment : ""));
        if (!password.empty() || given_.has("user")) {
            words auth = {"AUTH"};
            if (given_.has("user")) auth.emplace_back(given_.value("user"));
            auth.push_back(std::move(password));
            const int status = co_await expect_ok(std::move(auth));
            if (status != exit_ok) co_return status;
        }
        // JSON distinguishes objects and booleans, and so does RESP3 alone.
        if (form_ == form::json || given_.is_set("resp3")) {
            const int status = co_await expect_ok({"HELLO", "3"});
            if (status != exit_ok) co_return status;
        }
        if (database_ != "0") {
            const int status = co_await expect_ok({"SELECT", database_});
            if (status != exit_ok) co_return status;
        }
        co_return exit_ok;
    }

    task<int> expect_ok(words command) {
        const auto answer = co_await cache_.ask(std::move(command));
        if (!answer) co_return broken(answer.error());
        co_return answer->type == resp::reply_type::error ? refused(*answer) : exit_ok;
    }

    static int refused(const reply& of) {
        complain(printable(of.text));
        if (of.text.starts_with("NOAUTH"))
            complain(
                fmt::format("give the password with --password, or in ${}", password_variable));
        return exit_bad_input;
    }

    task<int> run_one(words command, bool alone) {
        if (given_.is_set("stdin")) {
            if (!alone) {
                complain("--stdin needs a command: eddy db --stdin NAME COMMAND ARGUMENT...");
                co_return exit_bad_input;
            }
            auto input = read_input(argument_limit, "the largest value of a cache");
            if (!input) {
                complain(input.error());
                co_return exit_bad_input;
            }
            command.push_back(std::move(*input));
        }
        const bool stays = goes_on(command.front());
        const words noted = alone ? words() : command;
        auto answer = co_await cache_.ask(std::move(command));
        if (answer && !alone) note_context(noted, *answer);
        for (;;) {
            if (!answer) co_return broken(answer.error());
            if (answer->type == resp::reply_type::error && form_ != form::json)
                co_return refused(*answer);
            print(in_form(*answer, form_));
            if (answer->type == resp::reply_type::error) co_return exit_bad_input;
            if (!stays) co_return exit_ok;
            if (std::fflush(stdout) != 0) co_return exit_ok;
            answer = co_await cache_.receive();
        }
    }

    /// Follows what the prompt shows: the database, and whether a transaction is open.
    void note_context(const words& command, const reply& answer) {
        const std::string& name = command.front();
        const bool is_simple = answer.type == resp::reply_type::simple;
        const bool is_queued = is_simple && answer.text == "QUEUED";
        if (is_word(name, "exec") || is_word(name, "discard")) {
            // A transaction that was carried out has an array of replies.
            if (answer.type == resp::reply_type::array && !queued_database_.empty())
                database_ = queued_database_;
            in_transaction_ = false;
            queued_database_.clear();
        } else if (is_word(name, "select") && is_simple && command.size() > 1) {
            (is_queued ? queued_database_ : database_) = command[1];
        } else if (is_word(name, "multi") && is_simple) {
            in_transaction_ = true;
        } else if (is_word(name, "reset") && is_simple && !is_queued) {
            in_transaction_ = false;
            queued_database_.clear();
            database_ = "0";
        }
    }

    std::string prompt() const {
        std::string text = printable(given_.positional().front());
        if (database_ != "0") text += '[' + printable(database_) + ']';
        if (in_transaction_) text += "(TX)";
        return text + "> ";
    }

    /// On a terminal. What fails is shown, and the next line is read.
    task<int> run_prompt() {
        command_docs docs;
        // Without the right to COMMAND DOCS there are no hints.
        if (const auto answer = co_await cache_.ask({"COMMAND", "DOCS"}); answer)
            docs = command_docs(*answer);
        else
            co_return broken(answer.error());
        print("`help` says how, `exit` leaves\n");
        line_editor editor(
            {.completions = [&](std::string_view line) { return docs.completions(line); },
             .hint = [&](std::string_view line) { return docs.hint(line); }},
            history_file());
        bool is_connected = true;
        for (;;) {
            std::fflush(stdout);
            auto line = editor.next(prompt());
            if (!line) co_return exit_ok;
            auto command = split_line(*line);
            if (!command) {
                complain(command.error());
                continue;
            }
            if (command->empty()) continue;
            const std::string& name = command->front();
            if (command->size() == 1 && (is_word(name, "quit") || is_word(name, "exit")))
                co_return exit_ok;
            if (!has_secret(*command, secret_parameters_)) editor.remember(*line);
            if (is_word(name, "help") || name == "?") {
                print(docs.help(std::span(*command).subspan(1)));
                continue;
            }
            if (!is_connected) {
                if (co_await reconnect() != exit_ok) continue;
                is_connected = true;
            }
            is_connected = co_await run_one(std::move(*command), false) != exit_fatal;
            if (!is_connected) {
                in_transaction_ = false;
                queued_database_.clear();
            }
        }
    }

    task<int> run_lines() {
        input_lines lines;
        int status = exit_ok;
        for (;;) {
            std::fflush(stdout);
            auto line = lines.next();
            if (!line) co_return status;
            auto command = split_line(*line);
            if (!command) {
                complain(command.error());
                status = exit_bad_input;
                continue;
            }
            if (command->empty()) continue;
            if (is_word(command->front(), "quit") || is_word(command->front(), "exit"))
                co_return status;
            const int own = co_await run_one(std::move(*command), false);
            status = std::max(status, own);
            if (own == exit_fatal) co_return status;
        }
    }

    const context& with_;
    const arguments& given_;
    form form_;
    const std::vector<std::string> secret_parameters_;
    cache_client cache_;
    std::string database_{given_.value("database", "0")};
    bool in_transaction_ = false;
    std::string queued_database_;  // of a SELECT within the transaction
};

int run_db(context& with, const arguments& given) {
    const std::string& name = given.positional().front();
    if (given.is_set("raw") && given.is_set("no-raw")) {
        complain("--raw and --no-raw exclude each other");
        return exit_bad_input;
    }
    if (given.has("key") && !given.has("cert")) {
        complain("--key needs --cert FILE");
        return exit_bad_input;
    }
    control_request request;
    request.target = runtime_target(name);
    const auto runtime = ask(with, std::move(request));
    if (!runtime) return runtime.error();
    auto uri = uri_of(*runtime, given);
    if (!uri) {
        complain(uri.error());
        return exit_bad_input;
    }
    loop_options options;
    options.kind = io_backend_kind::epoll;
    auto here = loop::create(options);
    if (!here) {
        complain(fmt::format("could not make an event loop: {}", here.error().message()));
        return exit_fatal;
    }
    conversation all(with, given, name, std::move(*uri));
    return (*here)->run(all.run());
}

}  // namespace

command db_command() {
    command c;
    c.name = "db";
    c.operands = "<name> [command [argument]...]";
    c.summary = "send Redis commands to a cache, as redis-cli does";
    c.flags = {
        {.name = "raw", .help = "print the bytes unchanged; the default without a terminal"},
        {.name = "no-raw", .help = "print \"text\" and (integer) 1; the default on a terminal"},
        {.name = "stdin",
         .letter = 'x',
         .help = "the last argument is all of standard input, any bytes"},
        {.name = "database",
         .letter = 'n',
         .value_name = "N",
         .help = "the number of the database",
         .default_value = "0"},
        {.name = "resp3", .letter = '3', .help = "use RESP3; --json implies it"},
        {.name = "user", .value_name = "NAME", .help = "the user to log in as; else \"default\""},
        {.name = "password",
         .letter = 'a',
         .value_name = "TEXT",
         .help = "the user's password; else $REDISCLI_AUTH, which other users of this machine "
                 "cannot see"},
        {.name = "ca",
         .value_name = "FILE",
         .help = "the authority of a TLS-only cache's certificate, which must be for the cache's "
                 "listening address"},
        {.name = "cert",
         .value_name = "FILE",
         .help = "a client certificate, if such a cache asks for one"},
        {.name = "key",
         .value_name = "FILE",
         .help = "the private key of --cert, if it is not in the same file"},
    };
    c.least = 1;
    c.most = any_number;
    c.literal_after = 2;
    c.examples = {
        {"eddy db db set greeting hello", "the cache is named db; any Redis command works"},
        {"eddy db db get greeting", ""},
        {"eddy db db --json hgetall user:7", ""},
        {"eddy db db -x set logo < logo.png", "a value of any bytes from standard input"},
        {"eddy db db keys 'user:*'", ""},
        {"eddy db db ttl greeting", ""},
        {"eddy db db", "a prompt, with history, hints and `help`"},
        {"eddy db db < commands.txt",
         "without a command it reads them from standard input, one a line"}};
    c.more =
        "Without a command it is a prompt on a terminal: Tab completes commands, hints show their\n"
        "arguments, `help COMMAND` explains them, and lines without passwords are kept in\n"
        "$EDDY_HISTORY, else in ~/.eddy_history.\n"
        "\n"
        "Write flags before the command: all words after it are its arguments, also those with\n"
        "dashes. An error is printed to standard error, and the exit status is 1. The cache\n"
        "refuses commands that its --mode does not allow.";
    c.run = run_db;
    return c;
}

}  // namespace eddy::cli
