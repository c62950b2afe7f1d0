// Requests to the daemon, and its replies.
#include "cli/request.hpp"

#include <eddy/base/glob.hpp>
#include <eddy/wire/http1/target.hpp>

#include "base/text/terminal_text.hpp"
#include "base/text/text.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

namespace eddy::cli {

namespace {

std::unexpected<int> complain_of_foreign_answer(const context& with) {
    complain(
        fmt::format("the daemon on {} answered something that is no answer of Eddy's control "
                    "API; are its version and this one's the same? See: eddy version",
                    with.socket));
    return std::unexpected<int>(exit_fatal);
}

}  // namespace

namespace {

/// The daemon's answer, a 2xx one; else the message has been printed.
std::expected<control_answer, int> ask_for_text(const context& with, control_request request) {
    control_client client(with.socket);
    auto answer = client.ask(std::move(request));
    if (!answer) {
        complain(answer.error().message);
        return std::unexpected(exit_fatal);
    }
    if (answer->status / 100 != 2) {
        complain(error_message(answer->status, answer->body));
        return std::unexpected(exit_status_for(answer->status));
    }
    return std::move(*answer);
}

}  // namespace

std::expected<json, int> ask(const context& with, control_request request) {
    const bool may_be_empty = request.method == "DELETE";
    auto answer = ask_for_text(with, std::move(request));
    if (!answer) return std::unexpected(answer.error());
    if (may_be_empty && answer->status == 204) return json();
    json value = json::parse(answer->body, nullptr, false);
    if (!value.is_object()) return complain_of_foreign_answer(with);
    return value;
}

std::expected<std::string, std::string> read_input(std::size_t limit, std::string_view what) {
    std::string text;
    char chunk[64 * 1024];
    for (;;) {
        const ssize_t got = ::read(STDIN_FILENO, chunk, sizeof chunk);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0)
            return std::unexpected(fmt::format("could not read standard input: {}",
                                               std::generic_category().message(errno)));
        if (got == 0) return text;
        text.append(chunk, static_cast<std::size_t>(got));
        if (text.size() > limit)
            return std::unexpected(
                fmt::format("standard input has more than {} bytes, {}", limit, what));
    }
}

std::expected<int, std::string> for_each_input_line(
    std::size_t limit, const std::function<int(std::string_view line)>& take) {
    std::string text;  // of a line that has begun
    char chunk[64 * 1024];
    for (;;) {
        const ssize_t got = ::read(STDIN_FILENO, chunk, sizeof chunk);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0)
            return std::unexpected(fmt::format("could not read standard input: {}",
                                               std::generic_category().message(errno)));
        if (got == 0) return text.empty() ? int{exit_ok} : take(text);
        std::string_view rest(chunk, static_cast<std::size_t>(got));
        for (std::size_t end; (end = rest.find('\n')) != std::string_view::npos;) {
            text += rest.substr(0, end);
            rest.remove_prefix(end + 1);
            if (text.size() > limit) break;
            if (const int status = take(text); status != exit_ok) return status;
            text.clear();
        }
        text += rest;
        if (text.size() > limit)
            return std::unexpected(fmt::format(
                "a line of standard input has more than {} bytes, the largest message", limit));
    }
}

namespace {

bool is_utf8(const json& value) {
    try {
        static_cast<void>(value.dump());
        return true;
    } catch (const json::type_error&) {
        return false;
    }
}

/// The flag whose value it is, as far as that can be said.
std::string flag_beyond_utf8(const json& body) {
    for (const json& each : {body.value("options", json::object()), body}) {
        for (const auto& [name, value] : each.items()) {
            if (is_utf8(value) || value.is_object()) continue;
            return "--" + option_flag(name);
        }
    }
    return "a word of the command line";
}

}  // namespace

std::expected<std::string, int> request_body(const json& value) {
    if (is_utf8(value)) return value.dump();
    complain(
        fmt::format("{} is no UTF-8, so it cannot be kept as it is. In a value of a cache's "
                    "--config write such a byte as \\xHH within double quotes",
                    flag_beyond_utf8(value)));
    return std::unexpected(exit_bad_input);
}

std::string runtime_target(std::string_view name, std::string_view rest) {
    return fmt::format("/v1/runtimes/{}{}", http1::percent_encode(name), rest);
}

namespace {

/// The list of objects in an answer.
std::expected<json, int> objects_of(const context& with, json answer) {
    const auto list = answer.find("runtimes");
    if (list == answer.end() || !list->is_array()) {
        complain(
            "the daemon's answer has no list of runtimes; are its version and this one's the "
            "same? See: eddy version");
        return std::unexpected(exit_fatal);
    }
    if (!std::all_of(list->begin(), list->end(), [](const json& each) { return each.is_object(); }))
        return complain_of_foreign_answer(with);
    return std::move(*list);
}

}  // namespace

