// Scripts that differential_scripting_test.cpp gives to the engine and to a real redis-server. They
// run one after another on the same data, as EVAL script 2 k1 k2 first second. Left out is what
// Redis 7.2 does in another way than the 7.0 that they are compared with: commands that may block
// are refused there, and a zero keeps its sign. scripts_test.cpp has those.
#pragma once

#include <string_view>

namespace eddy::cache::testing {

inline constexpr std::string_view
    lua_scripts
        [] =
            {
                R"lua(return redis.call())lua",
                R"lua(return redis.call("nosuch"))lua",
                R"lua(return redis.call("get"))lua",
                R"lua(return redis.pcall("get").err)lua",
                R"lua(return redis.call({}))lua",
                R"lua(return redis.call("get",{}))lua",
                R"lua(return redis.call("multi"))lua",
                R"lua(return redis.call("lpush","a","1") and redis.call("get","a"))lua",
                R"lua(return foo)lua",
                R"lua(foo=1)lua",
                R"lua(return)lua",
                R"lua(error("x"))lua",
                R"lua(error({err="My Error"}))lua",
                R"lua(error())lua",
                R"lua(error({err="My Error",line=3,source="abc"}))lua",
                R"lua(return {err="bla"})lua",
                R"lua(return {err="bla\r\nx y\n"})lua",
                R"lua(return {err="\n"})lua",
                R"lua(return {err=""})lua",
                R"lua(return {err="\r\nbla\n\r"})lua",
                R"lua(error({err="\r\n"}))lua",
                R"lua(error({err="\nbla\r"}))lua",
                R"lua(return redis.error_reply("\n"))lua",
                R"lua(return redis.error_reply("\nbla\n"))lua",
                R"lua(return redis.error_reply("bla"))lua",
                R"lua(return redis.error_reply("-bla"))lua",
                R"lua(return redis.error_reply("MY bla"))lua",
                R"lua(return redis.error_reply("-MY bla"))lua",
                R"lua(return redis.error_reply(""))lua",
                R"lua(return redis.error_reply(1))lua",
                R"lua(return redis.error_reply({}))lua",
                R"lua(return redis.error_reply())lua",
                R"lua(return redis.status_reply("X Y"))lua",
                R"lua(return redis.status_reply())lua",
                R"lua(return redis.sha1hex())lua",
                R"lua(return redis.sha1hex(""))lua",
                R"lua(return redis.sha1hex(1))lua",
                R"lua(return redis.log())lua",
                R"lua(return redis.log("a","b"))lua",
                R"lua(return redis.log(1,{}))lua",
                R"lua(return redis.setresp())lua",
                R"lua(return redis.setresp(4))lua",
                R"lua(return redis.setresp("3"))lua",
                R"lua(return redis.set_repl())lua",
                R"lua(return redis.set_repl(9))lua",
                R"lua(return redis.set_repl(3))lua",
                R"lua(return redis.replicate_commands())lua",
                R"lua(return redis.breakpoint())lua",
                R"lua(return redis.debug("x"))lua",
                R"lua(return redis.acl_check_cmd())lua",
                R"lua(return redis.acl_check_cmd("nosuch"))lua",
                R"lua(return redis.acl_check_cmd("get","a"))lua",
                R"lua(return {1,2.7,"x",{ok="fine"},false,true,nil,3})lua",
                R"lua(return 3.99)lua",
                R"lua(return -3.99)lua",
                R"lua(return 1e300)lua",
                R"lua(return 0/0)lua",
                R"lua(return print)lua",
                R"lua(syntax error here)lua",
                R"lua(return 1 +)lua",
                R"lua(redis.call=1)lua",
                R"lua(redis.x=1)lua",
                R"lua(string.x=1)lua",
                R"lua(getmetatable("").__index=1)lua",
                R"lua(return getmetatable("").__index==string)lua",
                R"lua(setmetatable(_G,{}))lua",
                R"lua(_G.x=1)lua",
                R"lua(rawset(_G,"x",1) return x)lua",
                R"lua(local x=KEYS KEYS={} return 1)lua",
                R"lua(return KEYS[1])lua",
                R"lua(KEYS[1]="z" return KEYS[1])lua",
                R"lua(return loadstring(string.dump(function() return 1 end))())lua",
                R"lua(return load(function() return nil end))lua",
                R"lua(#!lua flags=no-writes
return redis.call("set","a",1))lua",
                R"lua(#!lua flags=bad
return 1)lua",
                R"lua(#!lua x=1
return 1)lua",
                R"lua(#!js
return 1)lua",
                R"lua(#!lua)lua",
                R"lua(#!lua name=x
return 1)lua",
                R"lua(#!lua flags=no-writes,allow-stale
return foo())lua",
                R"lua(

