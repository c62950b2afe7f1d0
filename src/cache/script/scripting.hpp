// Interface of scripts for the rest of the engine; scripting_absent.cpp implements it in builds
// without scripts.
#pragma once

#include "cache/engine/engine_state.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cache {

struct call;

inline constexpr std::string_view busy_script_text =
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";
inline constexpr std::string_view busy_function_text =
    "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.";

/// The engine's, created at the first call.
scripts& scripts_of(call& c);

namespace scripting {

/// The flags of EVAL, FCALL and their variants, replaced by the script's own flags if it has any.
std::uint64_t flags_of(const call& c, std::uint64_t flags);

/// Calls what(c), which may run scripts: if it is suspended, the session is blocked.
void run_with_scripts(call& c, void (*what)(call&));

/// True while a script is suspended; go_on() continues it. Other sessions' commands wait.
bool is_late(const engine_state& s) noexcept;
/// True if it takes longer than busy_reply_ms: commands get busy_text() from then on.
bool is_busy(const engine_state& s) noexcept;
void go_on(engine_state& s);
/// Suspends the code within run_with_scripts() for so long; it is late meanwhile. Returns at once
/// elsewhere.
void pause(engine_state& s, std::int64_t us);
/// Scripts that would begin wait, until as many calls of let_begin(). Only while one is late.
void hold_back(engine_state& s) noexcept;
void let_begin(engine_state& s) noexcept;
std::string_view busy_text(const engine_state& s) noexcept;
/// The session closes: its script ends.
void forget(engine_state& s, client_session& who);
/// True if the late script, or its transaction, has changed data.
bool has_changed(const engine_state& s) noexcept;
/// Ends the late script in its current state, and closes its session.
void cut_off(engine_state& s);
/// True if a script ends incomplete with its server: none of its changes may leave the process.
bool is_cut_off(const engine_state& s) noexcept;

/// The codes of all libraries of functions, for the dump file. O(their bytes).
std::vector<std::string> library_codes(const engine_state& s);
/// Loads a library from a dump file, over one of the same name if `replaces`. Returns the reason of
/// a failure, or empty.
std::string load_library(engine_state& s, std::string_view code, bool replaces = true);
/// Removes all libraries of functions.
void drop_libraries(engine_state& s) noexcept;

/// For INFO.
struct usage {
    std::size_t vm_bytes = 0;
    std::size_t scripts = 0;
    std::size_t script_bytes = 0;
    std::size_t function_vm_bytes = 0;
    std::size_t functions = 0;
    std::size_t libraries = 0;
    std::size_t library_bytes = 0;
};
usage use(const engine_state& s) noexcept;

}  // namespace scripting
}  // namespace eddy::cache
