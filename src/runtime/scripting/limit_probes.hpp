// Effects of the limits of scripts' counts, for the tests of each type's options: a script does a
// thing three times, and says how often it was possible.
#pragma once

#include <array>
#include <string_view>

namespace eddy::runtime::testing {

/// Lua. Each is called once.
inline constexpr std::string_view limit_probes = R"lua(
local function timers()
  local made = 0
  for i = 1, 3 do if pcall(self.set_timeout, 1e6, function() end) then made = made + 1 end end
  return made
end
local function sockets()
  local all, made = {}, 0
  for i = 1, 3 do
    all[i] = eddy.tcp()
    if all[i] then made = made + 1 end
  end
  return made
end
local function queued()
  local taken = 0
  eddy.subscribe("probe", function() end)
  for i = 1, 3 do taken = taken + eddy.publish("probe", "x") end
  return taken
end
)lua";

/// Call of one of them, and the option that limits it.
struct limit_probe {
    std::string_view call;
    std::string_view option;
};
inline constexpr limit_probe timers_probe = {.call = "timers()", .option = "lua_max_timers"};
inline constexpr limit_probe sockets_probe = {.call = "sockets()", .option = "lua_max_sockets"};
inline constexpr limit_probe queue_probe = {.call = "queued()", .option = "lua_max_queue"};

/// Values of the option: the second one is no limit for three.
inline constexpr std::array<int, 2> probed_limits = {2, 3};

}  // namespace eddy::runtime::testing
