-- Proxy before applications that trust it: the user of a token goes to the backend, and clients see no software's name.
local users = {["Bearer t-ann"] = "ann", ["Bearer t-bob"] = "bob"}

function on_proxy_request(request)
    local user = users[request:header("Authorization") or ""]
    if not user then return 401 end
    return {headers = {["X-User"] = user, Authorization = false}}
end

function on_proxy_response(response)
    local headers = {Server = false, ["X-Frame-Options"] = "DENY"}
    if response.status == 500 then return {status = 502, headers = headers} end
    return {headers = headers}
end
