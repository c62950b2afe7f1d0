// In the place of scripts, where LuaJIT was left out of the build.
#include "runtime/client/script/client_library.hpp"
#include "runtime/client/script/client_script.hpp"

namespace eddy::runtime::client {
namespace {

constexpr const char* absent_text =
    "--lua: this eddy was built without scripts: build it with -DEDDY_SCRIPTS=ON";

}  // namespace

outcome<std::unique_ptr<client_script>> client_script::make(const script_config&,
                                                            const script_identity&,
                                                            serving::journal&, script_link&) {
    return refuse(400, absent_text);
}

outcome<> try_client_script(const script_config&) { return refuse(400, absent_text); }
task<outcome<>> try_client_script_in_slices(script_config) { co_return refuse(400, absent_text); }

std::span<const script::callback> client_callbacks() { return {}; }

std::vector<std::string> client_functions() { return {}; }

}  // namespace eddy::runtime::client
