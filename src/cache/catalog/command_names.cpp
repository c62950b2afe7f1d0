// Name map: new names to commands, and old names to none.
#include "cache/catalog/command_names.hpp"

#include <algorithm>

namespace eddy::cache {

std::expected<std::unique_ptr<const command_names>, std::string> command_names::make(
    std::span<const std::pair<std::string, std::string>> renamed) {
    auto made = std::make_unique<command_names>();
    // One after the other, as redis.conf's lines: a name that was freed can be taken.
    for (const auto& [from, to] : renamed) {
        const command_name old = fold_command_name(from);
        const command_spec* const spec = made->find(old);
        if (spec == nullptr) return std::unexpected("there is no command \"" + from + "\"");
        made->names_[old] = nullptr;
        if (to.empty()) continue;
        const command_name fresh = fold_command_name(to);
        const bool is_word =
            std::ranges::all_of(to, [](unsigned char c) { return c > ' ' && c < 0x7f; });
        if (!is_word || to.size() > max_command_name) {
            return std::unexpected("\"" + to + "\" cannot be a command's name: it has at most " +
                                   std::to_string(max_command_name) + " letters, digits and signs");
        }
        if (made->find(fresh) != nullptr) {
            return std::unexpected("there is a command \"" + to + "\" already");
        }
        made->names_[fresh] = spec;
    }
    return made;
}

bool command_names::is_callable(const command_spec& spec) const noexcept {
    if (find(fold_command_name(spec.name)) == &spec) return true;
    return std::ranges::any_of(names_, [&](const auto& each) { return each.second == &spec; });
}

}  // namespace eddy::cache
