// Persistence as the server's files see it.
#include "cache/persistence/engine_files.hpp"

#include <eddy/base/assert.hpp>

#include "cache/persistence/append_log.hpp"
#include "cache/persistence/persistence.hpp"
#include "cache/replication/replication.hpp"
#include "cache/script/scripting.hpp"

#include <algorithm>
#include <memory>

namespace eddy::cache {
namespace {

void set_bit(std::uint16_t& of, std::uint16_t bit, bool now) noexcept {
    of = static_cast<std::uint16_t>(now ? of | bit : of & ~bit);
}

}  // namespace

void engine_files::set_writer(save_host& writer) noexcept {
    EDDY_ASSERT(state_.persistence.saves.host == nullptr ||
                state_.persistence.saves.host == &writer);
    state_.persistence.saves.host = &writer;
}

bool engine_files::has_writer() const noexcept { return state_.persistence.saves.host != nullptr; }

rdb::snapshot* engine_files::snapshot() const noexcept { return state_.persistence.saves.snapshot; }

bool engine_files::begin_save(save_kind kind) { return cache::begin_save(state_, kind); }

void engine_files::end_save(std::string_view fault) { cache::end_save(state_, fault); }

bool engine_files::save_is_due() const noexcept { return cache::save_is_due(state_); }

void engine_files::unschedule_save() noexcept { state_.persistence.saves.scheduled = false; }

void engine_files::note_saved_time() noexcept { cache::note_saved_time(state_); }

std::uint64_t engine_files::saves() const noexcept { return state_.persistence.saves.count; }

std::uint64_t engine_files::unsaved_changes() const noexcept {
    return state_.data.changes - state_.persistence.saves.saved_changes;
}

bool engine_files::has_unsaved_position() const { return cache::has_unsaved_position(state_); }

bool engine_files::has_data() const {
    return std::ranges::any_of(state_.data.keyspaces,
                               [](const auto& each) { return each && each->size() > 0; }) ||
           !scripting::library_codes(state_).empty();
}

void engine_files::begin_load(std::uint64_t total_bytes) noexcept {
    note_load_began(state_, total_bytes);
}

std::uint64_t engine_files::loaded_bytes() const noexcept {
    return state_.persistence.load.loaded_bytes;
}

void engine_files::set_loaded_bytes(std::uint64_t bytes) noexcept {
    state_.persistence.load.loaded_bytes = bytes;
}

void engine_files::note_loaded(std::uint64_t keys, std::uint64_t expired) {
    cache::note_loaded(state_, keys, expired);
}

void engine_files::note_taken_over(std::uint64_t keys, std::uint64_t expired) {
    cache::note_loaded(state_, keys, expired);
    // An instance without keys has a change, too: its file is another one.
    state_.persistence.saves.saved_changes = state_.data.changes - std::max<std::uint64_t>(keys, 1);
}

void engine_files::note_copied(std::uint64_t keys) noexcept { state_.data.changes += keys; }

void engine_files::forget_commands() {
    state_.commands.reset();
    state_.rates = {};
}

void engine_files::set_loading(bool now) noexcept {
    set_bit(state_.clients.slow_path, slow_path::loading, now);
}

bool engine_files::is_loading() const noexcept {
    return (state_.clients.slow_path & slow_path::loading) != 0;
}

void engine_files::set_starting(bool now) noexcept {
    set_bit(state_.clients.slow_path, slow_path::starting, now);
}

bool engine_files::is_starting() const noexcept {
    return (state_.clients.slow_path & slow_path::starting) != 0;
}

bool engine_files::lacks_data() const noexcept { return cache::lacks_data(state_); }

bool engine_files::script_has_changed() const noexcept { return scripting::has_changed(state_); }

std::string_view engine_files::script_remedy() const noexcept {
    if (scripting::has_changed(state_)) return "wait for its end";
    return scripting::busy_text(state_) == busy_function_text ? "end it with FUNCTION KILL"
                                                              : "end it with SCRIPT KILL";
}

void engine_files::begin_end() noexcept { state_.persistence.is_ending = true; }

void engine_files::cut_script() { scripting::cut_off(state_); }

bool engine_files::has_half_script() const noexcept { return state_.persistence.has_half_script; }

append_log* engine_files::append() const noexcept { return state_.persistence.appending.get(); }

append_log& engine_files::make_append(append_host& writer) {
    EDDY_ASSERT(state_.persistence.appending == nullptr);
    state_.persistence.appending = std::make_unique<append_log>(state_, writer);
    return *state_.persistence.appending;
}

void engine_files::drop_append() noexcept { state_.persistence.appending.reset(); }

}  // namespace eddy::cache
