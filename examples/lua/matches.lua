-- A server for each match: "new NAME" makes one, and goes there; ended ones are removed.
function on_message(client, text)
    local name = text:match("^new (%w+)$")
    if not name then return self.send(client, "new NAME") end
    local made, why = eddy.create("server", "match-" .. name, {port = 0, owner = self.name})
    if not made then return self.send(client, "not made: " .. why) end
    self.route(client, "match-" .. name)
end

tick_ms = 60000
function on_tick()
    for _, each in ipairs(eddy.list("match-*") or {}) do
        if each.connections == 0 then eddy.remove(each.name) end
    end
end
