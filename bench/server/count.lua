local count = 0

function on_connect(client)
  count = count + 1
end
