// Refusals of changes to runtimes, and names of their effects.
#include "daemon/runtimes/managed_runtime.hpp"

#include <fmt/format.h>

namespace eddy::daemon {

std::string_view to_string(edit_effect effect) noexcept {
    switch (effect) {
        case edit_effect::none: return "none";
        case edit_effect::saved: return "saved";
        case edit_effect::live: return "live";
        case edit_effect::restarted: return "restarted";
    }
    return "unknown";
}

std::unexpected<problem> with_context(std::string_view attempt, problem cause) {
    cause.message = fmt::format("{}: {}", attempt, cause.message);
    return std::unexpected(std::move(cause));
}

std::unexpected<problem> interrupted() {
    return refuse(503, "the daemon is stopping; try again with the next one");
}

std::unexpected<problem> vanished(const managed_runtime& which) {
    return refuse(404, fmt::format("the runtime \"{}\" was removed meanwhile", which.name()));
}

std::unexpected<problem> not_running(const managed_runtime& which) {
    return refuse(
        409, fmt::format("\"{0}\" is not running; start it with: eddy start {0}", which.name()));
}

}  // namespace eddy::daemon
