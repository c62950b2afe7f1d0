-- API gateway: a key in a header, a limit for each key, and the newer backend for those that ask for it.
most = 100
tick_ms = 1000
local keys = {["key-of-ann"] = "ann", ["key-of-bob"] = "bob"}
local counts = {}

function on_route(request)
    if request.path == "/health" then return 200 end
    local name = keys[request.headers["x-api-key"] or ""]
    if not name then return 401 end
    counts[name] = (counts[name] or 0) + 1
    if counts[name] > most then return 429 end
    if request.headers["x-version"] == "2" then return "/v2" end
end

function on_tick()
    counts = {}
end
