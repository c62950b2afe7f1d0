// In the place of the lua source, where LuaJIT was left out of the build.
#include "runtime/stream/sources/lua_source.hpp"

namespace eddy::runtime::stream {
namespace {

constexpr const char* absent_text =
    "--source lua: this eddy was built without scripts: build it with -DEDDY_SCRIPTS=ON";

}  // namespace

outcome<std::unique_ptr<source>> make_lua_source(sessions&, source::observer&, const config&,
                                                 serving::journal&) {
    return refuse(400, absent_text);
}

outcome<> try_script(const config&) { return refuse(400, absent_text); }

}  // namespace eddy::runtime::stream
