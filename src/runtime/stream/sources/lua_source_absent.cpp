// In the place of the lua source, where LuaJIT was left out of the build.
#include "runtime/stream/sources/lua_source.hpp"

namespace eddy::runtime::stream {
namespace {

constexpr const char* absent_text =
    "--source lua: this eddy was built without scripts: build it with -DEDDY_SCRIPTS=ON";

}  // namespace

outcome<std::unique_ptr<source>> make_lua_source(sessions&, source::observer&, const config&,
                                                 std::string_view, std::shared_ptr<host>,
                                                 serving::journal&) {
    return refuse(400, absent_text);
}

outcome<> try_stream_script(const script_config&) { return refuse(400, absent_text); }
task<outcome<>> try_stream_script_in_slices(script_config) { co_return refuse(400, absent_text); }

std::vector<std::string> stream_functions() { return {}; }

}  // namespace eddy::runtime::stream
