// Argument checks shared by the commands.
#include "cache/engine/call.hpp"

#include "cache/catalog/command_table.hpp"

#include <string>

namespace eddy::cache {

std::size_t call::request_bytes() const noexcept {
    constexpr std::size_t line = 3;  // '*' or '$', and the end of the line
    constexpr std::size_t line_end = 2;
    const auto digits = [](std::size_t number) {
        std::size_t found = 1;
        for (; number >= 10; number /= 10) ++found;
        return found;
    };
    std::size_t bytes = line + digits(count);
    for (const std::string_view each : all_args())
        bytes += line + digits(each.size()) + each.size() + line_end;
    return bytes;
}

void call::wrong_arity() {
    error("ERR wrong number of arguments for '" + std::string(spec->name) + "' command");
}

void call::wrong_arity(std::string_view subcommand) {
    error("ERR wrong number of arguments for '" + std::string(spec->name) + "|" +
          std::string(subcommand) + "' command");
}

void call::refuse_reply() {
    reply.buffer().truncate(reply_begin);
    error("ERR the reply is larger than the limit of " +
          std::to_string(state.settings.options.max_reply) +
          " bytes: ask for fewer elements at a time, or use the SCAN commands");
}

namespace {

// As printf would: at most 128 bytes, up to a NUL.
std::string about_subcommand(const call& c, std::string_view what) {
    std::string upper(c.spec->name);
    for (char& each : upper) each = static_cast<char>(each - ('a' - 'A'));
    const std::string_view given = c.arg(1).substr(0, 128);
    return "ERR " + std::string(what) + " '" + std::string(given.substr(0, given.find('\0'))) +
           "'. Try " + upper + " HELP.";
}

}  // namespace

void call::unknown_subcommand() {
    if (is_word(arg(1), "help")) return wrong_arity("help");
    error(about_subcommand(*this, "unknown subcommand"));
}

void call::wrong_subcommand() {
    error(about_subcommand(*this, "unknown subcommand or wrong number of arguments for"));
}

void call::help(std::initializer_list<std::string_view> lines) {
    reply.array(lines.size());
    for (const std::string_view line : lines) reply.simple(line);
}

std::optional<std::int64_t> call::integer(std::size_t i, std::string_view text) {
    const auto value = parse_integer(arg(i));
    if (!value) error(text);
    return value;
}

std::optional<std::int64_t> call::integer_in(std::size_t i, std::int64_t low, std::int64_t high,
                                             std::string_view text) {
    const auto value = parse_integer(arg(i));
    if (value && *value >= low && *value <= high) return value;
    error(text);
    return std::nullopt;
}

std::optional<std::int64_t> call::positive(std::size_t i) {
    return integer_in(i, 0, INT64_MAX, "ERR value is out of range, must be positive");
}

std::optional<std::size_t> call::database_number(std::size_t i) {
    const auto number = parse_integer(arg(i));
    if (!number || *number < INT32_MIN || *number > INT32_MAX) {
        error(!number ? not_an_integer_text
                      : "ERR value is out of range, value must between -2147483648 and "
                        "2147483647");
        return std::nullopt;
    }
    if (*number >= 0 && *number < engine_databases) return static_cast<std::size_t>(*number);
    error("ERR DB index is out of range");
    return std::nullopt;
}

void call::remove_if_empty(slot* place, std::uint64_t its_hash) {
    const entry& e = *keyspace::at(place);
    const bool empty = e.type == value_type::list         ? list_of(place).empty()
                       : e.type == value_type::sorted_set ? sorted_set_of(place).empty()
                                                          : collection_of(place).all() == 0;
    if (!empty) return;
    also_happened(key_event::generic, "del", e.key());
    keys->remove(place, its_hash);
}

bool call::fits_text(std::uint64_t size, std::uint64_t added) {
    const std::uint64_t limit = longest_text();
    if (size <= limit && added <= limit && size + added <= limit) return true;
    error("ERR string exceeds maximum allowed size (proto-max-bulk-len)");
    return false;
}

}  // namespace eddy::cache
