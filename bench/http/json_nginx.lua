-- JSON echo of nginx's Lua, as json_eddy.lua: the content with a field changed.
local cjson = require("cjson")

ngx.req.read_body()
local message = cjson.decode(ngx.req.get_body_data())
message.count = message.count + 1
ngx.print(cjson.encode(message))
