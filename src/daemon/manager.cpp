// Changes to runtimes: create, start, stop, remove.
#include "daemon/manager.hpp"

#include <eddy/base/log.hpp>
#include <eddy/base/nearest.hpp>
#include <eddy/base/random.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>

#include "base/text.hpp"
#include "daemon/instance_host.hpp"
#include "daemon/manager_parts.hpp"
#include "daemon/runtime_name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace eddy::daemon {
namespace {

std::string new_id() {
    // Twelve hexadecimal digits: unique among the few that one daemon keeps.
    return fmt::format("{:012x}", entropy_seed() >> 16);
}

std::string address_text(const endpoint& where) {
    return where.family() == AF_UNSPEC ? std::string() : where.to_string();
}

/// Without secrets: what is shown ends up in reports and logs.
json without_secrets(const runtime::type* of, json all) {
    if (of == nullptr) return all;
    for (const runtime::option& each : of->options) {
        if (each.shown == nullptr) continue;
        const auto found = all.find(option_key(each.name));
        if (found != all.end() && found->is_string())
            *found = each.shown(found->get<std::string>());
    }
    return all;
}

}  // namespace

std::unexpected<problem> vanished(const managed_runtime& which) {
    return refuse(404, fmt::format("the runtime \"{}\" was removed meanwhile", which.record.name));
}

outcome<runtime::settings> check_options(const runtime::type& type, const json& given) {
    auto options = runtime::settings::parse(type.options, given);
    if (!options || !type.check) return options;
    if (auto valid = type.check(*options); !valid) return std::unexpected(std::move(valid.error()));
    return options;
}

std::string_view to_string(runtime_status status) noexcept {
    switch (status) {
        case runtime_status::created: return "created";
        case runtime_status::starting: return "starting";
        case runtime_status::running: return "running";
        case runtime_status::stopping: return "stopping";
        case runtime_status::stopped: return "stopped";
        case runtime_status::failed: return "failed";
    }
    return "unknown";
}

std::string_view to_string(edit_effect effect) noexcept {
    switch (effect) {
        case edit_effect::none: return "none";
        case edit_effect::saved: return "saved";
        case edit_effect::live: return "live";
        case edit_effect::restarted: return "restarted";
    }
    return "unknown";
}

task<result<>> turnstile::enter() {
    while (taken_) {
        freed_.reset();
        const auto woken = co_await freed_.wait();
        if (!woken) co_return woken;
    }
    taken_ = true;
    co_return result<>();
}

void turnstile::leave() noexcept {
    taken_ = false;
    freed_.set();
}

manager::manager(const state_store& store, blocking_pool& disk, loop_group& loops,
                 manager_options options)
    : store_(store),
      disk_(disk),
      options_(options),
      journals_(fmt::format("{}/{}", store.directory(), state_store::journal_folder)) {
    for (std::size_t i = 0; i < loops.size(); ++i)
        loops_.push_back(std::make_unique<loop_runtimes>(loops, i));
}

manager::~manager() {
    *self_ = nullptr;
    journals_.stop();
}

// --- Looking up -----------------------------------------------------------------------------

const runtime::type* manager::find_type(std::string_view name) const noexcept {
    for (const runtime::type& type : options_.types)
        if (type.name == name) return &type;
    return nullptr;
}

outcome<runtime_ref> manager::find(std::string_view name_or_id) const {
    if (const auto found = runtimes_.find(name_or_id); found != runtimes_.end())
        return found->second;
    std::vector<std::string_view> names;
    for (const auto& [name, entry] : runtimes_) {
        if (entry->record.id == name_or_id) return entry;
        names.push_back(name);
    }
    return std::unexpected(runtime::unknown_runtime(name_or_id, names));
}

std::vector<runtime_ref> manager::match(std::string_view pattern) const {
    std::vector<runtime_ref> matching;
    for (const auto& [name, entry] : runtimes_)
        if (runtime::is_match(pattern, name, entry->record.id, entry->record.group))
            matching.push_back(entry);
    return matching;
}

std::vector<runtime_ref> manager::all() const {
    std::vector<runtime_ref> every;
    for (const auto& [name, entry] : runtimes_) every.push_back(entry);
    return every;
}

std::vector<runtime_ref> manager::children_of(std::string_view owner) const {
    std::vector<runtime_ref> children;
    for (const auto& [name, entry] : runtimes_)
        if (entry->record.owner == owner) children.push_back(entry);
    return children;
}

