-- Chat with rooms for the page beside it. Messages are JSON, both ways.
local most_text, most_name = 2000, 40

local function room_of(client) return self.get_data(client, "room") end

local function tell(room, what)
    self.group_send(room, self.json.encode(what))
end

local function tell_members(room)
    local names = {}
    for _, each in ipairs(self.group_members(room)) do
        names[#names + 1] = self.get_data(each, "name")
    end
    table.sort(names)
    tell(room, {kind = "members", room = room, names = names})
end

local function leave(client)
    local room = room_of(client)
    if not room then return end
    self.leave_group(client, room)
    self.del_data(client, "room")
    tell(room, {kind = "note", text = self.get_data(client, "name") .. " has left"})
    tell_members(room)
end

local actions = {}

function actions.enter(client, message)
    leave(client)
    local name, room = tostring(message.name), tostring(message.room)
    if #name == 0 or #name > most_name or #room == 0 or #room > most_name then
        return self.send(client, self.json.encode {kind = "note", text = "a name and a room, please"})
    end
    self.set_data(client, "name", name)
    self.set_data(client, "room", room)
    self.join_group(client, room)
    tell(room, {kind = "note", text = name .. " has come in"})
    tell_members(room)
end

function actions.say(client, message)
    local room, text = room_of(client), tostring(message.text)
    if not room or #text == 0 or #text > most_text then return end
    tell(room, {kind = "said", name = self.get_data(client, "name"), text = text})
end

function on_message(client, text)
    local is_json, message = pcall(self.json.decode, text)
    local action = is_json and type(message) == "table" and actions[message.kind]
    if not action then
        self.log("warn", "client " .. client .. " sends what is no message of the chat")
        return self.disconnect(client)
    end
    action(client, message)
end

function on_disconnect(client)
    leave(client)
end
