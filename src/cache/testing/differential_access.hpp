// More scripts of differential_clients_test.cpp, in the form of differential_scripts.hpp: blocking
// commands on sorted sets, CLIENT TRACKING, users and their permissions.
#pragma once

#include <string_view>

namespace eddy::cache::testing {

/// Commands of random clients beside client_command_templates. Where ZUNIONSTORE and the like
/// overwrite a key of another type, Redis drops clients that are blocked on it; so the scripts
/// store under free keys.
inline constexpr std::string_view access_command_templates = R"(
ZADD %k 1 %v ; ZADD %k 1 %v 2 %v ; ZINCRBY %k 1 %v ; ZPOPMIN %k ; ZREM %k %v ; BZPOPMIN %k 0 ;
BZPOPMAX %k %k 0 ; BZMPOP 0 2 %k %k MIN COUNT 2 ; BZMPOP 0 1 %k MAX ;
GEOADD %k 1 2 %v ; ZREMRANGEBYRANK %k 0 0 ; CLIENT TRACKING ON ; CLIENT TRACKING ON NOLOOP ;
CLIENT TRACKING OFF ; CLIENT TRACKING ON BCAST PREFIX k1 ; CLIENT TRACKING ON REDIRECT @B ;
CLIENT TRACKING ON OPTIN ; CLIENT CACHING YES ; MGET %k %k ; LLEN %k ; TYPE %k ;
SUBSCRIBE __redis__:invalidate ; AUTH u x ; AUTH default x ; ACL SETUSER u on nopass +@all ~k1 &* ;
ACL SETUSER u ~k2 ; ACL SETUSER u resetkeys -@write ; ACL SETUSER u +set +exec ; ACL SETUSER u -del ; ACL WHOAMI
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
~A: BZPOPMIN z 0.05 ; ~C: BZPOPMAX z 0.05 ; ~D: BZMPOP 0.05 1 z MIN ; WAIT 250 ; B: ZADD z 1 a ; B: ZCARD z ;
B: DEL z ; A: BZPOPMIN z 0 ; B: CLIENT UNBLOCK @A ; A: BZPOPMAX z 0 ; B: CLIENT UNBLOCK @A ERROR ;
A: BZMPOP 0 1 z MIN ; B: CLIENT UNBLOCK @A TIMEOUT ; B: CLIENT UNBLOCK @A ; B: ZADD z 1 a ; B: ZCARD z ;
B: DEL z ; A: BZPOPMIN z 0 ; GONE A ; B: ZADD z 1 a ; B: ZCARD z
)",
    // Keyspace notifications.
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
    // Redirected to another client.
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
A: HELLO 3 ; C: HELLO 3 ; D: HELLO 3 ; A: CLIENT TRACKING ON ; C: CLIENT TRACKING ON NOLOOP ; D: CLIENT TRACKING ON BCAST NOLOOP ; B: SET x 1 PX 400 ; A: GET x ;
WAIT 900 ; A: GET x ; B: CONFIG SET tracking-table-max-keys 0 ; B: CONFIG GET tracking-table-max-keys ;
B: CONFIG SET tracking-table-max-keys -1 ; B: CONFIG SET tracking-table-max-keys x ; B: CONFIG SET tracking-table-max-keys 1000000
)",
    // Messages and invalidations on one connection.
    R"(
A: HELLO 3 ; A: SUBSCRIBE c ; A: CLIENT TRACKING ON ; A: GET x ; B: SET x 1 ; B: PUBLISH c x ; A: GET x ; A: MULTI ; A: SET x 1 ; A: PUBLISH c y ;
A: GET x ; A: EXEC ; B: SET x 5 ; A: CLIENT REPLY OFF ; A: GET x ; B: SET x 6 ; A: CLIENT REPLY ON ; A: GET x ; B: SET x 7 ; A: RESET ;
A: GET x ; B: SET x 8
)",
};

