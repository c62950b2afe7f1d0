// One row a parameter: how it is read and, if it can be set, how.
#include "cache/config.hpp"

#include <eddy/base/glob.hpp>

#include "cache/call.hpp"
#include "cache/command_table.hpp"
#include "cache/notifications.hpp"

#include <array>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace eddy::cache {
namespace {

// Bytes with an optional unit: "100", "1kb" (1024), "1k" (1000), "2GB".
std::optional<std::size_t> parse_bytes(std::string_view text) {
    const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    const auto number = parse_integer(text.substr(0, digits));
    if (!number) return std::nullopt;
    const std::string_view unit = text.substr(digits);
    std::size_t factor = 0;
    if (unit.empty() || is_word(unit, "b")) factor = 1;
    if (is_word(unit, "k")) factor = 1000;
    if (is_word(unit, "kb")) factor = 1024;
    if (is_word(unit, "m")) factor = 1000 * 1000;
    if (is_word(unit, "mb")) factor = 1024 * 1024;
    if (is_word(unit, "g")) factor = 1000 * 1000 * 1000;
    if (is_word(unit, "gb")) factor = 1024 * 1024 * 1024;
    std::size_t bytes;
    if (factor == 0 || __builtin_mul_overflow(static_cast<std::size_t>(*number), factor, &bytes)) {
        return std::nullopt;
    }
    return bytes;
}

// Words between white space.
std::vector<std::string_view> split_words(std::string_view text) {
    std::vector<std::string_view> words;
    for (;;) {
        const std::size_t begin = text.find_first_not_of(' ');
        if (begin == std::string_view::npos) return words;
        text.remove_prefix(begin);
        const std::size_t size = std::min(text.find(' '), text.size());
        words.push_back(text.substr(0, size));
        text.remove_prefix(size);
    }
}

using options_type = engine_options;

// Why a value was refused; empty when it was taken.
using refusal = std::string_view;
constexpr std::int64_t most_soft_seconds = std::numeric_limits<std::int32_t>::max();
constexpr refusal not_bytes = "argument must be a memory value";

struct parameter {
    std::string_view name;
    std::string (*get)(const options_type&);
    refusal (*set)(options_type&, std::string_view);  // null: cannot be set
};

refusal set_max_memory(options_type& o, std::string_view value) {
    const auto bytes = parse_bytes(value);
    if (!bytes) return not_bytes;
    o.max_memory = *bytes;
    return {};
}

refusal set_max_text(options_type& o, std::string_view value) {
    constexpr std::size_t least = 1024 * 1024;
    constexpr std::size_t most = std::numeric_limits<std::uint32_t>::max() / 2;
    const auto bytes = parse_bytes(value);
    if (!bytes) return not_bytes;
    if (*bytes < least || *bytes > most) return "argument must be between 1048576 and 2147483647";
    o.max_text = *bytes;
    return {};
}

refusal set_policy(options_type& o, std::string_view value) {
    for (const eviction each : {eviction::none, eviction::allkeys_lru}) {
        if (!is_word(value, policy_name(each))) continue;
        o.policy = each;
        return {};
    }
    return "argument(s) must be one of the following: noeviction, allkeys-lru";
}

refusal set_password(options_type& o, std::string_view value) {
    o.password = value;
    return {};
}

refusal set_events(options_type& o, std::string_view value) {
    if (set_event_letters(o, value)) return {};
    return "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.";
}

std::optional<client_class> class_named(std::string_view name) noexcept {
    if (is_word(name, "normal")) return client_class::normal;
    if (is_word(name, "slave") || is_word(name, "replica")) return client_class::replica;
    if (is_word(name, "pubsub")) return client_class::pubsub;
    return std::nullopt;
}

// "class hard soft seconds", for one class or several.
refusal set_output_limits(options_type& o, std::string_view value) {
    const std::vector<std::string_view> words = split_words(value);
    if (words.empty() || words.size() % 4 != 0) {
        return "Wrong number of arguments in buffer limit configuration.";
    }
    for (std::size_t i = 0; i < words.size(); i += 4) {
        const auto which = class_named(words[i]);
        if (!which) return "Invalid client class specified in buffer limit configuration.";
        const auto hard = parse_bytes(words[i + 1]);
        const auto soft = parse_bytes(words[i + 2]);
        const auto seconds = parse_integer(words[i + 3]);
        if (!hard || !soft || !seconds || *seconds < 0 || *seconds > most_soft_seconds) {
            return "Error in hard, soft or soft_seconds setting in buffer limit configuration.";
        }
        o.output_limits[static_cast<std::size_t>(*which)] = {*hard, *soft, *seconds};
    }
    return {};
}

std::string output_limits_text(const options_type& o) {
    constexpr std::string_view names[] = {"normal", "slave", "pubsub"};
    std::string text;
    for (std::size_t i = 0; i < std::size(names); ++i) {
        const output_limit& its = o.output_limits[i];
        if (i > 0) text += ' ';
        text += names[i];
        text += ' ' + std::to_string(its.hard) + ' ' + std::to_string(its.soft) + ' ' +
                std::to_string(its.soft_seconds);
    }
    return text;
}

// Persistence is not there yet, so it can only be set to off.
constexpr refusal no_persistence = "this cache keeps nothing on disk";

refusal set_appendonly(options_type&, std::string_view value) {
    return is_word(value, "no") ? refusal{} : no_persistence;
}

refusal set_save(options_type&, std::string_view value) {
    return value.empty() ? refusal{} : no_persistence;
}

constexpr parameter parameters[] = {
    {"appendonly", [](const options_type&) { return std::string("no"); }, set_appendonly},
    {"bind", [](const options_type&) { return std::string(); }, nullptr},
    {"client-output-buffer-limit", output_limits_text, set_output_limits},
    {"databases", [](const options_type&) { return std::to_string(engine::databases); }, nullptr},
    {"dir", [](const options_type&) { return std::string(); }, nullptr},
    {"io-threads", [](const options_type&) { return std::string("1"); }, nullptr},
    {"maxmemory", [](const options_type& o) { return std::to_string(o.max_memory); },
     set_max_memory},
    {"maxmemory-policy", [](const options_type& o) { return std::string(policy_name(o.policy)); },
     set_policy},
    {"notify-keyspace-events", event_letters, set_events},
    {"port", [](const options_type& o) { return std::to_string(o.port); }, nullptr},
    {"proto-max-bulk-len", [](const options_type& o) { return std::to_string(o.max_text); },
     set_max_text},
    {"requirepass", [](const options_type& o) { return o.password; }, set_password},
    {"save", [](const options_type&) { return std::string(); }, set_save},
};

const parameter* find_parameter(std::string_view name) noexcept {
    for (const parameter& each : parameters) {
        if (is_word(name, each.name)) return &each;
    }
    return nullptr;
}

std::string lower(std::string_view text) {
    std::string made(text);
    for (char& c : made) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
    }
    return made;
}

}  // namespace

