// Append-only file: appending, and the commands about it.
#include "cache/persistence/append_log.hpp"

#include "cache/catalog/commands.hpp"
#include "cache/clients/session_extras.hpp"
#include "cache/clients/waits.hpp"
#include "cache/engine/call.hpp"
#include "cache/persistence/persistence.hpp"
#include "cache/replication/replication.hpp"

#include <new>
#include <utility>

namespace eddy::cache {
namespace {

// Fits a string without an allocation.
constexpr const char* no_memory_text = "no memory";

}  // namespace

append_log::~append_log() { end(); }

void append_log::begin() {
    if (on_) return;
    add_sink(state_, *this);
    on_ = true;
    missed_ = false;
    is_listed = false;
}

void append_log::end() noexcept {
    if (std::exchange(on_, false)) remove_sink(state_, *this);
    // Waits for changes that were missed must not be confirmed.
    if (std::exchange(missed_, false)) given_up = appended;
    is_listed = false;
}

void append_log::interrupt() noexcept {
    if (!on_) return;
    end();
    is_interrupted_ = true;
    let_or_hold_writes();
    host_.append_interrupted();
}

void append_log::set_listed() {
    is_listed = true;
    is_interrupted_ = false;
    let_or_hold_writes();
    notify_waiting();
}

void append_log::let_or_hold_writes() noexcept {
    if (holds_writes())
        hold_writes(state_, write_hold::file);
    else
        let_write(state_, write_hold::file);
}

void append_log::note_options() noexcept {
    if (!state_.settings.options.append.enabled) is_interrupted_ = false;
    let_or_hold_writes();
    host_.append_wanted();
}

void append_log::changed(std::span<const change> unit) noexcept {
    if (missed_) return;
    const std::size_t before = pending.size();
    try {
        writer_.write(pending, unit, false);
    } catch (const std::bad_alloc&) {
        pending.truncate(before);
        return missed();
    }
    if (pending.size() == before) return;
    appended += pending.size() - before;
    note_changed_by();
    host_.append_wanted();
}

void append_log::missed() noexcept {
    if (std::exchange(missed_, true)) return;
    ++appended;
    note_changed_by();
    if (fault.empty()) fault = no_memory_text;
    note_save_trouble(state_);
    let_or_hold_writes();
    host_.append_missed();
}

// The session of a background task checks its change later, and the disk may have failed meanwhile.
void append_log::note_changed_by() noexcept {
    client_session* const by = state_.clients.executing;
    if (by != nullptr && by->extras) by->extras->appended_up_to = appended;
}

bool append_log::was_given_up(client_session& of) const noexcept {
    if (!of.extras) return false;
    const std::uint64_t position = std::exchange(of.extras->appended_up_to, 0);
    return position != 0 && position <= given_up && waits_for_disk();
}

void append_log::note_synced(std::uint64_t position) {
    synced = position;
    notify_waiting();
}

// Must be called after every change of has_on_disk()'s inputs.
void append_log::notify_waiting() {
    if (state_.replication.replicating != nullptr) state_.replication.replicating->disk_advanced();
}

bool append_log::is_about_to_rewrite() const noexcept {
    if (rewriting || state_.persistence.snapshot != nullptr || lacks_data(state_)) return false;
    return rewrite_wanted ||
           (state_.settings.options.append.enabled && !on_ && failures_in_a_row == 0);
}

void append_log::fail(std::string why) {
    fault = std::move(why);
    note_save_trouble(state_);
    let_or_hold_writes();
}

void append_log::recover() {
    if (fault.empty() || missed_) return;
    fault.clear();
    note_save_trouble(state_);
    let_or_hold_writes();
    notify_waiting();
}

void note_append_options(engine_state& s) {
    if (s.persistence.appending == nullptr) return;
    s.persistence.appending->note_options();
    s.persistence.appending->notify_waiting();
}

namespace commands {

// The server takes the snapshot between two commands: it must not contain half of a transaction.
void bgrewriteaof(call& c) {
    append_log* const log = c.state.persistence.appending.get();
    if (log == nullptr)
        return c.error("ERR this cache keeps nothing on disk: create it with --dir FOLDER");
    if (log->rewriting)
        return c.error("ERR Background append only file rewriting already in progress");
    const bool is_later = c.in_exec || c.state.persistence.snapshot != nullptr;
    log->rewrite_wanted = true;
    log->host().append_wanted();
    c.reply.simple(is_later ? "Background append only file rewriting scheduled"
                            : "Background append only file rewriting started");
}

}  // namespace commands
}  // namespace eddy::cache
