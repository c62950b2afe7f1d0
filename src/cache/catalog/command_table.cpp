// Command table and a perfect-enough hash over it, both made by the compiler from the rows.
#include "cache/catalog/command_table.hpp"

#include "base/text/text.hpp"
#include "cache/catalog/command_keys.hpp"
#include "cache/catalog/command_row.hpp"
#include "cache/catalog/rows/geo.hpp"
#include "cache/catalog/rows/hashes.hpp"
#include "cache/catalog/rows/keys.hpp"
#include "cache/catalog/rows/lists.hpp"
#include "cache/catalog/rows/scripts.hpp"
#include "cache/catalog/rows/server.hpp"
#include "cache/catalog/rows/sessions.hpp"
#include "cache/catalog/rows/sets.hpp"
#include "cache/catalog/rows/sorted_sets.hpp"
#include "cache/catalog/rows/streams.hpp"
#include "cache/catalog/rows/strings.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

namespace eddy::cache {
namespace {

using family = std::span<const command_row>;

// In the order in which COMMAND lists them.
constexpr family families[] = {
    rows::string_rows, rows::state_rows,           rows::list_rows,      rows::set_rows,
    rows::hash_rows,   rows::sorted_set_rows,      rows::stream_rows,    rows::geo_rows,
    rows::key_rows,    rows::session_rows,         rows::list_wait_rows, rows::script_rows,
    rows::acl_rows,    rows::sorted_set_wait_rows, rows::setting_rows,
};

constexpr std::string_view flag_names[] = {
    "write",    "readonly",     "denyoom",           "admin",
    "pubsub",   "noscript",     "blocking",          "loading",
    "stale",    "skip_monitor", "skip_slowlog",      "asking",
    "fast",     "no_auth",      "no_mandatory_keys", "no_async_loading",
    "no_multi", "allow_busy",   "movablekeys"};
static_assert(command_flag::shown == (1ULL << std::size(flag_names)) - 1);

constexpr std::string_view category_names[] = {
    "@keyspace",   "@read",        "@write",    "@set",         "@sortedset", "@list",
    "@hash",       "@string",      "@bitmap",   "@hyperloglog", "@geo",       "@stream",
    "@pubsub",     "@admin",       "@fast",     "@slow",        "@blocking",  "@dangerous",
    "@connection", "@transaction", "@scripting"};
static_assert(command_category::scripting == 1U << (std::size(category_names) - 1));

// Flags that each form has of its own. It inherits the others from its command, and may add
// noscript: all of CONFIG, also its HELP, is closed to scripts, but of CLUSTER only RESET.
constexpr std::uint64_t own_flags =
    command_flag::write | command_flag::denyoom | command_flag::loading | command_flag::stale |
    command_flag::allow_busy | command_flag::alters | command_flag::replicated;

constexpr bool is_form(const command_row& row) noexcept { return row.name.contains('|'); }

constexpr std::size_t count_rows(bool forms) noexcept {
    std::size_t count = 0;
    for (const family each : families)
        for (const command_row& row : each) count += is_form(row) == forms ? 1 : 0;
    return count;
}
constexpr std::size_t table_size = count_rows(false);
constexpr std::size_t form_total = count_rows(true);

// Categories that follow from the flags, as in Redis.
constexpr std::uint32_t implied_categories(std::uint64_t flags, std::uint32_t given) noexcept {
    namespace category = command_category;
    const auto has = [flags](std::uint64_t flag) { return (flags & flag) != 0; };
    std::uint32_t implied = has(command_flag::fast) ? category::fast : category::slow;
    if (has(command_flag::write)) implied |= category::write;
    if (has(command_flag::readonly) && (given & category::scripting) == 0)
        implied |= category::read;
    if (has(command_flag::admin)) implied |= category::admin | category::dangerous;
    if (has(command_flag::pubsub)) implied |= category::pubsub;
    if (has(command_flag::blocking)) implied |= category::blocking;
    return implied;
}

// Range of the keys at fixed positions: for consecutive groups, from the beginning of the first to
// the end of the last.
constexpr void set_key_range(command_spec& of, std::string_view specs) noexcept {
    for_each_word(specs, ';', [&of](std::string_view one) {
        const key_spec spec = parse_key_spec(one);
        if (spec.begin != 'i' || spec.find != 'r') return;
        if (of.first_key == 0) {
            of.first_key = static_cast<std::int16_t>(spec.from);
            of.key_step = static_cast<std::int16_t>(spec.numbers[1]);
        }
        const int end = spec.numbers[0];
        of.last_key = static_cast<std::int16_t>(end < 0 ? end : spec.from + end);
    });
}

constexpr command_spec made_of(const command_row& row) noexcept {
    command_spec made;
    made.name = row.name;
    made.run = row.run;
    made.arity = row.arity;
    made.flags = row.flags;
    // A script's own flags decide at each call whether it only reads.
    if ((row.flags & command_flag::runs_script) != 0) made.flags &= ~command_flag::readonly;
    made.shown_flags = row.flags & command_flag::shown;
    made.categories = row.categories | implied_categories(made.shown_flags, row.categories);
    set_key_range(made, row.keys);
    made.key_specs = row.keys;
    const std::size_t deprecated = row.since.find('!');
    made.since = row.since.substr(0, deprecated);
    if (deprecated != std::string_view::npos)
        made.deprecated_since = row.since.substr(deprecated + 1);
    made.group = row.group;
    made.syntax = row.syntax;
    made.summary = row.summary;
    made.tips = row.tips;
    return made;
}

constexpr command_spec made_of_form(const command_row& row, const command_row& command) noexcept {
    command_spec made = made_of(row);
    made.flags = (command.flags & ~own_flags) | (row.flags & (own_flags | command_flag::noscript));
    made.group = command.group;
    return made;
}

// A command with the rows of its forms, which stand behind its own.
struct row_group {
    const command_row* command = nullptr;
    family forms;
    std::size_t first = 0;  // of its forms among all
};

constexpr std::size_t forms_behind(family rows, std::size_t i) noexcept {
    std::size_t count = 0;
    while (i + count + 1 < rows.size() && is_form(rows[i + count + 1])) ++count;
    return count;
}

constexpr std::size_t group_total = [] {
    std::size_t count = 0;
    for (const family rows : families)
        for (std::size_t i = 0; i < rows.size(); ++i)
            count += !is_form(rows[i]) && forms_behind(rows, i) != 0 ? 1 : 0;
    return count;
}();

// In the order of the commands' names.
constexpr auto groups = [] {
    std::array<row_group, group_total> made{};
    std::size_t at = 0;
    for (const family rows : families) {
        for (std::size_t i = 0; i < rows.size(); ++i) {
            const std::size_t forms = is_form(rows[i]) ? 0 : forms_behind(rows, i);
            if (forms != 0) made[at++] = {&rows[i], rows.subspan(i + 1, forms)};
        }
    }
    std::ranges::sort(made, {}, [](const row_group& each) { return each.command->name; });
    std::size_t first = 0;
    for (row_group& each : made) {
        each.first = first;
        first += each.forms.size();
    }
    return made;
}();

constexpr auto forms = [] {
    std::array<command_spec, form_total> made{};
    for (const row_group& each : groups) {
        for (std::size_t i = 0; i < each.forms.size(); ++i)
            made[each.first + i] = made_of_form(each.forms[i], *each.command);
    }
    return made;
}();

constexpr auto table = [] {
    std::array<command_spec, table_size> made{};
    std::size_t at = 0;
    for (const family rows : families) {
        for (const command_row& row : rows) {
            if (is_form(row)) continue;
            command_spec& spec = made[at++] = made_of(row);
            const auto* const group = std::ranges::find(groups, &row, &row_group::command);
            if (group == groups.end()) continue;
            spec.first_form = &forms[group->first];
            spec.form_count = static_cast<std::uint32_t>(group->forms.size());
            spec.flags |= command_flag::has_forms;
            // Flags of a command that cannot be called without a form mean nothing.
            if (row.arity < -1) {
                spec.shown_flags = 0;
                spec.categories = row.categories | implied_categories(0, row.categories);
            }
        }
    }
    return made;
}();

static_assert(offsetof(command_spec, key_specs) == 64, "what runs a command is in one cache line");
static_assert(std::ranges::all_of(groups,
                                  [](const row_group& group) {
                                      return std::ranges::all_of(group.forms, [&](const auto& row) {
                                          const std::size_t bar = row.name.find('|');
                                          return row.name.substr(0, bar) == group.command->name;
                                      });
                                  }),
              "the row of a form must stand behind its command's");
static_assert(std::ranges::all_of(groups,
                                  [](const row_group& group) {
                                      return std::ranges::is_sorted(group.forms, {},
                                                                    &command_row::name);
                                  }),
              "the rows of a command's forms must stand in the order of their names");
static_assert(std::ranges::all_of(table,
                                  [](const command_spec& each) {
                                      return each.name.size() <= max_command_name;
                                  }),
              "the name of a command is longer than max_command_name");

constexpr command_name fold_slowly(std::string_view name) noexcept {
    command_name words;
    for (std::size_t i = 0; i < name.size(); ++i) {
        const bool is_lower = name[i] >= 'a' && name[i] <= 'z';
        const auto upper = static_cast<unsigned char>(is_lower ? name[i] - ('a' - 'A') : name[i]);
        std::uint64_t& word = i < 8 ? words.first : i < 16 ? words.second : words.third;
        word |= static_cast<std::uint64_t>(upper) << 8 * (i % 8);
    }
    words.third |= static_cast<std::uint64_t>(name.size()) << 56;
    return words;
}

constexpr std::size_t index_bits = 10;
constexpr std::size_t index_size = std::size_t{1} << index_bits;
static_assert(table_size * 2 <= index_size, "the index is too full: add one to index_bits");

constexpr std::size_t index_of(command_name name) noexcept {
    return (name.first * 0x9e37'79b9'7f4a'7c15ULL ^
            (name.second ^ name.third) * 0xc2b2'ae3d'27d4'eb4fULL) >>
           (64 - index_bits);
}

// names[i] belongs to table[i]; index[h] is an index into both, or table_size.
struct lookup {
    std::array<command_name, table_size + 1> names{};
    std::array<std::uint16_t, index_size> index{};
};

constexpr lookup folded = [] {
    lookup made;
    made.index.fill(table_size);
    for (std::size_t i = 0; i < table_size; ++i) {
        made.names[i] = fold_slowly(table[i].name);
        std::size_t at = index_of(made.names[i]);
        while (made.index[at] != table_size) at = (at + 1) % index_size;
        made.index[at] = static_cast<std::uint16_t>(i);
    }
    return made;
}();

std::uint64_t load(const char* from, std::size_t size) noexcept {
    std::uint64_t word = 0;
    if (size >= 8) {
        std::memcpy(&word, from, 8);
    } else if (size >= 4) {
        std::uint32_t low, high;
        std::memcpy(&low, from, 4);
        std::memcpy(&high, from + size - 4, 4);
        word = static_cast<std::uint64_t>(high) << 8 * (size - 4) | low;
    } else {
        for (std::size_t i = 0; i < size; ++i) {
            word |= static_cast<std::uint64_t>(static_cast<unsigned char>(from[i])) << 8 * i;
        }
    }
    return word;
}

// Upper case of eight letters at once; other bytes stay as they are.
std::uint64_t to_upper(std::uint64_t word) noexcept {
    constexpr std::uint64_t each = 0x0101'0101'0101'0101ULL;
    constexpr std::uint64_t high = 0x80 * each;
    const std::uint64_t low7 = word & ~high;
    const std::uint64_t from_a = low7 + (0x80 - 'a') * each;
    const std::uint64_t behind_z = low7 + (0x80 - 'z' - 1) * each;
    return word - ((from_a & ~behind_z & ~word & high) >> 2);
}

}  // namespace

command_name fold_command_name(std::string_view name) noexcept {
    const std::size_t size = name.size();
    if (size > max_command_name) return {};
    command_name words{to_upper(load(name.data(), size)), 0,
                       static_cast<std::uint64_t>(size) << 56};
    if (size > 8) {
        words.second = to_upper(load(name.data() + 8, size - 8));
        if (size > 16) words.third |= to_upper(load(name.data() + 16, size - 16));
    }
    return words;
}

const command_spec* find_command(command_name name) noexcept {
    for (std::size_t at = index_of(name);; at = (at + 1) % index_size) {
        const std::size_t i = folded.index[at];
        if (folded.names[i] == name && i != table_size) return &table[i];
        if (i == table_size) return nullptr;
    }
}

const command_spec* find_form(const command_spec& command, std::string_view word) noexcept {
    const std::size_t prefix = command.name.size() + 1;
    for (const command_spec& each : command.forms()) {
        if (is_word(word, each.name.substr(prefix))) return &each;
    }
    return nullptr;
}

std::span<const command_spec> all_commands() noexcept { return table; }
std::span<const command_spec> all_forms() noexcept { return forms; }

std::span<const std::string_view> command_flag_names() noexcept { return flag_names; }
std::span<const std::string_view> command_category_names() noexcept { return category_names; }

std::uint64_t flags_of(const command_spec& spec, const std::string_view* args,
                       std::size_t count) noexcept {
    if ((spec.flags & command_flag::has_forms) == 0 || count < 2) [[likely]]
        return spec.flags;
    const command_spec* const form = find_form(spec, args[1]);
    return form != nullptr ? form->flags : spec.flags;
}

}  // namespace eddy::cache
