// The handlers of the control API.
#include "daemon/control/control_api.hpp"

#include <eddy/io/loop.hpp>

#include "base/text/text.hpp"
#include "daemon/control/json.hpp"
#include "daemon/control/runtime_view.hpp"
#include "runtime/options/units.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace eddy::daemon {
namespace {

/// Lines of `logs` by default.
constexpr std::size_t default_tail = 100;

/// Marks a response, which describes the present, as one that no cache may keep.
http::response uncached(http::response response) {
    response.add("Cache-Control", "no-store");
    return response;
}

http::response json_response(int status, const json& value) {
    return uncached(http::response(status, "application/json", dump_json(value, 2) + "\n"));
}

http::response text_response(std::string_view content_type, http::body text) {
    return uncached(http::response(200, content_type, std::move(text)));
}

/// The page /metrics. All of these outlive the task.
task<http::response> metrics_response(runtime_parts& runtimes, const daemon_facts& facts,
                                      const daemon_counters& counted) {
    co_await runtimes.lifecycle.refresh();
    co_return text_response(metrics_content_type,
                            render_metrics(runtimes.registry, facts, counted));
}

http::response error_response(const problem& what) {
    return daemon::error_response(what.status, what.message);
}

json describe(const managed_runtime& which) { return show_runtime(which, loop::current().now()); }

/// The body as a JSON object that has no other members than `known`; an empty one is {}.
outcome<json> read_object(const std::string& body, std::initializer_list<std::string_view> known) {
    if (body.empty()) return json::object();
    auto value = parse_json(body, "the request's body");
    if (!value) return value;
    if (!value->is_object()) return refuse(400, "the request's body must be a JSON object");
    for (const auto& [name, ignored] : value->items())
        if (std::find(known.begin(), known.end(), name) == known.end())
            return refuse(400, fmt::format("the request's body has an unknown member \"{}\"; it "
                                           "may have {}",
                                           name, fmt::join(known, ", ")));
    return value;
}

outcome<json> object_member(const json& object, std::string_view name) {
    const auto found = object.find(name);
    if (found == object.end() || found->is_null()) return json::object();
    if (!found->is_object())
        return refuse(400,
                      fmt::format("\"{}\" must be an object, not {}", name, found->type_name()));
    return *found;
}

/// A text that may be absent; null counts as empty, which takes the value back.
outcome<std::optional<std::string>> optional_text(const json& object, std::string_view name) {
    if (!object.contains(name)) return std::nullopt;
    auto text = text_member(object, name);
    if (!text) return std::unexpected(std::move(text.error()));
    return std::optional(std::move(*text));
}

outcome<bool> flag_parameter(const http::request& request, std::string_view name) {
    const auto given = request.query(name);
    if (!given || *given == "false" || *given == "0") return false;
    if (*given == "true" || *given == "1" || given->empty()) return true;
    return refuse(400, fmt::format("{} must be true or false, not \"{}\"", name, *given));
}

outcome<restart_data> restart_data_parameter(const http::request& request) {
    const auto discards = flag_parameter(request, "discard_keys");
    if (!discards) return std::unexpected(discards.error());
    return *discards ? restart_data::discarded : restart_data::kept;
}

outcome<std::size_t> count_parameter(const http::request& request, std::string_view name,
                                     std::size_t otherwise) {
    const auto given = request.query(name);
    if (!given) return otherwise;
    std::size_t number = 0;
    const auto [end, error] = std::from_chars(given->data(), given->data() + given->size(), number);
    if (error != std::errc{} || end != given->data() + given->size())
        return refuse(400, fmt::format("{} must be a whole number, not \"{}\"", name, *given));
    return number;
}

/// The instant that `since` names: a time, or how long ago it is.
outcome<std::optional<std::chrono::system_clock::time_point>> since_parameter(
    const http::request& request) {
    const auto given = request.query("since");
    if (!given) return std::nullopt;
    if (const auto when = parse_journal_time(*given)) return when;
    const auto ago = runtime::parse_duration(*given);
    if (!ago || *ago > runtime::largest_duration)
        return refuse(400, fmt::format("since cannot be \"{}\"; write how long ago, such as 10m, "
                                       "or a time of UTC, such as 2026-11-21T21:22:04",
                                       *given));
    return std::chrono::system_clock::now() - std::chrono::nanoseconds(*ago);
}

}  // namespace

http::response error_response(int status, std::string_view message) {
    return json_response(status, {{"error", {{"status", status}, {"message", message}}}});
}

