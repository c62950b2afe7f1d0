// In the place of scripts, where LuaJIT was left out of the build.
#include "cache/catalog/commands.hpp"
#include "cache/engine/call.hpp"
#include "cache/script/scripting.hpp"

namespace eddy::cache {
namespace {

void refuse(call& c) {
    c.error("ERR this eddy was built without scripts: build it with -DEDDY_SCRIPTS=ON");
}

}  // namespace

void scripts_deleter::operator()(scripts*) const noexcept {}

namespace scripting {

std::uint64_t flags_of(const call&, std::uint64_t flags) { return flags; }
void run_with_scripts(call& c, void (*what)(call&)) { what(c); }
bool is_late(const engine_state&) noexcept { return false; }
bool is_busy(const engine_state&) noexcept { return false; }
bool is_cut_off(const engine_state&) noexcept { return false; }
void go_on(engine_state&) {}
void pause(engine_state&, std::int64_t) {}
void hold_back(engine_state&) noexcept {}
void let_begin(engine_state&) noexcept {}
std::string_view busy_text(const engine_state&) noexcept { return busy_script_text; }
void forget(engine_state&, client_session&) {}
bool has_changed(const engine_state&) noexcept { return false; }
void cut_off(engine_state&) {}
std::vector<std::string> library_codes(const engine_state&) { return {}; }
std::string load_library(engine_state&, std::string_view, bool) {
    return "this eddy was built without scripts: build it with -DEDDY_SCRIPTS=ON";
}
void drop_libraries(engine_state&) noexcept {}
usage use(const engine_state&) noexcept { return {}; }

}  // namespace scripting

namespace commands {

void eval(call& c) { refuse(c); }
void evalsha(call& c) { refuse(c); }
void eval_ro(call& c) { refuse(c); }
void evalsha_ro(call& c) { refuse(c); }
void script_debug(call& c) { refuse(c); }
void script_exists(call& c) { refuse(c); }
void script_flush(call& c) { refuse(c); }
void script_help(call& c) { refuse(c); }
void script_kill(call& c) { refuse(c); }
void script_load(call& c) { refuse(c); }
void script_show(call& c) { refuse(c); }
void fcall(call& c) { refuse(c); }
void fcall_ro(call& c) { refuse(c); }
void function_delete(call& c) { refuse(c); }
void function_dump(call& c) { refuse(c); }
void function_flush(call& c) { refuse(c); }
void function_help(call& c) { refuse(c); }
void function_kill(call& c) { refuse(c); }
void function_list(call& c) { refuse(c); }
void function_load(call& c) { refuse(c); }
void function_restore(call& c) { refuse(c); }
void function_stats(call& c) { refuse(c); }

}  // namespace commands
}  // namespace eddy::cache
