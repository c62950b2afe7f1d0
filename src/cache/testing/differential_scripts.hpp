// Scripts of differential_clients_test.cpp: commands separated by semicolons, each with the letter
// of the client that sends it. "WAIT ms" lets time pass, "GONE A" closes a connection, @A is a
// client's number.
#pragma once

#include <string_view>

namespace eddy::cache::testing {

/// Templates of random clients' commands: %k is a key, %c a channel, %v a value.
inline constexpr std::string_view client_command_templates = R"(
MULTI ; MULTI ; EXEC ; EXEC ; EXEC ; DISCARD ; WATCH %k ; WATCH %k %k ; UNWATCH ; SET %k %v ;
SET %k %v ; GET %k ; INCR %k ; DEL %k ; DEL %k %k ; LPUSH %k %v ; RPUSH %k %v %v ; LPUSH %k %v %v ;
RPOP %k ; LPOP %k 2 ; LRANGE %k 0 -1 ; RENAME %k %k ; COPY %k %k REPLACE ; SADD %k %v ;
SREM %k %v ; SMOVE %k %k %v ; HSET %k %v %v ; HDEL %k %v ; HINCRBY %k %v 2 ;
EXPIRE %k 100 ; EXPIRE %k 0 ; PERSIST %k ; GETDEL %k ; GETEX %k PERSIST ; GETEX %k EX 100 ;
SETRANGE %k 2 %v ; APPEND %k %v ; SETEX %k 100 %v ; SUNIONSTORE %k %k %k ; LMOVE %k %k LEFT RIGHT ;
LTRIM %k 0 1 ; LREM %k 0 %v ; LINSERT %k BEFORE %v %v ; LSET %k 0 %v ; MOVE %k 1 ;
COPY %k %k DB 1 ; MSET %k %v %k %v ; MSETNX %k %v second %v ; SETNX %k %v ; LMPOP 2 %k %k LEFT COUNT 2 ;
FLUSHDB ; FLUSHALL ; SWAPDB 0 1 ; SELECT 1 ; SELECT 0 ; SELECT 0 ; NOSUCH ; SET %k ; PUBLISH %c %v ;
SUBSCRIBE %c ; SUBSCRIBE __keyevent@0__:del ; PSUBSCRIBE __keyspace@0__:* ; PSUBSCRIBE c* ;
UNSUBSCRIBE %c ; PUNSUBSCRIBE c* ; PUNSUBSCRIBE __keyspace@0__:* ; SSUBSCRIBE %c ;
SUNSUBSCRIBE %c ; SPUBLISH %c %v ; RESET ; PING ; PING %v ; BLPOP %k 0 ;
BLMOVE %k %k LEFT RIGHT 0 ; CLIENT UNBLOCK @A ; CLIENT UNBLOCK @B ; CLIENT UNBLOCK @C ; ECHO %v ;
CLIENT REPLY SKIP ; PUBSUB NUMSUB %c %c ; PUBSUB NUMPAT ; CONFIG SET notify-keyspace-events KEA ;
CONFIG SET notify-keyspace-events KEn$lshxgm
)";

