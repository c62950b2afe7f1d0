-- Door to the servers of a game: /play NAME goes to the server of that name, and its answers come back.
function on_connect(client)
    self.send(client, "welcome; /play NAME")
end

function on_message(client, text)
    local name = text:match("^/play ([%w-]+)$")
    if not name then return self.send(client, "first /play NAME") end
    local done, why = self.route(client, name)
    self.send(client, done and "you are in " .. name or "not there: " .. why)
end
