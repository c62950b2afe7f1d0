-- A cache in front of SQLite. Debian's package is lua-sql-sqlite3.
local luasql = require 'luasql.sqlite3'
local path = os.getenv 'KV_FILE' or '/var/lib/eddy/kv.sqlite'
local db = assert(luasql.sqlite3():connect(path))

local function run(statement)
    local result, why = db:execute(statement)
    if not result then error(why, 0) end
    return result
end

run('PRAGMA busy_timeout = 2000'):close()
run('PRAGMA journal_mode = WAL'):close()
run('CREATE TABLE IF NOT EXISTS kv (key BLOB PRIMARY KEY, value BLOB NOT NULL, expires REAL)')

-- Seconds since 1970, with their fraction.
local now = "((julianday('now') - 2440587.5) * 86400.0)"

local function quoted(bytes)
    local hex = bytes:gsub('.', function(c) return ('%02x'):format(c:byte()) end)
    return "x'" .. hex .. "'"
end

function on_miss(key)
    local rows = run('SELECT hex(value), expires - ' .. now .. ' FROM kv WHERE key = ' .. quoted(key) ..
                     ' AND (expires IS NULL OR expires > ' .. now .. ')')
    local hex, left = rows:fetch()
    rows:close()
    if not hex then return nil, 5 end -- not there: that is remembered for five seconds
    local value = hex:gsub('%x%x', function(pair) return string.char(tonumber(pair, 16)) end)
    return value, tonumber(left)
end

function on_write(key, value, ttl)
    local expires = ttl and now .. (' + %f'):format(ttl) or 'NULL'
    run('INSERT OR REPLACE INTO kv VALUES (' .. quoted(key) .. ', ' .. quoted(value) .. ', ' .. expires .. ')')
end

function on_delete(key)
    run('DELETE FROM kv WHERE key = ' .. quoted(key))
end

-- The row has expired with the key, up to a second later if it was written so late.
function on_expire(key)
    run('DELETE FROM kv WHERE key = ' .. quoted(key) .. ' AND expires <= 1 + ' .. now)
end