struct control_api::entry {
    std::string_view method;
    std::string_view path;
    handler what;
};

std::span<const control_api::entry> control_api::table() {
    static constexpr entry all[] = {
        {"GET", "/v1/version", &control_api::get_version},
        {"GET", "/v1/daemon", &control_api::get_daemon},
        {"POST", "/v1/daemon/reload", &control_api::reload_daemon},
        {"GET", "/v1/types", &control_api::get_types},
        {"GET", "/v1/runtimes", &control_api::list_runtimes},
        {"POST", "/v1/runtimes", &control_api::create_runtime},
        {"GET", "/v1/runtimes/{name}", &control_api::get_runtime},
        {"PATCH", "/v1/runtimes/{name}", &control_api::edit_runtime},
        {"DELETE", "/v1/runtimes/{name}", &control_api::remove_runtime},
        {"POST", "/v1/runtimes/{name}/start", &control_api::start_runtime},
        {"POST", "/v1/runtimes/{name}/stop", &control_api::stop_runtime},
        {"POST", "/v1/runtimes/{name}/reload", &control_api::reload_runtime},
        {"POST", "/v1/runtimes/{name}/send", &control_api::send_to_runtime},
        {"GET", "/v1/runtimes/{name}/stats", &control_api::get_stats},
        {"GET", "/v1/runtimes/{name}/logs", &control_api::get_logs},
        {"GET", "/metrics", &control_api::get_metrics},
    };
    return all;
}

std::span<const http::route> control_api::routes() {
    static const std::vector<http::route> all = [] {
        std::vector<http::route> routes;
        for (const entry& each : table())
            routes.push_back({std::string(each.method), std::string(each.path)});
        return routes;
    }();
    return all;
}

namespace {

http::response no_route(const http::request& request, int status, std::string_view allow) {
    if (status == 405)
        return daemon::error_response(405, fmt::format("{} cannot be used with {}; use {}",
                                                       request.method(), request.path(), allow));
    return daemon::error_response(
        status, fmt::format("there is no {} in this API; docs/control-api.openapi.json (in the "
                            "package: of /usr/share/doc/eddy) lists what there is",
                            request.path()));
}

}  // namespace

control_api::control_api(runtime_parts& runtimes, const daemon_facts& facts,
                         daemon_counters& counted)
    : runtimes_(runtimes), facts_(facts), counted_(counted), router_(no_route) {
    for (const entry& each : table()) {
        router_.add(each.method, each.path, [this, what = each.what](http::request& request) {
            return (this->*what)(request);
        });
    }
}

task<http::response> control_api::handle(http::request& request) {
    // A request has no effect before it has arrived whole.
    const auto arrived = co_await request.collect();
    if (!arrived) co_return http::response();
    const time_point began = loop::current().now();
    http::response response = co_await router_.dispatch(request);
    count(response, began);
    co_return response;
}

http::response control_api::reject(int status, std::string_view what) {
    http::response response = daemon::error_response(status, what);
    count(response, loop::current().now());
    return response;
}

void control_api::count(const http::response& response, time_point began) {
    const auto digit = static_cast<std::size_t>(response.status / 100);
    if (digit < counted_.answers.size()) ++counted_.answers[digit];
    counted_.answer_time.record(
        static_cast<std::uint64_t>((loop::current().now() - began).count()));
}

// --- The daemon -----------------------------------------------------------------------------

task<http::response> control_api::get_version(http::request&) {
    co_return json_response(200, {{"version", facts_.version}, {"api", "v1"}});
}

task<http::response> control_api::get_daemon(http::request&) {
    const auto up = loop::current().now() - facts_.started_at;
    co_return json_response(200, {{"name", facts_.name},
                                  {"pid", ::getpid()},
                                  {"version", facts_.version},
                                  {"io_backend", facts_.io_backend},
                                  {"loops", facts_.loops},
                                  {"socket", facts_.socket},
                                  {"state", facts_.state},
                                  {"uptime_s", std::chrono::duration<double>(up).count()},
                                  {"ready", facts_.ready},
                                  {"runtimes", runtimes_.registry.all().size()}});
}

task<http::response> control_api::reload_daemon(http::request&) {
    auto summary = co_await runtimes_.restore.reread();
    if (!summary) co_return error_response(summary.error());
    co_return json_response(200, {{"created", summary->created},
                                  {"changed", summary->changed},
                                  {"unchanged", summary->unchanged},
                                  {"problems", summary->problems}});
}