inline constexpr std::string_view client_scripts[] = {
    // Transactions of one client.
    R"(
A: EXEC ; A: DISCARD ; A: MULTI ; A: SET a 1 ; A: GET a ; A: INCR a ; A: EXEC ; A: EXEC ;
A: MULTI ; A: MULTI ; A: WATCH a ; A: UNWATCH ; A: PING ; A: EXEC ; A: MULTI ; A: DISCARD ;
A: MULTI ; A: EXEC ; A: MULTI x ; A: EXEC x ; A: MULTI ; A: EXEC x ; A: EXEC ; A: WATCH ;
A: MULTI ; A: SET a x ; A: INCR a ; A: LPUSH a 1 ; A: GET a ; A: EXEC ; A: MULTI ; A: NOSUCH ;
A: SET a 2 ; A: EXEC ; A: GET a ; A: MULTI ; A: SET a ; A: EXEC ; A: MULTI ; A: SELECT 1 ;
A: SET b 1 ; A: EXEC ; A: GET b ; A: SELECT 0 ; A: GET b ; A: MULTI ; A: LRANGE nosuch 0 -1 ;
A: HGETALL nosuch ; A: GET nosuch ; A: MGET a b ; A: EXEC ; A: MULTI ; A: SET a 9 ; A: RESET ;
A: EXEC ; A: GET a ; A: MULTI ; A: BLPOP l 0 ; A: BRPOPLPUSH l m 0 ; A: BLMOVE l m LEFT RIGHT 0 ;
A: BLMPOP 0 1 l LEFT ; A: BRPOP l 0 ; A: EXEC ; A: MULTI ; A: RPUSH l 1 2 3 ; A: BLPOP l 0 ;
A: BLMPOP 0 1 l RIGHT COUNT 5 ; A: EXEC ; A: MULTI ; A: MONITOR ; A: EXEC ;
A: MULTI ; A: SET a 1 ; A: QUIT ; B: GET a
)",
    // Watched keys.
    R"(
A: WATCH x ; B: SET x 1 ; A: MULTI ; A: GET x ; A: EXEC ; A: MULTI ; A: GET x ; A: EXEC ;
A: WATCH x ; A: SET x 2 ; A: MULTI ; A: GET x ; A: EXEC ; A: WATCH x y ; B: SET z 1 ; A: MULTI ;
A: PING ; A: EXEC ; A: WATCH x ; A: UNWATCH ; B: SET x 3 ; A: MULTI ; A: GET x ; A: EXEC ;
A: WATCH x ; B: SET x 4 ; A: UNWATCH ; A: MULTI ; A: GET x ; A: EXEC ; A: WATCH x ; B: SET x 5 ;
A: MULTI ; A: DISCARD ; A: MULTI ; A: GET x ; A: EXEC ; A: WATCH x ; B: GET x ; B: EXISTS x ;
B: DEL nosuch ; A: MULTI ; A: GET x ; A: EXEC ; A: WATCH x ; B: DEL x ; A: MULTI ; A: EXEC ;
A: WATCH x ; B: DEL x ; A: MULTI ; A: EXEC ; A: WATCH x ; B: FLUSHDB ; A: MULTI ; A: EXEC ;
B: SET x 1 ; A: WATCH x ; B: FLUSHDB ; A: MULTI ; A: EXEC ; B: SET x 1 ; A: WATCH x ; B: FLUSHALL ;
A: MULTI ; A: EXEC ; B: SET x 1 ; A: WATCH x ; B: SWAPDB 0 1 ; A: MULTI ; A: EXEC ; A: WATCH x ;
B: SWAPDB 0 1 ; A: MULTI ; A: EXEC ; A: WATCH y ; B: SWAPDB 0 1 ; A: MULTI ; A: EXEC ; A: WATCH x ;
B: SELECT 1 ; B: SET x 5 ; A: MULTI ; A: EXEC ; B: SELECT 0 ; B: SET x 1 ; A: WATCH x ;
B: EXPIRE x 100 ; A: MULTI ; A: EXEC ; A: WATCH x ; B: PERSIST x ; A: MULTI ; A: EXEC ; A: WATCH x ;
B: PERSIST x ; A: MULTI ; A: EXEC ; A: WATCH x ; B: RENAME x y ; A: MULTI ; A: EXEC ; A: WATCH x ;
B: RENAME y x ; A: MULTI ; A: EXEC ; A: WATCH x ; B: COPY x y REPLACE ; A: MULTI ; A: EXEC ;
A: WATCH y ; B: COPY x y REPLACE ; A: MULTI ; A: EXEC ; A: WATCH x ; B: APPEND x '' ; A: MULTI ;
A: EXEC ; A: WATCH x ; B: INCR y ; B: INCR x ; A: MULTI ; A: EXEC ; A: WATCH x ; B: SET x 7 ;
A: MULTI ; A: NOSUCH ; A: EXEC ; A: WATCH x x x ; B: MULTI ; B: SET x 1 ; A: MULTI ; A: PING ;
B: EXEC ; A: EXEC ; A: WATCH x ; B: SET x 1 ; A: WATCH y ; A: MULTI ; A: EXEC ; A: WATCH l ;
B: RPUSH l a ; A: MULTI ; A: EXEC ; A: WATCH l ; B: LREM l 0 z ; A: MULTI ; A: EXEC ; A: WATCH l ;
B: LPOP l ; A: MULTI ; A: EXEC ; A: WATCH s ; B: SADD s 1 ; A: MULTI ; A: EXEC ; A: WATCH s ;
B: SADD s 1 ; A: MULTI ; A: EXEC ; A: WATCH s ; B: SREM s 2 ; A: MULTI ; A: EXEC ; A: WATCH h ;
B: HSET h a 1 ; A: MULTI ; A: EXEC ; A: WATCH h ; B: HSET h a 1 ; A: MULTI ; A: EXEC ;
A: WATCH h ; B: HDEL h z ; A: MULTI ; A: EXEC
)",
    // Watched keys that expire.
    R"(
