// SAVE, BGSAVE, LASTSAVE.
#include "cache/persistence/persistence.hpp"

#include "cache/catalog/commands.hpp"
#include "cache/clients/waits.hpp"
#include "cache/engine/call.hpp"
#include "cache/rdb/load.hpp"
#include "cache/rdb/save.hpp"
#include "cache/read_through/read_through.hpp"
#include "cache/replication/replication.hpp"
#include "cache/script/scripting.hpp"

#include <string>

namespace eddy::cache {
namespace commands {
namespace {

constexpr std::string_view no_folder_text =
    "ERR this cache keeps nothing on disk: create it with --dir FOLDER";
constexpr std::string_view in_progress_text = "ERR Background save already in progress";

// False, with the error replied, if there is no folder or a save is in progress.
bool may_save(call& c) {
    const save_state& saves = c.state.persistence.saves;
    if (saves.host == nullptr) {
        c.error(no_folder_text);
        return false;
    }
    if (saves.snapshot != nullptr) {
        c.error(in_progress_text);
        return false;
    }
    if (lacks_data(c.state)) {
        c.error("ERR the master's data has not come whole: the last file stays");
        return false;
    }
    return true;
}

}  // namespace

// Other clients continue; only this one waits for the file.
void save(call& c) {
    if (!may_save(c)) return;
    if (!begin_save(c.state, save_kind::foreground)) return c.error(in_progress_text);
    wait_for_save(c);
}

void bgsave(call& c) {
    const bool schedules = c.count == 2 && is_word(c.arg(1), "schedule");
    if (c.count > 1 && !schedules) return c.syntax_error();
    if (!may_save(c)) return;
    if (begin_save(c.state)) return c.reply.simple("Background saving started");
    // Another snapshot is being written, for the append-only file.
    if (schedules) {
        c.state.persistence.saves.scheduled = true;
        return c.reply.simple("Background saving scheduled");
    }
    c.error(
        "ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE "
        "in order to schedule a BGSAVE whenever possible.");
}

void lastsave(call& c) { c.reply.integer(c.state.persistence.saves.saved_at_us / 1'000'000); }

}  // namespace commands

namespace {

constexpr std::string_view not_loaded_text =
    "ERR Error trying to load the RDB dump, check server logs";
// NOSAVE keeps no larger file.
constexpr std::size_t most_kept = 64U << 20;

byte_buffer save_to_memory(engine_state& s) {
    byte_buffer file;
    rdb::saver saver(s);
    while (saver.next(file, file.size() + (1U << 20))) {
    }
    return file;
}

void clear_all(engine_state& s) {
    if (s.hooked != nullptr) s.hooked->keep_values();
    for (const auto& each : s.data.keyspaces) {
        if (each != nullptr) each->clear();
    }
}

// False when the file is invalid, or holds an existing key that must not be replaced.
bool load_from_memory(engine_state& s, std::string_view file, rdb::load_options options) {
    rdb::loader loader(s, options);
    loader.feed(file);
    return loader.now() == rdb::reader::status::done;
}

}  // namespace

// Through memory, not the disk: the command's purpose is to check that a load restores what was
// saved.
void debug_reload(call& c) {
    bool saves = true;
    bool clears = true;
    rdb::load_options options;
    for (std::size_t i = 2; i < c.count; ++i) {
        if (is_word(c.arg(i), "nosave")) {
            saves = false;
        } else if (is_word(c.arg(i), "noflush")) {
            clears = false;
        } else if (is_word(c.arg(i), "merge")) {
            options.when_there = rdb::load_options::existing::replaced;
        } else {
            return c.error("ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.");
        }
    }
    if (!clears && options.when_there != rdb::load_options::existing::replaced)
        options.when_there = rdb::load_options::existing::all_are_faults;
    byte_buffer& file = c.state.persistence.reload_file;
    if (saves) file = save_to_memory(c.state);
    if (file.empty()) return c.error(not_loaded_text);
    if (clears) {
        clear_all(c.state);
        scripting::drop_libraries(c.state);
    }
    const bool is_loaded = load_from_memory(c.state, file.text(), options);
    if (file.size() > most_kept) file = byte_buffer();
    if (!is_loaded) return c.error(not_loaded_text);
    c.reply.ok();
}

// The append-only file holds the dataset, unless it has failed: loading it changes only state that
// files do not keep.
void debug_load_append(call& c) {
    if (!c.state.settings.options.append.enabled) return c.error("ERR the append-only file is off");
    const byte_buffer file = save_to_memory(c.state);
    clear_all(c.state);
    if (!load_from_memory(c.state, file.text(), {})) return c.error(not_loaded_text);
    c.reply.ok();
}

}  // namespace eddy::cache
