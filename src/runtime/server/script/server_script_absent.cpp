// In the place of scripts, where LuaJIT was left out of the build.
#include "runtime/server/script/server_callbacks.hpp"
#include "runtime/server/script/server_script.hpp"

namespace eddy::runtime::server {
namespace {

constexpr const char* absent_text =
    "--lua: this eddy was built without scripts: build it with -DEDDY_SCRIPTS=ON";

}  // namespace

outcome<std::unique_ptr<server_script>> server_script::make(const script_config&, script_identity,
                                                            serving::journal&, script_transport&) {
    return refuse(400, absent_text);
}

outcome<> try_server_script(const script_config&) { return refuse(400, absent_text); }
task<outcome<>> try_server_script_in_slices(script_config) { co_return refuse(400, absent_text); }

std::span<const script::callback> server_callbacks() { return {}; }

std::vector<std::string> server_functions() { return {}; }

}  // namespace eddy::runtime::server