return foo())lua",
                R"lua(return cjson.encode(cjson.decode("[[[[]]]]")))lua",
                R"lua(local t={} for i=1,1100 do t={t} end return cjson.encode(t))lua",
                R"lua(return cjson.decode(string.rep("[",1100)..string.rep("]",1100)))lua",
                R"lua(return cjson.decode(string.rep("[",1001)..string.rep("]",1001)))lua",
                R"lua(return cjson.decode(string.rep("{\"a\":",1001).."1"..string.rep("}",1001)))lua",
                R"lua(return {cjson.encode_sparse_array()})lua",
                R"lua(return {cjson.encode_sparse_array(true)})lua",
                R"lua(return {cjson.encode_sparse_array(false,2,10)})lua",
                R"lua(return cjson.encode_sparse_array(1,2,10))lua",
                R"lua(return {cjson.encode_max_depth()})lua",
                R"lua(return cjson.encode_max_depth(0))lua",
                R"lua(return {cjson.encode_max_depth(1000)})lua",
                R"lua(return {cjson.decode_max_depth()})lua",
                R"lua(return cjson.encode_number_precision())lua",
                R"lua(return cjson.encode_number_precision(99))lua",
                R"lua(return cjson.encode_number_precision(3) ..  cjson.encode(3.14159))lua",
                R"lua(return cjson.encode_number_precision(14) ..  cjson.encode(3.14159265358979))lua",
                R"lua(return cjson.encode_keep_buffer(), cjson.encode_keep_buffer(true))lua",
                R"lua(return tostring(cjson.encode_keep_buffer()))lua",
                R"lua(return tostring(cjson.encode_keep_buffer("x")))lua",
                R"lua(return tostring(cjson.encode_invalid_numbers()))lua",
                R"lua(return tostring(cjson.encode_invalid_numbers("null"))..cjson.encode({0/0,1/0,-1/0}))lua",
                R"lua(return tostring(cjson.encode_invalid_numbers(true))..cjson.encode({0/0,1/0,-1/0}))lua",
                R"lua(return tostring(cjson.encode_invalid_numbers("on")))lua",
                R"lua(return tostring(cjson.encode_invalid_numbers("off")))lua",
                R"lua(return tostring(cjson.encode_invalid_numbers("foo")))lua",
                R"lua(return tostring(cjson.encode_invalid_numbers(false)))lua",
                R"lua(return tostring(cjson.decode_invalid_numbers()))lua",
                R"lua(return tostring(cjson.decode_invalid_numbers(false)))lua",
                R"lua(return cjson.decode("[NaN]"))lua",
                R"lua(return cjson.decode("[0x1]"))lua",
                R"lua(return tostring(cjson.decode_invalid_numbers(true)))lua",
                R"lua(local c=cjson.new() local o={} for k,v in pairs(c) do o[#o+1]=k end table.sort(o) return o)lua",
                R"lua(return {cmsgpack.unpack_one("\1\2\3")})lua",
                R"lua(return {cmsgpack.unpack_one("\1\2\3",1)})lua",
                R"lua(return {cmsgpack.unpack_one("\1\2\3",2)})lua",
                R"lua(return {cmsgpack.unpack_one("\1\2\3",3)})lua",
                R"lua(return {cmsgpack.unpack_one("\1\2\3",5)})lua",
                R"lua(return {cmsgpack.unpack_one("\1\2\3",-1)})lua",
                R"lua(return {cmsgpack.unpack_limit("\1\2\3",2)})lua",
                R"lua(return {cmsgpack.unpack_limit("\1\2\3",2,1)})lua",
                R"lua(return {cmsgpack.unpack_limit("\1\2\3",0)})lua",
                R"lua(return {cmsgpack.unpack_limit("\1\2\3",-1)})lua",
                R"lua(return {cmsgpack.unpack_limit("\1\2\3")})lua",
                R"lua(math.randomseed(42) return {math.random(1000),math.random(1000),math.random(5,10),tostring(math.random())})lua",
                R"lua(return math.random(0))lua",
                R"lua(return math.random(2,1))lua",
                R"lua(return math.random(1,2,3))lua",
                R"lua(return pcall(coroutine.yield))lua",
                R"lua(return {bit.tohex(255), bit.band(7,3), bit.tobit(2^33+1)})lua",
                R"lua(return bit.band("x"))lua",
                R"lua(return collectgarbage("foo"))lua",
                R"lua(return {tostring(collectgarbage("count")>0), collectgarbage("stop"), collectgarbage("restart"),collectgarbage("collect"),collectgarbage("step"),collectgarbage("setpause",100)})lua",
                R"lua(table.insert(redis,1))lua",
                R"lua(return table.setn({},1))lua",
                R"lua(redis.setresp(3) local r=redis.call("hgetall","nosuch") return {type(r.map)})lua",
                R"lua(return {double=3.5})lua",
                R"lua(return {map={a=1}})lua",
                R"lua(return {set={a=true}})lua",
                R"lua(return {big_number="123"})lua",
                R"lua(return {verbatim_string={string="abc",format="txt"}})lua",
                R"lua(return {ok=1})lua",
                R"lua(return {err=1})lua",
                R"lua(return cjson.encode({}))lua",
                R"lua(return cjson.encode({1,2,3}))lua",
                R"lua(return cjson.encode({a=1}))lua",
                R"lua(return cjson.encode({1,nil,3}))lua",
                R"lua(return cjson.encode({[1]=1,[5]=2}))lua",
                R"lua(return cjson.encode({[0]=1}))lua",
                R"lua(return cjson.encode({[1.5]=1}))lua",
                R"lua(return cjson.encode(1.5))lua",
                R"lua(return cjson.encode(1e15))lua",
                R"lua(return cjson.encode(1e14))lua",
                R"lua(return cjson.encode(123456789012345678))lua",
                R"lua(return cjson.encode(0/0))lua",
                R"lua(return cjson.encode(1/0))lua",
                R"lua(return cjson.encode("a\"\\/\n\0\127é\1"))lua",
                R"lua(return cjson.encode(cjson.null))lua",
                R"lua(return cjson.encode(true))lua",
                R"lua(return cjson.encode(nil))lua",
                R"lua(return cjson.encode(print))lua",
                R"lua(return cjson.encode(cjson.encode))lua",
                R"lua(return cjson.encode({[true]=1}))lua",
                R"lua(return cjson.encode({cjson.encode}))lua",
                R"lua(return cjson.encode(string.rep("a",3)))lua",
                R"lua(return cjson.encode())lua",
                R"lua(return cjson.encode(1,2))lua",
                R"lua(return cjson.encode("\\b\b\f\r\t"))lua",
                R"lua(return cjson.encode(0.1))lua",
                R"lua(return cjson.encode(-0))lua",
                R"lua(return cjson.encode(1e100))lua",
                R"lua(return cjson.encode({x={y={z={}}}}))lua",
                R"lua(local r=cjson.decode("[1,2,3]") return {type(r), type(r)=='table' and cjson.encode(r) or tostring(r)})lua",
                R"lua(local r=cjson.decode("{\"a\":1}") return {type(r), type(r)=='table' and cjson.encode(r) or tostring(r)})lua",
                R"lua(local r=cjson.decode("1") return {type(r), type(r)=='table' and cjson.encode(r) or tostring(r)})lua",
                R"lua(local r=cjson.decode("\"x\\u00e9\\ud83d\\ude00\\n\"") return {type(r), type(r)=='table' and cjson.encode(r) or tostring(r)})lua",
                R"lua(local r=cjson.decode("nul") return {type(r), type(r)=='table' and cjson.encode(r) or tostring(r)})lua",
                R"lua(local r=cjson.decode("") return {type(r), type(r)=='table' and cjson.encode(r) or tostring(r)})lua",
                R"lua(local r=cjson.decode("[") return {type(r), type(r)=='table' and cjson.encode(r) or tostring(r)})lua",
                R"lua(local r=cjson.decode("[1,]") return {type(r), type(r)=='table' and cjson.encode(r) or tostring(r)})lua",
                R"lua(local r=cjson.decode("{\"a\"}") return {type(r), type(r)=='table' and cjson.encode(r) or tostring(r)})lua",
                R"lua(local r=cjson.decode("[1 2]") return {type(r), type(r)=='table' and cjson.encode(r) or tostring(r)})lua",
                R"lua(local r=cjson.decode("01") return {type(r), type(r)=='table' and cjson.encode(r) or tostring(r)})lua",
                R"lua(local r=cjson.decode("-") return {type(r), type(r)=='table' and cjson.encode(r) or tostring(r)})lua",
                R"lua(local r=cjson.decode("1e5") return {type(r), type(r)=='table' and cjson.encode(r) or tostring(r)})lua",
                R"lua(local r=cjson.decode("NaN") return {type(r), type(r)=='table' and cjson.encode(r) or tostring(r)})lua",
                R"lua(local r=cjson.decode("Infinity") return {type(r), type(r)=='table' and cjson.encode(r) or tostring(r)})lua",
                R"lua(local r=cjson.decode("-inf") return {type(r), type(r)=='table' and cjson.encode(r) or tostring(r)})lua",
                R"lua(local r=cjson.decode("0x10") return {type(r), type(r)=='table' and cjson.encode(r) or tostring(r)})lua",
                R"lua(local r=cjson.decode("\"\\ud800\"") return {type(r), type(r)=='table' and cjson.encode(r) or tostring(r)})lua",
                R"lua(local r=cjson.decode("\"\\x\"") return {type(r), type(r)=='table' and cjson.encode(r) or tostring(r)})lua",
                R"lua(local r=cjson.decode("\"abc") return {type(r), type(r)=='table' and cjson.encode(r) or tostring(r)})lua",
                R"lua(local r=cjson.decode("\"a\nb\"") return {type(r), type(r)=='table' and cjson.encode(r) or tostring(r)})lua",
                R"lua(local r=cjson.decode("[1]x") return {type(r), type(r)=='table' and cjson.encode(r) or tostring(r)})lua",
                R"lua(local r=cjson.decode("[null,true,false]") return {type(r), type(r)=='table' and cjson.encode(r) or tostring(r)})lua",
                R"lua(local r=cjson.decode(1) return {type(r), type(r)=='table' and cjson.encode(r) or tostring(r)})lua",
                R"lua(local r=cjson.decode(nil) return {type(r), type(r)=='table' and cjson.encode(r) or tostring(r)})lua",
                R"lua(local r=cjson.decode("{1:2}") return {type(r), type(r)=='table' and cjson.encode(r) or tostring(r)})lua",
                R"lua(local r=cjson.decode("[1\0") return {type(r), type(r)=='table' and cjson.encode(r) or tostring(r)})lua",
                R"lua(local r=cjson.decode("\"\\u0000\"") return {type(r), type(r)=='table' and cjson.encode(r) or tostring(r)})lua",
                R"lua(local r=cjson.decode("{\"a\":1,\"a\":2}") return {type(r), type(r)=='table' and cjson.encode(r) or tostring(r)})lua",
                R"lua(local r=cjson.decode("{\"1\":2}") return {type(r), type(r)=='table' and cjson.encode(r) or tostring(r)})lua",
                R"lua(local r=cjson.decode("tru") return {type(r), type(r)=='table' and cjson.encode(r) or tostring(r)})lua",
                R"lua(local r=cjson.decode(" [ ] ") return {type(r), type(r)=='table' and cjson.encode(r) or tostring(r)})lua",
                R"lua(local r=cjson.decode("1.5e400") return {type(r), type(r)=='table' and cjson.encode(r) or tostring(r)})lua",
                R"lua(local r=cjson.decode("nan") return {type(r), type(r)=='table' and cjson.encode(r) or tostring(r)})lua",
                R"lua(local r=cjson.decode("[-]") return {type(r), type(r)=='table' and cjson.encode(r) or tostring(r)})lua",
                R"lua(local r=cjson.decode("\"\\u12\"") return {type(r), type(r)=='table' and cjson.encode(r) or tostring(r)})lua",
                R"lua(local r=cjson.decode("\239\187\191[1]") return {type(r), type(r)=='table' and cjson.encode(r) or tostring(r)})lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(cmsgpack.pack()))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(cmsgpack.pack(1)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(cmsgpack.pack(-1)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(cmsgpack.pack(-33)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(cmsgpack.pack(127)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(cmsgpack.pack(128)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(cmsgpack.pack(256)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(cmsgpack.pack(65536)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(cmsgpack.pack(4294967296)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(cmsgpack.pack(-128)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(cmsgpack.pack(-129)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(cmsgpack.pack(-40000)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(cmsgpack.pack(-3000000000)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(cmsgpack.pack(1.5)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(cmsgpack.pack(0.1)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(cmsgpack.pack(1e300)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(cmsgpack.pack(2^53)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(cmsgpack.pack(2^63)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(cmsgpack.pack(2^64)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(cmsgpack.pack(-2^63)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(cmsgpack.pack(1/0)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(cmsgpack.pack(true)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(cmsgpack.pack(nil)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(cmsgpack.pack("abc")))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(cmsgpack.pack(string.rep("a",32))))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(cmsgpack.pack(string.rep("a",31))))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(cmsgpack.pack({})))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(cmsgpack.pack({1,2})))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(cmsgpack.pack({a=1})))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(cmsgpack.pack({1,nil,3})))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(cmsgpack.pack({[1]=1,[2]=2,[4]=4})))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(cmsgpack.pack(1,2)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(cmsgpack.pack(cjson.null)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(cmsgpack.pack(tostring)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(cmsgpack.pack({[0]=1})))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(cmsgpack.pack({[1.5]=2})))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(cmsgpack.pack(3.0)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(cmsgpack.pack(16777217.5)))lua",
                R"lua(local r={cmsgpack.unpack("\1\2\3")} local o={} for i=1,#r do o[i]=type(r[i])=='table' and cjson.encode(r[i]) or tostring(r[i]) end return o)lua",
                R"lua(local r={cmsgpack.unpack("")} local o={} for i=1,#r do o[i]=type(r[i])=='table' and cjson.encode(r[i]) or tostring(r[i]) end return o)lua",
                R"lua(local r={cmsgpack.unpack("\193")} local o={} for i=1,#r do o[i]=type(r[i])=='table' and cjson.encode(r[i]) or tostring(r[i]) end return o)lua",
                R"lua(local r={cmsgpack.unpack("\211\0")} local o={} for i=1,#r do o[i]=type(r[i])=='table' and cjson.encode(r[i]) or tostring(r[i]) end return o)lua",
                R"lua(local r={cmsgpack.unpack("\129\1\2")} local o={} for i=1,#r do o[i]=type(r[i])=='table' and cjson.encode(r[i]) or tostring(r[i]) end return o)lua",
                R"lua(local r={cmsgpack.unpack("\192")} local o={} for i=1,#r do o[i]=type(r[i])=='table' and cjson.encode(r[i]) or tostring(r[i]) end return o)lua",
                R"lua(local r={cmsgpack.unpack("\195")} local o={} for i=1,#r do o[i]=type(r[i])=='table' and cjson.encode(r[i]) or tostring(r[i]) end return o)lua",
                R"lua(local r={cmsgpack.unpack("\202\63\128\0\0")} local o={} for i=1,#r do o[i]=type(r[i])=='table' and cjson.encode(r[i]) or tostring(r[i]) end return o)lua",
                R"lua(local r={cmsgpack.unpack("\203\63\240\0\0\0\0\0\0")} local o={} for i=1,#r do o[i]=type(r[i])=='table' and cjson.encode(r[i]) or tostring(r[i]) end return o)lua",
                R"lua(local r={cmsgpack.unpack("\207\255\255\255\255\255\255\255\255")} local o={} for i=1,#r do o[i]=type(r[i])=='table' and cjson.encode(r[i]) or tostring(r[i]) end return o)lua",
                R"lua(local r={cmsgpack.unpack("\211\255\255\255\255\255\255\255\255")} local o={} for i=1,#r do o[i]=type(r[i])=='table' and cjson.encode(r[i]) or tostring(r[i]) end return o)lua",
                R"lua(local r={cmsgpack.unpack("\217\1a")} local o={} for i=1,#r do o[i]=type(r[i])=='table' and cjson.encode(r[i]) or tostring(r[i]) end return o)lua",
                R"lua(local r={cmsgpack.unpack("\196\1a")} local o={} for i=1,#r do o[i]=type(r[i])=='table' and cjson.encode(r[i]) or tostring(r[i]) end return o)lua",
                R"lua(local r={cmsgpack.unpack("\199\1\1a")} local o={} for i=1,#r do o[i]=type(r[i])=='table' and cjson.encode(r[i]) or tostring(r[i]) end return o)lua",
                R"lua(local r={cmsgpack.unpack("\212\1a")} local o={} for i=1,#r do o[i]=type(r[i])=='table' and cjson.encode(r[i]) or tostring(r[i]) end return o)lua",
                R"lua(local r={cmsgpack.unpack("\146\1")} local o={} for i=1,#r do o[i]=type(r[i])=='table' and cjson.encode(r[i]) or tostring(r[i]) end return o)lua",
                R"lua(local r={cmsgpack.unpack(1)} local o={} for i=1,#r do o[i]=type(r[i])=='table' and cjson.encode(r[i]) or tostring(r[i]) end return o)lua",
                R"lua(local r={cmsgpack.unpack(nil)} local o={} for i=1,#r do o[i]=type(r[i])=='table' and cjson.encode(r[i]) or tostring(r[i]) end return o)lua",
                R"lua(local r={cmsgpack.unpack("\147\1\192\3")} local o={} for i=1,#r do o[i]=type(r[i])=='table' and cjson.encode(r[i]) or tostring(r[i]) end return o)lua",
                R"lua(local r={cmsgpack.unpack("\224")} local o={} for i=1,#r do o[i]=type(r[i])=='table' and cjson.encode(r[i]) or tostring(r[i]) end return o)lua",
                R"lua(local r={cmsgpack.unpack("\208\128")} local o={} for i=1,#r do o[i]=type(r[i])=='table' and cjson.encode(r[i]) or tostring(r[i]) end return o)lua",
                R"lua(local r={cmsgpack.unpack("\221\255\255\255\255")} local o={} for i=1,#r do o[i]=type(r[i])=='table' and cjson.encode(r[i]) or tostring(r[i]) end return o)lua",
                R"lua(local r={cmsgpack.unpack("\223\255\255\255\255")} local o={} for i=1,#r do o[i]=type(r[i])=='table' and cjson.encode(r[i]) or tostring(r[i]) end return o)lua",
                R"lua(local r={cmsgpack.unpack("\219\255\255\255\255")} local o={} for i=1,#r do o[i]=type(r[i])=='table' and cjson.encode(r[i]) or tostring(r[i]) end return o)lua",
                R"lua(local r={cmsgpack.unpack("\129\192\1")} local o={} for i=1,#r do o[i]=type(r[i])=='table' and cjson.encode(r[i]) or tostring(r[i]) end return o)lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(struct.pack(">I2",258)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(struct.pack("<I2",258)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(struct.pack("i4",-1)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(struct.pack("bB",-1,255)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(struct.pack("h",1)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(struct.pack("H",1)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(struct.pack("l",1)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(struct.pack("L",1)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(struct.pack("T",1)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(struct.pack("f",1.5)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(struct.pack("d",1.5)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(struct.pack("s","abc")))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(struct.pack("c0","abc")))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(struct.pack("c2","abc")))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(struct.pack("c5","abc")))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(struct.pack("x")))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(struct.pack(">!4bi4",1,2)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(struct.pack("!bi",1,2)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(struct.pack("i33",1)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(struct.pack("I0",1)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(struct.pack("z")))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(struct.pack("=")))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(struct.pack("i",2^40)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(struct.pack("n",1)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(struct.pack("(",1)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(struct.pack("i16",1)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(struct.pack("!3i")))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(struct.pack("s",1)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(struct.pack("b")))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(struct.pack(" b b",1,2)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(struct.pack("!8bd",1,2)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(struct.pack("I",-1)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(struct.pack("i3",-2)))lua",
                R"lua(return {struct.unpack(">I2","\1\2")})lua",
                R"lua(return {struct.unpack("<i2","\255\255")})lua",
                R"lua(return {struct.unpack("s","abc\0d")})lua",
                R"lua(return {struct.unpack("s","abc")})lua",
                R"lua(return {struct.unpack("Bc0","\3abcd")})lua",
                R"lua(return {struct.unpack("c0","abc")})lua",
                R"lua(return {struct.unpack("f","\0\0\192\63")})lua",
                R"lua(return {struct.unpack("i4","a")})lua",
                R"lua(return {struct.unpack("B","abc",2)})lua",
                R"lua(return {struct.unpack("B","abc",4)})lua",
                R"lua(return {struct.unpack("B","abc",0)})lua",
                R"lua(return {struct.unpack("BB","ab",1)})lua",
                R"lua(return {struct.unpack("x","a")})lua",
                R"lua(return {struct.unpack("c2","abc")})lua",
                R"lua(return {struct.unpack("c5","abc")})lua",
                R"lua(return {struct.unpack("I33","a")})lua",
                R"lua(return {struct.unpack("d","\0\0\0\0\0\0\240\63")})lua",
                R"lua(return {struct.unpack("!4bi4","\1\0\0\0\2\0\0\0")})lua",
                R"lua(return {struct.unpack("z","a")})lua",
                R"lua(return {struct.unpack("i9",string.rep("\1",9))})lua",
                R"lua(return {struct.unpack("i16",string.rep("\1",16))})lua",
                R"lua(return struct.size("i"))lua",
                R"lua(return struct.size("bi4"))lua",
                R"lua(return struct.size("!4bi4"))lua",
                R"lua(return struct.size("s"))lua",
                R"lua(return struct.size("c0"))lua",
                R"lua(return struct.size("c10"))lua",
                R"lua(return struct.size("x"))lua",
                R"lua(return struct.size("d"))lua",
                R"lua(return struct.size("f"))lua",
                R"lua(return struct.size("l"))lua",
                R"lua(return struct.size("T"))lua",
                R"lua(return struct.size("h"))lua",
                R"lua(return struct.size("z"))lua",
                R"lua(return struct.size("i33"))lua",
                R"lua(return struct.size("!16"))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return #cmsgpack.pack(string.rep("a",300))..hx(cmsgpack.pack(string.rep("a",300)):sub(1,6)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  return hx(cmsgpack.pack(string.rep("a",70000)):sub(1,6)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  local t={} for i=1,20 do t={t} end return hx(cmsgpack.pack(t)))lua",
                R"lua(local function hx(s) return (s:gsub(".",function(c) return string.format("%02x",c:byte()) end)) end  local t={} for i=1,16 do t[i]=1 end return hx(cmsgpack.pack(t)))lua",
                R"lua(return true)lua",
                R"lua(return false)lua",
                R"lua(redis.setresp(3) return true)lua",
                R"lua(redis.setresp(3) return {true,false,nil})lua",
                R"lua(return {double=1/0})lua",
                R"lua(return {double=-0.5})lua",
                R"lua(return {set={a=1}})lua",
                R"lua(return {verbatim_string={string="abc",format="t"}})lua",
                R"lua(return {verbatim_string={string="abc",format="textt"}})lua",
                R"lua(return {verbatim_string={string="abc"}})lua",
                R"lua(return {err="x",ok="y"})lua",
                R"lua(return {err=1,ok="y"})lua",
                R"lua(redis.call("zadd","z",1.5,"a") redis.setresp(3) return redis.call("zscore","z","a"))lua",
                R"lua(redis.setresp(3) local r=redis.call("zscore","z","a") return {type(r),tostring(r.double)})lua",
                R"lua(redis.setresp(3) return type(redis.call("get","none")))lua",
                R"lua(return type(redis.call("get","none")))lua",
                R"lua(redis.setresp(3) return redis.call("zrange","z",0,-1,"withscores"))lua",
                R"lua(return redis.call("zrange","z",0,-1,"withscores"))lua",
                R"lua(redis.call("del","s") redis.call("sadd","s","x") redis.setresp(3) return redis.call("smembers","s"))lua",
                R"lua(return {1,{2,{3,{err="inner"}}}})lua",
                R"lua(return setmetatable({},{__index=function() return "z" end}))lua",
                R"lua(redis.setresp(3) return redis.call("hgetall","nosuch"))lua",
                R"lua(redis.call("hset","h","f","v") redis.setresp(3) return redis.call("hgetall","h"))lua",
                R"lua(redis.call("hset","h","f","v") redis.setresp(3) return redis.call("hgetall","h").map.f)lua",
                R"lua(return {KEYS,ARGV})lua",
                R"lua(return #KEYS + #ARGV)lua",
                R"lua(return redis.call("set",KEYS[1],ARGV[1]))lua",
                R"lua(return redis.call("get",KEYS[1]))lua",
                R"lua(return redis.call("incr",KEYS[1]))lua",
                R"lua(return redis.pcall("incr",KEYS[1]))lua",
                R"lua(local r=redis.pcall("incr",KEYS[1]) return r.err)lua",
                R"lua(return redis.call("append",KEYS[1],1))lua",
                R"lua(return redis.call("set",KEYS[1],12345678901234))lua",
                R"lua(return redis.call("get",KEYS[1]))lua",
                R"lua(redis.call("set",KEYS[1],-3) return redis.call("get",KEYS[1]))lua",
                R"lua(redis.call("set",KEYS[1],1e15) return redis.call("get",KEYS[1]))lua",
                R"lua(redis.call("set",KEYS[1],3.5) return redis.call("get",KEYS[1]))lua",
                R"lua(redis.call("set",KEYS[1],2^53) return redis.call("get",KEYS[1]))lua",
                R"lua(redis.call("set",KEYS[1],0) return redis.call("get",KEYS[1]))lua",
                R"lua(redis.call("set",KEYS[1],-0.5) return redis.call("get",KEYS[1]))lua",
                R"lua(redis.call("select",3) redis.call("set","in3","x") return redis.call("dbsize"))lua",
                R"lua(return redis.call("get","in3"))lua",
                R"lua(local a,b=pcall(redis.call,"nosuch") return {tostring(a),type(b),b.err})lua",
                R"lua(local a,b=pcall(redis.call,"get") return b)lua",
                R"lua(local a,b=pcall(error,"x") return {tostring(a),b})lua",
                R"lua(local ok,e=pcall(function() error({err="boo boo"}) end) return e)lua",
                R"lua(return redis.call("lpush",KEYS[2],unpack({1,2,3})))lua",
                R"lua(return redis.call("lrange",KEYS[2],0,-1))lua",
                R"lua(return redis.call("lpop",KEYS[2],2))lua",
                R"lua(return redis.call("xread","BLOCK",0,"STREAMS","none","$"))lua",
                R"lua(return redis.call("XREADGROUP","BLOCK","x"))lua",
                R"lua(return redis.call("config","nosuch"))lua",
                R"lua(return redis.call("object","encoding"))lua",
                R"lua(return redis.call("xgroup","create","k","g"))lua",
                R"lua(return redis.call("subscribe","x"))lua",
                R"lua(return redis.call("eval","return 1",0))lua",
                R"lua(return redis.call("auth","x"))lua",
                R"lua(return redis.call("client","id"))lua",
                R"lua(return redis.call("config","get","x"))lua",
                R"lua(return redis.call("publish","c","m"))lua",
                R"lua(return redis.call("type",KEYS[1]))lua",
                R"lua(return redis.call("TYPE",KEYS[1]).ok)lua",
                R"lua(return redis.call("mget","a","none",KEYS[1]))lua",
                R"lua(return redis.call("ping"))lua",
                R"lua(return redis.call("echo","x"))lua",
                R"lua(local t={} for i=1,300 do t[i]=i end return t)lua",
                R"lua(local t={} for i=1,300 do t[i]="k"..i end return redis.call("mget",unpack(t)))lua",
                R"lua(local function f() return redis.call("nosuch") end return f())lua",
                R"lua(local function f() local x=redis.call("nosuch") return x end local y=f() return y)lua",
                R"lua(if true then return redis.call("nosuch") end)lua",
                R"lua(for i=1,2 do return redis.call("nosuch") end)lua",
                R"lua(while true do return error("in a loop") end)lua",
                R"lua(repeat return error({err="CODE told"}) until true)lua",
                R"lua(return (function() return redis.call("get") end)())lua",
                R"lua(return tostring(nil .. "x"))lua",
                R"lua(return nil + 1)lua",
                R"lua(return {} .. "x")lua",
                R"lua(return #nil)lua",
                R"lua(local t=nil return t.x)lua",
                R"lua(local t=nil return t.x.y)lua",
                R"lua(local t={} return t.x.y)lua",
                R"lua(return ("x")())lua",
                R"lua(return string.format("%d %s %5.2f %q",3,"a",1.5,"q\n"))lua",
                R"lua(return tostring(1e15)..tostring(2^53)..tostring(0.1)..tostring(1e100)..tostring(-0.5))lua",
                R"lua(return tostring(1/0)..tostring(-1/0))lua",
                R"lua(return {string.find("hello","l+")})lua",
                R"lua(return {string.gsub("hello","l","L")})lua",
                R"lua(return table.concat({1,2,"x"},","))lua",
                R"lua(local t={3,1,2} table.sort(t) return t)lua",
                R"lua(local t={3,1,2} table.sort(t,function(a,b) return a>b end) return t)lua",
                R"lua(table.sort())lua",
                R"lua(table.sort(1))lua",
                R"lua(table.sort({},1))lua",
                R"lua(table.sort({2,1},"x"))lua",
                R"lua(table.sort({3,"x",1}))lua",
                R"lua(table.sort({{},{}}))lua",
                R"lua(table.sort({true,false}))lua",
                R"lua(table.sort({1,print}))lua",
                R"lua(local t={5,3,9,1,7,2,8,6,4,10} table.sort(t,function(a,b) return true end) return t)lua",
                R"lua(local t={5,3,9,1,7,2,8,6,4,10} table.sort(t,function(a,b) return a<=b end) return t)lua",
                R"lua(local t={2,2,1,1,2,1,2} table.sort(t,function(a,b) return a<=b end) return t)lua",
                R"lua(local t={5,3,9,1,7} table.sort(t,function(a,b) error("no") end) return t)lua",
                R"lua(local t={} for i=1,300 do t[i]=i*7919%1009 end table.sort(t) return t)lua",
                R"lua(local t={} for i=1,300 do t[i]=i*7919%13 .. ":" .. i end table.sort(t,function(a,b) return a:match("%d+")<b:match("%d+") end) return t)lua",
                R"lua(local t={"b","a","B","","ab","a b"} table.sort(t) return t)lua",
                R"lua(return table.concat({1,2.5,"x",-0.1,1e15,1e300},"-"))lua",
                R"lua(return table.concat({1,2,3},", ",2))lua",
                R"lua(return table.concat({1,2,3},", ",2,3))lua",
                R"lua(return table.concat({1,2,3},", ",3,2))lua",
                R"lua(return table.concat({1,2,3},", ",0,2))lua",
                R"lua(return table.concat({1,2,3},", ",2,5))lua",
                R"lua(return table.concat({1,{},3}))lua",
                R"lua(return table.concat({1,true,3}))lua",
                R"lua(return table.concat())lua",
                R"lua(return table.concat({},{}))lua",
                R"lua(return table.concat({1,2},"",{}))lua",
                R"lua(local t={} for i=1,9000 do t[i]=i/8 end return table.concat(t,","))lua",
                R"lua(local t={} for i=1,9000 do t[i]=i/8 end t[8500]=print return table.concat(t,","))lua",
                R"lua(return table.maxn({1,2,[10]=1,[2.5]=1}))lua",
                R"lua(return table.maxn())lua",
                R"lua(return string.rep("ab",3))lua",
                R"lua(return string.rep("ab",0))lua",
                R"lua(return string.rep("ab",-1))lua",
                R"lua(return string.rep("ab",2,","))lua",
                R"lua(return string.rep("ab"))lua",
                R"lua(return string.rep())lua",
                R"lua(return #string.rep("abc",100000))lua",
                R"lua(return string.dump(print))lua",
                R"lua(return string.dump())lua",
                R"lua(return string.format())lua",
                R"lua(return string.format("%d"))lua",
                R"lua(return string.format("%s %s","x"))lua",
                R"lua(return ("%d"):format())lua",
                R"lua(return string.format("%d","x"))lua",
                R"lua(return string.format("%s",{}))lua",
                R"lua(return string.format("%y",1))lua",
                R"lua(return string.format("%",1))lua",
                R"lua(return string.format("%123d",1))lua",
                R"lua(return string.format("%.123d",1))lua",
                R"lua(return string.format("%-+ #0-d",1))lua",
                R"lua(return string.format("%q","a\nb\rc\0d\"e\\"))lua",
                R"lua(return string.format("%5s|%-5s|%.2s|%s","abc","abc","abc","a\0b"))lua",
                R"lua(return string.format("%s|%10s|%.3s",("x"):rep(150),("y"):rep(150),("z"):rep(150)))lua",
                R"lua(return string.format("%c%c%c",65,0,66))lua",
                R"lua(return string.format("%x %X %o %u",-1,255,8,3.9))lua",
                R"lua(return string.format("%.3f %e %g %G %5.1f|%-8d|%+d|%05d",1/3,12345.678,1e20,1e-10,2.25,42,42,42))lua",
                R"lua(return loadstring("return 1 +"))lua",
                R"lua(return {loadstring("x x")})lua",
                R"lua(return {loadstring("x x","=name")})lua",
                R"lua(return loadstring("return ...")(7))lua",
                R"lua(return loadstring())lua",
                R"lua(return loadstring({}))lua",
                R"lua(return load(1))lua",
                R"lua(return {load(function() return {} end)})lua",
                R"lua(local n=0 return load(function() n=n+1 return ({"return ","4","2"})[n] end)())lua",
                R"lua(local n=0 return {load(function() n=n+1 return ({"return ","4 4","2"})[n] end,"=name")})lua",
                R"lua(return {pcall(load,function() error("no") end)})lua",
                R"lua(return loadstring(("-- comment\n"):rep(1000).."return 5")())lua",
                R"lua(local t={1,2} table.insert(t,3) table.insert(t,1,0) return t)lua",
                R"lua(local t={1,2} table.insert(t,1,2,3) return t)lua",
                R"lua(return table.insert(nil,1))lua",
                R"lua(local t={1,2,3} table.remove(t,1) return t)lua",
                R"lua(local t={1,2,3} table.remove(t) return {#t,table.maxn(t),table.getn(t)})lua",
                R"lua(return select("#",1,2,3))lua",
                R"lua(return select(2,"a","b"))lua",
                R"lua(return {tonumber("0x10"),tonumber("z",36),tonumber("1e3")})lua",
                R"lua(return tostring(tonumber("x")))lua",
                R"lua(return tonumber())lua",
                R"lua(return rawget(redis,"call")~=nil)lua",
                R"lua(return rawequal("a","a"))lua",
                R"lua(local t=setmetatable({},{__index=function(t,k) return k.."!" end}) return t.x)lua",
                R"lua(local t=setmetatable({},{__newindex=function(t,k,v) rawset(t,k,v*2) end}) t.x=4 return t.x)lua",
                R"lua(local t=setmetatable({},{__call=function(self,a) return a+1 end}) return t(1))lua",
                R"lua(local t=setmetatable({},{__metatable="locked"}) return getmetatable(t))lua",
                R"lua(local t=setmetatable({},{__metatable="locked"}) return setmetatable(t,{}))lua",
                R"lua(return setmetatable(1,{}))lua",
                R"lua(return setmetatable({},1))lua",
                R"lua(return {pcall(setmetatable,{})})lua",
                R"lua(local c=coroutine.create(function(a) local b=coroutine.yield(a+1) return b*2 end) local _,x=coroutine.resume(c,1) local _,y=coroutine.resume(c,5) return {x,y,coroutine.status(c)})lua",
                R"lua(local f=coroutine.wrap(function() redis.call("nosuch") end) return f())lua",
                R"lua(local f=coroutine.wrap(function() return redis.call("echo","in a coroutine") end) return f())lua",
                R"lua(return {xpcall(function() error("a") end,function(e) return "handled "..e end)})lua",
                R"lua(return loadstring("return 1+1")())lua",
                R"lua(return {loadstring("return +")})lua",
                R"lua(return loadstring("x=1")())lua",
                R"lua(return loadstring("return nosuch")())lua",
                R"lua(local f=load(function() return nil end) return type(f))lua",
                R"lua(return {math.floor(-1.5),math.max(1,5,3),math.fmod(7,3),math.abs(-3)})lua",
                R"lua(return math.pow(2,10))lua",
                R"lua(return {bit.bor(1,2),bit.lshift(1,4),bit.rshift(-1,28),bit.arshift(-8,1),bit.bswap(1),bit.bnot(0)})lua",
                R"lua(return bit.tohex(-1,4))lua",
                R"lua(redis=nil)lua",
                R"lua(_G=nil)lua",
                R"lua(string=nil)lua",
                R"lua(redis["call"]=nil)lua",
                R"lua(rawset(redis,"call",nil))lua",
                R"lua(setmetatable(redis,nil))lua",
                R"lua(setmetatable(string,{}))lua",
                R"lua(table.insert(_G,1))lua",
                R"lua(return _G.redis==redis)lua",
                R"lua(return _G==_G._G)lua",
                R"lua(return type(_G))lua",
                R"lua(for k,v in pairs({a=1}) do return {k,v} end)lua",
                R"lua(for i,v in ipairs({7,8}) do if i==2 then return v end end)lua",
                R"lua(local n=0 for k in pairs(bit) do n=n+1 end return n)lua",
                R"lua(local n=0 for k in pairs(string) do n=n+1 end return n)lua",
                R"lua(local n=0 for k in pairs(table) do n=n+1 end return n)lua",
                R"lua(local n=0 for k in pairs(math) do n=n+1 end return n)lua",
                R"lua(local n=0 for k in pairs(redis) do n=n+1 end return n)lua",
                R"lua(local n=0 for k in pairs(cjson) do n=n+1 end return n)lua",
                R"lua(local t={} t.x=t return cjson.encode(t))lua",
                R"lua(return cjson.encode({a={},b={1,2},c="x"}.b))lua",
                R"lua(return cjson.decode("{\"a\":[1,2,{\"b\":null}]}").a[3].b==cjson.null)lua",
                R"lua(return cjson.decode("[1.5,-2,1e3,\"\\u20ac\"]"))lua",
                R"lua(return cjson.decode("[1,2"))lua",
                R"lua(return cjson.decode(nil))lua",
                R"lua(return cjson.encode({1,2,{3,{4}}}))lua",
                R"lua(return cmsgpack.unpack(cmsgpack.pack({1,"x",true,{a="b"}})))lua",
                R"lua(return cmsgpack.unpack(cmsgpack.pack(1,2,3)))lua",
                R"lua(return {cmsgpack.unpack(cmsgpack.pack(1,2,3))})lua",
                R"lua(return redis.sha1hex("abc","d"))lua",
                R"lua(return redis.status_reply("a\r\nb"))lua",
                R"lua(return redis.error_reply("a\r\nb"))lua",
                R"lua(return redis.error_reply("TWO words here"))lua",
                R"lua(return {redis.error_reply("x")})lua",
                R"lua(return {ok="a\nb"})lua",
                R"lua(redis.setresp(2) return 1)lua",
                R"lua(return redis.REPL_ALL)lua",
                R"lua(return redis.LOG_WARNING)lua",
                R"lua(redis.log(redis.LOG_DEBUG,"x") return 1)lua",
                R"lua(return ARGV[1]..ARGV[2])lua",
                R"lua(ARGV[1]=nil return ARGV[1])lua",
                R"lua(KEYS={})lua",
                R"lua(local KEYS={"mine"} return KEYS[1])lua",
                R"lua(return 1;)lua",
                R"lua(do return 1 end)lua",
                R"lua(return 1, 2, 3)lua",
                R"lua(return nil, 1)lua",
                R"lua(return "a".."b", redis.call("nosuch"))lua",
                R"lua(return -- nothing)lua",
                R"lua(return --[[ a comment ]] 7)lua",
                R"lua(return [[long
text]])lua",
                R"lua(return [==[a]]b]==])lua",
                R"lua(return "quo\"te" .. 'x')lua",
                R"lua(return not true)lua",
                R"lua(return 2^0.5)lua",
                R"lua(return 7 % 3)lua",
                R"lua(return "10" + 5)lua",
                R"lua(return 10 .. 20)lua",
                R"lua(local a <const> = 1)lua",
                R"lua(x = = 1)lua",
                R"lua(for)lua",
                R"lua(return })lua",
                R"lua(return "unfinished)lua",
                R"lua(return [[unfinished)lua",
                R"lua(if true then return 1)lua",
                R"lua(end)lua",
                R"lua(return 1 2)lua",
                R"lua(return return)lua",
                R"lua(local function f() return 1,2 end return {f()})lua",
                R"lua(local function f() return 1,2 end return f())lua",
                R"lua(local function f(...) return select("#",...) end return f(nil,nil))lua",
                R"lua(local function f(n) if n==0 then return 0 end return f(n-1) end return f(10000))lua",
                R"lua(local function f(n) return 1+f(n+1) end return f(1))lua",
                R"lua(local s=string.rep("(",300) return loadstring("return "..s))lua",
                R"lua(return string.rep("ab",5):upper():sub(2,4))lua",
                R"lua(return ("%d"):format(3))lua",
                R"lua(return ("x"):rep(3))lua",
                R"lua(local s="abc" return s:len())lua",
                R"lua(return #"abc")lua",
                R"lua(return {1,2,3,nil,5})lua",
                R"lua(return {[1]="a",[3]="c"})lua",
                R"lua(return {{},{{}}})lua",
                R"lua(return {""})lua",
                R"lua(return "")lua",
                R"lua(return "\0\1\2")lua",
                R"lua(return redis.call("SET",KEYS[1],"a\0b\r\n"))lua",
                R"lua(return redis.call("GET",KEYS[1]))lua",
                R"lua(return redis.call("SET",KEYS[1],"x","EX","abc"))lua",
                R"lua(return redis.call("EXPIRE",KEYS[1],100))lua",
                R"lua(return redis.call("object","encoding",KEYS[1]))lua",
                R"lua(return redis.call("command","count") > 100)lua",
                R"lua(return redis.call("time")[3])lua",
                R"lua(return redis.call("sort",KEYS[2]))lua",
                R"lua(redis.call("del",KEYS[2]) redis.call("rpush",KEYS[2],3,1,2) return redis.call("sort",KEYS[2]))lua",
                R"lua(return redis.call("unlink",KEYS[1],KEYS[2]))lua",
                R"lua(return redis.call("dbsize"))lua",
                R"lua(return redis.call("randomkey") ~= nil)lua",
                R"lua(return redis.acl_check_cmd("set","a","b"))lua",
                R"lua(return pcall)lua",
                R"lua(return cjson.null)lua",
                R"lua(return coroutine.create(function() end))lua",
                R"lua(return io)lua",
                R"lua(return require)lua",
                R"lua(return dofile)lua",
                R"lua(return loadfile)lua",
                R"lua(return debug)lua",
                R"lua(return setfenv)lua",
                R"lua(return getfenv)lua",
                R"lua(return newproxy)lua",
                R"lua(return module)lua",
                R"lua(return package)lua",
                R"lua(return jit)lua",
                R"lua(return ffi)lua",
};

