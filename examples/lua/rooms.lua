-- Chat with rooms: /nick NAME, /join ROOM, /who; other lines go to the room.
function on_connect(client)
    self.set_data(client, "name", "guest" .. client)
    self.join_group(client, "lobby")
    self.set_data(client, "room", "lobby")
    self.send(client, "welcome to the lobby; /nick NAME, /join ROOM, /who")
end

local commands = {}

function commands.nick(client, name)
    self.set_data(client, "name", name)
    self.send(client, "you are " .. name)
end

function commands.join(client, room)
    self.leave_group(client, self.get_data(client, "room"))
    self.join_group(client, room)
    self.set_data(client, "room", room)
    self.group_send(room, self.get_data(client, "name") .. " joins " .. room)
end

function commands.who(client)
    local names = {}
    for _, each in ipairs(self.group_members(self.get_data(client, "room"))) do
        names[#names + 1] = self.get_data(each, "name")
    end
    self.send(client, table.concat(names, ", "))
end

function on_message(client, text)
    local word, rest = text:match("^/(%w+) ?(.*)$")
    if commands[word or ""] then
        commands[word](client, rest)
    else
        self.group_send(self.get_data(client, "room"), self.get_data(client, "name") .. ": " .. text)
    end
end

function on_disconnect(client)
    self.group_send(self.get_data(client, "room"), self.get_data(client, "name") .. " leaves")
end
