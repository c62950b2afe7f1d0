// More scripts of differential_clients_test.cpp, in the form of differential_scripts.hpp: refusals
// before all other checks, the output of MONITOR, and the entries of SLOWLOG.
#pragma once

#include <string_view>

namespace eddy::cache::testing {

/// Names and numbers of arguments that no command has, where another refusal is near.
inline constexpr std::string_view refusal_scripts[] = {
    // Without the password.
    R"(
A: CONFIG SET requirepass pw ; B: RESET ; B: NOSUCH a ; B: GET ; B: GET k ; B: CONFIG NOSUCH ; B: CONFIG GET ; B: CONFIG GET port ; B: CONFIG ;
B: CLIENT NOSUCH ; B: CLIENT ID x ; B: CLIENT ; B: DEBUG ; B: OBJECT NOSUCH k ; B: OBJECT ENCODING ; B: OBJECT HELP x ;
B: XINFO NOSUCH ; B: XINFO STREAM ; B: XGROUP NOSUCH ; B: XGROUP CREATE k ; B: MEMORY NOSUCH ; B: MEMORY USAGE ; B: AUTH ; B: EVAL ; B: FUNCTION NOSUCH ;
B: SCRIPT NOSUCH ; B: ACL NOSUCH ; B: ACL SETUSER ; B: SLOWLOG NOSUCH ; B: LATENCY NOSUCH ; B: COMMAND NOSUCH ; B: PUBSUB NOSUCH ; B: CLUSTER NOSUCH ;
B: COMMAND ; B: MULTI ; B: EXEC ; B: EXEC x ; B: WATCH ; B: SUBSCRIBE ; A: CONFIG SET requirepass ''
)",
    // Commands that the user may not run.
    R"(
A: ACL SETUSER u on >p +get +client|id +config|get +multi +exec ~k* resetchannels ; B: AUTH u p ; B: NOSUCH a ; B: GET ; B: GET k ; B: CONFIG NOSUCH ;
B: CONFIG GET ; B: CONFIG SET x ; B: CONFIG SET x y ; B: CLIENT NOSUCH ; B: CLIENT ID x ; B: CLIENT LIST ; B: CLIENT ; B: OBJECT NOSUCH k ; B: OBJECT ENCODING ;
B: XINFO NOSUCH ; B: XGROUP CREATE k ; B: MEMORY NOSUCH ; B: FUNCTION NOSUCH ; B: SCRIPT NOSUCH ; B: ACL NOSUCH ; B: SLOWLOG NOSUCH ; B: LATENCY NOSUCH ;
B: COMMAND NOSUCH ; B: PUBSUB NOSUCH ; B: CLUSTER NOSUCH ; B: MULTI ; B: CONFIG NOSUCH ; B: EXEC ; B: MULTI ; B: SLOWLOG GET x y ; B: EXEC
)",
    // While all wait.
    R"(
A: CLIENT PAUSE 5000 WRITE ; B: NOSUCH ; B: SET ; B: FUNCTION NOSUCH ; B: FUNCTION DELETE ; B: XGROUP NOSUCH ; B: XGROUP CREATE k ;
B: SCRIPT NOSUCH ; B: PUBLISH c ; B: EVAL ; A: INFO nosuch ; B: SET k v ; A: CLIENT UNPAUSE ; B: GET k
)",
};

