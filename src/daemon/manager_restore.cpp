// The runtimes as a whole: restoring them, reading their state again, and shutting down.
#include <eddy/base/log.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/timeout.hpp>

#include "daemon/manager.hpp"
#include "daemon/manager_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace eddy::daemon {
namespace {

/// Between the first two attempts to start what found its address taken; then twice as long.
constexpr duration first_restart_pause = std::chrono::milliseconds(50);

}  // namespace

task<outcome<>> manager::load() {
    const state_store& store = store_;
    const journal_files& journals = journals_;
    journal_lines earlier;
    auto read = co_await run_blocking(disk_, [&store, &journals, &earlier] {
        auto all = store.load(state_store::unfinished::removed);
        if (!all) return all;
        for (const runtime_record& each : all->records)
            earlier[each.name] = journals.load(each.name);
        return all;
    });
    if (!read) co_return refuse(500, read.error().message());
    if (!*read) co_return std::unexpected(std::move(read->error()));
    for (const std::string& complaint : (*read)->complaints) log_error("daemon", complaint);

    for (runtime_record& record : (*read)->records) {
        const bool run = record.running;
        std::vector<journal_line> lines = std::move(earlier[record.name]);
        const runtime_ref entry = adopt(std::move(record), std::move(lines));
        if (entry->status == runtime_status::failed) {
            log_error(entry->record.name, entry->reason);
        } else {
            entry->status = run ? runtime_status::starting : runtime_status::stopped;
            if (run) loaded_.push_back(entry);
        }
    }
    for (const std::string& each : owner_circles()) log_error("daemon", each);
    co_return outcome<>();
}

/// Circles of owners, which only state files that were edited by hand have.
std::vector<std::string> manager::owner_circles() const {
    std::vector<std::string> found;
    for (const auto& [name, entry] : runtimes_) {
        if (is_own_owner(name))
            found.push_back(
                fmt::format("\"{0}\" owns its own owner \"{1}\"; to end that: eddy "
                            "edit {0} --owner \"\"",
                            name, entry->record.owner));
    }
    return found;
}

bool manager::is_own_owner(std::string_view name) const {
    std::string_view above = name;
    for (std::size_t steps = 0; steps < runtimes_.size(); ++steps) {
        const auto found = runtimes_.find(above);
        if (found == runtimes_.end()) return false;
        above = found->second->record.owner;
        if (above == name) return true;
    }
    return false;
}

task<void> manager::start_loaded() {
    scope starting(co_await current_source());
    for (const runtime_ref& each : std::exchange(loaded_, {}))
        starting.spawn(start_restored(each, options_.address_grace));
    co_await starting.join();
}

task<void> manager::start_restored(runtime_ref which, duration grace) {
    const auto entered = co_await which->turn.enter();
    if (!entered) co_return;
    const turn_guard turn(which->turn);
    // It may have been stopped, started or removed before it had its turn.
    if (which->removed || which->where || !which->record.running) co_return;
    if (which->start_given_up.is_set()) co_return;
    // Whatever comes of it, it stays one that is to run: the next daemon tries again.
    loop& here = loop::current();
    const time_point patience_ends = here.now() + grace;
    for (duration pause = first_restart_pause;; pause *= 2) {
        auto up = co_await bring_up(which);
        if (up || up.error().status != 409 || here.now() >= patience_ends) co_return;
        which->status = runtime_status::starting;
        const auto given_up = co_await with_timeout(std::min(pause, patience_ends - here.now()),
                                                    which->start_given_up.wait());
        if (given_up || given_up.error() != errc::timed_out) {
            which->status = runtime_status::failed;
            co_return;
        }
    }
}

task<outcome<>> manager::take_turn(runtime_ref which, std::string_view change) {
    for (;;) {
        const auto entered = co_await with_timeout(starting_patience, which->turn.enter());
        if (entered) co_return outcome<>();
        if (entered.error() != errc::timed_out) co_return interrupted();
        if (which->status != runtime_status::starting) continue;
        const std::string& name = which->record.name;
        co_return refuse(409, fmt::format("\"{0}\" is still starting; `eddy {1}` can be had when "
                                          "`eddy ls` shows it running, or after `eddy stop {0}`",
                                          name, change));
    }
}

