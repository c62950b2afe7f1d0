-- Counts the messages of each address in the cache "db"; "top" shows the busiest ones.
local db = eddy.cache("db")

function on_message(client, text)
    if text == "top" then
        local list = assert(db:zrange("visits", 0, 9, "REV", "WITHSCORES"))
        return self.send(client, table.concat(list, " "))
    end
    local ip = self.peer_ip(client)
    local count, why = db:zincrby("visits", 1, ip)
    if not count then return self.send(client, "no cache: " .. why) end
    db:set("last:" .. ip, text, {ttl = 3600})
    self.send(client, "message " .. count .. " of " .. ip)
end
