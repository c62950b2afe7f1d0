// SAVE, BGSAVE, LASTSAVE.
#include "cache/persistence/persistence.hpp"

#include "cache/catalog/commands.hpp"
#include "cache/clients/waits.hpp"
#include "cache/engine/call.hpp"
#include "cache/rdb/load.hpp"
#include "cache/rdb/save.hpp"
#include "cache/read_through/read_through.hpp"
#include "cache/replication/replication.hpp"

#include <string>

namespace eddy::cache {
namespace commands {
namespace {

constexpr std::string_view no_folder_text =
    "ERR this cache keeps nothing on disk: create it with --dir FOLDER";
constexpr std::string_view in_progress_text = "ERR Background save already in progress";

// False, with the error replied, when there is nowhere to save to, or a save is on its way.
bool may_save(call& c) {
    const save_state& saves = c.state.saves;
    if (c.state.options.dir.empty() || saves.host == nullptr) {
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

// The others go on meanwhile; only this client waits for the file.
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
        c.state.saves.scheduled = true;
        return c.reply.simple("Background saving scheduled");
    }
    c.error(
        "ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE "
        "in order to schedule a BGSAVE whenever possible.");
}

void lastsave(call& c) { c.reply.integer(c.state.saves.saved_at_us / 1'000'000); }

}  // namespace commands

// Through memory, not the disk: what it is for is to see that what is saved is what is loaded.
void debug_reload(call& c) {
    byte_buffer file;
    {
        rdb::saver saver(c.state);
        while (saver.next(file, file.size() + (1U << 20))) {
        }
    }
    if (c.state.hooked != nullptr) c.state.hooked->keep_values();
    for (const auto& each : c.state.keyspaces) {
        if (each != nullptr) each->clear();
    }
    rdb::loader loader(c.state);
    loader.feed(file.text());
    if (loader.now() != rdb::reader::status::done) {
        return c.error("ERR Error trying to load the RDB dump, check server logs");
    }
    c.reply.ok();
}

}  // namespace eddy::cache
