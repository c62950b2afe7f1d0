// Table of what is about data, from the groups and flags of the command table.
#include "runtime/host/data_commands.hpp"

#include <eddy/base/assert.hpp>

#include "cache/catalog/command_flags.hpp"
#include "cache/catalog/command_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace eddy::runtime {
namespace {

namespace flag = eddy::cache::command_flag;
using eddy::cache::command_spec;

/// Groups of COMMAND DOCS whose commands are about data.
constexpr std::array<std::string_view, 10> data_groups = {
    "string",  "list",   "set",    "sorted-set",  "hash",
    "generic", "stream", "bitmap", "hyperloglog", "geo"};
/// Commands of other groups.
constexpr std::array<std::string_view, 4> other_commands = {"publish", "dbsize", "ping", "echo"};
/// Data commands that Redis calls dangerous because they may take long.
constexpr std::array<std::string_view, 3> slow_commands = {"keys", "sort", "sort_ro"};
constexpr std::uint64_t closed_flags =
    flag::admin | flag::dangerous | flag::noscript | flag::blocking | flag::waits |
    flag::has_secrets | flag::runs_script | flag::selects_database | flag::alters | flag::debugs;

template <std::size_t N>
bool contains(const std::array<std::string_view, N>& all, std::string_view one) noexcept {
    return std::ranges::find(all, one) != all.end();
}

bool is_about_data(const command_spec& of, std::uint64_t flags) noexcept {
    if (contains(other_commands, of.name)) return true;
    if (!contains(data_groups, of.group) || (flags & closed_flags) != 0) return false;
    return (of.categories & eddy::cache::command_category::dangerous) == 0 ||
           contains(slow_commands, of.name);
}

}  // namespace

std::string refuse_data_command(std::span<const std::string_view> args, std::string_view caller) {
    EDDY_ASSERT(!args.empty() && !caller.empty());
    const command_spec* const spec =
        eddy::cache::find_command(eddy::cache::fold_command_name(args[0]));
    if (spec == nullptr) return fmt::format("there is no command \"{}\"", args[0]);
    if (!is_about_data(*spec, eddy::cache::flags_of(*spec, args.data(), args.size())))
        return fmt::format("\"{}\" is not for {}", spec->name, caller);
    return {};
}

}  // namespace eddy::runtime
