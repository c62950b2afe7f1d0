// First line of a script or library: its flags and name.
#include "cache/script/script_text.hpp"

#include <eddy/wire/resp/request.hpp>

#include "base/text/text.hpp"

#include <cstddef>
#include <utility>

namespace eddy::cache {

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

namespace {

// As a text of C, which is what Redis compares and prints.
std::string_view up_to_null(std::string_view text) noexcept {
    return text.substr(0, text.find('\0'));
}

void take_library_word(script_head& head, std::string_view word) {
    constexpr std::string_view name = "name=";
    const std::string_view printed = up_to_null(word);
    if (!is_word(word.substr(0, name.size()), name)) {
        head.refusal = "Invalid metadata value given: " + std::string(printed);
    } else if (head.has_name) {
        head.refusal = "Invalid metadata value, name argument was given multiple times";
    } else {
        head.name = word.substr(name.size());
        head.has_name = true;
    }
}

void take_script_word(script_head& head, std::string_view word) {
    constexpr std::string_view option = "flags=";
    if (!word.starts_with(option)) {
        head.refusal = "Unknown lua shebang option: " + std::string(up_to_null(word));
        return;
    }
    std::string_view flags = word.substr(option.size());
    for (bool more = !flags.empty(); more;) {
        const std::size_t size = flags.find(',');
        const std::string_view one = up_to_null(flags.substr(0, size));
        const std::uint32_t bit = script_flag_named(one);
        if (bit == 0) {
            head.refusal = "Unexpected flag in script shebang: " + std::string(one);
            return;
        }
        head.flags |= bit;
        more = size != std::string_view::npos;
        if (more) flags.remove_prefix(size + 1);
    }
}

}  // namespace

script_head take_script_head(std::string_view text, bool is_library) {
    script_head head;
    head.rest = text;
    if (!text.starts_with("#!")) {
        if (is_library) head.refusal = "Missing library metadata";
        return head;
    }
    const std::size_t size = up_to_null(text).find('\n');
    if (size == std::string_view::npos) {
        head.refusal = is_library ? "Invalid library metadata" : "Invalid script shebang";
        return head;
    }
    head.rest.remove_prefix(size);
    head.flags = 0;
    resp::request_limits limits;
    limits.max_inline = size;
    resp::request_parser line(limits);
    const resp::request_outcome split = line.next(text.substr(0, size + 1));
    if (split.status != resp::parse_status::complete) {
        head.refusal = is_library ? "Invalid library metadata" : "Invalid engine in script shebang";
        return head;
    }
    const std::string_view engine = split.request[0];
    if (is_library) {
        head.engine = engine.substr(2);
    } else if (up_to_null(engine) != "#!lua") {
        head.refusal = "Unexpected engine in script shebang: " + std::string(up_to_null(engine));
        return head;
    }
    for (const std::string_view word : split.request.args().subspan(1)) {
        is_library ? take_library_word(head, word) : take_script_word(head, word);
        if (!head.refusal.empty()) break;
    }
    return head;
}

}  // namespace eddy::cache