inline constexpr std::string_view acl_scripts[] = {
    // Users shown and changed. Redis 7.0 shows single commands in another order than 7.2.
    R"(
A: ACL WHOAMI ; A: ACL USERS ; A: ACL LIST ; A: ACL GETUSER default ; A: ACL GETUSER nosuch ; A: ACL GETUSER Default ; A: ACL SETUSER u ;
A: ACL GETUSER u ; A: ACL LIST ; A: ACL SETUSER u on >pw ~a:* %R~b:* %W~c:* %RW~d &chan +get ; A: ACL GETUSER u ; A: ACL LIST ;
A: ACL SETUSER u %W~b:* ; A: ACL GETUSER u ; A: ACL SETUSER u ~a:* &chan &chan2 >pw >pw2 ; A: ACL GETUSER u ; A: ACL SETUSER u <pw <pw2 ;
A: ACL GETUSER u ; A: ACL SETUSER u nopass ; A: ACL GETUSER u ; A: ACL SETUSER u >x ; A: ACL GETUSER u ; A: ACL SETUSER u resetpass off ;
A: ACL GETUSER u ; A: ACL SETUSER u resetkeys resetchannels nocommands ; A: ACL GETUSER u ; A: ACL SETUSER u allkeys allchannels allcommands ;
A: ACL GETUSER u ; A: ACL SETUSER u -@dangerous ; A: ACL GETUSER u ; A: ACL SETUSER u nocommands ; A: ACL GETUSER u ; A: ACL SETUSER u +@read ;
A: ACL GETUSER u ; A: ACL SETUSER u +@all -set ; A: ACL GETUSER u ; A: ACL SETUSER u -@all +config|get ; A: ACL GETUSER u ; A: ACL SETUSER u reset ;
A: ACL GETUSER u ; A: ACL SETUSER u (+get ~x) (%R~y +set) ; A: ACL GETUSER u ; A: ACL LIST ; A: ACL SETUSER u ( +get ~z ) ;
A: ACL GETUSER u ; A: ACL SETUSER u () ; A: ACL SETUSER u clearselectors ; A: ACL GETUSER u ; A: ACL SETUSER u '' ; A: ACL SETUSER '' ; A: ACL USERS ;
A: ACL DELUSER '' ; A: ACL SETUSER u #2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae on ; A: ACL GETUSER u ; B: AUTH u foo ; B: ACL WHOAMI ;
A: ACL SETUSER u !2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae ; A: ACL GETUSER u ; A: ACL SETUSER u ~* ;
A: ACL SETUSER u ~x ; A: ACL SETUSER u resetkeys ~x &* ; A: ACL SETUSER u &x ; A: ACL SETUSER u resetchannels &x ; A: ACL GETUSER u ;
A: ACL SETUSER u skip-sanitize-payload ; A: ACL SETUSER u sanitize-payload ; A: ACL DELUSER u nosuch ; A: ACL DELUSER u ; A: ACL USERS ; A: ACL DELUSER default ;
A: ACL SETUSER u +select|0 ; A: ACL GETUSER u ; A: ACL SETUSER u +SELECT|1 ; A: ACL SETUSER u -select ; A: ACL SETUSER U +GET ; A: ACL GETUSER U ;
A: ACL USERS ; A: ACL DELUSER U u
)",
    // Invalid rules.
    R"(
A: ACL ; A: ACL nosuch ; A: ACL SETUSER ; A: ACL GETUSER ; A: ACL GETUSER a b ; A: ACL DELUSER ; A: ACL LIST x ; A: ACL USERS x ; A: ACL WHOAMI x ;
A: ACL CAT nosuch ; A: ACL CAT read x ; A: ACL GENPASS x ; A: ACL GENPASS 0 ; A: ACL GENPASS -1 ; A: ACL GENPASS 4097 ; A: ACL GENPASS 1 2 ; A: ACL LOG x ;
A: ACL LOG RESET x ; A: ACL LOG RESET ; A: ACL LOG ; A: ACL LOG -1 ; A: ACL LOG 0 ; A: ACL SAVE ; A: ACL LOAD ; A: ACL SAVE x ; A: ACL DRYRUN ; A: ACL DRYRUN u ;
A: ACL DRYRUN default ; A: ACL DRYRUN default get ; A: ACL DRYRUN default get x ; A: ACL DRYRUN nosuch get x ; A: ACL DRYRUN default nosuch ;
A: ACL SETUSER u foo ; A: ACL USERS ; A: ACL SETUSER u +nosuch ; A: ACL SETUSER u -nosuch ; A: ACL SETUSER u +@nosuch ; A: ACL SETUSER u -@nosuch ;
A: ACL SETUSER u + ; A: ACL SETUSER u - ; A: ACL SETUSER u +@ ; A: ACL SETUSER u +config|nosuch ; A: ACL SETUSER u -config|nosuch ; A: ACL SETUSER u +get| ;
A: ACL SETUSER u +config| ; A: ACL SETUSER u -get|x ; A: ACL SETUSER u +config|get|x ; A: ACL SETUSER u +nosuch|x ; A: ACL SETUSER u %X~x ;
A: ACL SETUSER u %RR~x ; A: ACL SETUSER u %R ; A: ACL SETUSER u %Rx ; A: ACL SETUSER u #abc ; A: ACL SETUSER u !abc ; A: ACL SETUSER u <abc ;
A: ACL SETUSER u #2C26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae ; A: ACL SETUSER u (+get ; A: ACL SETUSER u (+get ~x (y ; A: ACL SETUSER u (foo) ;
A: ACL SETUSER u (+nosuch) ; A: ACL SETUSER u (on) ; A: ACL SETUSER u (+get (~x) ; A: ACL SETUSER u ) ; A: ACL SETUSER u +get) ; A: ACL SETUSER u on off foo ; A: ACL USERS ;
A: ACL SETUSER u on >x ~y ; A: ACL SETUSER u off <x ~z foo ; A: ACL GETUSER u ; A: ACL DELUSER u ; A: AUTH ; A: AUTH a b c ; A: AUTH a ; A: AUTH nosuch x ; A: AUTH default x ;
A: CONFIG GET acllog-max-len ; A: CONFIG GET acl-pubsub-default ; A: CONFIG SET acllog-max-len x ; A: CONFIG SET acllog-max-len 128 ; A: CONFIG SET aclfile x
)",
    // Channels of a new user.
    R"(
