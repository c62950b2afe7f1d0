-- A thousand GETs of a cache of the daemon for each message.
local c = eddy.cache("db")
local count = 1000

function on_start()
  assert(c:set("key", ("x"):rep(64)))
end

function on_message(client, text)
  for _ = 1, count do
    assert(c:get("key"))
  end
  self.send(client, text)
end
