-- JSON echo, as json_nginx.lua: the content with a field changed.
-- Names of an object have the order of their strings, which new ones would change: these are kept, so that replies are alike.
names = {"name", "count", "tags", "nested", "is_small", "ratio"}

local decode, encode = cjson.decode, cjson.encode

function on_http_request(request)
    local message = decode(request.body)
    message.count = message.count + 1
    return 200, message
end
