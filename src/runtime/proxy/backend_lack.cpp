// States of backends in words.
#include "runtime/proxy/backend_lack.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <span>

namespace eddy::runtime::proxy {

using eddy::proxy::backend_state;
using eddy::proxy::balanced_backend;

namespace {

/// Backends that are named; the others are a number.
constexpr std::size_t most_named = 3;

}  // namespace

std::string lack_of(const eddy::proxy::backend_list& all,
                    const eddy::proxy::ejection_rules& rules) {
    if (all.empty()) return "none is known";
    const bool serves = std::ranges::any_of(all, [&](const balanced_backend& each) {
        return each.its->state() == backend_state::up && !each.its->is_failing(rules);
    });
    if (serves) return {};
    std::string text;
    for (const balanced_backend& each : std::span(all).first(std::min(all.size(), most_named))) {
        const backend_state state = each.its->state();
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", each.its->name(),
                            state == backend_state::up
                                ? "fails its clients"
                                : fmt::format("is {}", eddy::proxy::to_string(state)));
    }
    if (all.size() > most_named) text += fmt::format(", and {} more", all.size() - most_named);
    return text;
}

}  // namespace eddy::runtime::proxy
