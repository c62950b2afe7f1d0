// More scripts of differential_clients_test.cpp, in the form of differential_scripts.hpp: waiting
// for sorted sets, CLIENT TRACKING, users and what they may do.
#pragma once

#include <string_view>

namespace eddy::cache::testing {

/// What random clients do beside client_command_templates. Where ZUNIONSTORE and the like overwrite
/// a key of another type, Redis forgets those who wait for it; the scripts store under free keys.
inline constexpr std::string_view access_command_templates = R"(
ZADD %k 1 %v ; ZADD %k 1 %v 2 %v ; ZINCRBY %k 1 %v ; ZPOPMIN %k ; ZREM %k %v ; BZPOPMIN %k 0 ;
BZPOPMAX %k %k 0 ; BZMPOP 0 2 %k %k MIN COUNT 2 ; BZMPOP 0 1 %k MAX ;
GEOADD %k 1 2 %v ; ZREMRANGEBYRANK %k 0 0 ; CLIENT TRACKING ON ; CLIENT TRACKING ON NOLOOP ;
CLIENT TRACKING OFF ; CLIENT TRACKING ON BCAST PREFIX k1 ; CLIENT TRACKING ON REDIRECT @B ;
CLIENT TRACKING ON OPTIN ; CLIENT CACHING YES ; MGET %k %k ; LLEN %k ; TYPE %k ;
SUBSCRIBE __redis__:invalidate
)";

inline constexpr std::string_view sorted_set_wait_scripts[] = {
    // Waiting for sorted sets.
    R"(
A: BZPOPMIN z 0 ; B: ZADD z 1 a ; B: EXISTS z ; A: BZPOPMAX y z x 0 ; B: ZADD x 1 a 2 b 3 c ;
B: ZRANGE x 0 -1 WITHSCORES ; A: BZPOPMIN y x 0 ; A: BZPOPMAX y x 0 ; A: BZPOPMIN x 0 ; B: ZADD x 1.5 a 2 b ;
B: DEL x ; A: BZPOPMIN z 0 ; C: BZPOPMAX z 0 ; D: BZPOPMIN z 0 ; B: ZADD z 1 a 2 b ; B: ZADD z 3 c 4 d ;
B: ZRANGE z 0 -1 ; B: DEL z ; A: BZMPOP 0 2 y z MIN COUNT 2 ; B: ZADD z 1 a 2 b 3 c ; B: ZRANGE z 0 -1 ;
A: BZMPOP 0 2 y z MAX ; A: BZMPOP 0 2 y z MAX COUNT 10 ; A: BZMPOP 0 1 z MIN ; C: BZMPOP 0 1 z MIN COUNT 9 ;
B: ZADD z 5 e 6 f 7 g ; B: EXISTS z ; A: BZPOPMIN z 0 ; B: ZINCRBY z 2.5 m ; A: BZPOPMIN z 0 ;
B: ZADD y 1 a 2 b ; B: ZUNIONSTORE z 1 y ; B: DEL z ; A: BZPOPMIN z 0 ; B: ZINTERSTORE z 2 y y ; B: DEL z ;
A: BZPOPMIN z 0 ; B: ZDIFFSTORE z 2 y nosuch ; B: DEL z ; A: BZPOPMAX z 0 ; B: ZRANGESTORE z y 0 -1 ;
B: DEL z ; A: BZPOPMIN z 0 ; B: GEOADD z 13.361389 38.115556 Palermo ; A: BZPOPMIN z 0 ;
B: GEOADD g 13.361389 38.115556 Palermo ; B: GEOSEARCHSTORE z g FROMMEMBER Palermo BYRADIUS 9 km ASC ;
A: BZPOPMIN z 0 ; B: RENAME y z ; B: DEL z ; B: ZADD y 1 a 2 b ; A: BZPOPMIN z 0 ; B: COPY y z ;
B: DEL z ; A: BZPOPMIN z 0 ; B: SORT y BY nosort STORE z ; B: DEL z ; B: ZADD z 9 nine ; B: DEL z ;
A: BZPOPMIN z 0 ; B: RPUSH z a ; C: BLPOP z 0 ; C: BLPOP z 0 ; B: SET z x ; B: DEL z ; B: ZADD z 1 a 2 b ;
B: RPUSH z a ; B: DEL z ; B: RPUSH z a ; B: FLUSHALL
)",
    // One key, waited for as a list and as a sorted set.
    R"(
