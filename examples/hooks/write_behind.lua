-- A write-behind cache: changes are kept, and go to SQLite together, in one transaction every two seconds. What is kept
-- is lost in a crash; without on_tick (sqlite.lua) each change is repeated until the database has it.
local luasql = require 'luasql.sqlite3'
tick_ms = 2000
local db, kept = nil, {}

local function run(statement)
    local result, why = db:execute(statement)
    if not result then error(why, 0) end
    return result
end

local function quoted(bytes)
    local hex = bytes:gsub('.', function(c) return ('%02x'):format(c:byte()) end)
    return "x'" .. hex .. "'"
end

function on_start()
    db = assert(luasql.sqlite3():connect(os.getenv 'KV_FILE' or '/var/lib/eddy/kv.sqlite'))
    run('PRAGMA busy_timeout = 2000'):close()
    run('CREATE TABLE IF NOT EXISTS kv (key BLOB PRIMARY KEY, value BLOB NOT NULL)')
end

function on_miss(key)
    if kept[key] ~= nil then return kept[key] or nil end
    local rows = run('SELECT hex(value) FROM kv WHERE key = ' .. quoted(key))
    local hex = rows:fetch()
    rows:close()
    if not hex then return nil end
    local value = hex:gsub('%x%x', function(pair) return string.char(tonumber(pair, 16)) end)
    return value
end

function on_write(key, value) kept[key] = value end
function on_delete(key) kept[key] = false end
function on_expire(key) kept[key] = false end

-- After a failure what is kept waits for the next tick.
function on_tick()
    if next(kept) == nil then return end
    run 'BEGIN IMMEDIATE'
    local is_written, why = pcall(function()
        for key, value in pairs(kept) do
            if value then
                run('INSERT OR REPLACE INTO kv (key, value) VALUES (' .. quoted(key) .. ', ' .. quoted(value) .. ')')
            else
                run('DELETE FROM kv WHERE key = ' .. quoted(key))
            end
        end
        run 'COMMIT'
    end)
    if not is_written then
        pcall(run, 'ROLLBACK')
        error(why, 0)
    end
    kept = {}
end

function on_stop() db:close() end