/// Commands, one a line, words separated by "|".
inline constexpr std::string_view scripting_commands = R"lua(EVAL|return 1
EVAL|return 1|x
EVAL|return 1|-1
EVAL|return 1|2|a
EVAL|return 1|9223372036854775808
EVALSHA|abc|0
EVALSHA|abc|x
EVALSHA|e0e1f9fabfc9d4800c877a703b823ac0578ff8dB|0
EVALSHA|e0e1f9fabfc9d4800c877a703b823ac0578ff8db|x
SCRIPT|LOAD|return 1
SCRIPT|LOAD|return 1 +
EVALSHA|e0e1f9fabfc9d4800c877a703b823ac0578ff8db|0
EVALSHA|E0E1F9FABFC9D4800C877A703B823AC0578FF8DB|0
EVALSHA_RO|e0e1f9fabfc9d4800c877a703b823ac0578ff8db|0
SCRIPT|EXISTS|a|e0e1f9fabfc9d4800c877a703b823ac0578ff8db|E0E1F9FABFC9D4800C877A703B823AC0578FF8DB
SCRIPT|EXISTS
SCRIPT|LOAD
SCRIPT|LOAD|a|b
SCRIPT|KILL
SCRIPT|FLUSH|X
SCRIPT|FLUSH|ASYNC
SCRIPT|FLUSH|SYNC|x
SCRIPT|EXISTS|e0e1f9fabfc9d4800c877a703b823ac0578ff8db
SCRIPT|FLUSH|SYNC
SCRIPT|DEBUG|X
SCRIPT|DEBUG|NO
SCRIPT|FOO
SCRIPT
EVAL_RO|return redis.call("set","a",1)|0
EVAL_RO|return redis.pcall("publish","a",1)|0
EVAL_RO|return redis.call("get","a")|0
SET|a|1
EVAL|return redis.call("incr",KEYS[1])|1|a
MULTI
EVAL|return redis.call("incr",KEYS[1])|1|a
EVAL|return redis.call("nosuch")|0
SELECT|1
EVAL|return redis.call("set","in1","x")|0
GET|in1
EVAL|return redis.call("select","0")|0
GET|in1
EXEC
GET|in1
SELECT|0
GET|a
MULTI
EVAL|return 1|x
SCRIPT|LOAD|return 2
EXEC
WATCH|a
EVAL|return redis.call("incr","a")|0
MULTI
PING
EXEC
FUNCTION|LOAD|x
FUNCTION|LOAD|#!lua
FUNCTION|LOAD|#!lua~
FUNCTION|LOAD|#!js name=a~
FUNCTION|LOAD|#!lua name=a-b~
FUNCTION|LOAD|#!lua name=~
FUNCTION|LOAD|#!lua name=a name=b~
FUNCTION|LOAD|#!lua foo=a~
FUNCTION|FLUSH|SYNC|x
FUNCTION|LOAD|#!Lua NAME="a~
SADD|unordered|5|3|foo|10|bar|2|a
EVAL|return redis.call("sort","unordered","by","nosort")|0
EVAL|return redis.call("sort","unordered","by","nosort","desc","limit",1,2)|0
EVAL|return redis.call("sort_ro","unordered","by","nosort","get","#")|0
EVAL|return {bit.tohex(65535,-8),bit.tohex(65535,-3),bit.tohex(65535),bit.tohex(65535,99)}|0
EVAL|local t={} for i=1,7989 do t[i]="x" end return redis.call("del",unpack(t))|0
EVAL|local t={} for i=1,7990 do t[i]="x" end return redis.call("mget",unpack(t))|0
EVAL|local t={} for i=1,7998 do t[i]=i end return redis.call("del",unpack(t))|0
EVAL|local t={} for i=1,7998 do t[i]="x" end return redis.call("ping",unpack(t))|0
EVAL|local t={} for i=1,7998 do t[i]="x" end return redis.call("nosuch",unpack(t))|0
EVAL|local t={} for i=1,7998 do t[i]="x" end t[7998]={} return redis.call("del",unpack(t))|0
SET|text|x
EVAL|local t={} for i=1,7998 do t[i]="x" end return redis.pcall("rpush","text",unpack(t,1,7997))|0
DEL|unordered|text
FUNCTION|LOAD|#!Lua NAME="a"b~
FUNCTION|LOAD|#! name=a~
FUNCTION|LOAD|#!lua name=a~local x = pairs
FUNCTION|LOAD|#!lua name=a~local x = math
FUNCTION|LOAD|#!lua name=a~local x = cjson
FUNCTION|LOAD|#!lua name=a~local x = _G
FUNCTION|LOAD|#!lua name=a~local x = nosuch
FUNCTION|LOAD|#!lua name=a~local x = redis.sha1hex
FUNCTION|LOAD|#!lua name=a~local x = redis.REPL_ALL
FUNCTION|LOAD|#!lua name=a~redis = 1
FUNCTION|LOAD|#!lua name=a~redis.x = 1
FUNCTION|LOAD|#!lua name=a~redis.register_function(("f"):rep(2),function() return redis.sha1hex(math.floor(1.5)) end)
FCALL|FF|0
FUNCTION|LOAD|#!lua name=b~redis.register_function("Ff",function() end)
FUNCTION|LOAD|#!lua name=A~redis.register_function("f",function() end)
FUNCTION|LIST|LIBRARYNAME|A
FUNCTION|DELETE|a
FUNCTION|LIST|LIBRARYNAME|[A-Z]*
FUNCTION|LOAD|REPLACE|#!LUA name="a"~redis.log(redis.LOG_DEBUG,"loaded") redis.register_function("F",function() return redis.register_function end)
FUNCTION|DELETE|A
FUNCTION|LIST
FCALL|f|0
FCALL_RO|f|0
FUNCTION|FLUSH
EVAL|#!"lua" flags="no-writes,"~return 1|0
EVAL|#!lua "flags=no-writes"~return 1|0
EVAL|#!lua "flags=no-writes~return 1|0
EVAL|#!LUA~return 1|0
FUNCTION|LOAD|#!lua name=a~return 1
FUNCTION|LOAD|#!lua name=a~return 1 +
FUNCTION|LOAD|#!lua name=a~foo()
FUNCTION|LOAD|#!lua name=a~redis.call("get","x")
FUNCTION|LOAD|#!lua name=a~x=1
FUNCTION|LOAD|FOO|#!lua name=a~x=1
FUNCTION|LOAD
FUNCTION|LOAD|#!lua name=a~redis.register_function()
FUNCTION|LOAD|#!lua name=a~redis.register_function(1)
FUNCTION|LOAD|#!lua name=a~redis.register_function(1,2)
FUNCTION|LOAD|#!lua name=a~redis.register_function("a",2)
FUNCTION|LOAD|#!lua name=a~redis.register_function("a-b",function() end)
FUNCTION|LOAD|#!lua name=a~redis.register_function("ab",function() end,3)
FUNCTION|LOAD|#!lua name=a~redis.register_function({})
FUNCTION|LOAD|#!lua name=a~redis.register_function({function_name=1})
FUNCTION|LOAD|#!lua name=a~redis.register_function({function_name={}})
FUNCTION|LOAD|#!lua name=a~redis.register_function({function_name="x"})
FUNCTION|LOAD|#!lua name=a~redis.register_function({function_name="x",callback=2})
FUNCTION|LOAD|#!lua name=a~redis.register_function({function_name="x",callback=function() end,foo=1})
FUNCTION|LOAD|#!lua name=a~redis.register_function({function_name="x",callback=function() end,flags=1})
FUNCTION|LOAD|#!lua name=a~redis.register_function({function_name="x",callback=function() end,flags={"foo"}})
FUNCTION|LOAD|#!lua name=a~redis.register_function({function_name="x",callback=function() end,description={}})
FUNCTION|LOAD|#!lua name=a~redis.register_function("x",function() end) redis.register_function("x",function() end)
FUNCTION|LOAD|#!lua name=a~redis.register_function{function_name="g",callback=function(k,a) return redis.call("get",k[1]) end,flags={"no-writes","allow-oom"},description="gets"}
FUNCTION|LIST
FUNCTION|LIST|WITHCODE
FUNCTION|LIST|WITHCODE|FOO
FUNCTION|LIST|LIBRARYNAME
FUNCTION|LIST|LIBRARYNAME|x
FUNCTION|LIST|LIBRARYNAME|a*|WITHCODE
FUNCTION|LOAD|#!lua name=a~redis.register_function("g",function() end)
FUNCTION|LOAD|#!lua name=b~redis.register_function("g",function() end)
FUNCTION|LOAD|REPLACE|#!lua name=a~x
FCALL|g|1|a
FCALL_RO|g|1|a
FUNCTION|LOAD|replace|#!lua name=a~redis.register_function("f",function(k,a) return {k,a} end)
FCALL|f|1|a|b|c
FCALL|g|1|a
FCALL|f|x
FCALL|f|-1
FCALL|f|2|a
FCALL|nosuch|0
FCALL|nosuch|x
FCALL_RO|f|0
FUNCTION|LOAD|REPLACE|#!lua name=a~redis.register_function("f",function(k,a) return redis.call("nosuch") end)
FCALL|f|0
FUNCTION|LOAD|REPLACE|#!lua name=a~local function f() error("x") end redis.register_function("f",function(k,a) return f() end)
FCALL|f|0
FUNCTION|LOAD|REPLACE|#!lua name=a~local n=0 redis.register_function("f",function() n=n+1 return n end)
FCALL|f|0
FCALL|f|0
FUNCTION|LOAD|REPLACE|#!lua name=a~redis.register_function("f",function() redis.register_function("z",function() end) end)
FCALL|f|0
FUNCTION|LOAD|REPLACE|#!lua name=a~redis.register_function("f",function() x=1 end)
FCALL|f|0
FUNCTION|LOAD|REPLACE|#!lua name=a~redis.register_function("f",function() return KEYS end)
FCALL|f|0
FUNCTION|STATS
FUNCTION|DELETE|nosuch
FUNCTION|DELETE
FUNCTION|FLUSH|x
FUNCTION|RESTORE|x
FUNCTION|RESTORE|x|y
FUNCTION|FOO
FUNCTION|KILL
MULTI
FCALL|f|0
FUNCTION|DELETE|a
EXEC
FUNCTION|LIST
FUNCTION|DUMP
FUNCTION|FLUSH
CONFIG|GET|lua-time-limit
CONFIG|GET|busy-reply-threshold
CONFIG|SET|lua-time-limit|-1
CONFIG|SET|lua-time-limit|x
CONFIG|SET|lua-time-limit|77
CONFIG|GET|busy-reply-threshold
CONFIG|SET|busy-reply-threshold|5000)lua";

}  // namespace eddy::cache::testing
