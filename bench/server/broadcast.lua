function on_message(client, text)
  self.broadcast(text)  -- also to the client itself
end
