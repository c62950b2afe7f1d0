// Key extraction by the key specifications of command_row.hpp, and by hand where those are
// incomplete.
#include "cache/catalog/command_keys.hpp"

#include "base/text/text.hpp"
#include "cache/catalog/command_table.hpp"
#include "cache/types/number.hpp"

#include <algorithm>
#include <string>

namespace eddy::cache {
namespace {

using arguments = std::span<const std::string_view>;

// The form selected by args[1], or the command itself.
const command_spec& chosen_by(const command_spec& command, arguments args) {
    if ((command.flags & command_flag::has_forms) == 0 || args.size() < 2) return command;
    const command_spec* const form = find_form(command, args[1]);
    return form != nullptr ? *form : command;
}

// Index where the search of the group begins; 0: the group is absent.
std::size_t find_begin(const key_spec& spec, arguments args) noexcept {
    if (spec.begin == 'i') return static_cast<std::size_t>(spec.from);
    if (spec.begin != 'k') return 0;
    const auto count = static_cast<std::int64_t>(args.size());
    const int step = spec.from > 0 ? 1 : -1;
    for (std::int64_t i = spec.from > 0 ? spec.from : count + spec.from; i > 0 && i < count;
         i += step) {
        if (equal_in_any_case(args[static_cast<std::size_t>(i)], spec.keyword)) {
            return static_cast<std::size_t>(i) + 1;
        }
    }
    return 0;
}

// Appends the group's keys. False when the specification does not fit the arguments.
bool add_group(const key_spec& spec, arguments args, std::vector<key_argument>& to) {
    const std::size_t begin = find_begin(spec, args);
    if (begin == 0) return spec.begin == 'k';  // an option that was not given
    const auto count = static_cast<std::int64_t>(args.size());
    auto first = static_cast<std::int64_t>(begin);
    std::int64_t last;
    std::int64_t step;
    if (spec.find == 'r') {
        const auto [end, every, limit] = spec.numbers;
        step = every;
        last = end >= 0 ? first + end : count + end;
        if (end < 0 && limit > 1) last = first + (count - first) / limit + end;
    } else {
        const auto [number_at, first_at, every] = spec.numbers;
        step = every;
        if (first + number_at >= count) return false;
        const auto keys = parse_integer(args[static_cast<std::size_t>(first + number_at)]);
        if (!keys || *keys < 0 || *keys > count) return false;
        if (*keys == 0 && !to.empty()) return false;  // a destination without sources
        first += first_at;
        last = first + (*keys - 1) * step;
    }
    if (last >= count) return false;
    for (; first <= last; first += step) {
        to.push_back({static_cast<std::size_t>(first), spec.flags});
    }
    return true;
}

// Access flags of SET, which depend on the options.
std::string_view flags_of_set(arguments args) {
    bool compares = false;
    for (std::size_t i = 3; i < args.size(); ++i) {
        if (is_word(args[i], "get")) return "RW access update";
        compares |= is_word(args[i], "ifeq") || is_word(args[i], "ifne") ||
                    is_word(args[i], "ifdeq") || is_word(args[i], "ifdne");
    }
    return compares ? "RW update" : "OW update";
}

std::string_view flags_of_bitfield(arguments args) {
    for (std::size_t i = 2; i < args.size(); ++i) {
        if (is_word(args[i], "set") || is_word(args[i], "incrby")) return "RW access update";
        if (is_word(args[i], "get")) i += 2;
    }
    return "RO access";
}

// SORT: the key, and the last one behind STORE.
std::vector<key_argument> keys_of_sort(arguments args) {
    std::vector<key_argument> found{{1, "RO access"}};
    for (std::size_t i = 2; i < args.size(); ++i) {
        if (is_word(args[i], "limit")) {
            i += 2;
        } else if (is_word(args[i], "get") || is_word(args[i], "by")) {
            ++i;
        } else if (is_word(args[i], "store") && i + 1 < args.size()) {
            found.resize(1);
            found.push_back({i + 1, "OW update"});
            ++i;
        }
    }
    return found;
}

// GEORADIUS and GEORADIUSBYMEMBER: the argument of the last STORE or STOREDIST. A search for the
// word would find the first, but the last one counts.
std::vector<key_argument> keys_of_georadius(arguments args, std::size_t first_option) {
    std::vector<key_argument> found{{1, "RO access"}};
    for (std::size_t i = first_option; i + 1 < args.size(); ++i) {
        if (is_word(args[i], "store") || is_word(args[i], "storedist"))
            found.push_back({++i, "OW update"});
    }
    return found;
}

// XREAD and XREADGROUP: parsed by hand, as a group or a consumer may be called "streams".
std::vector<key_argument> keys_of_xread(arguments args) {
    std::vector<key_argument> found;
    std::size_t i = 1;
    while (i < args.size() && !is_word(args[i], "streams")) {
        const bool has_value =
            is_word(args[i], "count") || is_word(args[i], "block") || is_word(args[i], "claim");
        i += is_word(args[i], "group") ? 3 : has_value ? 2 : 1;
    }
    if (i >= args.size()) return found;
    const std::size_t keys = (args.size() - i - 1) / 2;
    for (std::size_t k = 1; k <= keys; ++k) found.push_back({i + k, "RO access"});
    return found;
}

// MIGRATE: the key, or the keys after KEYS, a word that may also be a password.
std::optional<std::vector<key_argument>> keys_of_migrate(arguments args) {
    constexpr std::string_view flags = "RW access delete";
    for (std::size_t i = 6; i < args.size(); ++i) {
        if (is_word(args[i], "auth")) {
            ++i;
        } else if (is_word(args[i], "auth2")) {
            i += 2;
        } else if (is_word(args[i], "keys")) {
            if (!args[3].empty()) return std::nullopt;
            std::vector<key_argument> found;
            while (++i < args.size()) found.push_back({i, flags});
            return found;
        }
    }
    return {{{3, flags}}};
}

}  // namespace

std::vector<key_spec> parse_key_specs(std::string_view text) {
    std::vector<key_spec> all;
    for_each_word(text, ';', [&all](std::string_view one) { all.push_back(parse_key_spec(one)); });
    return all;
}

bool has_keys(const command_spec& spec, arguments args) {
    // Channels stand there as "not_key".
    const auto specs = parse_key_specs(chosen_by(spec, args).key_specs);
    return std::ranges::any_of(specs, [](const key_spec& each) {
        return each.flags.find("not_key") == std::string_view::npos;
    });
}

std::optional<std::vector<key_argument>> find_key_arguments(const command_spec& spec,
                                                            arguments args) {
    if ((spec.flags & command_flag::keys_by_options) != 0) {
        if (spec.name == "sort") return keys_of_sort(args);
        if (spec.name == "georadius") return keys_of_georadius(args, 6);
        if (spec.name == "georadiusbymember") return keys_of_georadius(args, 5);
        if (spec.name == "xread" || spec.name == "xreadgroup") return keys_of_xread(args);
        if (spec.name == "migrate" && args.size() > 3) return keys_of_migrate(args);
        if (spec.name == "set") return {{{1, flags_of_set(args)}}};
        if (spec.name == "delex") return {{{1, args.size() > 2 ? "RW delete" : "RM delete"}}};
        if (spec.name == "bitfield") return {{{1, flags_of_bitfield(args)}}};
    }
    std::vector<key_argument> found;
    for (const key_spec& each : parse_key_specs(chosen_by(spec, args).key_specs)) {
        if (each.begin == 'u' || each.find == 'u') continue;
        if (!add_group(each, args, found)) return std::nullopt;
    }
    return found;
}

}  // namespace eddy::cache