B: SET x 1 PX 400 ; A: WATCH x ; WAIT 700 ; A: MULTI ; A: PING ; A: EXEC ;
B: SET x 1 PX 400 ; A: WATCH x ; WAIT 700 ; B: GET x ; A: MULTI ; A: PING ; A: EXEC ;
A: WATCH x ; B: GET x ; A: MULTI ; A: PING ; A: EXEC
)",
    // Messages.
    R"(
A: SUBSCRIBE c1 c2 c1 ; B: PUBLISH c1 hello ; B: PUBLISH c2 '' ; B: PUBLISH c3 x ; A: PSUBSCRIBE c* ;
B: PUBLISH c1 twice ; A: PING ; A: PING text ; A: GET x ; A: SET x 1 2 3 ; A: NOSUCH ; A: CLIENT GETNAME ;
A: CONFIG GET port ; A: PUBLISH c9 own ; A: SSUBSCRIBE s1 ; A: CLIENT GETNAME ; A: UNSUBSCRIBE c1 ;
A: UNSUBSCRIBE c9 ; A: UNSUBSCRIBE ; A: UNSUBSCRIBE ; A: PUNSUBSCRIBE nosuch ; A: PUNSUBSCRIBE ;
A: PUNSUBSCRIBE ; B: SPUBLISH s1 x ; B: PUBLISH s1 x ; A: SUNSUBSCRIBE ; A: SUNSUBSCRIBE ;
B: SPUBLISH s1 x ; A: GET x ; A: SUBSCRIBE ; A: PUBLISH ; A: PUBLISH a ; B: PUBSUB ;
B: PUBSUB CHANNELS ; B: PUBSUB CHANNELS a b ; B: PUBSUB NUMSUB ; B: PUBSUB NUMPAT ;
B: PUBSUB NUMPAT x ; B: PUBSUB NOSUCH ; B: PUBSUB SHARDCHANNELS a b ; A: SUBSCRIBE one ;
B: PUBSUB CHANNELS ; B: PUBSUB CHANNELS o* ; B: PUBSUB CHANNELS x* ; B: PUBSUB NUMSUB one two ;
C: SUBSCRIBE one ; B: PUBSUB NUMSUB one ; B: PUBLISH one both ; C: PSUBSCRIBE o?e *n* ;
B: PUBSUB NUMPAT ; D: PSUBSCRIBE *n* ; B: PUBSUB NUMPAT ; C: UNSUBSCRIBE ; C: PUNSUBSCRIBE o?e ;
B: PUBLISH one more ; GONE A ; B: PUBLISH one gone ; D: RESET ; D: GET x ; B: PUBLISH one reset ;
C: QUIT ; B: PUBSUB NUMPAT ; B: SSUBSCRIBE s ; B: PUBSUB SHARDNUMSUB s t ; B: PUBSUB SHARDCHANNELS
)",
    // Messages to oneself, and in transactions.
    R"(