task<http::response> control_api::get_types(http::request&) {
    json types = json::array();
    for (const runtime::type& type : runtimes_.registry.types()) types.push_back(show_type(type));
    co_return json_response(200, {{"types", std::move(types)}});
}

task<http::response> control_api::get_metrics(http::request&) {
    return metrics_response(runtimes_, facts_, counted_);
}

// --- Runtimes -------------------------------------------------------------------------------

task<http::response> control_api::list_runtimes(http::request& request) {
    const auto pattern = request.query("match");
    const auto status = request.query("status");
    co_await runtimes_.lifecycle.refresh();
    json list = json::array();
    for (const runtime_ref& each : runtimes_.registry.match(pattern.value_or("*"))) {
        if (status && *status != to_string(each->running.status())) continue;
        list.push_back(describe(*each));
    }
    co_return json_response(200, {{"runtimes", std::move(list)}});
}

task<http::response> control_api::create_runtime(http::request& request) {
    auto body =
        read_object(request.content(), {"type", "name", "owner", "group", "options", "start"});
    if (!body) co_return error_response(body.error());
    runtime_request wanted;
    for (auto [name, to] : {std::pair("type", &wanted.type), std::pair("name", &wanted.name),
                            std::pair("owner", &wanted.owner), std::pair("group", &wanted.group)}) {
        auto text = text_member(*body, name);
        if (!text) co_return error_response(text.error());
        *to = std::move(*text);
    }
    auto options = object_member(*body, "options");
    if (!options) co_return error_response(options.error());
    wanted.options = std::move(*options);
    auto start = flag_member(*body, "start", false);
    if (!start) co_return error_response(start.error());

    auto created = co_await runtimes_.editor.create(std::move(wanted));
    if (!created) co_return error_response(created.error());
    if (*start) {
        auto started = co_await runtimes_.lifecycle.start(*created);
        if (!started)
            co_return daemon::error_response(
                started.error().status,
                fmt::format("{}. It was created; `eddy edit {}` changes it, `eddy start {}` tries "
                            "again",
                            started.error().message, (*created)->name(), (*created)->name()));
    }
    co_return json_response(201, describe(**created));
}

task<http::response> control_api::get_runtime(http::request& request) {
    auto found = runtimes_.registry.find(request.path_parameter("name"));
    if (!found) co_return error_response(found.error());
    co_await runtimes_.lifecycle.refresh();
    co_return json_response(200, describe(**found));
}

task<http::response> control_api::edit_runtime(http::request& request) {
    auto found = runtimes_.registry.find(request.path_parameter("name"));
    if (!found) co_return error_response(found.error());
    auto body = read_object(request.content(), {"options", "owner", "group"});
    if (!body) co_return error_response(body.error());
    auto options = object_member(*body, "options");
    if (!options) co_return error_response(options.error());
    auto owner = optional_text(*body, "owner");
    if (!owner) co_return error_response(owner.error());
    auto group = optional_text(*body, "group");
    if (!group) co_return error_response(group.error());
    const auto data = restart_data_parameter(request);
    if (!data) co_return error_response(data.error());
    const auto is_live_only = flag_parameter(request, "live_only");
    if (!is_live_only) co_return error_response(is_live_only.error());
    const auto is_dry_run = flag_parameter(request, "dry_run");
    if (!is_dry_run) co_return error_response(is_dry_run.error());
    edit_request wanted;
    wanted.options = std::move(*options);
    wanted.owner = std::move(*owner);
    wanted.group = std::move(*group);
    wanted.data = *data;
    if (*is_live_only) wanted.restart = edit_restart::refused;
    auto done = *is_dry_run ? co_await runtimes_.editor.plan_edit(*found, std::move(wanted))
                            : co_await runtimes_.editor.edit(*found, std::move(wanted));
    if (!done) co_return error_response(done.error());
    json shown = describe(**found);
    shown.update(show_edit(*done));
    if (*is_dry_run) shown["dry_run"] = true;
    co_return json_response(200, shown);
}

task<http::response> control_api::remove_runtime(http::request& request) {
    auto found = runtimes_.registry.find(request.path_parameter("name"));
    if (!found) co_return error_response(found.error());
    const auto force = flag_parameter(request, "force");
    if (!force) co_return error_response(force.error());
    auto removed = co_await runtimes_.editor.remove(*found, *force ? unsaved::lost : unsaved::kept);
    if (!removed) co_return error_response(removed.error());
    const managed_runtime& gone = **found;
    if (gone.running.lost().empty() && gone.removed_with_it.empty())
        co_return uncached(http::response(204));
    co_return json_response(200, show_removal(gone));
}

