-- A cache in front of PostgreSQL: eddy create cache db -p 6379 --hooks /path/to/postgres.lua -s
--
--     CREATE TABLE kv (key bytea PRIMARY KEY, value bytea NOT NULL, expires timestamptz)
--
-- Host, database and user are libpq's: PGHOST, PGDATABASE, PGUSER in the daemon's environment. Debian's
-- package is lua-sql-postgres. Every thread of --hook-threads runs this text and has a connection of its own.
local luasql = require 'luasql.postgres'
local driver, connection = luasql.postgres(), nil

-- The driver's own deadlines: what blocks in it cannot be ended from outside.
local source = "connect_timeout=2 tcp_user_timeout=3000 options='-c statement_timeout=2000'"

-- Runs a statement. After a failure the next one connects anew.
local function run(statement)
    if not connection then
        local made, why = driver:connect(source)
        if not made then error(why, 0) end
        connection = made
    end
    local result, why = connection:execute(statement)
    if not result then
        pcall(connection.close, connection)
        connection = nil
        error(why, 0)
    end
    return result
end

-- Keys and values are any bytes.
local function quoted(bytes)
    local hex = bytes:gsub('.', function(c) return ('%02x'):format(c:byte()) end)
    return "'\\x" .. hex .. "'::bytea"
end
local function bytes(hex)
    local text = hex:sub(3):gsub('%x%x', function(pair) return string.char(tonumber(pair, 16)) end)
    return text
end

-- Returns the value, and the seconds that it has left if it expires.
function on_miss(key)
    local rows = run("SELECT value, extract(epoch FROM expires - now()) FROM kv WHERE key = " ..
                     quoted(key) .. " AND (expires IS NULL OR expires > now())")
    local value, left = rows:fetch()
    rows:close()
    if value then return bytes(value), tonumber(left) end
end

function on_write(key, value, ttl)
    local expires = ttl and ("now() + interval '%f seconds'"):format(ttl) or 'NULL'
    run("INSERT INTO kv VALUES (" .. quoted(key) .. ", " .. quoted(value) .. ", " .. expires .. ") " ..
        "ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires = excluded.expires")
end

function on_delete(key)
    run("DELETE FROM kv WHERE key = " .. quoted(key))
end

-- The row has expired with the key, up to a second later if it was written so late.
function on_expire(key)
    run("DELETE FROM kv WHERE key = " .. quoted(key) .. " AND expires <= now() + interval '1 second'")
end
