// Functions of every script.
#include "runtime/scripting/common_library.hpp"

#include <eddy/io/loop.hpp>

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::runtime {
namespace {

using script::answer;
using script::argument;
using script::argument_kind;
using script::invocation;
using script::library_function;

// --- Logs
// ------------------------------------------------------------------------------------------

constexpr std::array<std::string_view, 4> levels = {"debug", "info", "warn", "error"};

/// log(text), or log(level, text).
answer log(invocation& of) {
    std::string_view text = of.text(1);
    std::string line = "script: ";
    if (of.has(2)) {
        const std::string_view level = text;
        text = of.text(2);
        bool is_known = false;
        for (const std::string_view each : levels) is_known |= each == level;
        if (!is_known) return answer::misused("log() knows the levels debug, info, warn and error");
        if (level != "info") line = "script " + std::string(level) + ": ";
    }
    line.append(text.substr(0, max_script_log));
    for (char& each : line)
        if (static_cast<unsigned char>(each) < ' ') each = ' ';
    of.context<serving::journal>().write(line);
    return {};
}

// --- Times
// -----------------------------------------------------------------------------------------

/// A time of a script's as one of ours; negative where it is none.
duration time_of(double count, double unit_ns) noexcept {
    const double length = count * unit_ns;
    constexpr auto most = static_cast<double>(script_timers::longest.count());
    if (!(length >= 0 && length <= most)) return duration(-1);
    return duration(static_cast<std::int64_t>(length));
}
constexpr double second = 1e9;
constexpr double millisecond = 1e6;

task<script::function_result> sleep_for(duration time) {
    const auto slept = co_await loop::current().sleep_for(time);
    if (!slept) co_return std::unexpected(slept.error().message());
    co_return script::values();
}

answer sleep(invocation& of) {
    const duration time = time_of(of.number(1), second);
    if (time < duration{}) return answer::misused();
    of.sleeps(time);
    return sleep_for(time);
}

answer add_timer(invocation& of, double unit_ns, bool repeats) {
    const duration time = time_of(of.number(1), unit_ns);
    if (time < duration{}) return answer::misused();
    auto& timers = of.context<script_timers>();
    const std::uint64_t id = timers.add(time, repeats, of.take_function());
    if (id == 0)
        return answer::failed(
            fmt::format("there are {} timers already, which is --lua-max-timers", timers.most()));
    return script::values_of(id);
}

template <bool Repeats>
answer set_milliseconds(invocation& of) {
    return add_timer(of, millisecond, Repeats);
}
template <bool Repeats>
answer set_seconds(invocation& of) {
    return add_timer(of, second, Repeats);
}

answer cancel(invocation& of) {
    const double id = of.number(1);
    const bool is_one = id >= 1 && id < 9e15;
    return is_one && of.context<script_timers>().cancel(static_cast<std::uint64_t>(id));
}

constexpr argument function_argument{.name = "fn", .kind = argument_kind::function};
constexpr argument milliseconds_argument{.name = "ms", .kind = argument_kind::number};
constexpr argument seconds_argument{.name = "seconds", .kind = argument_kind::number};
constexpr argument id_argument{.name = "id", .kind = argument_kind::number};
constexpr std::string_view milliseconds_words = "milliseconds, of a year at most, and a function";
constexpr std::string_view seconds_words = "seconds, of a year at most, and a function";

constexpr std::array<library_function, 3> log_rows = {{
    {.name = "log",
     .arguments = {{{.name = "level", .kind = argument_kind::text},
                    {.name = "text", .kind = argument_kind::text, .is_optional = true}}},
     .takes = "a text, or a level and a text",
     .help =
         "Writes a line to the journal, which `eddy logs` shows: log(text), or log(level, text) "
         "with the level debug, info, warn or error.",
     .run = log},
    {.name = "json_encode",
     .arguments = {{{.name = "value"}}},
     .takes = "a value",
     .help = "The JSON of a value.",
     .existing = {"cjson", "encode"}},
    {.name = "json_decode",
     .arguments = {{{.name = "text", .kind = argument_kind::text}}},
     .takes = "a text",
     .help = "The value of a JSON text; null is cjson.null.",
     .existing = {"cjson", "decode"}},
}};

constexpr std::array<library_function, 1> wait_rows = {{
    {.name = "sleep",
     .arguments = {{seconds_argument}},
     .takes = "seconds, of a year at most",
     .help = "Waits for so many seconds, or a part of one. Other callbacks run meanwhile.",
     .waits = true,
     .failure = script::on_failure::ends,
     .run = sleep},
}};

constexpr std::array<library_function, 4> timeout_rows = {{
    {.name = "set_timeout",
     .arguments = {{milliseconds_argument, function_argument}},
     .takes = milliseconds_words,
     .help = "Calls the function once after so many milliseconds. Its number is for clear_timeout.",
     .run = set_milliseconds<false>},
    {.name = "set_interval",
     .arguments = {{milliseconds_argument, function_argument}},
     .takes = milliseconds_words,
     .help = "Calls the function again and again, so many milliseconds after its last end.",
     .run = set_milliseconds<true>},
    {.name = "clear_timeout",
     .arguments = {{id_argument}},
     .takes = "the number of a timer",
     .help = "Ends a timer; false when there is none of that number.",
     .run = cancel},
    {.name = "clear_interval",
     .arguments = {{id_argument}},
     .takes = "the number of a timer",
     .help = "Ends a timer; false when there is none of that number.",
     .run = cancel},
}};

constexpr std::array<library_function, 3> timer_rows = {{
    {.name = "after",
     .arguments = {{seconds_argument, function_argument}},
     .takes = seconds_words,
     .help = "Calls the function once after so many seconds. Its number is for cancel.",
     .run = set_seconds<false>},
    {.name = "every",
     .arguments = {{seconds_argument, function_argument}},
     .takes = seconds_words,
     .help = "Calls the function again and again, so many seconds after its last end.",
     .run = set_seconds<true>},
    {.name = "cancel",
     .arguments = {{id_argument}},
     .takes = "the number of a timer",
     .help = "Ends a timer; false when there is none of that number.",
     .run = cancel},
}};

constexpr std::array<library_function, 2> json_rows = {{
    {.name = "encode",
     .arguments = {{{.name = "value"}}},
     .takes = "a value",
     .help = "The JSON of a value.",
     .existing = {"cjson", "encode"}},
    {.name = "decode",
     .arguments = {{{.name = "text", .kind = argument_kind::text}}},
     .takes = "a text",
     .help = "The value of a JSON text; null is cjson.null.",
     .existing = {"cjson", "decode"}},
}};

/// print() writes to the journal, with tabs between its arguments as spaces.
constexpr std::string_view print_text = R"lua(
local log = eddy.log
function print(...)
  local parts = { ... }
  for i = 1, select("#", ...) do parts[i] = tostring(parts[i]) end
  log(table.concat(parts, " "))
end
)lua";

}  // namespace

std::string_view print_prelude() noexcept { return print_text; }

std::vector<script::library> common_libraries(serving::journal& lines, script_timers& timers,
                                              std::vector<script::library_constant> fields,
                                              const char* table_name) {
    std::vector<script::library> made(5);
    made[0] = {.name = "self", .functions = log_rows, .context = &lines};
    made[0].constants = std::move(fields);
    made[0].other_names = {"eddy", "socketley"};
    if (table_name != nullptr) made[0].other_names.push_back(table_name);
    made[1] = {.name = "self", .functions = wait_rows};
    made[2] = {.name = "self", .functions = timeout_rows, .context = &timers};
    made[3] = {.name = "self.timer", .functions = timer_rows, .context = &timers};
    made[4] = {.name = "self.json", .functions = json_rows};
    return made;
}

}  // namespace eddy::runtime
