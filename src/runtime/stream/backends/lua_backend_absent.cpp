// In the place of the lua backend, where LuaJIT was left out of the build.
#include "runtime/stream/backends/lua_backend.hpp"

namespace eddy::runtime::stream {
namespace {

constexpr const char* absent_text =
    "--backend lua: this eddy was built without scripts: build it with -DEDDY_SCRIPTS=ON";

}  // namespace

outcome<std::unique_ptr<backend>> make_lua_backend(sessions&, backend::observer&, const config&,
                                                   journal&) {
    return refuse(400, absent_text);
}

outcome<> try_script(const config&) { return refuse(400, absent_text); }

}  // namespace eddy::runtime::stream
