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
GEOADD %k 1 2 %v ; ZREMRANGEBYRANK %k 0 0
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

}  // namespace eddy::cache::testing
