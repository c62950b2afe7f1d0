// In the place of scripts, where LuaJIT was left out of the build.
#include "runtime/http/script/site_callbacks.hpp"
#include "runtime/http/script/site_script.hpp"

namespace eddy::runtime::http {
namespace {

constexpr const char* absent_text =
    "--lua: this eddy was built without scripts: build it with -DEDDY_SCRIPTS=ON";

}  // namespace

outcome<std::unique_ptr<site_script>> site_script::make(const script_config&,
                                                        const script_identity&, serving::journal&) {
    return refuse(400, absent_text);
}

outcome<> try_site_script(const script_config&) { return refuse(400, absent_text); }
task<outcome<>> try_site_script_in_slices(script_config) { co_return refuse(400, absent_text); }

std::span<const script::callback> site_callbacks() { return {}; }

std::vector<std::string> site_functions() { return {}; }

}  // namespace eddy::runtime::http