A: HELLO 3 x ; A: SUBSCRIBE c ; A: PUBLISH c self ; A: MULTI ; A: PUBLISH c in ; A: PUBLISH c out ;
A: EXEC ; B: MULTI ; B: PUBLISH c one ; B: SUBSCRIBE d ; B: PUBLISH c two ; B: EXEC ;
C: PUBLISH d x ; B: UNSUBSCRIBE ; B: MULTI ; B: PSUBSCRIBE p* ; B: UNSUBSCRIBE ; B: EXEC ;
C: PUBLISH pp x ; C: SUBSCRIBE c ; C: RESET ; C: GET x
)",
    // Keyspace notifications.
    R"(
A: CONFIG SET notify-keyspace-events KEA ; A: CONFIG GET notify-keyspace-events ;
A: PSUBSCRIBE __key*__:* ; B: SET a 1 ; B: SET a 1 EX 100 ; B: SETEX a 100 1 ; B: SETNX a 1 ;
B: SETNX b 1 ; B: GETSET a 2 ; B: APPEND a 1 ; B: APPEND new 1 ; B: SETRANGE a 0 x ;
B: SETRANGE a 0 '' ; B: SET n 1 ; B: INCR n ; B: DECRBY n 5 ; B: INCRBYFLOAT n 1 ; B: MSET c 1 d 2 ;
B: MSETNX c 1 e 2 ; B: MSETNX e 1 f 2 ; B: GETDEL a ; B: GETDEL a ; B: GETEX b EX 100 ;
B: GETEX b PERSIST ; B: GETEX b PERSIST ; B: GETEX b PXAT 1 ; B: EXPIRE c 100 ; B: EXPIRE c 10 GT ;
B: EXPIRE c 0 ; B: PERSIST d ; B: EXPIRE d 100 ; B: PERSIST d ; B: DEL d e nosuch ; B: UNLINK f ;
B: RPUSH l a b c ; B: LPUSH l z ; B: LPUSHX nosuch a ; B: LPOP l ; B: RPOP l 1 ; B: LPOP l 0 ;
B: LSET l 0 q ; B: LSET l 9 q ; B: LREM l 0 nosuch ; B: LREM l 0 q ; B: LINSERT l BEFORE b x ;
B: LINSERT l BEFORE nosuch x ; B: LTRIM l 0 -1 ; B: LTRIM l 5 9 ; B: RPUSH l a b ;
B: LMOVE l m LEFT RIGHT ; B: RPOPLPUSH l m ; B: LMOVE m m LEFT LEFT ; B: LMPOP 1 m LEFT COUNT 9 ;
B: SADD s a b c ; B: SADD s a ; B: SREM s a z ; B: SREM s z ; B: SMOVE s t b ; B: SMOVE s t nosuch ;
B: SMOVE s t c ; B: SMOVE t t c ; B: SADD u c ; B: SMOVE t u c ; B: SPOP u 0 ; B: SPOP u 9 ;
B: SPOP t 1 ; B: SPOP t ; B: SADD s 1 2 ; B: SINTERSTORE d s s ; B: SINTERSTORE d s nosuch ;
B: SINTERSTORE d s nosuch ; B: SUNIONSTORE d s ; B: SDIFFSTORE d s s ; B: HSET h a 1 ; B: HSET h a 1 ;
B: HSETNX h a 1 ; B: HSETNX h b 1 ; B: HMSET h a 2 ; B: HINCRBY h a 1 ; B: HINCRBYFLOAT h a 1 ;
B: HDEL h z ; B: HDEL h a ; B: HDEL h b ; B: SET r 1 ; B: RENAME r q ; B: RENAME q q ;
B: RENAMENX q r ; B: SET q 2 ; B: RENAME q r ; B: COPY r c ; B: COPY r c REPLACE ; B: COPY r c DB 1 ;
B: MOVE r 1 ; B: MOVE r 1 ; B: FLUSHALL ; B: SWAPDB 0 1 ; B: SWAPDB 0 1 ; ~B: SET t 1 PX 20 ;
WAIT 400 ; B: GET t ; A: PUNSUBSCRIBE ; A: CONFIG SET notify-keyspace-events Elm ;
A: CONFIG GET notify-keyspace-events ; A: PSUBSCRIBE * ; B: GET nosuch ; B: MGET nosuch ;
B: STRLEN nosuch ; B: TTL nosuch ; B: TYPE nosuch ; B: EXISTS nosuch ; B: RPUSH l 1 ; B: SET a 1 ;
B: LPOP nosuch ; B: LRANGE nosuch 0 1 ; B: HGET nosuch a ; B: SINTER nosuch nosuch2
)",
    // The letters.
    R"(
