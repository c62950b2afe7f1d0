-- API of notes, beside the files of a site: POST /notes, GET /notes, GET /notes/N, DELETE /notes/N.
local notes, last = {}, 0

local function add(request)
    local is_json, note = pcall(eddy.json_decode, request.body)
    if not is_json or type(note) ~= "table" or type(note.text) ~= "string" then
        return 400, {error = "a note is JSON with a text"}
    end
    last = last + 1
    notes[last] = {id = last, text = note.text, by = request:header("X-Name") or "?"}
    return 201, notes[last], {Location = "/notes/" .. last}
end

local function list()
    local all = {}
    for id = 1, last do all[#all + 1] = notes[id] end
    return 200, {count = #all, notes = all}
end

function on_http_request(request)
    if request.path == "/notes" then
        if request.method == "POST" then return add(request) end
        if request.method == "GET" or request.method == "HEAD" then return list() end
        return 405, nil, {Allow = "GET, HEAD, POST"}
    end
    local id = tonumber(request.path:match("^/notes/(%d+)$"))
    if not id then return end  -- a file, if there is one
    if not notes[id] then return 404, {error = "no such note"} end
    if request.method == "DELETE" then
        notes[id] = nil
        return 204
    end
    return {status = 200, headers = {["Cache-Control"] = "no-store"}, body = notes[id]}
end