task<http::response> control_api::start_runtime(http::request& request) {
    auto found = runtimes_.registry.find(request.path_parameter("name"));
    if (!found) co_return error_response(found.error());
    auto started = co_await runtimes_.lifecycle.start(*found);
    if (!started) co_return error_response(started.error());
    co_return json_response(200, describe(**found));
}

task<http::response> control_api::stop_runtime(http::request& request) {
    auto found = runtimes_.registry.find(request.path_parameter("name"));
    if (!found) co_return error_response(found.error());
    const auto force = flag_parameter(request, "force");
    if (!force) co_return error_response(force.error());
    auto stopped =
        co_await runtimes_.lifecycle.stop(*found, *force ? unsaved::lost : unsaved::kept);
    if (!stopped) co_return error_response(stopped.error());
    co_return json_response(200, describe(**found));
}

task<http::response> control_api::reload_runtime(http::request& request) {
    auto found = runtimes_.registry.find(request.path_parameter("name"));
    if (!found) co_return error_response(found.error());
    const auto data = restart_data_parameter(request);
    if (!data) co_return error_response(data.error());
    auto reloaded = co_await runtimes_.lifecycle.reload(*found, *data);
    if (!reloaded) co_return error_response(reloaded.error());
    co_return json_response(200, describe(**found));
}

task<http::response> control_api::send_to_runtime(http::request& request) {
    auto found = runtimes_.registry.find(request.path_parameter("name"));
    if (!found) co_return error_response(found.error());
    auto sent = co_await runtimes_.lifecycle.send(*found, std::move(request.content()));
    if (!sent) co_return error_response(sent.error());
    co_return json_response(200, {{"delivered", *sent}});
}

task<http::response> control_api::get_stats(http::request& request) {
    auto found = runtimes_.registry.find(request.path_parameter("name"));
    if (!found) co_return error_response(found.error());
    co_await runtimes_.lifecycle.refresh();
    co_return json_response(200, show_stats(**found, loop::current().now()));
}

task<http::response> control_api::get_logs(http::request& request) {
    auto found = runtimes_.registry.find(request.path_parameter("name"));
    if (!found) co_return error_response(found.error());
    const auto follow = flag_parameter(request, "follow");
    if (!follow) co_return error_response(follow.error());
    const auto since = since_parameter(request);
    if (!since) co_return error_response(since.error());
    const auto tail =
        count_parameter(request, "tail", *since ? runtime_journal::line_limit : default_tail);
    if (!tail) co_return error_response(tail.error());
    journal_part part;
    part.tail = *tail;
    if (*since) part.since = **since;

    http::body lines;
    if (*follow) {
        if (request.minor_version() == 0)
            co_return daemon::error_response(400,
                                             "following needs HTTP/1.1, and the request is 1.0");
        lines = http::body(follow_journal((*found)->journal, part));
    } else {
        std::string text;
        for (const journal_line& line : (*found)->journal->read(0, part.tail))
            if (part.has(line)) text += format_journal_line(line);
        lines = std::move(text);
    }
    co_return text_response("text/plain; charset=utf-8", std::move(lines));
}

// --- Handlers for others --------------------------------------------------------------------

task<http::response> refusing_handler::handle(http::request& request) {
    // A client may read nothing before it has sent everything.
    const auto arrived = co_await request.collect();
    if (!arrived) co_return http::response();
    co_return daemon::error_response(status_, message_);
}

http::response refusing_handler::reject(int, std::string_view) {
    return daemon::error_response(status_, message_);
}

metrics_page::metrics_page(runtime_parts& runtimes, const daemon_facts& facts,
                           const daemon_counters& counted)
    : runtimes_(runtimes),
      facts_(facts),
      counted_(counted),
      router_([](const http::request&, int status, std::string_view) {
          return daemon::error_response(status, "this port has only GET /metrics");
      }) {
    router_.add("GET", "/metrics",
                [this](http::request&) { return metrics_response(runtimes_, facts_, counted_); });
}

task<http::response> metrics_page::handle(http::request& request) {
    const auto arrived = co_await request.collect();
    if (!arrived) co_return http::response();
    co_return co_await router_.dispatch(request);
}

http::response metrics_page::reject(int status, std::string_view what) {
    return daemon::error_response(status, what);
}

}  // namespace eddy::daemon
