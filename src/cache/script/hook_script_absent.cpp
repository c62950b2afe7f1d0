// In the place of scripts with hooks, where LuaJIT was left out of the build.
#include "cache/script/hook_script.hpp"

namespace eddy::cache {

class hook_script::machine {};

hook_script::hook_script(std::unique_ptr<machine> of, hook_functions functions)
    : machine_(std::move(of)), functions_(functions) {}
hook_script::~hook_script() = default;

std::expected<std::unique_ptr<hook_script>, std::string> hook_script::load(std::string_view,
                                                                           const std::string&,
                                                                           printer) {
    return std::unexpected("this eddy was built without scripts: build it with -DEDDY_SCRIPTS=ON");
}

std::expected<void, std::string> hook_script::compile(std::string_view, const std::string&) {
    return {};
}

hook_answer hook_script::run(const hook_job&, std::chrono::nanoseconds) { return {}; }

}  // namespace eddy::cache
