// Scripts of differential_clients_test.cpp about clients that are closed while they wait,
// subscribe, track or watch, in the form of differential_scripts.hpp.
#pragma once

#include <string_view>

namespace eddy::cache::testing {

inline constexpr std::string_view kill_scripts[] = {
    // Waiting clients: nothing is given to them by the rest of the transaction.
    R"(
B: BLPOP l 0 ; A: MULTI ; A: CLIENT KILL ID @B ; A: RPUSH l 1 ; A: LLEN l ; A: EXEC ;
A: LRANGE l 0 -1 ; A: DEL l ; C: BRPOP l 0 ; A: MULTI ; A: RPUSH l 1 ; A: CLIENT KILL ID @C ; A: EXEC ;
A: LRANGE l 0 -1 ; A: DEL l ; D: BLPOP l 0 ; E: BLPOP l 0 ; F: BLPOP m l 0 ; A: MULTI ;
A: CLIENT KILL ID @D ; A: CLIENT KILL ID @F ; A: RPUSH l 1 2 ; A: EXEC ; A: LRANGE l 0 -1
)",
    R"(
B: BLMOVE l m LEFT RIGHT 0 ; C: BRPOPLPUSH l m 0 ; D: BLMPOP 0 2 k l LEFT COUNT 2 ; A: MULTI ;
A: CLIENT KILL ID @B ; A: CLIENT KILL ID @C ; A: CLIENT KILL ID @D ; A: RPUSH l 1 2 3 ; A: EXEC ;
A: LRANGE l 0 -1 ; A: EXISTS m
)",
    R"(
B: BZPOPMIN z 0 ; C: BZPOPMAX z 0 ; D: BZMPOP 0 1 z MIN COUNT 2 ; A: MULTI ; A: CLIENT KILL ID @B ;
A: CLIENT KILL ID @C ; A: CLIENT KILL ID @D ; A: ZADD z 1 a 2 b 3 c ; A: EXEC ; A: ZRANGE z 0 -1
)",
    R"(
A: XGROUP CREATE s g $ MKSTREAM ; B: XREADGROUP GROUP g c1 BLOCK 0 STREAMS s > ;
C: XREAD BLOCK 0 STREAMS s $ ; D: XREADGROUP GROUP g c2 BLOCK 0 STREAMS s > ; A: MULTI ;
A: CLIENT KILL ID @B ; A: CLIENT KILL ID @C ; A: XADD s 1-1 f v ; A: EXEC ; A: XPENDING s g ;
A: XADD s 2-1 f v ; A: XPENDING s g ; A: XREADGROUP GROUP g c3 STREAMS s >
)",
    // The same of clients that are closed by other filters, and that are found no more. ACL DELUSER
    // is
    // left out: in Redis what is pushed behind it in a transaction is lost.
    R"(
A: ACL SETUSER u on nopass +@all ~* &* ; B: AUTH u x ; B: BLPOP l 0 ; C: AUTH u x ; C: BLPOP l 0 ; A: MULTI ;
A: CLIENT KILL ID @B USER u ; A: CLIENT KILL ID @B ; A: CLIENT UNBLOCK @B ; A: CLIENT LIST ID @B ;
A: CLIENT KILL USER u ; A: RPUSH l 1 ; A: EXEC ; A: LRANGE l 0 -1 ; A: CLIENT LIST ID @B @C
)",
    R"(
A: ACL SETUSER u on nopass +@all ~* &* ; B: AUTH u x ; B: SUBSCRIBE c ; C: SUBSCRIBE c ; A: MULTI ;
A: ACL SETUSER u resetchannels ; A: PUBLISH c 1 ; A: PUBSUB NUMSUB c ; A: EXEC ; A: PUBLISH c 2
)",
    // Subscribers and their counts.
    R"(
B: SUBSCRIBE c d ; C: PSUBSCRIBE c* ; D: SSUBSCRIBE c ; E: SUBSCRIBE c ; A: PUBLISH c 1 ; A: MULTI ;
A: PUBLISH c 2 ; A: CLIENT KILL ID @B ; A: PUBLISH c 3 ; A: PUBSUB NUMSUB c d ; A: PUBSUB CHANNELS ;
A: CLIENT KILL ID @C ; A: PUBLISH c 4 ; A: PUBSUB NUMPAT ; A: CLIENT KILL ID @D ; A: SPUBLISH c 5 ;
A: PUBSUB SHARDCHANNELS ; A: PUBSUB SHARDNUMSUB c ; A: CLIENT KILL TYPE pubsub ; A: PUBLISH c 6 ;
A: PUBSUB CHANNELS ; A: EXEC
)",
    R"(
B: SUBSCRIBE c ; B: QUIT ; C: PSUBSCRIBE * ; C: RESET ; A: PUBLISH c 1 ; A: PUBSUB NUMSUB c ;
A: PUBSUB NUMPAT
)",
    // Clients with notifications of changes.
    R"(
B: MONITOR ; A: MULTI ; A: CLIENT KILL ID @B ; A: SET k 1 ; A: EXEC ; C: MONITOR ; A: SET k 2 ;
A: CLIENT KILL ID @C ; A: SET k 3
)",
    R"(
A: HELLO 3 ; A: CLIENT TRACKING ON REDIRECT @B ; A: GET k ; A: GET j ; C: SET j 1 ; C: MULTI ;
C: CLIENT KILL ID @B ; C: SET k 1 ; C: EXEC ; A: CLIENT TRACKINGINFO ; A: CLIENT TRACKING OFF ;
A: CLIENT TRACKING ON REDIRECT @B
)",
    R"(
A: MULTI ; A: CLIENT KILL ID @B ; A: CLIENT TRACKING ON REDIRECT @B ; A: EXEC ; C: CLIENT TRACKING ON BCAST ;
D: CLIENT TRACKING ON ; D: GET k ; A: MULTI ; A: CLIENT KILL ID @C ; A: CLIENT KILL ID @D ; A: SET k 1 ;
A: EXEC ; E: CLIENT TRACKING ON BCAST PREFIX k ; A: SET k 2
)",
    // Transactions and watched keys of a closed client; one that closes itself.
    R"(
B: WATCH k ; B: MULTI ; B: SET k mine ; A: MULTI ; A: CLIENT KILL ID @B ; A: SET k 1 ; A: EXEC ; A: GET k ;
C: MULTI ; C: CLIENT KILL ID @C SKIPME no ; C: SET k 2 ; C: CLIENT KILL ID @C ; C: EXEC ; A: GET k ;
D: CLIENT KILL ID @D SKIPME no ; A: CLIENT KILL ID @D
)",
};

}  // namespace eddy::cache::testing