task<outcome<manager::reread_summary>> manager::reread() {
    const auto entered = co_await rereading_.enter();
    if (!entered) co_return interrupted();
    const turn_guard turn(rereading_);
    removed_meanwhile_.clear();
    is_rereading_ = true;
    const struct ended {
        bool& is_rereading;
        ~ended() { is_rereading = false; }
    } at_the_end{is_rereading_};
    co_return co_await reread_alone();
}

task<outcome<manager::reread_summary>> manager::reread_alone() {
    std::map<std::string, runtime_record, std::less<>> before;
    for (const auto& [name, entry] : runtimes_) before.emplace(name, entry->record);

    const state_store& store = store_;
    const journal_files& journals = journals_;
    journal_lines earlier;
    auto read = co_await run_blocking(disk_, [&store, &journals, &before, &earlier] {
        auto all = store.load(state_store::unfinished::kept);
        if (!all) return all;
        for (const runtime_record& each : all->records)
            if (!before.contains(each.name)) earlier[each.name] = journals.load(each.name);
        return all;
    });
    if (!read) co_return refuse(500, read.error().message());
    if (!*read) co_return std::unexpected(std::move(read->error()));
    reread_summary summary;
    summary.problems = (*read)->complaints;
    std::set<std::string, std::less<>> on_disk;
    for (const runtime_record& each : (*read)->records) on_disk.insert(each.name);

    for (runtime_record& fresh : (*read)->records) {
        const std::string name = fresh.name;
        const auto known = runtimes_.find(name);
        const auto old = before.find(name);
        if (known == runtimes_.end()) {
            // One that was removed since the folder was read.
            if (old != before.end() || removed_meanwhile_.contains(name)) continue;
            if (runtimes_.size() >= options_.runtimes) {
                summary.problems.push_back(fmt::format("\"{}\" is one runtime too many", name));
                continue;
            }
            const bool run = fresh.running;
            const runtime_ref entry = adopt(std::move(fresh), std::move(earlier[name]));
            ++summary.created;
            if (!entry->options) {
                summary.problems.push_back(fmt::format("\"{}\": {}", name, entry->reason));
                continue;
            }
            entry->status = runtime_status::stopped;
            if (run) co_await start_restored(entry, duration::zero());
            if (entry->status == runtime_status::failed)
                summary.problems.push_back(fmt::format("\"{}\": {}", name, entry->reason));
            continue;
        }
        // One that was created or changed through the API meanwhile.
        const runtime_ref entry = known->second;
        if (old == before.end() || fresh == old->second) {
            summary.unchanged += old == before.end() ? 0 : 1;
            continue;
        }
        auto applied = co_await apply_record(entry, old->second, std::move(fresh));
        if (applied)
            ++summary.changed;
        else
            summary.problems.push_back(applied.error().message);
    }

    for (const auto& [name, record] : before) {
        const auto known = runtimes_.find(name);
        if (on_disk.contains(name) || known == runtimes_.end()) continue;
        const runtime_ref entry = known->second;
        const auto entered = co_await entry->turn.enter();
        if (!entered) co_return interrupted();
        const turn_guard turn(entry->turn);
        // Its removal takes the file first, and one that was being made has got its file by now.
        if (entry->removed || co_await has_file(name)) continue;
        summary.problems.push_back(
            fmt::format("the state file of \"{}\" was gone and is written "
                        "anew; to remove it: eddy remove {}",
                        name, name));
        auto saved = co_await save(entry->record);
        if (!saved) summary.problems.push_back(saved.error().message);
    }
    for (std::string& each : owner_circles()) summary.problems.push_back(std::move(each));
    for (const std::string& each : summary.problems) log_error("daemon", each);
    log_info("daemon", fmt::format("state read again: {} created, {} changed, {} unchanged",
                                   summary.created, summary.changed, summary.unchanged));
    co_return summary;
}

