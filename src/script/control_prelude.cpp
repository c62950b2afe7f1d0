// Functions that change runtimes, in Lua, over requests to the control API.
#include "script/control_prelude.hpp"

namespace eddy::script {
namespace {

constexpr std::string_view prelude_text = R"lua(
local _, extend = ...
local calls = control

-- To read a global that is not there is an error.
local function global(read)
  local is_there, value = pcall(read)
  return is_there and value or nil
end
local outer = global(function() return eddy end) or {}

local function encoded(text)
  return (text:gsub("[^%w._~-]", function(byte) return ("%%%02X"):format(byte:byte()) end))
end

-- The answer's table, or nil, a sentence and the status.
local function ask(method, target, body)
  local text
  if body ~= nil then text = type(body) == "table" and cjson.encode(body) or body end
  local status, answer = calls.request(method, target, text)
  if not status then return nil, answer end
  local is_json, value = pcall(cjson.decode, answer)
  if status < 300 then return is_json and value or {} end
  local why = is_json and type(value) == "table" and value.error and value.error.message
  return nil, why or ("the daemon answered " .. status), status
end

local function named(name, what)
  if type(name) ~= "string" then error(what .. "() takes the name of a runtime", 3) end
  return "/v1/runtimes/" .. encoded(name)
end

-- What a table says of a runtime beside its options.
local about = { type = true, name = true, owner = true, group = true, start = true, options = true }

-- Options of a table: the fields that are not about the runtime, and those of `options`.
local function options_of(from)
  local options = {}
  local function take(name, value)
    if type(value) == "table" then
      local list = {}
      for i = 1, #value do list[i] = tostring(value[i]) end
      value = list
    elseif type(value) ~= "boolean" then
      value = tostring(value)
    end
    options[(name:gsub("-", "_"))] = value
  end
  for name, value in pairs(from) do
    if type(name) == "string" and not about[name] then take(name, value) end
  end
  for name, value in pairs(from.options or {}) do take(name, value) end
  return options
end

-- An empty table would be a list of JSON's.
local function object(fields)
  if next(fields) == nil then return nil end
  return fields
end

local functions = {}

-- create("server", "chat", {port = 9000}) or create{type = "server", name = "chat", port = 9000}.
-- Options may have '-' or '_'. It is started unless `start` is false.
function functions.create(kind, name, options)
  local from = kind
  if type(kind) == "string" then
    from = {}
    if type(options or {}) ~= "table" then error("create() takes a type, a name and a table of options", 2) end
    for key, value in pairs(options or {}) do from[key] = value end
    from.type, from.name = kind, name
  end
  if type(from) ~= "table" or type(from.type) ~= "string" or type(from.name) ~= "string" then
    error("create() takes a type, a name and a table of options", 2)
  end
  if type(from.options or {}) ~= "table" then error("the options of " .. from.name .. " are no table", 2) end
  return ask("POST", "/v1/runtimes", {
    type = from.type, name = from.name, owner = from.owner, group = from.group,
    start = from.start ~= false, options = object(options_of(from)),
  })
end

function functions.edit(name, options)
  local target = named(name, "edit")
  if type(options) ~= "table" or type(options.options or {}) ~= "table" then
    error("edit() takes a name and a table of options", 2)
  end
  return ask("PATCH", target, {
    owner = options.owner, group = options.group, options = object(options_of(options)),
  })
end

for _, change in ipairs({ "start", "stop", "reload", "reload_lua" }) do
  local target = "/" .. change:gsub("_", "-")
  functions[change] = function(name) return ask("POST", named(name, change) .. target) end
end

function functions.remove(name) return ask("DELETE", named(name, "remove") .. "?force=true") end
function functions.show(name) return ask("GET", named(name, "show")) end
function functions.stats(name) return ask("GET", named(name, "stats") .. "/stats") end

function functions.send(name, message)
  local status, answer = calls.request("POST", named(name, "send") .. "/send", tostring(message))
  if not status then return nil, answer end
  if status < 300 then return true end
  local is_json, value = pcall(cjson.decode, answer)
  return nil, is_json and value.error and value.error.message or answer, status
end

function functions.list(pattern)
  if pattern ~= nil and type(pattern) ~= "string" then error("list() takes a pattern of names", 2) end
  local answer, why, status = ask("GET", "/v1/runtimes" .. (pattern and "?match=" .. encoded(pattern) or ""))
  if not answer then return nil, why, status end
  return answer.runtimes
end

local function refuse() error(calls.refusal, 2) end

-- A runtime's own send() is that to its clients, or its server.
for name, each in pairs(functions) do
  if name == "send" and calls.is_within then name = "send_to" end
  extend(outer, name, calls.refusal and refuse or each)
end
eddy = outer

-- The declarative form: what is missing is created, what is there gets these options.
function daemon(about_it)
  if type(about_it) ~= "table" then error("daemon takes a table", 2) end
  for name in pairs(about_it) do
    if name ~= "name" then error("daemon{} has no " .. tostring(name) .. " here; it may have name", 2) end
  end
end

local function apply(wanted)
  local found, why, status = functions.show(wanted.name)
  if not found and status ~= 404 then error(wanted.name .. ": " .. why, 0) end
  local done
  if not found then
    done, why = functions.create(wanted)
  elseif found.type ~= wanted.type then
    done, why = nil, "it is there as a " .. found.type .. ", not a " .. wanted.type
  else
    done, why = functions.edit(wanted.name, wanted)
    if done and wanted.start ~= false and found.status ~= "running" then
      done, why = functions.start(wanted.name)
    end
  end
  if not done then error(wanted.name .. ": " .. why, 0) end
end

-- A list of copies, in an order that is always the same: lists in their order, names by the
-- alphabet.
local function in_order(all)
  local wanted = {}
  for key, value in pairs(all) do
    if type(value) ~= "table" then error("runtimes{} takes a table for each runtime", 0) end
    local each = {}
    for name, of in pairs(value) do each[name] = of end
    if type(key) == "string" then each.name = each.name or key end
    if type(each.name) ~= "string" or type(each.type) ~= "string" then
      error("each runtime needs a name and a type", 0)
    end
    if type(each.options or {}) ~= "table" then error("the options of " .. each.name .. " are no table", 0) end
    wanted[#wanted + 1] = { key = key, its = each }
  end
  table.sort(wanted, function(a, b)
    if type(a.key) ~= type(b.key) then return type(a.key) == "number" end
    return a.key < b.key
  end)
  return wanted
end

-- Owners come before what they own.
local function apply_all(all)
  local wanted, names, state = in_order(all), {}, {}
  for _, each in ipairs(wanted) do
    local name = each.its.name
    if names[name] then error("two runtimes have the name " .. name, 0) end
    names[name] = each.its
  end
  local ordered = {}
  local function add(each)
    if state[each] == "added" then return end
    if state[each] then error("the owners of " .. each.name .. " are a circle", 0) end
    state[each] = "begun"
    if each.owner and names[each.owner] then add(names[each.owner]) end
    state[each] = "added"
    ordered[#ordered + 1] = each
  end
  for _, each in ipairs(wanted) do add(each.its) end
  for _, each in ipairs(ordered) do apply(each) end
end

-- `eddy up` declares them: the daemon makes all of them, or none.
local function declare_all(all)
  for _, each in ipairs(in_order(all)) do calls.declare(cjson.encode(each.its)) end
end

-- runtimes{{type = …, name = …}, …} or runtimes{NAME = {type = …}, …}
function runtimes(all)
  if calls.refusal then error(calls.refusal, 2) end
  if type(all) ~= "table" then error("runtimes takes a table", 2) end
  local is_good, why = pcall(calls.declare and declare_all or apply_all, all)
  if not is_good then error(why, 2) end
end
)lua";

}  // namespace

std::string_view control_prelude() noexcept { return prelude_text; }

}  // namespace eddy::script