A: CONFIG SET notify-keyspace-events K ; A: CONFIG GET notify-keyspace-events ;
A: CONFIG SET notify-keyspace-events g$lshzxetdnmKE ; A: CONFIG GET notify-keyspace-events ;
A: CONFIG SET notify-keyspace-events tehK ; A: CONFIG GET notify-keyspace-events ;
A: CONFIG SET notify-keyspace-events An ; A: CONFIG GET notify-keyspace-events ;
A: CONFIG SET notify-keyspace-events q ; A: CONFIG SET notify-keyspace-events '' ;
A: CONFIG GET notify-keyspace-events ; A: CONFIG SET notify-keyspace-events KEn ;
A: CONFIG GET notify-keyspace-events ; A: PSUBSCRIBE *:new ; B: SET a 1 ; B: SET a 1 ;
B: RPUSH l 1 ; B: RENAME a b ; B: COPY b c ; B: LMOVE l k LEFT LEFT ; B: SADD s 1 ; B: SUNIONSTORE t s ;
B: HSET h a 1 ; B: INCR n
)",
    // Waiting for lists.
    R"(
A: BLPOP l 0 ; B: LPUSH l a ; B: EXISTS l ; A: BLPOP k l m 0 ; B: RPUSH m 1 2 3 ; B: LRANGE m 0 -1 ;
A: BRPOP k m 0 ; A: BRPOP k m 0 ; A: BRPOP k m 0 ; B: RPUSH m 1 2 3 ; B: DEL m ;
A: BLPOP l 0 ; C: BLPOP l 0 ; D: BLPOP l 0 ; B: RPUSH l 1 2 ; B: RPUSH l 3 4 ; B: LRANGE l 0 -1 ;
B: DEL l ; A: BLPOP l 0 ; C: BRPOP l 0 ; B: RPUSH l 1 2 3 4 ; B: LRANGE l 0 -1 ; B: DEL l ;
A: BLMOVE l m LEFT RIGHT 0 ; B: RPUSH l x ; B: LRANGE m 0 -1 ; A: BRPOPLPUSH l m 0 ; B: RPUSH l x y ;
B: LRANGE m 0 -1 ; B: FLUSHALL ; A: BLMPOP 0 2 k l LEFT COUNT 2 ; B: RPUSH l 1 2 3 ;
B: LRANGE l 0 -1 ; A: BLMPOP 0 2 k l RIGHT ; B: FLUSHALL ; A: BLMOVE l m LEFT LEFT 0 ;
C: BLMOVE m n LEFT LEFT 0 ; D: BLPOP n 0 ; B: LPUSH l chain ; B: EXISTS l m n ; A: BLPOP l 0 ;
B: MULTI ; B: LPUSH l a ; B: DEL l ; B: EXEC ; B: MULTI ; B: LPUSH l a ; B: DEL l ; B: SET l x ;
B: EXEC ; B: DEL l ; B: MULTI ; B: RPUSH l 1 ; B: LPUSH l 2 ; B: EXEC ; B: FLUSHALL ;
A: BLPOP k l 0 ; B: MULTI ; B: RPUSH l second ; B: RPUSH k first ; B: EXEC ; B: FLUSHALL ;
A: BLPOP l 0 ; B: SET l x ; B: SADD s a ; B: DEL l ; B: RPUSH q z ; B: RENAME q l ; B: RPUSH q z ;
A: BLPOP l 0 ; B: COPY q l ; A: BLPOP l 0 ; B: SELECT 1 ; B: RPUSH l other ; B: SELECT 0 ;
B: SWAPDB 0 1 ; B: FLUSHALL ; A: BLPOP l 0 ; B: SELECT 1 ; B: RPUSH l other ; B: MOVE l 0 ;
B: FLUSHALL ; B: SELECT 0 ; B: SET t x ; A: BLMOVE l t LEFT LEFT 0 ; B: RPUSH l x ;
B: LRANGE l 0 -1 ; B: FLUSHALL ; B: SET t x ; A: BLPOP t 0 ; A: BLPOP nosuch t 0 ; A: BLMOVE t l LEFT LEFT 0 ;
A: BRPOPLPUSH t l 0 ; A: BLMPOP 0 1 t LEFT ; B: FLUSHALL ; A: BLPOP l 0 ; GONE A ; B: RPUSH l 1 ;
B: LRANGE l 0 -1
)",
    // A waiting client's own list, and one that pushes to itself in the end.
    R"(