A: BLPOP k 0 ; C: BZPOPMIN k 0 ; D: BLPOP k 0 ; E: BZPOPMAX k 0 ; B: ZADD k 1 a 2 b 3 c ;
B: DEL k ; B: RPUSH k x y z ; B: LRANGE k 0 -1
)",
    // A whole transaction counts as one change.
    R"(
A: BZPOPMIN z 0 ; B: MULTI ; B: ZADD z 1 a ; B: DEL z ; B: EXEC ; B: MULTI ; B: ZADD z 5 a ; B: ZADD z 1 b ;
B: EXEC ; B: ZRANGE z 0 -1 ; B: DEL z ; A: BZPOPMIN y z 0 ; B: MULTI ; B: ZADD z 1 second ;
B: ZADD y 1 first ; B: EXEC ; B: FLUSHALL ; A: MULTI ; A: BZPOPMIN z 0 ; A: BZPOPMAX z 0 ;
A: BZMPOP 0 1 z MIN ; A: EXEC ; A: MULTI ; A: ZADD z 1 a 2 b 3 c ; A: BZPOPMAX z 0 ;
A: BZMPOP 0 1 z MIN COUNT 5 ; A: BZPOPMIN z 0 ; A: EXEC ; A: BZPOPMIN z 0 ; B: SELECT 1 ; B: ZADD z 1 other ;
B: SELECT 0 ; B: SWAPDB 0 1 ; B: FLUSHALL ; A: BZPOPMIN z 0 ; B: SELECT 1 ; B: ZADD z 1 other ;
B: MOVE z 0 ; B: FLUSHALL
)",
    // Wrong types and arguments.
    R"(
B: SET s x ; A: BZPOPMIN s 0 ; A: BZPOPMAX nosuch s 0 ; A: BZMPOP 0 1 s MIN ; A: BZMPOP 0 2 nosuch s MIN ;
A: BZPOPMIN z ; A: BZPOPMIN ; A: BZPOPMIN z x ; A: BZPOPMIN z -1 ; A: BZPOPMIN s x ; A: BZPOPMAX z nan ; A: BZPOPMAX z '' ;
A: BZMPOP x 1 z MIN ; A: BZMPOP 0 x z MIN ; A: BZMPOP 0 0 z MIN ; A: BZMPOP 0 5 z MIN ; A: BZMPOP 0 1 z FOO ;
A: BZMPOP 0 1 z MIN COUNT 0 ; A: BZMPOP 0 1 z MIN COUNT ; A: BZMPOP 0 1 z MIN COUNT 1 COUNT 1 ;
A: BZMPOP 0 1 z MIN FOO 1 ; A: BZMPOP -1 1 z MIN ; A: BZMPOP 0 1 z ; A: BZMPOP 0 -1 z MIN ; A: ZMPOP 1 z MIN COUNT ;
A: ZMPOP 1 z MIN COUNT 2 x ; A: ZMPOP 0 z MIN ; A: ZMPOP 3 z MIN
)",
    // Waits that end by themselves, or by others.
    R"(
A: BZPOPMIN z 0.05 ; C: BZPOPMAX z 0.05 ; D: BZMPOP 0.05 1 z MIN ; WAIT 250 ; B: ZADD z 1 a ; B: ZCARD z ;
B: DEL z ; A: BZPOPMIN z 0 ; B: CLIENT UNBLOCK @A ; A: BZPOPMAX z 0 ; B: CLIENT UNBLOCK @A ERROR ;
A: BZMPOP 0 1 z MIN ; B: CLIENT UNBLOCK @A TIMEOUT ; B: CLIENT UNBLOCK @A ; B: ZADD z 1 a ; B: ZCARD z ;
B: DEL z ; A: BZPOPMIN z 0 ; GONE A ; B: ZADD z 1 a ; B: ZCARD z
)",
    // What is notified.
    R"(
B: CONFIG SET notify-keyspace-events KEA ; C: PSUBSCRIBE __keyevent@0__:* ; A: BZPOPMIN z 0 ;
B: ZADD z 1 a 2 b ; A: BZPOPMAX z 0 ; A: BZMPOP 0 1 z MAX COUNT 5 ; B: ZADD z 1 a 2 b ; B: ZMPOP 1 z MIN
)",
};

