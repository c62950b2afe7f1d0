-- Device hub: a device logs in by a line "login ID TOKEN", and each further line is a reading, which is kept.
-- `eddy send hub "ID TEXT"` reaches one device. It needs --lua-path, for store.lua, and --lua-unsafe:
--
--     eddy create server hub -p 9000 --lua hub.lua --lua-path . --lua-unsafe -s
function on_connect(client)
    self.send(client, "login ID TOKEN")
end

local function log_in(client, text)
    local id, token = text:match("^login (%w+) (%S+)$")
    local is_known = id and eddy.blocking(function(id, token)
        return require("store").knows(id, token)
    end, id, token)
    if not is_known then
        self.send(client, "unknown")
        return self.disconnect(client)
    end
    self.set_data(client, "id", id)
    self.join_group(client, "device " .. id)
    self.send(client, "welcome " .. id)
end

local function keep(client, id, text)
    eddy.blocking(function(id, text) require("store").keep(id, text) end, id, text)
    self.send(client, "kept")
end

function on_message(client, text)
    local id = self.get_data(client, "id")
    local is_done, why
    if id then
        is_done, why = pcall(keep, client, id, text)
    else
        is_done, why = pcall(log_in, client, text)
    end
    if is_done then return end
    self.log("warn", why)
    self.send(client, "try again later")
end

function on_send(text)
    local id, rest = text:match("^(%w+) (.*)$")
    if not id or self.group_send("device " .. id, rest) == 0 then error("no such device: write ID TEXT", 0) end
    return false
end
