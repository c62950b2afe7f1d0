-- A room for each path of a WebSocket: those at ws://HOST/garden talk among each other.
function on_websocket(client, request)
    self.join_group(client, request.path)
end

function on_message(client, text)
    for _, room in ipairs(self.groups(client)) do
        self.group_send(room, text)
    end
end
