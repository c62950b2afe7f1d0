-- Counts logins and refusals, and shows the longest message, in /metrics and `eddy stats`.
local accepted, refused = eddy.counter("logins"), eddy.counter("refused_logins")
local longest = eddy.gauge("longest_message_bytes")

function on_message(client, text)
    if #text > longest:value() then longest:set(#text) end
    if text == "open sesame" then
        accepted:add()
        self.send(client, "welcome")
    else
        refused:add(1)
        self.send(client, "wrong")
    end
end
