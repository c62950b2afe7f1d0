// The objects of sockets, in Lua. Names, arguments and results are those of ngx_lua's cosockets and
// of LuaSocket, so that drivers written for them work unchanged.
#include "script/sockets.hpp"

namespace eddy::script {
namespace {

constexpr std::string_view prelude_text = R"lua(
local _, extend = ...
local calls, null, concat = sockets, cjson.null, table.concat

-- To read a global that is not there is an error.
local function global(read)
  local is_there, value = pcall(read)
  return is_there and value or nil
end
local outer = global(function() return eddy end) or {}
local sleep_milliseconds = global(function() return sleep end)
local sleep = global(function() return outer.sleep end)

-- A text of what send() takes: texts, numbers, and lists of them.
local function flat(value)
  local kind = type(value)
  if kind == "string" then return value end
  if kind == "table" then
    local parts = {}
    for i = 1, #value do parts[i] = flat(value[i]) end
    return concat(parts)
  end
  if kind == "number" or kind == "boolean" or kind == "nil" then return tostring(value) end
  error("bad argument #1 to 'send' (a text or a list of them expected, got " .. kind .. ")", 3)
end

local function new(class, is_datagram)
  local id, why = calls.make(is_datagram)
  if not id then return nil, why end
  return setmetatable({ id = id }, class)
end

-- A socket outlives no call, so one that was made before is made anew.
local function renew(self, is_datagram)
  local why
  calls.forget(self.id)
  self.id, why = calls.make(is_datagram)
  if not self.id then self.id = 0 return nil, why end
  if self.times then calls.set_timeouts(self.id, unpack(self.times, 1, 3)) end
  return true
end

local tcp = {}
tcp.__index = tcp

function tcp:connect(host, port, options)
  if type(port) == "table" then port, options = nil, port end
  local is_new, why = renew(self, false)
  if not is_new then return nil, why end
  return calls.connect(self.id, host, port, options and options.pool)
end

function tcp:settimeouts(connect, send, receive)
  self.times = { connect or 0, send or 0, receive or 0 }
  calls.set_timeouts(self.id, connect or 0, send or 0, receive or 0)
  return 1
end

function tcp:settimeout(time) return self:settimeouts(time, time, time) end
function tcp:setoption() return 1 end
function tcp:send(value) return calls.send(self.id, flat(value)) end

function tcp:sslhandshake(session, name, verify)
  local is_made, why = calls.secure(self.id, name, verify and true or false)
  if not is_made then return nil, why end
  return session == false or {}
end

function tcp:receive(what)
  if what == nil or what == "*l" or what == "l" then return calls.receive_line(self.id) end
  if what == "*a" or what == "a" then return calls.receive_all(self.id) end
  local size = tonumber(what)
  if not size then error("bad argument #1 to 'receive' (bad pattern argument)", 2) end
  return calls.receive_size(self.id, size)
end

function tcp:receiveany(most) return calls.receive_any(self.id, most) end

function tcp:receiveuntil(pattern, options)
  local is_inclusive = options and options.inclusive and true or false
  return function(size) return calls.receive_until(self.id, pattern, is_inclusive, size) end
end

function tcp:setkeepalive(time, most) return calls.set_keepalive(self.id, time, most) end
function tcp:getreusedtimes() return calls.uses(self.id) end
function tcp:close() return calls.close(self.id) end

local udp = {}
udp.__index = udp

function udp:setpeername(host, port)
  local is_new, why = renew(self, true)
  if not is_new then return nil, why end
  return calls.connect(self.id, host, port)
end

function udp:settimeout(time)
  self.times = { time or 0, time or 0, time or 0 }
  calls.set_timeouts(self.id, time or 0, time or 0, time or 0)
end

function udp:send(value) return calls.send(self.id, flat(value)) and 1 end
function udp:receive(most) return calls.receive_any(self.id, most or 65536) end
function udp:close() return calls.close(self.id) end

local function make_tcp() return new(tcp, false) end
local function make_udp() return new(udp, true) end

extend(outer, "tcp", make_tcp)
extend(outer, "udp", make_udp)
eddy = outer

local function nap(seconds)
  if sleep then return sleep(seconds) end
  if sleep_milliseconds then return sleep_milliseconds(seconds * 1000) end
end

local function hexadecimal(bytes)
  return (string.gsub(bytes, ".", function(byte) return string.format("%02x", string.byte(byte)) end))
end

-- nil is an empty text for ngx_lua.
local function md5_bin(text) return calls.md5(text == nil and "" or text) end

local function encode_base64(text, no_padding)
  local coded = calls.base64(text == nil and "" or text)
  return no_padding and (string.gsub(coded, "=+$", "")) or coded
end

local function escape_uri(text)
  return (string.gsub(text, "[^%w._~-]", function(byte) return string.format("%%%02X", string.byte(byte)) end))
end

local function unescape_uri(text)
  text = string.gsub(text, "+", " ")
  return (string.gsub(text, "%%(%x%x)", function(digits) return string.char(tonumber(digits, 16)) end))
end

ngx = {
  null = null,
  socket = {
    tcp = make_tcp,
    stream = make_tcp,
    udp = make_udp,
    connect = function(...)
      local made, why = make_tcp()
      if not made then return nil, why end
      local is_open
      is_open, why = made:connect(...)
      if not is_open then return nil, why end
      return made
    end,
  },
  config = { subsystem = "http", ngx_lua_version = 10022, nginx_version = 1022001 },
  get_phase = function() return "timer" end,
  now = calls.now,
  time = function() return math.floor(calls.now()) end,
  update_time = function() end,
  sleep = nap,
  sha1_bin = calls.sha1,
  md5 = function(text) return hexadecimal(md5_bin(text)) end,
  md5_bin = md5_bin,
  encode_base64 = encode_base64,
  decode_base64 = calls.unbase64,
  escape_uri = escape_uri,
  unescape_uri = unescape_uri,
  log = function(level, ...)
    local parts = { ... }
    for i = 1, select("#", ...) do parts[i] = tostring(parts[i]) end
    local log = global(function() return outer.log end)
    if log then log(concat(parts)) end
  end,
  STDERR = 0, EMERG = 1, ALERT = 2, CRIT = 3, ERR = 4, WARN = 5, NOTICE = 6, INFO = 7, DEBUG = 8,
  OK = 0, ERROR = -1, AGAIN = -2, DONE = -4, DECLINED = -5,
  HTTP_OK = 200,
}

-- LuaSocket counts seconds, takes a text's bounds, and connects by functions of its own.
local plain = setmetatable({}, { __index = tcp })
plain.__index = plain

function plain:settimeout(seconds)
  if seconds then return tcp.settimeout(self, seconds * 1000) end
  return tcp.settimeout(self, 86400000)
end

function plain:send(text, first, last)
  if not first then return calls.send(self.id, flat(text)) end
  local sent, why = calls.send(self.id, string.sub(text, first, last or -1))
  return sent and sent + first - 1, why
end

function plain:receive(what, before)
  local text, why, partial = tcp.receive(self, what or "*l")
  if before and text then text = before .. text end
  if before and partial then partial = before .. partial end
  return text, why, partial
end

local function make_plain() return new(plain, false) end

local function connect_plain(host, port)
  local made, why = make_plain()
  if not made then return nil, why end
  local is_open
  is_open, why = made:connect(host, port)
  if not is_open then return nil, why end
  return made
end

socket = {
  tcp = make_plain,
  connect = connect_plain,
  gettime = calls.now,
  sleep = nap,
}
)lua";

}  // namespace

std::string_view socket_prelude() noexcept { return prelude_text; }

}  // namespace eddy::script
