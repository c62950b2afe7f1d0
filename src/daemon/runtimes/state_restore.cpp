// Loading at the start, and rereading.
#include "daemon/runtimes/state_restore.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/base/log.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/timeout.hpp>

#include "runtime/options/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace eddy::daemon {
namespace {

/// Between the first two attempts to start what found its address taken; then twice as long.
constexpr duration first_restart_pause = std::chrono::milliseconds(50);

/// A renaming that was cut off has left two records of one id, and owned runtimes of the old name.
/// Takes the old records, and returns their names.
std::vector<std::string> take_remnants(std::vector<runtime_record>& records) {
    std::map<std::string, const runtime_record*> renamed;  // by the former name
    for (const runtime_record& each : records)
        if (!each.former_name.empty()) renamed.emplace(each.former_name, &each);
    std::vector<std::string> names;
    std::map<std::string, std::string> owners;
    for (const auto& [former, now] : renamed) {
        const auto other = std::ranges::find(records, former, &runtime_record::name);
        if (other != records.end() && other->id == now->id) names.push_back(former);
        if (other == records.end() || other->id == now->id) owners.emplace(former, now->name);
    }
    for (runtime_record& each : records)
        if (const auto found = owners.find(each.owner); found != owners.end())
            each.owner = found->second;
    std::erase_if(records, [&names](const runtime_record& each) {
        return std::ranges::find(names, each.name) != names.end();
    });
    return names;
}

}  // namespace

task<outcome<state_restore::journal_lines>> state_restore::load_journals(
    std::vector<std::string> names) {
    const journal_files& journals = journals_;
    auto read = co_await run_blocking(disk_, [&journals, &names] {
        journal_lines earlier;
        for (const std::string& each : names) earlier[each] = journals.load(each);
        return earlier;
    });
    if (!read) co_return refuse(500, read.error().message());
    co_return std::move(*read);
}

task<outcome<>> state_restore::load() {
    EDDY_ASSERT(registry_.size() == 0 && loaded_.empty());
    auto read = co_await state_.load(unfinished::removed);
    if (!read) co_return std::unexpected(std::move(read.error()));
    for (const std::string& name : take_remnants(read->records))
        if (auto erased = co_await state_.erase(name); !erased)
            log_error("daemon", erased.error().message);
    std::vector<std::string> names;
    for (const runtime_record& each : read->records) names.push_back(each.name);
    auto earlier = co_await load_journals(std::move(names));
    if (!earlier) co_return std::unexpected(std::move(earlier.error()));
    for (const std::string& complaint : read->complaints) log_error("daemon", complaint);

    for (runtime_record& record : read->records) {
        const bool is_to_run = record.running;
        std::vector<journal_line> lines = std::move((*earlier)[record.name]);
        const runtime_ref entry = editor_.adopt(std::move(record), std::move(lines));
        if (entry->running.status() == runtime_status::failed) {
            log_error(entry->name(), entry->running.reason());
        } else if (is_to_run) {
            entry->running.await_start();
            loaded_.push_back(entry);
        } else {
            entry->running.mark_stopped();
        }
    }
    for (const std::string& each : registry_.owner_circles()) log_error("daemon", each);
    co_return outcome<>();
}

task<void> state_restore::start_loaded() {
    scope starting(co_await current_source());
    for (const runtime_ref& each : std::exchange(loaded_, {}))
        starting.spawn(start_restored(each, address_grace_));
    co_await starting.join();
}

task<void> state_restore::start_restored(runtime_ref which, duration grace) {
    const auto held = co_await which->change_lock.lock();
    if (!held) co_return;
    // It may have been stopped, started or removed before this had the lock.
    running_state& running = which->running;
    if (which->is_removed || running.has_instance() || !which->desired.record.running) co_return;
    if (which->start_given_up.is_set() || which->has_unsaved_end()) co_return;
    // Whatever comes of it, it stays one that is to run: the next daemon tries again.
    loop& here = loop::current();
    const time_point patience_ends = here.now() + grace;
    for (duration pause = first_restart_pause;; pause *= 2) {
        auto up = co_await lifecycle_.bring_up(which);
        if (up || up.error().status != 409 || here.now() >= patience_ends) co_return;
        running.await_start();
        const auto given_up = co_await with_timeout(std::min(pause, patience_ends - here.now()),
                                                    which->start_given_up.wait());
        if (given_up || given_up.error() != errc::timed_out) {
            running.give_up_retry();
            co_return;
        }
    }
}

