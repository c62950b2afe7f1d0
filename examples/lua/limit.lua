-- An echo with a password, and at most ten messages a second from each client.
most = 10
tick_ms = 1000
local counts = {}

function on_connect(client)
    self.send(client, "password?")
end

function on_message(client, text)
    if not self.get_data(client, "is_known") then
        if text ~= "open sesame" then
            self.send(client, "wrong")
            return self.disconnect(client)
        end
        self.set_data(client, "is_known", true)
        return self.send(client, "welcome")
    end
    counts[client] = (counts[client] or 0) + 1
    if counts[client] > most then
        self.log("warn", "client " .. client .. " of " .. self.peer_ip(client) .. " says too much")
        self.send(client, "too much")
        return self.disconnect(client)
    end
    self.send(client, text)
end

function on_tick()
    counts = {}
end
