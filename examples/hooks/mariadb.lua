-- A cache in front of MariaDB or MySQL: eddy create cache db -p 6379 --hooks /path/to/mariadb.lua -s
--
--     CREATE TABLE kv (name VARBINARY(700) PRIMARY KEY, value LONGBLOB NOT NULL, expires DOUBLE) ENGINE=InnoDB
--
-- The server is named in the daemon's environment: MYSQL_DATABASE, MYSQL_USER, MYSQL_PWD, and MYSQL_HOST or
-- MYSQL_UNIX_PORT, the path of its socket. Debian's package is lua-sql-mysql. Every thread of --hook-threads
-- runs this text and has a connection of its own.
local luasql = require 'luasql.mysql'
local driver, connection = luasql.mysql(), nil

local function connect()
    local made, why = driver:connect(os.getenv 'MYSQL_DATABASE', os.getenv 'MYSQL_USER', os.getenv 'MYSQL_PWD',
                                     os.getenv 'MYSQL_HOST', nil, os.getenv 'MYSQL_UNIX_PORT')
    if not made then error(why, 0) end
    -- What blocks in the driver cannot be ended from outside: the server ends it.
    assert(made:execute 'SET max_statement_time = 2, lock_wait_timeout = 2, innodb_lock_wait_timeout = 2')
    return made
end

-- Runs a statement. After a failure the next one connects anew.
local function run(statement)
    connection = connection or connect()
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
    return "x'" .. hex .. "'"
end
local function bytes(hex)
    local text = hex:gsub('%x%x', function(pair) return string.char(tonumber(pair, 16)) end)
    return text
end

local now = 'unix_timestamp(now(6))'

-- Returns the value, and the seconds that it has left if it expires.
function on_miss(key)
    local rows = run('SELECT hex(value), expires - ' .. now .. ' FROM kv WHERE name = ' .. quoted(key) ..
                     ' AND (expires IS NULL OR expires > ' .. now .. ')')
    local value, left = rows:fetch()
    rows:close()
    if value then return bytes(value), tonumber(left) end
end

function on_write(key, value, ttl)
    local expires = ttl and now .. (' + %f'):format(ttl) or 'NULL'
    run('REPLACE INTO kv VALUES (' .. quoted(key) .. ', ' .. quoted(value) .. ', ' .. expires .. ')')
end

function on_delete(key)
    run('DELETE FROM kv WHERE name = ' .. quoted(key))
end

-- The row has expired with the key, up to a second later if it was written so late.
function on_expire(key)
    run('DELETE FROM kv WHERE name = ' .. quoted(key) .. ' AND expires <= 1 + ' .. now)
end
