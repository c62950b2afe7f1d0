// Flags and contents of files of secrets.
#include "cli/commands/secret_files.hpp"

#include "cli/request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>

namespace eddy::cli {
namespace {

constexpr std::string_view ending = "-file";

bool has_flag(std::span<const flag> table, std::string_view name) {
    return std::ranges::any_of(table, [name](const flag& each) { return each.name == name; });
}

}  // namespace

std::vector<flag> secret_file_flags(std::span<const flag> table) {
    std::vector<flag> made;
    for (const flag& each : table) {
        const std::string name = each.name + std::string(ending);
        if (!each.is_secret || has_flag(table, name)) continue;
        made.push_back({.name = name,
                        .value_name = "FILE",
                        .help = fmt::format("read --{} from a file, or from - (standard input), so "
                                            "that no list of processes shows it",
                                            each.name),
                        .is_path = true});
    }
    return made;
}

std::string_view option_of_secret_file(std::span<const flag> table, std::string_view name) {
    if (!name.ends_with(ending) || has_flag(table, name)) return {};
    const std::string_view option = name.substr(0, name.size() - ending.size());
    const auto found = std::ranges::find(table, option, &flag::name);
    return found != table.end() && found->is_secret ? std::string_view(found->name)
                                                    : std::string_view();
}

std::expected<std::string, std::string> read_secret_file(std::string_view flag_name,
                                                         const std::string& path) {
    std::string content;
    if (path == "-" || path.ends_with("/-")) {
        auto input = read_input(secret_file_limit, "the most of a secret");
        if (!input) return std::unexpected(std::move(input.error()));
        content = std::move(*input);
    } else {
        std::ifstream file(path, std::ios::binary);
        content.assign(std::istreambuf_iterator<char>(file), {});
        if (!file.is_open() || file.bad())
            return std::unexpected(fmt::format("--{}: {} cannot be read: {}", flag_name, path,
                                               std::generic_category().message(errno)));
    }
    if (content.size() > secret_file_limit)
        return std::unexpected(
            fmt::format("--{}: {} has more than {} bytes", flag_name, path, secret_file_limit));
    std::string value;
    std::istringstream lines(content);
    for (std::string line; std::getline(lines, line);) {
        while (line.ends_with('\r')) line.pop_back();
        if (line.empty() || line.starts_with('#')) continue;
        value += (value.empty() ? "" : "; ") + line;
    }
    if (value.empty()) return std::unexpected(fmt::format("--{}: {} is empty", flag_name, path));
    return value;
}

}  // namespace eddy::cli
