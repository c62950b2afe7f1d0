-- Client of a line protocol: a login, answers to PING, and requests that carry the time.
function on_connect()
    self.send("LOGIN " .. self.name)
end

function on_message(text)
    if text == "PING" then
        self.send("PONG")
        return false
    end
    self.log("the server says " .. text)
end

function on_send(text)
    if text == "" then return false end
    return os.date("!%H:%M:%S ") .. text
end