loop_runtimes& manager::least_loaded() noexcept {
    return **std::min_element(loops_.begin(), loops_.end(),
                              [](const auto& a, const auto& b) { return a->load() < b->load(); });
}

duration manager::drain_of(const managed_runtime& which) const {
    const auto& table = which.type->options;
    const bool has_own = std::any_of(table.begin(), table.end(),
                                     [](const runtime::option& o) { return o.name == "drain"; });
    return has_own ? duration(which.options->number("drain")) : options_.drain;
}

outcome<> manager::check_owner(std::string_view owner, std::string_view of) const {
    // No owner's owner may be the runtime itself. State files may hold a circle of others.
    std::size_t steps = 0;
    for (std::string_view above = owner; !above.empty(); ++steps) {
        if (steps > runtimes_.size())
            return refuse(
                409, fmt::format("\"{}\" cannot own \"{}\": its owners own each other", owner, of));
        if (above == of)
            return refuse(409,
                          fmt::format("\"{}\" cannot own \"{}\": it would own itself", owner, of));
        const auto found = runtimes_.find(above);
        if (found == runtimes_.end()) {
            if (above != owner) break;
            return with_context("--owner", find(owner).error());
        }
        above = found->second->record.owner;
    }
    return {};
}

// --- State ----------------------------------------------------------------------------------

task<outcome<>> manager::save(runtime_record record) {
    const state_store& store = store_;
    auto saved = co_await run_blocking(disk_, [&store, &record] { return store.save(record); });
    if (!saved)
        co_return refuse(503,
                         fmt::format("the state could not be saved: {}", saved.error().message()));
    co_return std::move(*saved);
}

task<outcome<>> manager::erase(std::string name) {
    const state_store& store = store_;
    auto erased = co_await run_blocking(disk_, [&store, &name] { return store.erase(name); });
    if (!erased)
        co_return refuse(
            503, fmt::format("the state could not be changed: {}", erased.error().message()));
    co_return std::move(*erased);
}

task<bool> manager::has_file(std::string name) {
    const state_store& store = store_;
    const auto there =
        co_await run_blocking(disk_, [&store, &name] { return store.contains(name); });
    co_return there && *there;
}

/// Makes an entry of a record; it does not run yet. Its journal goes on behind `earlier` lines.
runtime_ref manager::adopt(runtime_record record, std::vector<journal_line> earlier) {
    auto entry = std::make_shared<managed_runtime>();
    entry->record = std::move(record);
    entry->journal = std::make_shared<runtime_journal>(loop::current());
    entry->journal->keep(journals_, entry->record.name, std::move(earlier));
    interpret(*entry);
    runtimes_.emplace(entry->record.name, entry);
    registry_->add(entry->record.name, entry->record.id, entry->record.group);
    return entry;
}

/// Removes an entry that no longer is, or never was.
void manager::disown(const std::string& name) {
    runtimes_.erase(name);
    registry_->remove(name);
}

/// Replaces the record of an entry, which keeps its name.
void manager::set_record(managed_runtime& which, runtime_record fresh) {
    which.record = std::move(fresh);
    registry_->set_group(which.record.name, which.record.group);
}

/// Finds the type and checks the options of what was loaded.
void manager::interpret(managed_runtime& which) const {
    const runtime_record& record = which.record;
    which.type = find_type(record.type);
    if (!which.type) {
        which.status = runtime_status::failed;
        which.reason = fmt::format("this Eddy has no runtimes of type \"{}\"", record.type);
        return;
    }
    auto options = check_options(*which.type, record.options);
    if (!options) {
        which.status = runtime_status::failed;
        which.reason = fmt::format("its options are not valid: {}", options.error().message);
        return;
    }
    which.options = std::move(*options);
}

// --- Starting and stopping ------------------------------------------------------------------

