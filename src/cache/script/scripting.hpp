// Face of scripts for the rest of the engine; scripting_absent.cpp implements it in builds without
// them.
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

/// The engine's, made when they are first asked for.
scripts& scripts_of(call& c);

namespace scripting {

/// The flags of EVAL, FCALL and their relatives, with what the script says of itself in their place
/// if it says anything.
std::uint64_t flags_of(const call& c, std::uint64_t flags);

/// Calls what(c), which may run scripts: it may have to go on later, and the session is blocked
/// then.
void run_with_scripts(call& c, void (*what)(call&));

/// A script was left in the middle and goes on by go_on(). Other sessions' commands wait.
bool is_late(const engine_state& s) noexcept;
/// It takes longer than busy_reply_ms: they get busy_text() from now on.
bool is_busy(const engine_state& s) noexcept;
void go_on(engine_state& s);
/// Lets so much time pass within run_with_scripts(): what runs there is late meanwhile. Elsewhere
/// it returns at once.
void pause(engine_state& s, std::int64_t us);
/// Scripts that would begin wait, until as many calls of let_begin(). Only while one is late.
void hold_back(engine_state& s) noexcept;
void let_begin(engine_state& s) noexcept;
std::string_view busy_text(const engine_state& s) noexcept;
/// The session goes: what it runs ends.
void forget(engine_state& s, session& who);
/// The late one, or the transaction that it is in, has changed data.
bool has_changed(const engine_state& s) noexcept;
/// Ends the late one where it is, and closes its session.
void cut_off(engine_state& s);
/// What runs ends in the middle with its server: nothing of it may reach anybody.
bool is_cut_off(const engine_state& s) noexcept;

/// The codes of all libraries of functions, for the dump file. O(their bytes).
std::vector<std::string> library_codes(const engine_state& s);
/// Loads one of a dump file, in place of one of the same name if it `replaces`. Why it cannot be,
/// or empty.
std::string load_library(engine_state& s, std::string_view code, bool replaces = true);
/// All libraries of functions go.
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