task<outcome<reread_summary>> state_restore::reread() {
    const auto alone = co_await rereading_.lock();
    if (!alone) co_return interrupted();
    const removal_log removed(registry_);
    records before;
    for (const runtime_ref& each : registry_.all())
        before.emplace(each->name(), each->desired.record);

    auto read = co_await state_.load(unfinished::kept);
    if (!read) co_return std::unexpected(std::move(read.error()));
    std::set<std::string, std::less<>> stored;
    std::vector<std::string> names_found;
    for (runtime_record& each : read->records) {
        if (const auto type = registry_.find_type(each.type))
            runtime::use_current_names((*type)->options, each.options);
        stored.insert(each.name);
        if (!before.contains(each.name)) names_found.push_back(each.name);
    }
    auto earlier = co_await load_journals(std::move(names_found));
    if (!earlier) co_return std::unexpected(std::move(earlier.error()));
    reread_summary summary;
    summary.problems = read->complaints;

    for (runtime_record& fresh : read->records) {
        const std::string name = fresh.name;
        const runtime_ref known = registry_.get(name);
        const auto old = before.find(name);
        if (known == nullptr) {
            // One that was removed or renamed since the store was read.
            if (old != before.end() || removed.contains(name)) continue;
            if (registry_.was_named(fresh.id, name)) continue;
            co_await add_found(std::move(fresh), std::move((*earlier)[name]), summary);
            continue;
        }
        // One that was created or changed through the API meanwhile.
        if (old == before.end()) continue;
        if (fresh == old->second) {
            ++summary.unchanged;
            continue;
        }
        auto applied = co_await editor_.follow(known, old->second, std::move(fresh));
        if (applied)
            ++summary.changed;
        else
            summary.problems.push_back(applied.error().message);
    }

    for (const auto& [name, record] : before) {
        const runtime_ref known = registry_.get(name);
        if (stored.contains(name) || known == nullptr) continue;
        auto saved = co_await save_anew(known, summary);
        if (!saved) co_return std::unexpected(std::move(saved.error()));
    }
    for (std::string& each : registry_.owner_circles()) summary.problems.push_back(std::move(each));
    for (const std::string& each : summary.problems) log_error("daemon", each);
    log_info("daemon", fmt::format("state read again: {} created, {} changed, {} unchanged",
                                   summary.created, summary.changed, summary.unchanged));
    co_return summary;
}

/// A record that was put into the store by hand.
task<void> state_restore::add_found(runtime_record found, std::vector<journal_line> earlier,
                                    reread_summary& summary) {
    if (registry_.is_full()) {
        summary.problems.push_back(fmt::format("\"{}\" is one runtime too many", found.name));
        co_return;
    }
    const bool is_to_run = found.running;
    const runtime_ref entry = editor_.adopt(std::move(found), std::move(earlier));
    ++summary.created;
    if (entry->desired.options) {
        entry->running.mark_stopped();
        if (is_to_run) co_await start_restored(entry, duration::zero());
    }
    if (entry->running.status() == runtime_status::failed)
        summary.problems.push_back(
            fmt::format("\"{}\": {}", entry->name(), entry->running.reason()));
}

/// Saves a record that is no longer in the store. The error ends the reread.
task<outcome<>> state_restore::save_anew(runtime_ref which, reread_summary& summary) {
    const auto held = co_await which->change_lock.lock();
    if (!held) co_return interrupted();
    // Its removal takes the record first, and one that was being made has got its record by now.
    if (which->is_removed || co_await state_.contains(which->name())) co_return outcome<>();
    summary.problems.push_back(
        fmt::format("the state file of \"{0}\" was gone and is written "
                    "anew; to remove it: eddy remove {0}",
                    which->name()));
    auto saved = co_await state_.save(which->desired.record);
    if (!saved) summary.problems.push_back(saved.error().message);
    co_return outcome<>();
}

}  // namespace eddy::daemon