A: ACL SETUSER u ; A: CONFIG SET acl-pubsub-default AllChannels ; A: CONFIG GET acl-pubsub-default ; A: CONFIG SET acl-pubsub-default none ; A: ACL SETUSER v on nopass +@all ;
A: ACL SETUSER v (+get ~x) ; A: ACL GETUSER u ; A: ACL GETUSER v ; A: ACL SETUSER v &c ; A: ACL SETUSER u &c ; B: AUTH v x ; B: PUBLISH c x ; A: ACL SETUSER u reset ; A: ACL LIST ;
A: CONFIG SET acl-pubsub-default resetchannels ; A: ACL SETUSER v reset ; A: ACL SETUSER w ; A: ACL LIST ; A: ACL DELUSER u v w
)",
    // Permissions of a user.
    R"(
A: SET a:1 x ; A: SET b:1 x ; A: SET z x ; A: ACL SETUSER u on >pw ~a:* %R~b:* %W~c:* +@all -@dangerous -incr ; B: AUTH u wrong ; B: ACL WHOAMI ; B: AUTH u pw ;
B: ACL WHOAMI ; B: GET a:1 ; B: GET b:1 ; B: GET c:1 ; B: GET z ; B: SET a:1 y ; B: SET b:1 y ; B: SET c:1 y ; B: SET c:1 y GET ; B: SET z y ; B: SET a:1 y GET ;
B: MGET a:1 b:1 ; B: MGET a:1 c:1 ; B: MSET a:1 1 c:1 2 ; B: MSET a:1 1 b:1 2 ; B: COPY b:1 a:2 ; B: COPY b:1 c:2 ; B: COPY a:1 b:2 ; B: COPY c:1 a:2 ; B: RENAME a:2 c:9 ;
B: RENAME b:1 a:9 ; B: DEL c:1 ; B: DEL b:1 ; B: UNLINK a:1 a:2 ; B: INCR a:1 ; B: INCRBY a:n 1 ; B: INCRBY b:n 1 ; B: INCRBY c:n 1 ; B: STRLEN c:1 ; B: EXISTS c:1 ; B: EXISTS b:1 ; B: TYPE c:1 ;
B: TYPE z ; B: EXPIRE c:1 10 ; B: EXPIRE b:1 10 ; B: TTL c:1 ; B: TTL b:1 ; B: LPUSH c:l 1 2 ; B: LPUSH b:l 1 ; B: LRANGE c:l 0 -1 ; B: LMOVE a:l c:l LEFT LEFT ; B: LMOVE c:l a:l LEFT LEFT ;
B: LPOP c:l ; B: LMPOP 1 a:l LEFT ; B: LMPOP 1 b:l LEFT ; B: LMPOP 2 a:l z LEFT ; B: SINTERSTORE c:s a:s b:s ; B: SINTERSTORE c:s c:t ; B: SUNION a:s b:s ; B: SINTERCARD 2 a:s z ;
B: ZADD c:z 1 m ; B: ZADD b:z 1 m ; B: ZUNIONSTORE c:z 2 a:z b:z ; B: ZUNIONSTORE c:z 2 a:z c:z ; B: ZRANGESTORE c:z b:z 0 -1 ; B: ZRANGESTORE b:z a:z 0 -1 ;
B: SORT a:l ; B: SORT a:l STORE c:l ; B: SORT a:l STORE b:l ; B: SORT a:l BY a:* ; B: SORT a:l BY nosort GET a:* ; B: SORT a:l GET # ; B: SORT_RO b:l ; B: SORT_RO a:l BY w* ;
B: GEOADD c:g 1 2 m ; B: GEORADIUS b:g 1 2 3 km ; B: GEORADIUS b:g 1 2 3 km STORE c:g ; B: GEORADIUS b:g 1 2 3 km STORE b:h ; B: GEOSEARCHSTORE c:g b:g FROMLONLAT 1 2 BYRADIUS 9 m ;
B: BITFIELD b:1 GET u8 0 ; B: BITFIELD b:1 SET u8 0 1 ; B: BITOP AND c:b a:1 b:1 ; B: BITOP AND b:b a:1 ; B: PFADD c:p x ; B: PFCOUNT b:p ; B: PFMERGE c:p b:p ; B: GETEX b:1 ; B: GETEX a:1 ;
B: GETDEL a:1 ; B: GETDEL c:1 ; B: OBJECT ENCODING b:1 ; B: OBJECT ENCODING z ; B: MEMORY USAGE z ; B: DUMP b:1 ; B: DUMP c:1 ; B: TOUCH z ; B: WATCH z ; B: WATCH a:1 ; B: UNWATCH ; B: KEYS * ; B: FLUSHALL ;
B: CONFIG GET port ; B: INFO server ; B: DEBUG SLEEP 0 ; B: ACL LIST ; B: ACL WHOAMI ; B: CLIENT ID x ; B: CLIENT GETNAME ; B: CLIENT LIST ; B: CLIENT KILL ID 0 ; B: SCAN 0 COUNT 0 ; B: NOSUCH ; B: GET ;
B: PING ; B: PUBLISH x y ; B: SUBSCRIBE x ; B: BLPOP a:nosuch z 0 ; B: BLMOVE b:l a:l LEFT LEFT 0 ; B: BZPOPMIN b:z 0 ; B: MOVE b:1 1 ; B: SWAPDB 0 1 ; B: SELECT 0 ; B: HELLO ; B: RESET ; B: ACL WHOAMI ;
B: SET z y ; B: HELLO 2 AUTH u wrong ; B: HELLO 2 AUTH u pw SETNAME me ; B: CLIENT GETNAME ; B: ACL WHOAMI ; B: QUIT
)",
    // Forms of commands, first arguments, selectors.
    R"(
