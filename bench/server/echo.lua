function on_message(client, text)
  self.send(client, text)
end