inline constexpr std::string_view monitor_scripts[] = {
    R"(
M: MONITOR ; B: SET k v ; B: GET k ; B: EXEC ; B: MULTI ; B: SET a 1 ; B: CONFIG GET port ; B: GET k ; B: EXEC ; B: MULTI ; B: DISCARD ;
B: MULTI ; B: NOSUCH ; B: EXEC ; B: DISCARD ; B: NOSUCH ; B: GET ; B: SET a b c ; B: SCRIPT EXISTS abc ; B: EVALSHA abc 0 ; B: EVAL bad 0 ;
B: EVALSHA 0000000000000000000000000000000000000000 0 ; B: EVAL return{redis.call('set','x','1'),redis.call('slowlog','reset')} 0 ;
B: EVAL return{redis.call('set','x','1'),redis.call('select',3),redis.call('get','x')} 0 ; B: EVAL return{redis.call('select',3),redis.call('get','x')} 0 ;
B: EVAL_RO return{redis.call('get','x')} 1 x ; B: FCALL nosuch 0 ; B: FUNCTION LIST ; B: MULTI ; B: EVAL return{redis.call('get','x')} 0 ; B: EXEC ;
B: EVAL return{redis.pcall('nosuch'),redis.pcall('get'),redis.pcall('incr','k')} 0 ; B: ACL WHOAMI ; B: ACL NOSUCH ; B: ACL LOG RESET ;
B: ACL GETUSER nosuch ; B: ACL SETUSER u >secret ; B: ACL DELUSER u ; B: ACL GENPASS x ; B: ACL DRYRUN default get x ; B: AUTH secret ; B: AUTH nosuch secret ;
B: AUTH default secret ; B: HELLO 2 AUTH default secret ; B: HELLO 2 AUTH nosuch secret ; B: HELLO 2 SETNAME auth AUTH default secret ; B: HELLO 2 FOO ;
B: HELLO ; B: HELLO 2 AUTH default secret SETNAME n ; B: HELLO 9 ; B: CLIENT SETNAME n ; B: CLIENT GETNAME ; B: CLIENT KILL ID 99999999 ; B: CLIENT NOSUCH ;
B: CLIENT PAUSE 0 ; B: CLIENT NO-EVICT off ; B: CLIENT REPLY ON ; B: CLIENT UNBLOCK 99999999 ; B: CLIENT TRACKING off ; B: CLIENT GETREDIR ; B: COMMAND GETKEYS get x ;
B: COMMAND COUNT x ; B: CONFIG SET masterauth secret ; B: CONFIG SET masterauth '' ; B: CONFIG NOSUCH ; B: LATENCY RESET ; B: SLOWLOG RESET ; B: SLOWLOG GET 0 ; B: MEMORY USAGE nosuch ;
B: OBJECT ENCODING x ; B: SELECT 1 ; B: SELECT 99 ; B: GET k ; B: SELECT 0 ; B: SUBSCRIBE c ; B: UNSUBSCRIBE ; B: PUBLISH c m ; B: PUBSUB CHANNELS ; B: REPLICAOF NO ONE ;
B: SWAPDB 0 1 ; B: KEYS * ; B: DBSIZE ; B: WAIT 0 0 ; B: FAILOVER ABORT ; B: PFSELFTEST ; B: PFDEBUG encoding x ; B: WATCH k ; B: UNWATCH ; B: SORT l STORE x ;
B: XINFO HELP x ; B: OBJECT HELP x ; B: BLPOP l 0 ; C: RPUSH l 1 ; B: BLPOP l k 0 ; C: CLIENT UNBLOCK @B ; B: RESET ; C: SET q 1 ; M: RESET ; B: GET k
)",
    // Refused, and held up.
    R"(
M: MONITOR ; A: ACL SETUSER u on >p +get +eval ~k* ; B: AUTH u p ; B: GET k ; B: GET x ; B: SET k v ; B: EVAL redis.pcall('get','x')redis.pcall('get','k')return(1) 0 ;
A: CLIENT PAUSE 5000 WRITE ; C: SET a 1 ; A: CLIENT UNPAUSE ; C: GET a
)",
};

/// SLOWLOG that keeps all commands.
inline constexpr std::string_view slow_script = R"(
A: FLUSHALL ; A: SLOWLOG RESET ; A: CONFIG SET slowlog-log-slower-than 0 ; A: PING ; B: CLIENT SETNAME b ; B: MULTI ; B: SET a 1 ; B: ACL SETUSER u >secret ; B: AUTH secret ;
B: EXEC ; B: MULTI ; B: GET a ; B: DISCARD ; B: EXEC ; B: GET ; B: NOSUCH ; B: CONFIG NOSUCH ; B: EVAL return{redis.call('set','x','1'),redis.call('select',3)} 0 ; B: EVALSHA abc 0 ;
B: MULTI ; B: EVAL return{redis.call('get','x')} 0 ; B: EXEC ; B: AUTH secret ; B: AUTH default secret ; B: HELLO 2 AUTH default secret SETNAME bob ; B: HELLO 2 SETNAME b ;
B: ACL SETUSER u >secret ; B: ACL WHOAMI ; B: ACL LIST ; B: ACL GETUSER u ; B: ACL DRYRUN default get x ; B: ACL DELUSER u ; B: CONFIG SET masterauth secret ;
B: CONFIG SET masterauth '' maxmemory 0 ; B: CONFIG SET masterauth secret nosuch x ; B: CONFIG SET masteruser secret ; B: CONFIG SET masteruser '' ;
B: MSET 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 ; B: SET a LONG ;
B: DEL 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 ; B: DEL 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 ;
B: BLPOP l 0 ; A: RPUSH l 1 ; B: BZPOPMIN z y 0 ; A: ZADD y 1 m ; B: XREAD BLOCK 0 STREAMS s 0 ; A: XADD s 1 a b ; B: BLMOVE l k LEFT LEFT 0 ; A: MULTI ; A: RPUSH l 5 ; A: SET q 1 ;
A: EXEC ; B: MULTI ; B: BLPOP l 0 ; B: EXEC ; B: WAIT 0 0 ; B: SUBSCRIBE c ; B: UNSUBSCRIBE c ; B: SELECT 0 ; B: RESET ; B: CLIENT SETNAME bb ; B: GET a
)";

}  // namespace eddy::cache::testing