A: ACL SETUSER u on nopass ~* -@all +config|get +client|id +client|getname +acl|whoami +select|0 +debug|sleep ; B: AUTH u x ; B: CONFIG GET port x y z ; B: CONFIG SET port 1 ;
B: CONFIG ; B: CLIENT GETNAME ; B: CLIENT SETNAME x ; B: CLIENT LIST ; B: SELECT 0 ; B: SELECT 1 ; B: ACL USERS ; B: GET x ; A: ACL SETUSER u +config -config|set ; B: CONFIG SET port 1 ;
B: CONFIG RESETSTAT ; B: CONFIG RESETSTAT x ; A: ACL SETUSER u +client -client|kill ; B: CLIENT KILL ID 0 ; B: CLIENT SETNAME x ; A: ACL SETUSER u -client ; B: CLIENT GETNAME ; A: ACL SETUSER u -select ; B: SELECT 0 ;
A: ACL SETUSER u reset on nopass +acl|whoami ~a* +get (~b* +set) (%R~c* %W~d* +copy +get) ; B: GET a1 ; B: SET a1 x ; B: SET b1 x ; B: GET b1 ; B: GET c1 ; B: SET c1 x ; B: COPY c1 d1 ; B: COPY d1 c1 ; B: COPY a1 b1 ; B: DEL a1 ;
A: ACL DRYRUN u get a1 ; A: ACL DRYRUN u get zz ; A: ACL DRYRUN u del zz ; A: ACL DRYRUN u copy c1 x1 ; A: ACL DRYRUN u get ; A: ACL DRYRUN u get a b ; A: ACL DRYRUN u publish a b ; A: ACL DRYRUN u client list ;
A: ACL SETUSER u +@pubsub &news:* ; A: ACL DRYRUN u publish news:1 x ; A: ACL DRYRUN u publish old x ; A: ACL DRYRUN u psubscribe news:* ; A: ACL DRYRUN u psubscribe news:1 ; A: ACL SETUSER u clearselectors ; B: SET b1 x
)",
    // Transactions.
    R"(