A: RPUSH l 1 ; A: BLMOVE l l LEFT RIGHT 0 ; A: BRPOPLPUSH l l 0 ; A: DEL l ; A: BLMOVE l l LEFT RIGHT 0 ;
B: RPUSH l 1 2 ; B: LRANGE l 0 -1 ; B: DEL l ; A: BRPOPLPUSH l l 0 ; C: BLPOP l 0 ; B: RPUSH l 1 ;
B: EXISTS l
)",
    // Arguments of the commands that wait.
    R"(
A: BLPOP l ; A: BLPOP l x ; A: BLPOP l -1 ; A: BLPOP l nan ; A: BLPOP l -inf ; A: BLPOP l '' ; A: BLPOP l -0.1 ; A: BRPOPLPUSH l m ;
A: BRPOPLPUSH l m x ; A: BLMOVE l m LEFT FOO x ; A: BLMOVE l m LEFT RIGHT x ; A: BLMOVE l m UP LEFT 0 ;
A: BLMPOP x 1 l LEFT ; A: BLMPOP 0 x l LEFT ; A: BLMPOP 0 0 l LEFT ; A: BLMPOP 0 5 l LEFT ;
A: BLMPOP 0 1 l FOO ; A: BLMPOP 0 1 l LEFT COUNT 0 ; A: BLMPOP 0 1 l LEFT COUNT ;
A: BLMPOP 0 1 l LEFT COUNT 1 COUNT 1 ; A: BLMPOP -1 1 l LEFT ; B: SET s x ; A: BLPOP s x
)",
    // Waits that end by themselves, or by others.
    R"(
~A: BLPOP l 0.05 ; ~C: BLMOVE l m LEFT LEFT 0.05 ; ~D: BLMPOP 0.05 1 l LEFT ; ~E: BRPOPLPUSH l m 0.05 ;
WAIT 250 ; B: RPUSH l x ; B: LRANGE l 0 -1 ; B: DEL l ; A: BLPOP l 0 ; B: CLIENT UNBLOCK @A ;
A: BLPOP l 0 ; B: CLIENT UNBLOCK @A TIMEOUT ; A: BLMOVE l m LEFT LEFT 0 ; B: CLIENT UNBLOCK @A ERROR ;
B: CLIENT UNBLOCK @A ; B: CLIENT UNBLOCK 99999999 ; B: CLIENT UNBLOCK x ; B: CLIENT UNBLOCK ;
B: CLIENT UNBLOCK @A FOO ; B: CLIENT UNBLOCK @A ERROR x ; B: RPUSH l x ; B: LRANGE l 0 -1 ; A: PING
)",
    // Messages to waiting clients.
    R"(