inline constexpr std::string_view tracking_scripts[] = {
    // Arguments.
    R"(
A: CLIENT TRACKING ; A: CLIENT TRACKING x ; A: CLIENT TRACKING ON x ; A: CLIENT TRACKING ON REDIRECT ;
A: CLIENT TRACKING ON REDIRECT x ; A: CLIENT TRACKING ON REDIRECT 0 ; A: CLIENT TRACKING ON REDIRECT 99999999 ;
A: CLIENT TRACKING ON REDIRECT -1 ; A: CLIENT TRACKING ON REDIRECT @B REDIRECT @B ; A: CLIENT TRACKING ON PREFIX ;
A: CLIENT TRACKING ON PREFIX a ; A: CLIENT TRACKING ON OPTIN OPTOUT ; A: CLIENT TRACKING ON BCAST OPTIN ;
A: CLIENT TRACKING ON BCAST OPTOUT ; A: CLIENT TRACKINGINFO ; A: CLIENT TRACKINGINFO x ; A: CLIENT GETREDIR ;
A: CLIENT CACHING ; A: CLIENT CACHING YES ; A: CLIENT CACHING YES x ; A: CLIENT TRACKING OFF PREFIX a ;
A: CLIENT TRACKING OFF ; A: CLIENT TRACKING OFF x ; A: CLIENT TRACKING ON ; A: CLIENT TRACKINGINFO ; A: CLIENT GETREDIR ;
A: CLIENT CACHING YES ; A: CLIENT CACHING NO ; A: CLIENT CACHING x ; A: CLIENT TRACKING ON BCAST ; A: CLIENT TRACKING ON OPTIN ;
A: CLIENT TRACKINGINFO ; A: CLIENT TRACKING ON OPTOUT ; A: CLIENT CACHING NO ; A: CLIENT CACHING YES ; A: CLIENT TRACKINGINFO ;
A: PING ; A: CLIENT TRACKINGINFO ; A: CLIENT TRACKING ON NOLOOP ; A: CLIENT TRACKINGINFO ; A: CLIENT TRACKING ON OPTOUT ;
A: CLIENT CACHING NO ; A: CLIENT TRACKINGINFO ; A: CLIENT TRACKING OFF ; A: CLIENT TRACKINGINFO ; A: CLIENT TRACKING ON BCAST ;
A: CLIENT TRACKINGINFO ; A: CLIENT TRACKING ON ; A: CLIENT TRACKING OFF ; A: CLIENT TRACKINGINFO ;
A: CLIENT TRACKING ON BCAST PREFIX b PREFIX a ; A: CLIENT TRACKINGINFO ; A: CLIENT TRACKING ON BCAST PREFIX ab ;
A: CLIENT TRACKING ON BCAST PREFIX c PREFIX cd ; A: CLIENT TRACKING ON BCAST PREFIX d NOLOOP ; A: CLIENT TRACKINGINFO ;
A: CLIENT TRACKING ON BCAST PREFIX '' ; A: CLIENT TRACKING ON BCAST REDIRECT @B ; A: CLIENT TRACKINGINFO ;
A: RESET ; A: CLIENT TRACKINGINFO ; A: CLIENT GETREDIR ; B: client tracking on redirect @A bcast prefix x ;
B: CLIENT TRACKING ON BCAST OPTIN OPTOUT ; B: CLIENT TRACKINGINFO ; B: CLIENT INFO x ; B: CLIENT CACHING NO
)",
    // One's own pushes.
    R"(
