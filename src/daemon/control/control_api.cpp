// The handlers of the control API.
#include "daemon/control/control_api.hpp"

#include <eddy/base/log.hpp>
#include <eddy/io/loop.hpp>

#include "base/rollback.hpp"
#include "base/text/text.hpp"
#include "daemon/cluster/cluster_service.hpp"
#include "daemon/cluster/cluster_view.hpp"
#include "daemon/console/console.hpp"
#include "daemon/control/cache_command.hpp"
#include "daemon/control/json.hpp"
#include "daemon/control/parameters.hpp"
#include "daemon/control/runtime_rows.hpp"
#include "daemon/control/runtime_view.hpp"
#include "daemon/stacks/stack_view.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace eddy::daemon {
namespace {

constexpr std::string_view plain_text = "text/plain; charset=utf-8";

/// The refusal of a response without an end to a client of HTTP/1.0.
http::response needs_newer_http() {
    return daemon::error_response(400, "following needs HTTP/1.1, and the request is 1.0");
}

constexpr std::string_view upgrade_path = "/v1/daemon/upgrade";

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

/// None where it is absent.
outcome<std::optional<on_parent_stop>> policy_member(const json& object) {
    if (!object.contains("on_parent_stop")) return std::nullopt;
    auto name = text_member(object, "on_parent_stop");
    if (!name) return std::unexpected(std::move(name.error()));
    auto policy = parse_on_parent_stop(*name);
    if (!policy) return std::unexpected(std::move(policy.error()));
    return *policy;
}

/// A text that may be absent; null counts as empty, which takes the value back.
outcome<std::optional<std::string>> optional_text(const json& object, std::string_view name) {
    if (!object.contains(name)) return std::nullopt;
    auto text = text_member(object, name);
    if (!text) return std::unexpected(std::move(text.error()));
    return std::optional(std::move(*text));
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
        {"POST", upgrade_path, &control_api::upgrade_daemon},
        {"GET", "/v1/types", &control_api::get_types},
        {"GET", "/v1/console", &control_api::get_console},
        {"POST", "/v1/console", &control_api::open_console},
        {"DELETE", "/v1/console", &control_api::close_console},
        {"GET", "/v1/events", &control_api::get_events},
        {"GET", "/v1/cluster", &control_api::get_cluster},
        {"GET", "/v1/cluster/members/{name}", &control_api::get_member},
        {"GET", "/v1/cluster/runtimes", &control_api::list_cluster_runtimes},
        {"GET", "/v1/cluster/groups", &control_api::list_cluster_groups},
        {"GET", "/v1/cluster/events", &control_api::get_cluster_events},
        {"GET", "/v1/stats", &control_api::list_stats},
        {"GET", "/v1/runtimes", &control_api::list_runtimes},
        {"POST", "/v1/runtimes", &control_api::create_runtime},
        {"GET", "/v1/runtimes/{name}", &control_api::get_runtime},
        {"PATCH", "/v1/runtimes/{name}", &control_api::edit_runtime},
        {"DELETE", "/v1/runtimes/{name}", &control_api::remove_runtime},
        {"POST", "/v1/runtimes/{name}/start", &control_api::start_runtime},
        {"POST", "/v1/runtimes/{name}/stop", &control_api::stop_runtime},
        {"POST", "/v1/runtimes/{name}/restart", &control_api::restart_runtime},
        {"POST", "/v1/runtimes/{name}/rename", &control_api::rename_runtime},
        {"POST", "/v1/runtimes/{name}/reload", &control_api::reload_runtime},
        {"POST", "/v1/runtimes/{name}/reload-lua", &control_api::reload_script},
        {"POST", "/v1/runtimes/{name}/send", &control_api::send_to_runtime},
        {"POST", "/v1/runtimes/{name}/command", &control_api::run_command},
        {"GET", "/v1/runtimes/{name}/stats", &control_api::get_stats},
        {"GET", "/v1/runtimes/{name}/logs", &control_api::get_logs},
        {"GET", "/v1/runtimes/{name}/messages", &control_api::follow_messages},
        {"PUT", "/v1/stacks/{name}", &control_api::put_stack},
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

/// True for a request that changes runtimes, or the stored state.
bool is_change(const http::request& request) {
    return request.method() != "GET" && request.method() != "HEAD" &&
           request.path() != upgrade_path && !request.path().ends_with("/send");
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
    http::response response = co_await answer(request);
    count(response, began);
    co_return response;
}

task<http::response> control_api::answer(http::request& request) {
    if (!is_change(request)) co_return co_await router_.dispatch(request);
    if (refuses_changes_)
        co_return daemon::error_response(409,
                                         "an upgrade of the daemon is under way: nothing can "
                                         "be changed until it has ended; try again then");
    ++changes_under_way_;
    const rollback ended([this] { --changes_under_way_; });
    co_return co_await router_.dispatch(request);
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

task<http::response> control_api::upgrade_daemon(http::request& request) {
    auto body = read_object(request.content(), {"program", "timeout_s"});
    if (!body) co_return error_response(body.error());
    upgrade_request wanted;
    auto program = text_member(*body, "program");
    if (!program) co_return error_response(program.error());
    if (!program->starts_with('/'))
        co_return daemon::error_response(400, "\"program\" must be an absolute path");
    wanted.program = std::move(*program);
    if (const auto given = body->find("timeout_s"); given != body->end()) {
        const double most = std::chrono::duration<double>(longest_upgrade_patience).count();
        if (!given->is_number() || !(given->get<double>() > 0) || given->get<double>() > most)
            co_return daemon::error_response(
                400, fmt::format("\"timeout_s\" must be more than 0 and at most {}", most));
        wanted.patience = std::chrono::duration_cast<duration>(
            std::chrono::duration<double>(given->get<double>()));
    }
    if (!upgrader_) co_return daemon::error_response(409, "this daemon cannot be upgraded");
    auto done = co_await upgrader_(std::move(wanted));
    if (!done) co_return error_response(done.error());
    const auto seconds = [](duration of) { return std::chrono::duration<double>(of).count(); };
    co_return json_response(200, {{"pid", done->pid},
                                  {"program", done->program},
                                  {"version", done->version},
                                  {"version_before", facts_.version},
                                  {"pid_before", ::getpid()},
                                  {"without_pause", done->beside},
                                  {"with_data", done->with_data},
                                  {"again", done->again},
                                  {"clients", done->clients},
                                  {"pause_s", seconds(done->longest_pause)},
                                  {"took_s", seconds(done->took)}});
}

task<http::response> control_api::get_types(http::request&) {
    json types = json::array();
    for (const runtime::type& type : runtimes_.registry.types()) types.push_back(show_type(type));
    co_return json_response(200, {{"types", std::move(types)}});
}

task<http::response> control_api::get_metrics(http::request&) {
    return metrics_response(runtimes_, facts_, counted_);
}

// --- The console ----------------------------------------------------------------------------

namespace {

/// The socket's permissions decide about the console, not its own token; and none of its own
/// requests may end it.
bool is_of_control_socket(const http::request& request) {
    return request.connection() != nullptr && request.connection()->peer().family() == AF_UNIX;
}

json show_console(const console_place& place) {
    return {{"port", place.port}, {"token", place.token}, {"url", place.url()}};
}

http::response no_console() {
    return daemon::error_response(403, "`eddy console` opens and closes the console");
}

}  // namespace

task<http::response> control_api::get_console(http::request& request) {
    if (console_ == nullptr || !is_of_control_socket(request)) co_return no_console();
    const auto place = console_->place();
    if (!place) co_return daemon::error_response(404, "the console is not open");
    co_return json_response(200, show_console(*place));
}

task<http::response> control_api::open_console(http::request& request) {
    if (console_ == nullptr || !is_of_control_socket(request)) co_return no_console();
    auto body = read_object(request.content(), {"port"});
    if (!body) co_return error_response(body.error());
    std::uint16_t port = 0;
    if (const auto given = body->find("port"); given != body->end() && !given->is_null()) {
        constexpr int most = 65535;
        if (!given->is_number_integer() || *given < 0 || *given > most)
            co_return daemon::error_response(400, "\"port\" must be a number of 0 to 65535");
        port = given->get<std::uint16_t>();
    }
    auto opened = console_->open(port);
    if (!opened) co_return error_response(opened.error());
    log_info("daemon", fmt::format("the console is open on 127.0.0.1:{}", opened->port));
    co_return json_response(200, show_console(*opened));
}

task<http::response> control_api::close_console(http::request& request) {
    if (console_ == nullptr || !is_of_control_socket(request)) co_return no_console();
    if (console_->place()) log_info("daemon", "the console is closed");
    co_await console_->close();
    co_return uncached(http::response(204));
}

namespace {

/// Events of a feed as the client wants them: as lines of JSON, or server-sent.
http::response events_response(const http::request& request, event_feed& events,
                               event_query query) {
    if (query.follows && request.minor_version() == 0) return needs_newer_http();
    const auto accepted = request.headers().find("Accept");
    if (accepted && accepted->find(sse::content_type) != std::string_view::npos)
        return http::sse(events.server_sent(std::move(query)));
    return text_response("application/x-ndjson", http::body(events.lines(std::move(query))));
}

}  // namespace

task<http::response> control_api::get_events(http::request& request) {
    auto query = event_parameters(request);
    if (!query) co_return error_response(query.error());
    // Faults that came and went meanwhile are noticed now.
    co_await runtimes_.lifecycle.refresh_briefly();
    co_return events_response(request, *runtimes_.registry.events(), std::move(*query));
}

// --- The cluster ----------------------------------------------------------------------------

namespace {

http::response no_cluster() {
    return daemon::error_response(404,
                                  "this daemon is in no cluster: `eddy daemon --name NAME "
                                  "--cluster DIR` is a member of one");
}

}  // namespace

task<http::response> control_api::get_cluster(http::request&) {
    if (cluster_ == nullptr) co_return no_cluster();
    co_return json_response(200, show_cluster(*cluster_));
}

task<http::response> control_api::get_member(http::request& request) {
    if (cluster_ == nullptr) co_return no_cluster();
    auto shown = show_member(*cluster_, request.path_parameter("name"));
    if (!shown) co_return error_response(shown.error());
    co_return json_response(200, *shown);
}

task<http::response> control_api::list_cluster_runtimes(http::request& request) {
    if (cluster_ == nullptr) co_return no_cluster();
    const auto pattern = request.query("match");
    co_return json_response(200, show_cluster_runtimes(*cluster_, pattern.value_or("*")));
}

task<http::response> control_api::list_cluster_groups(http::request& request) {
    if (cluster_ == nullptr) co_return no_cluster();
    const auto pattern = request.query("match");
    co_return json_response(200, show_cluster_groups(*cluster_, pattern.value_or("*")));
}

task<http::response> control_api::get_cluster_events(http::request& request) {
    if (cluster_ == nullptr) co_return no_cluster();
    auto query = event_parameters(request);
    if (!query) co_return error_response(query.error());
    co_return events_response(request, *cluster_->changes(), std::move(*query));
}

// --- Runtimes -------------------------------------------------------------------------------

task<http::response> control_api::list_runtimes(http::request& request) {
    const auto pattern = request.query("match");
    const auto status = request.query("status");
    const auto listed = request.query("fields");
    std::vector<const runtime_field*> fields;
    if (listed) {
        auto known = parse_fields(*listed);
        if (!known) co_return error_response(known.error());
        fields = std::move(*known);
    }
    // Names alone do not change while they are asked for.
    if (std::ranges::any_of(fields, &runtime_field::is_vital) || !listed)
        co_await runtimes_.lifecycle.refresh_briefly();
    std::vector<runtime_ref> chosen = runtimes_.registry.match(pattern.value_or("*"));
    if (status)
        std::erase_if(chosen, [&status](const runtime_ref& each) {
            return *status != to_string(each->running.status());
        });
    if (listed) {
        runtime_rows rows(std::move(fields), loop::current().now());
        for (const runtime_ref& each : chosen) rows.add(*each);
        co_return uncached(http::response(200, "application/json", rows.take()));
    }
    json list = json::array();
    for (const runtime_ref& each : chosen) list.push_back(describe(*each));
    co_return json_response(200, {{"runtimes", std::move(list)}});
}

task<http::response> control_api::create_runtime(http::request& request) {
    auto body = read_object(request.content(), {"type", "name", "owner", "group", "on_parent_stop",
                                                "options", "start"});
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
    auto policy = policy_member(*body);
    if (!policy) co_return error_response(policy.error());
    wanted.policy = policy->value_or(on_parent_stop::stop);
    auto start = flag_member(*body, "start", false);
    if (!start) co_return error_response(start.error());

    auto created = co_await runtimes_.editor.create(std::move(wanted));
    if (!created) co_return error_response(created.error());
    if (*start) {
        auto started = co_await runtimes_.lifecycle.start(*created);
        // A stop or a removal that has ended the start may still be under way.
        if (!started && ((*created)->start_given_up.is_set() || (*created)->is_removed))
            co_return error_response(started.error());
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
    co_await runtimes_.lifecycle.refresh(*found);
    co_return json_response(200, describe(**found));
}

task<http::response> control_api::edit_runtime(http::request& request) {
    auto found = runtimes_.registry.find(request.path_parameter("name"));
    if (!found) co_return error_response(found.error());
    auto body = read_object(request.content(), {"options", "owner", "group", "on_parent_stop"});
    if (!body) co_return error_response(body.error());
    auto options = object_member(*body, "options");
    if (!options) co_return error_response(options.error());
    auto owner = optional_text(*body, "owner");
    if (!owner) co_return error_response(owner.error());
    auto group = optional_text(*body, "group");
    if (!group) co_return error_response(group.error());
    auto policy = policy_member(*body);
    if (!policy) co_return error_response(policy.error());
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
    wanted.policy = *policy;
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

task<http::response> control_api::restart_runtime(http::request& request) {
    auto found = runtimes_.registry.find(request.path_parameter("name"));
    if (!found) co_return error_response(found.error());
    const auto data = restart_data_parameter(request);
    if (!data) co_return error_response(data.error());
    auto restarted = co_await runtimes_.lifecycle.restart(*found, *data);
    if (!restarted) co_return error_response(restarted.error());
    co_return json_response(200, describe(**found));
}

task<http::response> control_api::rename_runtime(http::request& request) {
    auto found = runtimes_.registry.find(request.path_parameter("name"));
    if (!found) co_return error_response(found.error());
    auto body = read_object(request.content(), {"name"});
    if (!body) co_return error_response(body.error());
    auto name = text_member(*body, "name");
    if (!name) co_return error_response(name.error());
    auto renamed = co_await runtimes_.editor.rename(*found, std::move(*name));
    if (!renamed) co_return error_response(renamed.error());
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

task<http::response> control_api::reload_script(http::request& request) {
    auto found = runtimes_.registry.find(request.path_parameter("name"));
    if (!found) co_return error_response(found.error());
    auto reloaded = co_await runtimes_.lifecycle.reload_script(*found);
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

task<http::response> control_api::run_command(http::request& request) {
    const std::string name(request.path_parameter("name"));
    auto found = runtimes_.registry.find(name);
    if (!found) co_return error_response(found.error());
    auto body = read_object(request.content(), {"command", "user", "password"});
    if (!body) co_return error_response(body.error());
    const auto given = body->find("command");
    if (given == body->end() || !given->is_array() || given->empty() ||
        !std::ranges::all_of(*given, [](const json& each) { return each.is_string(); }))
        co_return daemon::error_response(400,
                                         "\"command\" must be a list of texts, the name first");
    runtime::local_cache::login by;
    for (auto [member, to] : {std::pair("user", &by.user), std::pair("password", &by.password)}) {
        auto text = text_member(*body, member);
        if (!text) co_return error_response(text.error());
        *to = std::move(*text);
    }
    auto cache = runtimes_.registry.published()->find_cache(name);
    if (!cache) co_return error_response(cache.error());
    auto reply = co_await run_cache_command(std::move(*cache), std::move(by),
                                            given->get<std::vector<std::string>>());
    if (!reply) co_return error_response(reply.error());
    co_return json_response(200, {{"reply", std::move(*reply)}});
}

task<http::response> control_api::put_stack(http::request& request) {
    const auto is_dry_run = flag_parameter(request, "dry_run");
    if (!is_dry_run) co_return error_response(is_dry_run.error());
    auto body = read_object(request.content(), {"runtimes", "adopt", "start", "accept"});
    if (!body) co_return error_response(body.error());
    auto wanted = stack_from_json(std::string(request.path_parameter("name")), *body);
    if (!wanted) co_return error_response(wanted.error());
    auto done = *is_dry_run ? co_await runtimes_.stacks.plan(std::move(*wanted))
                            : co_await runtimes_.stacks.apply(std::move(*wanted));
    if (!done) co_return json_response(done.error().why.status, show_refusal(done.error()));
    json shown = show_plan(*done);
    shown["dry_run"] = *is_dry_run;
    co_return json_response(200, shown);
}

task<http::response> control_api::get_stats(http::request& request) {
    auto found = runtimes_.registry.find(request.path_parameter("name"));
    if (!found) co_return error_response(found.error());
    co_await runtimes_.lifecycle.refresh(*found);
    co_return json_response(200, show_stats(**found, loop::current().now()));
}

task<http::response> control_api::list_stats(http::request& request) {
    const auto pattern = request.query("match");
    const auto status = request.query("status");
    co_await runtimes_.lifecycle.refresh();
    const time_point now = loop::current().now();
    json list = json::array();
    for (const runtime_ref& each : runtimes_.registry.match(pattern.value_or("*"))) {
        if (status && *status != to_string(each->running.status())) continue;
        list.push_back(show_stats(*each, now));
    }
    co_return json_response(
        200, {{"daemon",
               {{"uptime_s", std::chrono::duration<double>(now - facts_.started_at).count()},
                {"cpu_s", cpu_seconds()},
                {"memory_bytes", resident_bytes()}}},
              {"stats", std::move(list)}});
}

task<http::response> control_api::get_logs(http::request& request) {
    auto found = runtimes_.registry.find(request.path_parameter("name"));
    if (!found) co_return error_response(found.error());
    const auto follow = flag_parameter(request, "follow");
    if (!follow) co_return error_response(follow.error());
    const auto since = time_parameter(request, "since");
    if (!since) co_return error_response(since.error());
    const auto tail =
        count_parameter(request, "tail", *since ? runtime_journal::line_limit : default_tail);
    if (!tail) co_return error_response(tail.error());
    journal_part part;
    part.tail = *tail;
    if (*since) part.since = **since;

    http::body lines;
    if (*follow) {
        if (request.minor_version() == 0) co_return needs_newer_http();
        lines = http::body(follow_journal((*found)->journal, part));
    } else {
        std::string text;
        for (const journal_line& line : (*found)->journal->read(0, part.tail))
            if (part.has(line)) text += format_journal_line(line);
        lines = std::move(text);
    }
    co_return text_response(plain_text, std::move(lines));
}

task<http::response> control_api::follow_messages(http::request& request) {
    auto found = runtimes_.registry.find(request.path_parameter("name"));
    if (!found) co_return error_response(found.error());
    managed_runtime& which = **found;
    if (!which.desired.type || !which.desired.type->shows_messages)
        co_return daemon::error_response(
            400, fmt::format("\"{0}\" is no client: the messages of a {1} cannot be followed; "
                             "`eddy logs -f {0}` follows its log",
                             which.name(), which.desired.record.type));
    if (!which.running.has_instance()) co_return error_response(not_running(which).error());
    if (request.minor_version() == 0) co_return needs_newer_http();
    co_return text_response("application/octet-stream", http::body(which.messages()->follow()));
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