std::string_view policy_name(eviction policy) noexcept {
    return policy == eviction::none ? "noeviction" : "allkeys-lru";
}

void config_get(call& c) {
    std::vector<const parameter*> found;
    for (const parameter& each : parameters) {
        for (std::size_t i = 2; i < c.count; ++i) {
            if (!glob_match(lower(c.arg(i)), each.name)) continue;
            found.push_back(&each);
            break;
        }
    }
    c.reply.map(found.size());
    for (const parameter* const each : found) {
        c.reply.bulk(each->name);
        c.reply.bulk(each->get(c.state.options));
    }
}

void config_set(call& c) {
    if (c.count % 2 != 0) return c.wrong_arity("set");
    engine_options changed = c.state.options;
    for (std::size_t i = 2; i < c.count; i += 2) {
        const std::string name(c.arg(i));
        const parameter* const found = find_parameter(name);
        if (found == nullptr) {
            return c.error("ERR Unknown option or number of arguments for CONFIG SET - '" + name +
                           "'");
        }
        const refusal why = found->set == nullptr ? "can't set immutable config"
                                                  : found->set(changed, c.arg(i + 1));
        if (!why.empty()) {
            return c.error("ERR CONFIG SET failed (possibly related to argument '" + name +
                           "') - " + std::string(why));
        }
    }
    c.state.options = changed;
    c.state.env.tracks_use = changed.policy != eviction::none;
    c.state.note_listeners();
    c.reply.ok();
}

}  // namespace eddy::cache
