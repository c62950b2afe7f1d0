-- Devices and their readings in PostgreSQL. It runs on the threads of eddy.blocking, each of which has a connection:
--
--     CREATE TABLE devices (id text PRIMARY KEY, token text NOT NULL);
--     CREATE TABLE readings (device text REFERENCES devices, at timestamptz DEFAULT now(), reading text NOT NULL);
--
-- Host, database and user are libpq's: PGHOST, PGDATABASE, PGUSER in the daemon's environment.
local driver, connection = require("luasql.postgres").postgres(), nil

-- The driver's own deadlines: what blocks in it cannot be ended from outside.
local source = "connect_timeout=2 tcp_user_timeout=3000 options='-c statement_timeout=2000'"

-- Runs a statement, in which each ? is a text. After a failure the next one connects anew.
local function run(statement, ...)
    if not connection then
        local made, why = driver:connect(source)
        if not made then error(why, 0) end
        connection = made
    end
    local texts, next_one = {...}, 0
    local whole = statement:gsub("%?", function()
        next_one = next_one + 1
        return "'" .. connection:escape(texts[next_one]) .. "'"
    end)
    local result, why = connection:execute(whole)
    if not result then
        pcall(connection.close, connection)
        connection = nil
        error(why, 0)
    end
    return result
end

local store = {}

function store.knows(id, token)
    local rows = run("SELECT 1 FROM devices WHERE id = ? AND token = ?", id, token)
    local found = rows:fetch()
    rows:close()
    return found ~= nil
end

function store.keep(id, reading)
    run("INSERT INTO readings (device, reading) VALUES (?, ?)", id, reading)
end

return store
