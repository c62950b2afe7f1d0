// In the place of hooks in scripts, where LuaJIT was left out of the build.
#include "cache/script/hook_script.hpp"

namespace eddy::cache {

hook_functions hooks_of(const std::vector<bool>&) noexcept { return {}; }

hook_answer run_hook(lua::blocking_state&, const hook_job&, std::chrono::nanoseconds) { return {}; }

std::expected<std::chrono::nanoseconds, std::string> run_start(lua::blocking_state&,
                                                               std::chrono::nanoseconds) {
    return std::chrono::nanoseconds{};
}
std::string run_tick(lua::blocking_state&, std::chrono::nanoseconds, std::chrono::nanoseconds) {
    return {};
}
std::string run_stop(lua::blocking_state&, std::chrono::nanoseconds) { return {}; }

}  // namespace eddy::cache