A: SUBSCRIBE c ; B: PUBLISH c x ; A: UNSUBSCRIBE ; B: CONFIG SET notify-keyspace-events KEA ;
C: PSUBSCRIBE __keyevent@0__:* ; A: BLPOP l 0 ; B: RPUSH l 1 2 ; A: BLMOVE l m LEFT RIGHT 0 ;
A: BLMOVE l m LEFT RIGHT 0 ; B: LPUSH l 9 ; A: BLMPOP 0 1 l LEFT COUNT 5 ; B: RPUSH l 1 2
)",
    // CLIENT.
    R"(
A: CLIENT KILL ; A: CLIENT KILL nosuch ; A: CLIENT KILL ID ; A: CLIENT KILL ID x ; A: CLIENT KILL ID 0 ;
A: CLIENT KILL ID 99999999 ; A: CLIENT KILL TYPE foo ; A: CLIENT KILL TYPE master ;
A: CLIENT KILL USER nosuch ; A: CLIENT KILL SKIPME maybe ; A: CLIENT KILL ADDR x LADDR y ;
A: CLIENT KILL FOO x ; A: CLIENT KILL ID 1 ADDR ; A: CLIENT LIST FOO ; A: CLIENT LIST TYPE ;
A: CLIENT LIST TYPE foo ; A: CLIENT LIST ID ; A: CLIENT LIST ID x ; A: CLIENT LIST ID 99999999 ;
A: CLIENT LIST TYPE master ; A: CLIENT PAUSE ; A: CLIENT PAUSE x ; A: CLIENT PAUSE -1 ;
A: CLIENT PAUSE 10 FOO ; A: CLIENT PAUSE 10 ALL x ; A: CLIENT UNPAUSE x ; A: CLIENT UNPAUSE ;
A: CLIENT REPLY ; A: CLIENT REPLY foo ; A: CLIENT REPLY ON ; A: CLIENT REPLY OFF ; A: PING ; A: NOSUCH ;
A: CLIENT REPLY SKIP ; A: CLIENT REPLY ON ; A: CLIENT REPLY SKIP ; A: PING ; A: PING ;
A: CLIENT REPLY SKIP ; A: CLIENT REPLY SKIP ; A: PING ; A: PING ; A: CLIENT REPLY OFF ; A: SUBSCRIBE c ;
B: PUBLISH c x ; A: UNSUBSCRIBE c ; A: CLIENT REPLY ON ; A: CLIENT REPLY OFF ; A: RESET ; A: PING ;
A: CLIENT GETREDIR ; A: CLIENT GETREDIR x ; C: SUBSCRIBE c ; A: CLIENT KILL TYPE pubsub ;
B: PUBLISH c x ; D: BLPOP l 0 ; A: CLIENT KILL ID @D ; B: RPUSH l x ; B: LLEN l ; E: PING ;
A: CLIENT KILL ID @E SKIPME no ; A: CLIENT KILL ID @A ; A: PING
)",
    // Pauses.
    R"(
A: CLIENT PAUSE 60000 WRITE ; B: GET x ; B: SET x 1 ; A: GET x ; C: MULTI ; C: GET x ; C: EXEC ;
C: PUBLISH c x ; A: CLIENT UNPAUSE ; A: GET x ;
~A: CLIENT PAUSE 50 WRITE ; ~B: INCR x ; WAIT 200 ; A: CLIENT PAUSE 60000 WRITE ; B: BLPOP l 0 ;
A: CLIENT UNPAUSE ; A: RPUSH l 1
)",
    // Output limits' settings.
    R"(
A: CONFIG GET client-output-buffer-limit ; A: CONFIG SET client-output-buffer-limit x ;
A: CONFIG SET client-output-buffer-limit pubsub ; A: CONFIG GET client-output-buffer-limit
)",
};

}  // namespace eddy::cache::testing