task<outcome<>> manager::bring_up(runtime_ref which) {
    const std::string& name = which->record.name;
    if (which->where)
        co_return refuse(503, fmt::format("\"{}\" is still there: {}", name, which->reason));
    if (!which->type || !which->options) co_return refuse(409, which->reason);
    if (shutting_down_) {
        which->status = runtime_status::stopped;
        co_return interrupted();
    }

    which->status = runtime_status::starting;
    which->reason.clear();
    which->lost.clear();
    which->number = ++last_number_;
    which->where = &least_loaded();
    which->host = make_host(self_, {registry_, messages_}, name, which->number);
    auto started = co_await which->where->start(which->number, *which->type, name, *which->options,
                                                which->journal, which->host, which->carried);
    if (!started) {
        which->host->end();
        which->where = nullptr;
        which->status = runtime_status::failed;
        which->reason = started.error().message;
        which->journal->write(fmt::format("could not start: {}", which->reason));
        log_warn(name, fmt::format("could not start: {}", which->reason));
        co_return std::unexpected(std::move(started.error()));
    }
    which->carried.reset();
    which->status = runtime_status::running;
    registry_->set_running(name, true);
    which->started_at = loop::current().now();
    which->last = {};
    which->last.local = *started;
    const std::string where = address_text(*started);
    which->journal->write(where.empty() ? "started" : fmt::format("started on {}", where));
    log_info(name, where.empty() ? "started" : fmt::format("started on {}", where));
    co_return outcome<>();
}

duration manager::file_time_of(const managed_runtime& which) {
    const bool has_files = which.type && which.type->file_time && which.options;
    return has_files ? which.type->file_time(*which.options) : duration{};
}

/// Its loop does not answer.
outcome<> manager::cannot_stop(managed_runtime& which, problem why) {
    which.status = runtime_status::failed;
    registry_->set_running(which.record.name, false);
    which.reason = fmt::format("it could not be stopped: {}", why.message);
    log_error(which.record.name, which.reason);
    return with_context(fmt::format("\"{}\" could not be stopped", which.record.name),
                        std::move(why));
}

/// Has it write what must last; on failure it serves as before.
task<outcome<>> manager::prepare_stop(runtime_ref which, duration drain) {
    if (!which->where) co_return outcome<>();
    auto ready = co_await which->where->prepare_stop(which->number, drain, file_time_of(*which));
    if (!ready) co_return cannot_stop(*which, std::move(ready.error()));
    if (*ready) co_return outcome<>();
    log_error(which->record.name, fmt::format("not stopped: {}", ready->error().message));
    co_return std::move(*ready);
}

task<outcome<>> manager::take_down(runtime_ref which, duration drain, unsaved data) {
    if (data == unsaved::kept) {
        auto ready = co_await prepare_stop(which, drain);
        if (!ready && which->status == runtime_status::failed) co_return ready;
        if (!ready) {
            const std::string& name = which->record.name;
            ready.error().message += fmt::format(
                ". Mend that, or lose what was not saved with: eddy stop --force {}", name);
            co_return with_context(
                fmt::format("\"{}\" was not stopped, and goes on as before", name),
                std::move(ready.error()));
        }
    }
    co_return co_await take_down(which, drain);
}

/// Without prepare_stop() before, what cannot be written is lost.
task<outcome<>> manager::take_down(runtime_ref which, duration drain) {
    if (!which->where) co_return outcome<>();
    which->status = runtime_status::stopping;
    registry_->set_running(which->record.name, false);
    auto stopped = co_await which->where->stop(which->number, drain, file_time_of(*which));
    if (!stopped) co_return cannot_stop(*which, std::move(stopped.error()));
    which->host->end();
    which->where = nullptr;
    which->status = runtime_status::stopped;
    which->last.counted.connections_now = 0;
    which->last.local = {};
    which->lost = std::move(*stopped);
    if (which->lost.empty()) {
        which->journal->write("stopped");
        log_info(which->record.name, "stopped");
    } else {
        which->journal->write(fmt::format("stopped; lost {}", which->lost));
        log_warn(which->record.name, fmt::format("stopped; lost {}", which->lost));
    }
    co_return outcome<>();
}

task<outcome<>> manager::start(runtime_ref which) {
    const auto entered = co_await which->turn.enter();
    if (!entered) co_return interrupted();
    const turn_guard turn(which->turn);
    if (which->removed) co_return vanished(*which);
    // What has given the start before up waits for the turn behind this one.
    if (which->start_given_up.is_set())
        co_return refuse(409, fmt::format("\"{}\" is being stopped; start it again after that",
                                          which->record.name));

    const std::string context = fmt::format("\"{}\" could not be started", which->record.name);
    const bool was_to_run = which->record.running;
    if (!was_to_run) {
        runtime_record wanted = which->record;
        wanted.running = true;
        auto saved = co_await save(wanted);
        if (!saved) co_return with_context(context, std::move(saved.error()));
        which->record.running = true;
    }
    if (which->status == runtime_status::running) co_return outcome<>();
    auto up = co_await bring_up(which);
    if (up) co_return outcome<>();
    if (!was_to_run) {
        which->record.running = false;
        auto saved = co_await save(which->record);
        if (!saved) log_warn(which->record.name, saved.error().message);
    }
    co_return with_context(context, std::move(up.error()));
}

