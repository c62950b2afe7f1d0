-- Decisions: WebSockets with a token, a master that a table knows. `eddy send` is marked as such.
local tokens = {["t-ann"] = "ann", ["t-bob"] = "bob"}
local masters = {ann = "sesame"}

function on_websocket(client, request)
    local name = tokens[request.query:match("token=([%w-]+)") or ""]
    if not name then return false, "a token is needed" end
    self.set_data(client, "name", name)
    if (request:header("Sec-WebSocket-Protocol") or ""):find("chat.v2", 1, true) then return "chat.v2" end
end

function on_message(client, text)
    self.broadcast((self.get_data(client, "name") or "guest") .. ": " .. text)
end

function on_master_auth(client, password)
    local name = self.get_data(client, "name")
    return name ~= nil and masters[name] == password
end

function on_send(text)
    if text == "" then return false end
    return "operator: " .. text
end