/// Makes the runtime follow a file, unless it has changed since its record was `read`.
task<outcome<>> manager::apply_record(runtime_ref which, const runtime_record& read,
                                      runtime_record fresh) {
    const auto entered = co_await which->turn.enter();
    if (!entered) co_return interrupted();
    const turn_guard turn(which->turn);
    if (which->removed || which->record != read) co_return outcome<>();
    const std::string name = fresh.name;
    if (fresh.type != which->record.type || fresh.id != which->record.id)
        co_return refuse(400, fmt::format("the state file of \"{}\" changes its type or id, which "
                                          "a runtime keeps for life; remove it and create another",
                                          name));
    if (!which->type) co_return refuse(409, fmt::format("\"{}\": {}", name, which->reason));
    auto options = check_options(*which->type, fresh.options);
    if (!options)
        co_return with_context(fmt::format("the state file of \"{}\" is not valid", name),
                               std::move(options.error()));
    const bool run = fresh.running;
    if (which->where && !run) {
        auto down = co_await take_down(which, drain_of(*which), unsaved::kept);
        if (!down) co_return down;
    }
    auto effect =
        co_await put_into_effect(which, std::move(fresh), std::move(*options), restart_data::kept);
    if (!effect) co_return std::unexpected(std::move(effect.error()));
    if (!which->where && run) co_return co_await bring_up(which);
    co_return outcome<>();
}

task<outcome<>> manager::prepare_shutdown(duration drain) {
    std::vector<std::string> refusals;
    scope preparing(co_await current_source());
    for (const runtime_ref& entry : all())
        preparing.spawn(prepare_for_shutdown(entry, drain, refusals));
    co_await preparing.join();
    if (refusals.empty()) co_return outcome<>();
    for (const runtime_ref& entry : all())
        if (entry->where) entry->where->resume(entry->number);
    co_return refuse(503, fmt::format("{}", fmt::join(refusals, "; ")));
}

task<void> manager::prepare_for_shutdown(runtime_ref which, duration drain,
                                         std::vector<std::string>& refusals) {
    const auto refuse_for_carried = [&] {
        if (which->carried)
            refusals.push_back(fmt::format("\"{}\": {}", which->record.name, carried_text));
    };
    // A runtime that is starting has nothing to save but the data that it takes over.
    if (which->status == runtime_status::starting) {
        refuse_for_carried();
        co_return;
    }
    const auto entered = co_await which->turn.enter();
    if (!entered) co_return;
    const turn_guard turn(which->turn);
    refuse_for_carried();
    auto ready = co_await prepare_stop(which, drain);
    // A loop that does not answer is shut_down()'s affair.
    if (!ready && which->status != runtime_status::failed)
        refusals.push_back(fmt::format("\"{}\": {}", which->record.name, ready.error().message));
}

task<bool> manager::shut_down(duration drain) {
    shutting_down_ = true;
    bool complete = true;
    scope stopping(co_await current_source());
    for (const runtime_ref& entry : all())
        stopping.spawn(stop_for_shutdown(entry, drain, complete));
    co_await stopping.join();
    co_return complete;
}

task<void> manager::stop_for_shutdown(runtime_ref which, duration drain, bool& complete) {
    static_cast<void>(co_await give_up_start(which));
    const auto entered = co_await which->turn.enter();
    if (!entered) {
        complete = false;
        co_return;
    }
    const turn_guard turn(which->turn);
    which->start_given_up.reset();
    auto down = co_await take_down(which, drain);
    if (!down) complete = false;
    if (which->carried) {
        which->journal->write(fmt::format("lost {}", carried_loss));
        log_warn(which->record.name, fmt::format("lost {}", carried_loss));
    }
    which->journal->close();
}

}  // namespace eddy::daemon
