// Run of a script against a daemon: its functions, and the coroutine that it is.
#include "cli/lua/script_run.hpp"

#include <eddy/io/timeout.hpp>

#include "cli/stack/stack_file.hpp"
#include "script/control_prelude.hpp"
#include "script/coroutine_host.hpp"
#include "script/http_library.hpp"
#include "script/modules.hpp"
#include "script/sockets.hpp"
#include "script/time_library.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

namespace eddy::cli {
namespace {

using script::answer;
using script::function_result;
using script::invocation;
using script::library_function;
using script::values;
using script::values_of;

/// A script of `eddy lua run`, which may have much to do, and which Ctrl-C ends.
constexpr std::chrono::minutes longest_computation{10};
/// A file of `eddy up`, which has to describe runtimes and nothing else: without a wait, and in
/// all.
constexpr std::chrono::seconds longest_declaring{5};
constexpr std::chrono::seconds longest_declaration{20};
constexpr std::size_t most_bytes = std::size_t{1} << 30;
constexpr std::size_t longest_error = 4000;

/// Context of the functions below.
struct surroundings {
    control_client& daemon;
    script_output& out;
    /// Declared runtimes; null for a script that makes them itself.
    std::vector<std::string>* declared = nullptr;
    std::size_t declared_bytes = 0;
};

task<function_result> request(control_client& daemon, control_request what) {
    auto answered = co_await daemon.exchange(std::move(what));
    if (!answered) co_return values_of(script::value(), daemon.explain(answered.error()));
    co_return values_of(answered->status, std::move(answered->body));
}

answer begin_request(invocation& of) {
    control_request what;
    what.method = of.text(1);
    what.target = of.text(2);
    if (of.has(3)) what.body = of.text(3);
    if (of.context<surroundings>().declared != nullptr && what.method != "GET")
        return values_of(
            script::value(),
            "a file of `eddy up` declares runtimes by runtimes{} and changes none itself");
    if (what.target.ends_with("/send")) what.content_type = "text/plain";
    return request(of.context<surroundings>().daemon, std::move(what));
}

answer write(invocation& of) {
    of.context<surroundings>().out(of.text(1));
    return {};
}

answer declare(invocation& of) {
    auto& to = of.context<surroundings>();
    const std::string_view text = of.text(1);
    to.declared_bytes += text.size();
    if (to.declared_bytes > stack_files_size)
        return answer::failed(fmt::format("a file declares runtimes of at most {} MiB together",
                                          stack_files_size >> 20));
    to.declared->emplace_back(text);
    return {};
}

constexpr script::argument some_text{.name = "text", .kind = script::argument_kind::text};

constexpr library_function rows[] = {
    {.name = "request",
     .arguments = {{some_text,
                    some_text,
                    {.name = "body", .kind = script::argument_kind::text, .is_optional = true}}},
     .takes = "a method, a target and a body",
     .help = "Sends a request to the daemon.",
     .waits = true,
     .run = begin_request},
    {.name = "write",
     .arguments = {{some_text}},
     .takes = "a text",
     .help = "Writes to standard output.",
     .run = write},
    // The last one, which scripts of `eddy lua run` do not have.
    {.name = "declare",
     .arguments = {{some_text}},
     .takes = "a text",
     .help = "Declares a runtime.",
     .run = declare},
};

/// print(), eddy.log() and eddy.sleep(), as scripts of runtimes have them.
constexpr std::string_view output_text = R"lua(
local _, extend = ...
local calls, nap = control, sleep
function print(...)
  local parts = { ... }
  for i = 1, select("#", ...) do parts[i] = tostring(parts[i]) end
  calls.write(table.concat(parts, "\t") .. "\n")
end
extend(eddy, "log", function(level, text) print(text == nil and level or text) end)
extend(eddy, "sleep", function(seconds) nap(seconds * 1000) end)
socketley = eddy
)lua";

class script_call final : public script::call {
public:
    script_call(script::coroutine_host& in, const std::vector<std::string>& arguments)
        : call(in), arguments_(arguments) {}

private:
    int push_arguments(lua::stack in) override {
        for (const std::string& each : arguments_) in.pushstring(each);
        return static_cast<int>(arguments_.size());
    }
    const std::vector<std::string>& arguments_;
};

/// The text without a first line for the system's loader.
std::string as_chunk(std::string_view text) {
    return (text.starts_with("#!") ? "--" : "") + std::string(text);
}

/// The same as a function, since a file's own statements may not wait. It has the same lines.
std::string as_function(std::string_view text) {
    return "function main(...) " + as_chunk(text) + "\nend";
}

/// Yields the reason of a failure, or nothing.
task<result<std::string>> run(script::coroutine_host& host,
                              const std::vector<std::string>& arguments) {
    script_call made(host, arguments);
    const script::call_end end = co_await host.run(made);
    switch (end.what) {
        case script::call_end::kind::returned: co_return std::string();
        case script::call_end::kind::failed:
            co_return end.text.empty() ? std::string("not enough memory") : end.text;
        case script::call_end::kind::gone: break;
    }
    co_return fail(errc::cancelled);
}

task<std::string> run_within(duration limit, script::coroutine_host& host,
                             const std::vector<std::string>& arguments) {
    auto ended = co_await with_timeout(limit, run(host, arguments));
    if (ended) co_return std::move(*ended);
    if (ended.error() != errc::timed_out) co_return "it was ended";
    co_return fmt::format("it has not ended after {} s; a file of runtimes waits for nothing else",
                          std::chrono::duration_cast<std::chrono::seconds>(limit).count());
}

}  // namespace

