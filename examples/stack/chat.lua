-- Answers each line to the client that sent it.
function on_message(client, text)
    self.send(client, "you said " .. text)
end
