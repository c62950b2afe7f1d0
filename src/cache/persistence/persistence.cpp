// Save points, background saves and their results.
#include "cache/persistence/persistence.hpp"

#include "cache/catalog/command_table.hpp"
#include "cache/catalog/commands.hpp"
#include "cache/clients/waits.hpp"
#include "cache/persistence/append_log.hpp"
#include "cache/rdb/snapshot.hpp"
#include "cache/replication/replication.hpp"

namespace eddy::cache {
namespace {

constexpr std::int64_t second_us = 1'000'000;
constexpr std::int64_t retry_after_us = 5 * second_us;

bool save_has_trouble(const engine_state& s) noexcept {
    return !s.persistence.saves.succeeded && s.settings.options.stop_writes_on_save_error &&
           !s.settings.options.save_points.empty();
}

bool append_has_trouble(const engine_state& s) noexcept {
    return s.persistence.appending != nullptr && s.settings.options.append.enabled &&
           s.persistence.appending->has_failed();
}

}  // namespace

void note_saved_time(engine_state& s) noexcept {
    s.persistence.saves.saved_us = s.data.env.steady_us;
    s.persistence.saves.saved_at_us = s.data.env.now_us;
}

bool begin_save(engine_state& s, save_kind kind) {
    save_state& saves = s.persistence.saves;
    if (saves.host == nullptr) return false;
    // The dataset is incomplete.
    if ((s.clients.slow_path & slow_path::loading) != 0 || lacks_data(s)) return false;
    rdb::snapshot_options options;
    options.names_stream = true;
    saves.snapshot = rdb::snapshot::begin(s, options);
    if (saves.snapshot == nullptr) return false;
    saves.scheduled = false;
    saves.is_background = kind == save_kind::background;
    saves.began_us = s.data.env.steady_us;
    saves.changes_at_begin = s.data.changes;
    saves.offset_at_begin =
        s.replication.replicating == nullptr ? 0 : s.replication.replicating->offset();
    saves.host->save_began();
    return true;
}

void end_save(engine_state& s, std::string_view fault) {
    save_state& saves = s.persistence.saves;
    saves.snapshot = nullptr;
    const bool succeeded = fault.empty();
    if (saves.is_background) {
        saves.took_s = (s.data.env.steady_us - saves.began_us) / second_us;
        saves.tried_us = s.data.env.steady_us;
        saves.succeeded = succeeded;
    }
    if (succeeded) {
        saves.succeeded = true;
        ++saves.count;
        note_saved_time(s);
        saves.saved_changes = saves.changes_at_begin;
        saves.saved_offset = saves.offset_at_begin;
    }
    note_save_trouble(s);
    end_save_waits(s, fault);
}

bool has_unsaved_changes(const engine_state& s) noexcept {
    return s.data.changes != s.persistence.saves.saved_changes;
}

bool has_unsaved_position(const engine_state& s) {
    if (s.replication.replicating == nullptr) return false;
    const auto now = s.replication.replicating->position();
    return now && now->offset != s.persistence.saves.saved_offset;
}

bool save_is_due(const engine_state& s) noexcept {
    const save_state& saves = s.persistence.saves;
    if (saves.snapshot != nullptr) return false;
    if (saves.scheduled) return true;
    const std::int64_t now_us = s.data.env.steady_us;
    if (!saves.succeeded && now_us - saves.tried_us <= retry_after_us) return false;
    const std::uint64_t changes = s.data.changes - saves.saved_changes;
    for (const save_point& each : s.settings.options.save_points) {
        if (changes >= each.changes && now_us - saves.saved_us > each.seconds * second_us) {
            return true;
        }
    }
    return false;
}

void note_load_began(engine_state& s, std::uint64_t total_bytes) noexcept {
    s.persistence.load = {.began_us = s.data.env.steady_us,
                          .began_at_us = s.data.env.now_us,
                          .total_bytes = total_bytes,
                          .loaded_bytes = 0,
                          .used_memory = 0};
}

void note_loaded(engine_state& s, std::uint64_t keys, std::uint64_t expired) {
    s.persistence.saves.loaded_keys = keys;
    s.persistence.saves.loaded_expired = expired;
    s.persistence.saves.saved_changes = s.data.changes;
}

void note_save_trouble(engine_state& s) noexcept {
    // The number of replicas is checked at each command.
    const bool refusing = save_has_trouble(s) || append_has_trouble(s) ||
                          s.settings.options.replication.min_replicas_to_write > 0;
    s.clients.slow_path =
        static_cast<std::uint16_t>(refusing ? s.clients.slow_path | slow_path::save_trouble
                                            : s.clients.slow_path & ~slow_path::save_trouble);
}

std::string save_trouble_text(const engine_state& s) {
    if ((s.clients.slow_path & slow_path::save_trouble) == 0 ||
        (!save_has_trouble(s) && !append_has_trouble(s))) {
        return {};
    }
    if (!save_has_trouble(s))
        return "MISCONF Errors writing to the AOF file: " + s.persistence.appending->fault;
    return "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to "
           "persist "
           "to disk. Commands that may modify the data set are disabled, because this instance is "
           "configured to report errors during writes if RDB snapshotting fails "
           "(stop-writes-on-bgsave-error option). Please check the Redis logs for details about "
           "the RDB error.";
}

bool refused_by_save_trouble(call& c, std::uint64_t flags) {
    if ((c.state.clients.slow_path & slow_path::save_trouble) == 0) return false;
    const bool shows_trouble = (c.spec->flags & command_flag::shows_save_trouble) != 0;
    if ((flags & command_flag::write) == 0 && !shows_trouble) return false;
    const std::string why = save_trouble_text(c.state);
    if (why.empty()) return false;
    c.error(why);
    return true;
}

std::optional<std::vector<save_point>> parse_save_points(std::string_view text) {
    std::vector<save_point> points;
    std::vector<std::int64_t> numbers;
    while (true) {
        const std::size_t first = text.find_first_not_of(' ');
        if (first == std::string_view::npos) break;
        text.remove_prefix(first);
        const std::string_view word = text.substr(0, text.find(' '));
        text.remove_prefix(word.size());
        const auto number = parse_integer(word);
        constexpr std::int64_t most = INT32_MAX;
        if (!number || *number > most) return std::nullopt;
        numbers.push_back(*number);
    }
    if (numbers.size() % 2 != 0) return std::nullopt;
    for (std::size_t i = 0; i < numbers.size(); i += 2) {
        if (numbers[i] < 1 || numbers[i + 1] < 0) return std::nullopt;
        points.push_back({numbers[i], static_cast<std::uint64_t>(numbers[i + 1])});
    }
    return points;
}

std::string to_text(const std::vector<save_point>& points) {
    std::string text;
    for (const save_point& each : points) {
        if (!text.empty()) text += ' ';
        text += std::to_string(each.seconds) + ' ' + std::to_string(each.changes);
    }
    return text;
}

}  // namespace eddy::cache