std::expected<json, int> list_matching(const context& with, std::string_view pattern) {
    control_request request;
    request.target = fmt::format("/v1/runtimes?match={}", http1::percent_encode(pattern));
    auto answer = ask(with, std::move(request));
    if (!answer) return answer;
    return objects_of(with, std::move(*answer));
}

std::expected<list_rows, int> rows_matching(const context& with, std::string_view pattern,
                                            std::span<const std::string_view> fields) {
    control_request request;
    request.target = fmt::format("/v1/runtimes?match={}&fields={}", http1::percent_encode(pattern),
                                 fmt::join(fields, ","));
    const auto answer = ask_for_text(with, std::move(request));
    if (!answer) return std::unexpected(answer.error());
    if (auto rows = list_rows::parse(answer->body)) return std::move(*rows);
    // A daemon of before 0.1 lists objects.
    json value = json::parse(answer->body, nullptr, false);
    if (!value.is_object()) return complain_of_foreign_answer(with);
    const auto list = objects_of(with, std::move(value));
    if (!list) return std::unexpected(list.error());
    return list_rows::of(*list, fields);
}

bool is_pattern(std::string_view word) noexcept {
    return glob_has_wildcard(word) || word.starts_with('@');
}

std::expected<std::vector<std::string>, int> resolve(const context& with, std::string_view word) {
    if (!is_pattern(word)) return std::vector<std::string>{std::string(word)};
    constexpr std::array<std::string_view, 1> fields = {"name"};
    const auto list = rows_matching(with, word, fields);
    if (!list) return std::unexpected(list.error());
    std::vector<std::string> names;
    const std::size_t name = list->column("name");
    for (std::size_t row = 0; row < list->size(); ++row) names.emplace_back(list->at(row, name));
    if (names.empty()) {
        complain(fmt::format("no runtime matches \"{}\"; `eddy ls` shows those there are", word));
        return std::unexpected(exit_bad_input);
    }
    return names;
}

int ask_each(const context& with, const arguments& given, std::string_view method,
             std::string_view rest,
             const std::function<void(const std::string& name, json& answer)>& take,
             const std::set<std::string>& gone) {
    int status = exit_ok;
    for (const std::string& word : given.positional()) {
        auto names = resolve(with, word);
        if (!names) {
            status = std::max(status, names.error());
            // Without a daemon there is no point in asking for the next one.
            if (status == exit_fatal) break;
            continue;
        }
        for (const std::string& name : *names) {
            if (gone.contains(name)) continue;
            control_request request;
            request.method = method;
            request.target = runtime_target(name, rest);
            auto answer = ask(with, std::move(request));
            if (answer)
                take(name, *answer);
            else
                status = std::max(status, answer.error());
        }
    }
    return status;
}

std::pair<json, int> about_each(const context& with, const arguments& given,
                                std::string_view rest) {
    json answers = json::array();
    const int status = ask_each(with, given, "GET", rest, [&](const std::string&, json& answer) {
        answers.push_back(std::move(answer));
    });
    return {std::move(answers), status};
}

json object_or_array(const arguments& given, json answers) {
    const auto& words = given.positional();
    if (words.size() > 1 || is_pattern(words[0]) || answers.empty()) return answers;
    return std::move(answers[0]);
}

std::string error_message(int status, std::string_view body) {
    const json value = json::parse(body, nullptr, false);
    if (value.is_object() && value.contains("error") && value["error"].is_object())
        return text_of(value["error"], "message");
    return fmt::format("the daemon answered with status {} and no message", status);
}

int exit_status_for(int status) noexcept {
    if (status / 100 == 2) return exit_ok;
    return status >= 500 ? exit_fatal : exit_bad_input;
}

std::string dump_for_terminal(const json& value, int indent) {
    const std::string text = value.dump(indent, ' ', false, json::error_handler_t::replace);
    std::string safe;
    safe.reserve(text.size());
    for (std::string_view rest = text; !rest.empty();) {
        const text_unit unit = first_unit(rest);
        // Unprintable characters occur in strings alone, but for the newlines of indentation.
        if (unit.is_printable || rest.front() == '\n')
            safe += rest.substr(0, unit.size);
        else
            safe += fmt::format("\\u{:04x}", static_cast<std::uint32_t>(unit.code));
        rest.remove_prefix(unit.size);
    }
    return safe;
}

std::string pretty(const json& value) { return dump_for_terminal(value, 2) + "\n"; }

std::string text_of(const json& object, std::string_view name) {
    const auto found = object.find(name);
    if (found == object.end() || found->is_null()) return {};
    if (found->is_string()) return found->get<std::string>();
    return found->dump(-1, ' ', false, json::error_handler_t::replace);
}

double number_of(const json& object, std::string_view name) {
    const auto found = object.find(name);
    return found != object.end() && found->is_number() ? found->get<double>() : 0;
}

}  // namespace eddy::cli
