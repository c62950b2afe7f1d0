// First line of a script or library: its flags and name.
#include "cache/script/script_text.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace eddy::cache {
namespace {

bool is_space(char c) noexcept { return c == ' ' || (c >= '\t' && c <= '\r'); }

}  // namespace

std::uint32_t script_flag_named(std::string_view name) noexcept {
    constexpr std::pair<std::string_view, std::uint32_t> all[] = {
        {"no-writes", script_flag::no_writes},
        {"allow-oom", script_flag::allow_oom},
        {"allow-stale", script_flag::allow_stale},
        {"no-cluster", script_flag::no_cluster},
        {"allow-cross-slot-keys", script_flag::allow_cross_slot_keys}};
    for (const auto& [each, bit] : all) {
        if (each == name) return bit;
    }
    return 0;
}

script_head take_script_head(std::string_view text, bool is_library) {
    script_head head;
    head.rest = text;
    if (!text.starts_with("#!")) {
        if (is_library) head.refusal = "Missing library metadata";
        return head;
    }
    const std::size_t size = text.find('\n');
    if (size == std::string_view::npos) {
        head.refusal = is_library ? "Invalid library metadata" : "Invalid script shebang";
        return head;
    }
    std::string_view line = text.substr(0, size);
    head.rest.remove_prefix(size);
    head.flags = 0;
    bool is_first = true;
    while (true) {
        while (!line.empty() && is_space(line[0])) line.remove_prefix(1);
        if (line.empty()) break;
        const auto end = std::ranges::find_if(line, is_space);
        const std::string_view word = line.substr(0, static_cast<std::size_t>(end - line.begin()));
        line.remove_prefix(word.size());
        if (is_first) {
            is_first = false;
            if (word == "#!lua") continue;
            head.refusal = is_library ? "Engine '" + std::string(word.substr(2)) + "' not found"
                                      : "Unexpected engine in script shebang: " + std::string(word);
            return head;
        }
        if (is_library && word.starts_with("name=")) {
            if (head.has_name) {
                head.refusal = "Invalid metadata value, name argument was given multiple times";
                return head;
            }
            head.name = word.substr(5);
            head.has_name = true;
            continue;
        }
        if (is_library) {
            head.refusal = "Invalid metadata value given: " + std::string(word);
            return head;
        }
        if (!word.starts_with("flags=")) {
            head.refusal = "Unknown lua shebang option: " + std::string(word);
            return head;
        }
        std::string_view flags = word.substr(6);
        while (!flags.empty()) {
            const std::string_view one = flags.substr(0, flags.find(','));
            flags.remove_prefix(std::min(one.size() + 1, flags.size()));
            const std::uint32_t bit = script_flag_named(one);
            if (bit == 0) {
                head.refusal = "Unexpected flag in script shebang: " + std::string(one);
                return head;
            }
            head.flags |= bit;
        }
    }
    return head;
}

}  // namespace eddy::cache
