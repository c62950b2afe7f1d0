-- Chat of several servers, and of all their threads: what a client of one says, the clients of all get.
eddy.subscribe("chat", function(text)
    self.multicast(self.clients(), text)  -- each thread has its own subscription, for its own clients
end)

function on_message(client, text)
    eddy.publish("chat", self.name .. ": " .. text)
end
