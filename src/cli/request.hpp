// Helpers shared by commands: requests to the daemon for JSON, its errors, names of runtimes.
#pragma once

#include "cli/program.hpp"
#include "cli/text/list_rows.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <expected>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::cli {

using nlohmann::json;

/// The largest message, which is the largest body that the daemon takes.
inline constexpr std::size_t message_limit = 1024 * 1024;

/// Asks the daemon. The answer is an object, or null where a DELETE got a 204 (No Content); any
/// other is a failure. On failure the message has been printed and the error is the exit status.
std::expected<json, int> ask(const context& with, control_request request);

/// The body of a request as JSON. JSON is UTF-8: other text is refused, as by ask(), since the
/// daemon would get another text.
std::expected<std::string, int> request_body(const json& value);

/// The target of a runtime: "/v1/runtimes/NAME" and what follows.
std::string runtime_target(std::string_view name, std::string_view rest = "");

/// Behind a target: a restart need not keep keys.
inline constexpr std::string_view discard_query = "?discard_keys=true";

/// The runtimes that match a name, a pattern or a @group, as the daemon shows them.
std::expected<json, int> list_matching(const context& with, std::string_view pattern);

/// The same as rows of these fields, in a fraction of the time.
std::expected<list_rows, int> rows_matching(const context& with, std::string_view pattern,
                                            std::span<const std::string_view> fields);

/// True for a word that may mean several runtimes: one with wildcards, or a @group.
bool is_pattern(std::string_view word) noexcept;

/// The names that a word of the command line means: itself, or what a pattern matches. A pattern
/// that matches nothing is an error.
std::expected<std::vector<std::string>, int> resolve(const context& with, std::string_view word);

/// Sends one request for each runtime that the words of the command line mean, and continues after
/// an error. `take` gets the name and the answer of each success. Runtimes that are in `gone` by
/// then are skipped. Returns the exit status.
int ask_each(const context& with, const arguments& given, std::string_view method,
             std::string_view rest,
             const std::function<void(const std::string& name, json& answer)>& take,
             const std::set<std::string>& gone = {});

/// The answers about each runtime that the words mean; the status is that of ask_each().
std::pair<json, int> about_each(const context& with, const arguments& given, std::string_view rest);

/// As the command line asked: an object for one plain name, else an array, however many match.
json object_or_array(const arguments& given, json answers);

/// All of standard input, or why not: it cannot be read, or has more than `limit` bytes, which is
/// `what`.
std::expected<std::string, std::string> read_input(std::size_t limit, std::string_view what);

/// Calls `take` for each line of standard input as it comes, without its newline, and for a last
/// text without one; another value than exit_ok ends it. Returns that status, or why not: it cannot
/// be read, or a line has more than `limit` bytes.
std::expected<int, std::string> for_each_input_line(
    std::size_t limit, const std::function<int(std::string_view line)>& take);

/// A message of an answer that is no success; `status` is HTTP's.
std::string error_message(int status, std::string_view body);

/// The exit status for an answer's HTTP status.
int exit_status_for(int status) noexcept;

/// A value as JSON in which what could drive a terminal is \uNNNN; bytes that are no UTF-8 become
/// U+FFFD. An `indent` of -1 puts it all on one line.
std::string dump_for_terminal(const json& value, int indent = -1);

/// A value as indented JSON with a newline behind it.
std::string pretty(const json& value);

/// A member of an object as a text for people: nothing for null or an absent one.
std::string text_of(const json& object, std::string_view name);
double number_of(const json& object, std::string_view name);

}  // namespace eddy::cli
