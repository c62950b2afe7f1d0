-- A thousand GETs of Redis for each message, by lua-resty-redis with a kept connection.
local redis = require("nginx.redis")
local function connect()
  local c = redis:new()
  assert(c:connect("127.0.0.1", PORT))
  return c
end
local count = 1000

function on_start()
  local c = connect()
  assert(c:set("key", ("x"):rep(64)))
  c:set_keepalive(60000, 10)
end

function on_message(client, text)
  local c = connect()
  for _ = 1, count do
    assert(c:get("key"))
  end
  c:set_keepalive(60000, 10)
  self.send(client, text)
end