A: ACL SETUSER u on nopass ~a* +@all -del ; B: AUTH u x ; B: MULTI ; B: SET a 1 ; B: GET a ; B: EXEC ; B: MULTI ; B: SET a 1 ; B: GET z ; B: EXEC ; B: MULTI ; B: DEL a ; B: DISCARD ; B: MULTI ; B: SET a 2 ;
B: INCR a ; B: PUBLISH a b ; B: GET a ; A: ACL SETUSER u -incr ; B: EXEC ; A: GET a ; B: MULTI ; B: SET a 3 ; B: GET a ; A: ACL SETUSER u resetkeys ~b* ; B: EXEC ; A: GET a ; B: MULTI ; B: PING ; A: ACL SETUSER u -exec ; B: EXEC ; B: DISCARD ;
B: EXEC ; A: ACL SETUSER u +exec &a ; B: MULTI ; B: PUBLISH a b ; A: ACL SETUSER u resetchannels ; B: EXEC
)",
    // Channels, and subscribers that lose them.
    R"(
A: ACL SETUSER u on nopass +@all ~* &news:* &exact ; B: AUTH u x ; B: SUBSCRIBE news:1 ; B: SUBSCRIBE other ; B: SUBSCRIBE news:1 other ; B: PSUBSCRIBE news:* ; B: PSUBSCRIBE news:1* ; B: SSUBSCRIBE exact ; B: SSUBSCRIBE no ;
B: UNSUBSCRIBE other ; A: PUBLISH news:1 hello ; A: ACL SETUSER u &more ; A: PUBLISH news:1 again ; C: AUTH u x ; C: PUBLISH news:1 x ; C: PUBLISH other x ; C: SPUBLISH exact x ; C: SPUBLISH other x ; C: SUBSCRIBE news:2 ;
A: ACL SETUSER u resetchannels &news:2 &exact ; A: PUBLISH news:1 gone ; A: PUBLISH news:2 there ; A: ACL SETUSER u allchannels ; C: UNSUBSCRIBE ; C: SUBSCRIBE whatever ; A: ACL SETUSER u resetchannels ;
A: PUBLISH whatever x ; A: ACL SETUSER u &* ; D: AUTH u x ; D: PSUBSCRIBE * ; A: ACL SETUSER u resetchannels &* ; A: PUBLISH x y ; A: ACL SETUSER u resetchannels &x ; A: PUBLISH x y
)",
    // Users that are removed or switched off.
    R"(
A: ACL SETUSER u on nopass +@all ~* ; B: AUTH u x ; C: AUTH u x ; B: GET x ; A: ACL SETUSER u off ; B: GET x ; B: AUTH u x ; B: ACL WHOAMI ; A: CLIENT KILL USER nosuch ; A: CLIENT KILL USER u ; B: PING ; A: ACL SETUSER u on ;
D: AUTH u x ; D: BLPOP l 0 ; E: AUTH u x ; E: ACL DELUSER u ; D: PING ; A: RPUSH l x ; A: LLEN l ; A: AUTH u x ; A: ACL WHOAMI
)",
    // Waiting while permissions go.
    R"(
A: ACL SETUSER u on nopass +@all ~* ; B: AUTH u x ; A: ACL SETUSER u -@all +blpop +ping ; B: BLPOP l 0 ; A: RPUSH l x ; A: LLEN l ; B: PING ; B: GET l
)",
    // Passwords.
    R"(
A: CONFIG GET requirepass ; A: CONFIG SET requirepass pw ; A: ACL GETUSER default ; A: CONFIG GET requirepass ; A: GET x ; C: GET x ; C: PING ; C: HELLO ; C: HELLO 3 ; C: AUTH wrong ; C: AUTH default wrong ;
C: GET x ; C: NOSUCH ; C: GET ; C: AUTH pw ; C: GET x ; C: RESET ; C: GET x ; C: HELLO 2 AUTH default wrong ; C: GET x ; C: HELLO 2 AUTH default pw ; C: GET x ; C: RESET ; C: MULTI ; C: EXEC ; D: QUIT ; A: ACL SETUSER default >second ;
C: AUTH second ; C: RESET ; A: CONFIG SET requirepass '' ; C: GET x ; C: AUTH x ; C: AUTH default anything ; A: ACL GETUSER default ; A: ACL SETUSER default >acl ; E: GET x ; E: AUTH acl ; E: GET x ; A: ACL SETUSER default nopass ; F: GET x ;
A: ACL SETUSER u on >u ~* +@all ; F: HELLO 2 AUTH u u ; F: RESET ; F: ACL WHOAMI ; F: AUTH u u ; F: AUTH default x ; F: ACL WHOAMI
)",
};

}  // namespace eddy::cache::testing