A: CLIENT TRACKING ON ; A: GET x ; B: SET x 1 ; B: SET x 2 ; A: GET x ; A: GET x ; B: SET x 3 ; A: MGET x y z ; B: SET y 1 ;
B: DEL y ; B: MSET x 1 y 2 z 3 ; A: MGET x y z ; B: MSET x 1 y 2 z 3 ; A: EXISTS x y ; B: DEL x y ; A: LRANGE l 0 -1 ;
B: RPUSH l a b ; B: LPOP l ; A: LLEN l ; B: LPOP l ; A: HGET x f ; B: HSET x f 1 ; A: HGETALL x ; A: GET x ; B: HSET x f 2 ;
A: TTL x ; B: EXPIRE x 100 ; A: TYPE x ; B: PERSIST x ; B: PERSIST x ; A: TYPE x ; B: RENAME x y ; A: GET q ; A: TYPE y ;
B: RENAME y q ; A: SET q 1 ; A: GET q ; A: SET q 2 ; A: SET q 3 ; A: GET q ; A: MULTI ; A: GET w ; A: SET q 4 ; A: SET w 5 ; A: EXEC ;
A: MULTI ; A: GET q ; A: EXEC ; B: SET q 1 ; A: GET q ; B: SELECT 1 ; B: SET q other ; A: GET q ; A: SELECT 1 ; A: GET q ;
B: SET q other ; A: SELECT 0 ; B: SELECT 0 ; A: GET q ; B: SWAPDB 0 1 ; B: SET q 1 ; A: GET q ; B: FLUSHALL ; B: SET q 1 ;
A: GET q ; A: FLUSHDB ; A: GET q ; B: SET q 1 ; A: GETSET q 2 ; B: SET q 3 ; A: GETDEL q ; A: GETEX q ; B: SET q 3 ; A: STRLEN q ;
A: OBJECT ENCODING q ; B: APPEND q x ; A: BITCOUNT q ; B: SETBIT q 1 1 ; A: ZRANGE z 0 -1 ; B: ZADD z 1 a ; A: ZSCORE z a ;
B: ZINCRBY z 1 a ; A: SINTERCARD 2 s t ; B: SADD t a ; B: SADD s a ; A: SORT_RO s ; B: SADD s b ; A: SORT s ; B: SADD s c ;
A: ZUNION 2 z u ; B: ZADD u 1 x ; A: DBSIZE ; B: SET new 1 ; A: LCS a b ; B: SET b 1 ; A: DUMP b ; B: SET b 2 ;
A: TOUCH b ; B: GETEX b EX 100 ; B: GETEX b ; A: GET b ; B: COPY z b REPLACE ; A: SUBSCRIBE c ; A: PUBLISH c x ; A: UNSUBSCRIBE c ;
A: CLIENT TRACKING OFF ; A: GET b ; B: DEL b ; A: CLIENT TRACKING ON ; A: GET b ; A: CLIENT TRACKING OFF ; B: SET b 1 ; A: CLIENT TRACKING ON ;
A: GET b ; GONE A ; B: SET b 2
)",
    // One's own changes, with NOLOOP.
    R"(
A: HELLO 3 ; A: CLIENT TRACKING ON NOLOOP ; A: GET x ; A: SET x 1 ; A: GET x ; B: SET x 2 ; A: GET x ; A: DEL x ; B: SET x 1 ;
A: GET x ; A: FLUSHALL ; A: GET l ; B: BLPOP l 0 ; A: RPUSH l 1 ; B: PING ; A: LLEN l ; A: BLPOP l 0 ; B: RPUSH l 1 2
)",
    // Asked for, command by command.
    R"(
A: HELLO 3 ; A: CLIENT TRACKING ON OPTIN ; A: GET x ; B: SET x 1 ; A: CLIENT CACHING YES ; A: GET x ; A: GET y ; B: SET x 1 ; B: SET y 1 ;
A: CLIENT CACHING YES ; A: CLIENT GETNAME ; A: GET x ; B: SET x 1 ; A: CLIENT CACHING YES ; A: PING ; A: GET x ; B: SET x 1 ;
A: CLIENT CACHING YES ; A: NOSUCH ; A: GET x ; B: SET x 1 ; A: CLIENT CACHING YES ; A: GET ; A: CLIENT TRACKINGINFO ; A: GET x ; B: SET x 1 ;
A: CLIENT CACHING YES ; A: MULTI ; A: GET x ; A: GET y ; A: EXEC ; A: GET z ; B: MSET x 1 y 2 z 3 ; A: MULTI ; A: CLIENT CACHING YES ; A: GET x ;
A: GET y ; A: EXEC ; B: MSET x 1 y 2 z 3 ; A: CLIENT TRACKING OFF ; A: CLIENT TRACKING ON OPTOUT ; A: GET x ; B: SET x 1 ;
A: CLIENT CACHING NO ; A: GET x ; B: SET x 1 ; A: GET x ; B: SET x 1 ; A: CLIENT CACHING NO ; A: MULTI ; A: GET x ; A: EXEC ; B: SET x 1 ;
A: GET x ; B: SET x 2
)",
    // Told to another.
    R"(