task<bool> manager::give_up_start(runtime_ref which) {
    if (which->status != runtime_status::starting) co_return false;
    which->start_given_up.set();
    if (which->where != nullptr) co_await which->where->give_up_start(which->number);
    co_return true;
}

task<outcome<>> manager::stop(runtime_ref which, unsaved data) {
    const std::string name = which->record.name;
    const bool was_starting = co_await give_up_start(which);
    {
        const auto entered = co_await which->turn.enter();
        if (!entered) co_return interrupted();
        const turn_guard turn(which->turn);
        which->start_given_up.reset();
        if (which->removed) co_return vanished(*which);
        if (which->where) {
            auto down = co_await take_down(which, drain_of(*which), data);
            if (!down) co_return down;
        } else if (which->status == runtime_status::starting ||
                   (was_starting && which->status == runtime_status::failed)) {
            which->status = runtime_status::stopped;
            which->reason.clear();
        }
        if (which->record.running) {
            runtime_record wanted = which->record;
            wanted.running = false;
            auto saved = co_await save(wanted);
            if (!saved)
                co_return with_context(
                    fmt::format("\"{}\" is stopped, but will run again with the next daemon", name),
                    std::move(saved.error()));
            which->record.running = false;
        }
    }
    co_return co_await stop_children(name, data);
}

task<outcome<>> manager::stop_children(std::string owner, unsaved data) {
    outcome<> all_stopped;
    for (const runtime_ref& child : children_of(owner)) {
        if (child->removed || !child->record.running) continue;
        auto stopped = co_await stop(child, data);
        if (!stopped) all_stopped = std::move(stopped);
    }
    co_return all_stopped;
}

// --- Making and removing --------------------------------------------------------------------

task<outcome<runtime_ref>> manager::create(runtime_request request) {
    if (auto valid = check_runtime_name(request.name); !valid)
        co_return std::unexpected(std::move(valid.error()));
    if (!request.group.empty()) {
        if (auto valid = check_group_name(request.group); !valid)
            co_return std::unexpected(std::move(valid.error()));
    }
    const runtime::type* type = find_type(request.type);
    if (!type) {
        std::vector<std::string_view> names;
        for (const runtime::type& each : options_.types) names.push_back(each.name);
        const std::string_view meant = nearest_word(request.type, names);
        co_return refuse(400, meant.empty()
                                  ? fmt::format("there is no type \"{}\"; there are {}",
                                                request.type, fmt::join(names, ", "))
                                  : fmt::format("there is no type \"{}\"; did you mean \"{}\"?",
                                                request.type, meant));
    }
    auto options = check_options(*type, request.options);
    if (!options) co_return std::unexpected(std::move(options.error()));
    if (auto valid = check_owner(request.owner, request.name); !valid)
        co_return std::unexpected(std::move(valid.error()));
    if (runtimes_.contains(request.name))
        co_return refuse(409, fmt::format("there is a runtime \"{}\" already. Choose another name, "
                                          "or remove it with: eddy remove {}",
                                          request.name, request.name));
    if (runtimes_.size() >= options_.runtimes)
        co_return refuse(409, fmt::format("there are {} runtimes, which is the limit; remove one "
                                          "first",
                                          options_.runtimes));

    runtime_record record;
    record.id = new_id();
    record.name = request.name;
    record.type = request.type;
    record.owner = request.owner;
    record.group = request.group;
    // The file knows whole seconds.
    record.created = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
    record.options = options->to_json();
    const runtime_ref entry = adopt(std::move(record));
    // No other task has seen the entry, so the turn is free.
    const auto entered = co_await entry->turn.enter();
    if (!entered) {
        disown(entry->record.name);
        co_return interrupted();
    }
    const turn_guard turn(entry->turn);
    auto saved = co_await save(entry->record);
    if (!saved) {
        entry->removed = true;
        entry->journal->close();
        entry->journal->discard();
        disown(entry->record.name);
        co_return with_context(fmt::format("\"{}\" was not created", entry->record.name),
                               std::move(saved.error()));
    }
    entry->journal->write("created");
    log_info(entry->record.name, fmt::format("created, type {}", entry->record.type));
    co_return entry;
}

