// Search for modules' files, and require().
#include "script/modules.hpp"

#include <eddy/base/assert.hpp>

#include "base/files/regular_file.hpp"

#include <algorithm>
#include <utility>

namespace eddy::script {
namespace {

constexpr std::string_view prelude_text = R"lua(
local share, calls = ..., modules

-- To read a global that is not there is an error.
local function global(read)
  local is_there, value = pcall(read)
  return is_there and value or nil
end
local loaded = {
  ngx = global(function() return ngx end), socket = global(function() return socket end),
  cjson = cjson, cmsgpack = cmsgpack, struct = struct, os = os, bit = bit, string = string, table = table, math = math, coroutine = coroutine,
  ["table.new"] = function() return {} end,
  ["table.clear"] = function(of) for key in pairs(of) do of[key] = nil end end,
}
do
  loaded["cjson.safe"] = setmetatable({
    encode = function(value)
      local is_good, text = pcall(cjson.encode, value)
      if is_good then return text end
      return nil, text
    end,
    decode = function(text)
      local is_good, value = pcall(cjson.decode, text)
      if is_good then return value end
      return nil, value
    end,
  }, { __index = cjson })
end
package = { loaded = loaded, preload = {}, path = calls.path(), cpath = "" }

-- In the place of a module that is being loaded, so that a circle is an error.
local loading = {}

function require(name)
  local found = loaded[name]
  if found == loading then error("module '" .. name .. "' requires itself", 2) end
  if found ~= nil then return found end
  local load = package.preload[name]
  if not load then
    local text, where = calls.read(name)
    if not text then error("module '" .. name .. "' not found: " .. where, 2) end
    local chunk, why = loadstring(text, "@" .. where)
    if not chunk then error("module '" .. name .. "': " .. why, 2) end
    load = share(chunk)
  end
  loaded[name] = loading
  local is_good, value = pcall(load, name)
  if not is_good then
    loaded[name] = nil
    error(value, 0)
  end
  if value == nil then value = true end
  loaded[name] = value
  return value
end
)lua";

values failed(std::string why) { return values_of(value(), std::move(why)); }

/// Letters, digits, '_', '-', and single dots between them, which are the folders' bounds.
bool is_name(std::string_view text) noexcept {
    constexpr std::size_t longest = 200;
    const auto is_part = [](char each) {
        return (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z') ||
               (each >= '0' && each <= '9') || each == '_' || each == '-' || each == '.';
    };
    return !text.empty() && text.size() <= longest && text.front() != '.' && text.back() != '.' &&
           !text.contains("..") && std::ranges::all_of(text, is_part);
}

answer find(invocation& of) {
    const auto& folders = of.context<modules>().folders();
    std::string name(of.text(1));
    if (!is_name(name)) return failed("this is no module's name");
    if (folders.empty()) return failed("there is no folder of modules; --lua-path DIR gives one");
    std::ranges::replace(name, '.', '/');
    EDDY_ASSERT(!name.starts_with('/') && !name.contains("//"));
    std::string tried;
    for (const std::string& folder : folders)
        for (const std::string_view end : {".lua", "/init.lua"}) {
            std::string path = folder + "/" + name + std::string(end);
            if (auto text = read_regular(path, max_module_bytes))
                return values_of(std::move(*text), std::move(path));
            tried += (tried.empty() ? "no file " : ", ") + path;
        }
    return failed(std::move(tried));
}

answer path(invocation& of) {
    std::string text;
    for (const std::string& folder : of.context<modules>().folders())
        text += (text.empty() ? "" : ";") + folder + "/?.lua;" + folder + "/?/init.lua";
    return values_of(std::move(text));
}

constexpr library_function rows[] = {
    {.name = "read",
     .arguments = {{{.name = "name", .kind = argument_kind::text}}},
     .takes = "the name of a module",
     .help = "The text of a module's file, and its path.",
     .run = find},
    {.name = "path", .help = "Patterns of modules' paths.", .run = path},
};

}  // namespace

library modules::functions() noexcept {
    return {.name = "modules", .functions = rows, .context = this};
}

std::string_view module_prelude() noexcept { return prelude_text; }

}  // namespace eddy::script
