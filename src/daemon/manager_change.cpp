// Changes to runtimes that run: edit and reload, and the restarts that some of them need.
//
// Data goes from one instance to the next in a file without a name, in the folder of state.
#include <eddy/base/log.hpp>
#include <eddy/io/loop.hpp>

#include "base/text.hpp"
#include "daemon/manager.hpp"
#include "daemon/manager_parts.hpp"
#include "daemon/runtime_name.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <optional>
#include <system_error>
#include <utility>

namespace eddy::daemon {
namespace {

/// A client that has read options and sends them back means the stored secrets.
outcome<> put_secrets_back(const runtime::type& of, const json& now, json& changed) {
    for (const runtime::option& each : of.options) {
        if (each.shown == nullptr) continue;
        const auto found = changed.find(option_key(each.name));
        if (found == changed.end() || !found->is_string()) continue;
        const auto& text = found->get_ref<const std::string&>();
        const auto own = now.find(option_key(each.name));
        if (own != now.end() && own->is_string() && each.shown(own->get<std::string>()) == text) {
            changed.erase(found);
        } else if (text.find(runtime::hidden) != std::string::npos) {
            return refuse(400, fmt::format("--{} has {} in the place of a password: write the "
                                           "password itself",
                                           each.name, runtime::hidden));
        }
    }
    return {};
}

/// A file in the folder that only its descriptor leads to.
runtime::handover open_handover(const std::string& folder) {
    runtime::handover made;
    made.folder = folder;
    made.file = unique_fd(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (!made.file) {
        // Not every file system has such files.
        std::string name = folder + "/handover-XXXXXX";
        made.file = unique_fd(::mkostemp(name.data(), O_CLOEXEC));
        if (made.file) ::unlink(name.c_str());
    }
    if (!made.file) made.fault = std::system_category().message(errno);
    made.path = fmt::format("/proc/self/fd/{}", made.file.get());
    return made;
}

}  // namespace

// --- Restarting -----------------------------------------------------------------------------

task<std::shared_ptr<runtime::handover>> manager::make_handover() {
    const std::string& folder = store_.directory();
    auto made = co_await run_blocking(disk_, [&folder] { return open_handover(folder); });
    if (made) co_return std::make_shared<runtime::handover>(std::move(*made));
    auto none = std::make_shared<runtime::handover>();
    none->folder = folder;
    none->fault = made.error().message();
    co_return none;
}

/// Has the instance write what must last, or what the next one needs: that is yielded, null if
/// there is nothing of the kind.
task<outcome<std::shared_ptr<runtime::handover>>> manager::prepare_restart(runtime_ref which,
                                                                           runtime::settings next,
                                                                           restart_data data) {
    auto to = co_await make_handover();
    auto handed = co_await which->where->hand_over(which->number, std::move(next), to,
                                                   drain_of(*which), file_time_of(*which));
    if (!handed) co_return std::unexpected(cannot_stop(*which, std::move(handed.error())).error());
    if (!*handed && data == restart_data::kept) {
        handed->error().message += "; --discard-keys restarts it without what cannot be kept";
        co_return std::unexpected(std::move(handed->error()));
    }
    if (!to->is_used) to.reset();
    co_return to;
}

/// On failure it runs as before, where that is possible.
task<outcome<>> manager::restart(runtime_ref which, runtime::settings next, restart_data data) {
    auto ready = co_await prepare_restart(which, next, data);
    if (!ready) co_return std::unexpected(std::move(ready.error()));
    auto down = co_await take_down(which, drain_of(*which));
    if (!down) co_return down;
    runtime::settings old_options = std::move(*which->options);
    which->options = std::move(next);
    which->carried = data == restart_data::kept ? *ready : nullptr;
    auto up = co_await bring_up(which);
    if (up) co_return outcome<>();
    which->options = std::move(old_options);
    // Its old files may lack what they lacked before.
    if (*ready) (*ready)->has_new_files = false;
    which->carried = *ready;
    auto again = co_await bring_up(which);
    if (again) co_return up;
    co_return with_context(
        fmt::format(
            "it is stopped, and did not start with its old options either ({}){}",
            again.error().message,
            which->carried ? "; its data is kept for the next start, until the daemon ends" : ""),
        std::move(up.error()));
}

task<outcome<>> manager::reload(runtime_ref which, restart_data data) {
    if (auto taken = co_await take_turn(which, "reload"); !taken) co_return taken;
    const turn_guard turn(which->turn);
    if (which->removed) co_return vanished(*which);
    const std::string& name = which->record.name;
    if (!which->where)
        co_return refuse(
            409, fmt::format("\"{}\" is not running; start it with: eddy start {}", name, name));
    const std::string context = fmt::format("\"{}\" was not reloaded, and goes on as before", name);
    // What it has in memory must not go for a mistake in a file.
    auto good = co_await which->where->check_restart(which->number, *which->options, true);
    if (!good) co_return with_context(context, std::move(good.error()));
    auto reread = co_await which->where->reread(which->number);
    if (!reread) co_return with_context(context, std::move(reread.error()));
    if (*reread) {
        which->journal->write("files read again");
        co_return outcome<>();
    }
    auto restarted = co_await restart(which, *which->options, data);
    if (restarted) co_return outcome<>();
    const bool goes_on = which->where && which->status != runtime_status::failed;
    co_return with_context(goes_on ? context : fmt::format("\"{}\" was not reloaded", name),
                           std::move(restarted.error()));
}

// --- Changing -------------------------------------------------------------------------------

bool manager::all_live(const managed_runtime& which, const runtime::settings& fresh) const {
    const json before = which.options->to_json();
    const json after = fresh.to_json();
    for (const runtime::option& option : which.type->options) {
        if (option.live) continue;
        const std::string name = option_key(option.name);
        const json old_value = before.contains(name) ? before.at(name) : json();
        const json new_value = after.contains(name) ? after.at(name) : json();
        if (old_value != new_value) return false;
    }
    return true;
}

task<outcome<edit_effect>> manager::edit(runtime_ref which, json options,
                                         std::optional<std::string> owner,
                                         std::optional<std::string> group, restart_data data) {
    if (auto taken = co_await take_turn(which, "edit"); !taken)
        co_return std::unexpected(std::move(taken.error()));
    const turn_guard turn(which->turn);
    if (which->removed) co_return vanished(*which);
    if (!which->type) co_return refuse(409, which->reason);

    runtime_record fresh = which->record;
    std::optional<turn_guard> owning;
    if (owner) {
        // Two edits that make runtimes each other's owner must not both pass the check.
        const auto entered = co_await owning_.enter();
        if (!entered) co_return interrupted();
        owning.emplace(owning_);
        if (auto valid = check_owner(*owner, fresh.name); !valid)
            co_return std::unexpected(std::move(valid.error()));
        fresh.owner = std::move(*owner);
    }
    if (group) {
        if (!group->empty()) {
            if (auto valid = check_group_name(*group); !valid)
                co_return std::unexpected(std::move(valid.error()));
        }
        fresh.group = std::move(*group);
    }
    if (auto known = put_secrets_back(*which->type, fresh.options, options); !known)
        co_return std::unexpected(std::move(known.error()));
    fresh.options.merge_patch(options);
    auto checked = check_options(*which->type, fresh.options);
    if (!checked) co_return std::unexpected(std::move(checked.error()));
    fresh.options = checked->to_json();
    if (fresh == which->record) co_return edit_effect::none;

    const runtime_record before = which->record;
    auto saved = co_await save(fresh);
    if (!saved)
        co_return with_context(fmt::format("\"{}\" was not changed", fresh.name),
                               std::move(saved.error()));
    outcome<edit_effect> effect = edit_effect::none;
    // Its owner may have been removed while it was saved.
    if (auto valid = check_owner(fresh.owner, fresh.name); owner && !valid)
        effect = std::unexpected(std::move(valid.error()));
    else
        effect = co_await put_into_effect(which, std::move(fresh), std::move(*checked), data);
    if (!effect) {
        auto restored = co_await save(before);
        if (!restored) log_error(before.name, restored.error().message);
    }
    co_return effect;
}

task<outcome<>> manager::keep_options(runtime_ref which, json options) {
    const auto entered = co_await which->turn.enter();
    if (!entered) co_return interrupted();
    const turn_guard turn(which->turn);
    if (which->removed) co_return vanished(*which);
    runtime_record fresh = which->record;
    fresh.options.merge_patch(options);
    auto checked = check_options(*which->type, fresh.options);
    if (!checked) co_return std::unexpected(std::move(checked.error()));
    fresh.options = checked->to_json();
    auto saved = co_await save(fresh);
    if (!saved) co_return saved;
    set_record(*which, std::move(fresh));
    which->options = std::move(*checked);
    co_return outcome<>();
}

/// Makes a running runtime follow a record that was saved already. On failure the entry is as it
/// was, running again where that is possible.
task<outcome<edit_effect>> manager::put_into_effect(runtime_ref which, runtime_record fresh,
                                                    runtime::settings options, restart_data data) {
    const bool same_options = which->options && fresh.options == which->record.options;
    if (!which->where || same_options) {
        set_record(*which, std::move(fresh));
        which->options = std::move(options);
        // What was wrong with the old options is no longer.
        if (!which->where && which->status == runtime_status::failed) {
            which->status = runtime_status::stopped;
            which->reason.clear();
        }
        co_return edit_effect::saved;
    }
    const std::string context = fmt::format("\"{}\" keeps its old options", fresh.name);
    if (all_live(*which, options)) {
        auto applied = co_await which->where->apply(which->number, options);
        if (!applied) co_return with_context(context, std::move(applied.error()));
        set_record(*which, std::move(fresh));
        which->options = std::move(options);
        which->journal->write("options changed");
        co_return edit_effect::live;
    }
    auto good = co_await which->where->check_restart(which->number, options,
                                                     data == restart_data::discarded);
    if (!good) co_return with_context(context, std::move(good.error()));
    auto restarted = co_await restart(which, std::move(options), data);
    if (!restarted) co_return with_context(context, std::move(restarted.error()));
    set_record(*which, std::move(fresh));
    co_return edit_effect::restarted;
}

}  // namespace eddy::daemon