namespace {

std::expected<void, std::string> run_whole(surroundings around, script_run_options options) {
    auto on = around.daemon.own_loop();
    if (!on) return std::unexpected(on.error().message);
    std::string fault;
    (*on)->run([](script_run_options& given, surroundings& around, std::string& why) -> task<void> {
        const std::span<const library_function> functions(
            rows, std::size(rows) - (around.declared == nullptr ? 1 : 0));
        script::sockets sockets;
        script::http_requests requests;
        script::modules modules(given.modules);
        script::host_options made;
        const bool is_declaring = around.declared != nullptr;
        made.limits = {.bytes = most_bytes,
                       .run = is_declaring ? longest_declaring : longest_computation,
                       .error = longest_error};
        made.callbacks = {{.name = "main", .is_required = true}};
        made.libraries = {
            script::library{.name = "control", .functions = functions, .context = &around},
            sockets.functions(), requests.functions(), modules.functions(), script::time_library()};
        made.preludes = {{"sockets", script::socket_prelude()},
                         {"http", script::http_prelude()},
                         {"control", script::control_prelude()},
                         {"output", output_text},
                         {"modules", script::module_prelude()}};
        made.call_name = "script";
        made.plain_globals = true;
        script::coroutine_host host(std::move(made));
        // By itself first: an end too many, or too few, would change the function around it.
        auto loaded = host.check(as_chunk(given.text), given.name);
        if (loaded) loaded = host.load(as_function(given.text), given.name);
        if (!loaded)
            why = loaded.error();
        else
            why = co_await run_within(is_declaring ? longest_declaration : duration::max(), host,
                                      given.arguments);
    }(options, around, fault));
    if (!fault.empty()) return std::unexpected(std::move(fault));
    return {};
}

}  // namespace

std::expected<void, std::string> run_script(control_client& daemon, script_run_options options,
                                            script_output out) {
    return run_whole({daemon, out}, std::move(options));
}

std::expected<std::vector<std::string>, std::string> run_declarations(control_client& daemon,
                                                                      script_run_options options,
                                                                      script_output out) {
    std::vector<std::string> declared;
    auto ran = run_whole({daemon, out, &declared}, std::move(options));
    if (!ran) return std::unexpected(std::move(ran.error()));
    return declared;
}

std::expected<void, std::string> check_script(std::string_view text, std::string_view name) {
    return script::coroutine_host({}).check(as_chunk(text), name);
}

}  // namespace eddy::cli
