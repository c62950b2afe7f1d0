// In the place of scripts, where LuaJIT was left out of the build.
#include "runtime/proxy/script/proxy_callbacks.hpp"
#include "runtime/proxy/script/proxy_script.hpp"

namespace eddy::runtime::proxy {
namespace {

constexpr const char* absent_text =
    "--lua: this eddy was built without scripts: build it with -DEDDY_SCRIPTS=ON";

}  // namespace

outcome<std::unique_ptr<proxy_script>> proxy_script::make(const script_config&,
                                                          const script_identity&,
                                                          serving::journal&) {
    return refuse(400, absent_text);
}

outcome<> try_proxy_script(const script_config&) { return refuse(400, absent_text); }
task<outcome<>> try_proxy_script_in_slices(script_config) { co_return refuse(400, absent_text); }

std::span<const script::callback> proxy_callbacks() { return {}; }

std::vector<std::string> proxy_functions() { return {}; }

}  // namespace eddy::runtime::proxy