task<outcome<>> manager::remove(runtime_ref which, unsaved data) {
    const std::string name = which->record.name;
    static_cast<void>(co_await give_up_start(which));
    {
        const auto entered = co_await which->turn.enter();
        if (!entered) co_return interrupted();
        const turn_guard turn(which->turn);
        if (which->removed) co_return outcome<>();
        which->start_given_up.reset();
        which->lost.clear();
        if (which->where) {
            auto down = co_await take_down(which, drain_of(*which), data);
            if (!down) co_return down;
        }
        if (which->carried && data == unsaved::kept)
            co_return refuse(409, fmt::format("\"{}\" was not removed: {}", name, carried_text));
        auto erased = co_await erase(name);
        if (!erased)
            co_return with_context(fmt::format("\"{}\" is stopped, but was not removed", name),
                                   std::move(erased.error()));
        if (std::exchange(which->carried, nullptr)) which->lost = carried_loss;
        which->removed = true;
        if (is_rereading_) removed_meanwhile_.insert(name);
        which->journal->write("removed");
        which->journal->close();
        which->journal->discard();
        disown(name);
        log_info(name, "removed");
    }
    outcome<> all_removed;
    for (const runtime_ref& child : children_of(name)) {
        auto removed = co_await remove(child, data);
        if (!removed)
            all_removed =
                with_context(fmt::format("\"{}\" was removed, but not all that it owns", name),
                             std::move(removed.error()));
        if (!child->removed) continue;
        which->removed_with_it.push_back(child);
        for (runtime_ref& each : std::exchange(child->removed_with_it, {}))
            which->removed_with_it.push_back(std::move(each));
    }
    co_return all_removed;
}

task<outcome<std::uint64_t>> manager::send(runtime_ref which, std::string message) {
    const std::string& name = which->record.name;
    if (which->status == runtime_status::starting)
        co_return refuse(409, fmt::format("\"{}\" is still starting; try again when `eddy ls` "
                                          "shows it running",
                                          name));
    if (!which->where || which->status != runtime_status::running)
        co_return refuse(
            409, fmt::format("\"{}\" is not running; start it with: eddy start {}", name, name));
    auto sent = co_await which->where->send(which->number, std::move(message));
    if (!sent)
        co_return with_context(fmt::format("\"{}\" did not send it", name),
                               std::move(sent.error()));
    co_return sent;
}

// --- Showing --------------------------------------------------------------------------------

task<void> manager::refresh() {
    scope asking(co_await current_source());
    for (const auto& each : loops_) asking.spawn(refresh_from(*each));
    co_await asking.join();
}

task<void> manager::refresh_from(loop_runtimes& where) {
    auto counted = co_await where.vitals();
    if (!counted) co_return;
    for (const auto& [name, entry] : runtimes_) {
        if (entry->where != &where) continue;
        const auto found = counted->find(entry->number);
        if (found != counted->end()) entry->last = std::move(found->second);
    }
}

json manager::describe(const managed_runtime& which) const {
    json shown = {{"id", which.record.id},
                  {"name", which.record.name},
                  {"type", which.record.type},
                  {"status", to_string(which.status)},
                  {"port", nullptr},
                  {"address", nullptr},
                  {"uptime_s", nullptr},
                  {"connections", which.last.counted.connections_now.value()},
                  {"owner", which.record.owner},
                  {"group", which.record.group},
                  {"created", format_time(which.record.created)},
                  {"loop", nullptr},
                  {"options", without_secrets(which.type, which.record.options)}};
    if (which.status == runtime_status::failed) shown["reason"] = which.reason;
    if (!which.lost.empty()) shown["lost"] = which.lost;
    if (which.where) {
        shown["loop"] = which.where->index();
        const auto up = loop::current().now() - which.started_at;
        if (which.status != runtime_status::starting)
            shown["uptime_s"] = std::chrono::duration<double>(up).count();
    }
    const endpoint& local = which.last.local;
    if (local.family() != AF_UNSPEC) {
        shown["address"] = local.to_string();
        if (local.port() != 0) shown["port"] = local.port();
    } else if (which.record.options.contains("port")) {
        shown["port"] = which.record.options.at("port");
    }
    return shown;
}

}  // namespace eddy::daemon