B: SUBSCRIBE __redis__:invalidate ; A: CLIENT TRACKING ON REDIRECT @B ; A: CLIENT TRACKINGINFO ; A: GET x ; C: SET x 1 ;
A: GET x ; A: SET x 2 ; A: MGET x y ; C: MSET x 1 y 2 ; C: FLUSHALL ; A: FLUSHDB ; B: UNSUBSCRIBE ; A: GET x ; C: SET x 1 ; B: SUBSCRIBE other ;
A: GET x ; C: SET x 2 ; B: PUBLISH x x ; A: GET x ; GONE B ; C: SET x 3 ; A: CLIENT TRACKINGINFO ; A: GET x ; C: SET x 4 ; A: GET x ;
C: FLUSHALL ; A: CLIENT TRACKING ON REDIRECT @D ; A: CLIENT TRACKINGINFO ; A: GET x ; C: SET x 1 ; D: HELLO 3 ; A: GET x ; C: SET x 1 ;
A: GET x ; D: SET x 9 ; A: CLIENT TRACKING ON REDIRECT @A ; A: GET x ; A: SET x 1 ; A: HELLO 3 ; A: GET x ; A: SET x 1 ; A: HELLO 2 ;
A: CLIENT TRACKING OFF ; A: CLIENT TRACKING ON BCAST REDIRECT @D PREFIX p ; C: SET p1 1 ; C: SET q 1 ; D: SET p2 2 ; A: SET p3 3 ; C: FLUSHALL
)",
    // All below a prefix.
    R"(
A: HELLO 3 ; A: CLIENT TRACKING ON BCAST PREFIX a: PREFIX b: ; C: HELLO 3 ; C: CLIENT TRACKING ON BCAST ; B: SET a:1 x ; B: SET c:1 x ;
B: MSET a:1 1 b:1 2 c:1 3 a:2 4 ; A: SET a:9 1 ; C: SET b:9 1 ; A: GET a:1 ; B: SET a:1 y ; B: MULTI ; B: SET a:1 1 ; B: SET a:1 2 ; B: DEL a:1 ;
B: SET b:5 5 ; B: EXEC ; B: DEL nosuch ; B: SADD c:1 x ; B: FLUSHDB ; D: HELLO 3 ; D: CLIENT TRACKING ON BCAST NOLOOP PREFIX a: ; D: SET a:1 1 ;
D: MSET a:2 1 b:1 1 ; B: SET a:1 1 ; D: CLIENT TRACKING OFF ; B: SET a:1 1 ; D: CLIENT TRACKING ON ; D: GET a:1 ; B: SET a:1 1 ;
A: CLIENT TRACKING ON BCAST PREFIX c: ; B: SET c:1 1 ; A: RESET ; B: SET c:1 1 ; GONE C ; B: SET c:1 1 ; A: HELLO 3 ;
A: CLIENT TRACKING ON BCAST PREFIX '' ; B: SET anything 1 ; B: RENAME anything else ; B: SET '' 1
)",
    // Time passes.
    R"(
A: HELLO 3 ; C: HELLO 3 ; D: HELLO 3 ; A: CLIENT TRACKING ON ; C: CLIENT TRACKING ON NOLOOP ; D: CLIENT TRACKING ON BCAST NOLOOP ; B: SET x 1 PX 40 ; A: GET x ;
WAIT 400 ; A: GET x ; B: CONFIG SET tracking-table-max-keys 0 ; B: CONFIG GET tracking-table-max-keys ;
B: CONFIG SET tracking-table-max-keys -1 ; B: CONFIG SET tracking-table-max-keys x ; B: CONFIG SET tracking-table-max-keys 1000000
)",
    // Messages and invalidations on one connection.
    R"(
A: HELLO 3 ; A: SUBSCRIBE c ; A: CLIENT TRACKING ON ; A: GET x ; B: SET x 1 ; B: PUBLISH c x ; A: GET x ; A: MULTI ; A: SET x 1 ; A: PUBLISH c y ;
A: GET x ; A: EXEC ; B: SET x 5 ; A: CLIENT REPLY OFF ; A: GET x ; B: SET x 6 ; A: CLIENT REPLY ON ; A: GET x ; B: SET x 7 ; A: RESET ;
A: GET x ; B: SET x 8
)",
};

}  // namespace eddy::cache::testing
