// In the place of hook_check.cpp, where LuaJIT was left out of the build: a start refuses --hooks.
#include "runtime/cache/hook_check.hpp"

namespace eddy::runtime::cache {

std::string with_hook_functions(const std::string& text, std::string_view /*name*/) { return text; }

std::vector<std::string> hook_script_functions() { return {}; }

outcome<> check_hook_file(const std::string& /*path*/) { return {}; }

task<outcome<>> check_hook_names(const script_file& /*from*/) { co_return outcome<>(); }

}  // namespace eddy::runtime::cache
