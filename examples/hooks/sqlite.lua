-- A cache in front of SQLite. Values read from it stay in the cache for a minute, so that what others change
-- in the file is seen by then. Debian's package is lua-sql-sqlite3.
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
run('CREATE TABLE IF NOT EXISTS kv (key BLOB PRIMARY KEY, value BLOB NOT NULL)')

local function quoted(bytes)
    local hex = bytes:gsub('.', function(c) return ('%02x'):format(c:byte()) end)
    return "x'" .. hex .. "'"
end

function on_miss(key)
    local rows = run('SELECT hex(value) FROM kv WHERE key = ' .. quoted(key))
    local hex = rows:fetch()
    rows:close()
    if not hex then return nil, 5 end -- not there: that is remembered for five seconds
    local value = hex:gsub('%x%x', function(pair) return string.char(tonumber(pair, 16)) end)
    return value, 60
end

function on_write(key, value)
    run('INSERT OR REPLACE INTO kv VALUES (' .. quoted(key) .. ', ' .. quoted(value) .. ')')
end

function on_delete(key)
    run('DELETE FROM kv WHERE key = ' .. quoted(key))
end
