// Commands of differential_newest_test.cpp, separated by semicolons.
#pragma once

#include <string_view>

namespace eddy::cache::testing {

/// Commands with replies of Redis 8.4 and later.
inline constexpr std::string_view newest_of_redis[] = {
    // Conditions, digests.
    R"(
DELEX ; DELEX a ; SET a b ; DELEX a IFEQ ; DELEX a FOO b ; DELEX a IFEQ b c ; DELEX a IFEQ x ;
DELEX a IFNE b ; DELEX a IFNE x ; EXISTS a ; SET a b ; DELEX a ifeq b ; SET a b ; DELEX a ;
DELEX n IFEQ x ; DELEX n IFNE x ; DELEX n IFDEQ x ; DELEX n IFDNE zz ; SET a b ; DIGEST a ; DIGEST n ;
DIGEST a b ; DIGEST ; SET e '' ; DIGEST e ; SET i 12345 ; DIGEST i ; SET i abcdefghijklmnopqrstuvwxyz ;
DIGEST i ; DELEX a IFDEQ x ; DELEX a IFDEQ 0123456789abcdef ; DELEX a IFDEQ 575A0B1C44D8843F ; EXISTS a ;
SET a b IFEQ x ; SET a b IFNE x ; GET a ; SET a c IFNE b ; SET a c IFNE z ; SET a d IFDEQ zz ;
SET a d IFDNE zz ; SET a d IFDEQ 0123456789abcdef ; SET a d IFDNE 0123456789abcdef ; GET a ;
SET n2 d IFDNE 0123456789abcdef ; GET n2 ; SET n3 d IFDEQ 0123456789abcdef ; SET n3 d IFEQ x GET ;
SET n3 d IFNE x GET ; SET n3 e IFNE d GET ; SET n3 e IFEQ d GET ; SET n3 e NX IFEQ d ;
SET n3 e IFEQ d IFNE z ; SET n3 x IFEQ e EX 100 ; TTL n3 ; SET n3 y IFEQ x KEEPTTL ; TTL n3 ;
SET n3 y IFEQ ; SET n3 y IFEQ y GET EX 0 ; SET n3 y IFEQ zz EX 0 ; LPUSH l a ; SET l a IFEQ x ;
SET l a IFNE x ; SET l a IFDEQ 0123456789abcdef ; SET l a IFDNE 0123456789abcdef ; TYPE l ;
DELEX l IFEQ a ; DELEX l IFDEQ a ; DIGEST l ; DELEX l ; SET a b IFDEQ ABC ; SET i 10 ;
SET i 11 IFEQ 10 ; SET i 12 IFEQ 011 ; DELEX i IFEQ 11 ; SET q d IFDEQ zz ; SET q d IFDNE zz ; GET q ;
COMMAND INFO delex digest ; COMMAND GETKEYSANDFLAGS SET a b IFEQ x ; COMMAND GETKEYSANDFLAGS SET a b NX ;
COMMAND GETKEYSANDFLAGS SET a b GET IFEQ x ; COMMAND GETKEYSANDFLAGS DELEX a
)",
    // NX and XX beside conditions: behind them only. A malformed digest with GET has two replies in
    // Redis 8.6.
    R"(
SET k a ; SET k b NX IFEQ a ; SET k b XX IFEQ a ; SET k b NX IFNE z ; SET k b IFEQ a NX ; GET k ;
SET k b IFEQ a XX ; GET k ; SET k c IFEQ z XX ; SET k c IFNE b XX ; SET k c IFNE z NX ; GET k ;
SET k c IFNE z XX ; GET k ; SET n c IFEQ z NX ; SET n c IFEQ z XX ; SET n c IFNE z XX ; EXISTS n ;
SET n c IFNE z NX ; GET n ; SET n d NX IFNE c ; SET n d IFEQ c NX XX ; SET n d IFEQ c XX NX ;
SET n d IFEQ c NX GET ; SET n d IFEQ x XX GET ; SET n d IFEQ c XX GET ; GET n ; SET n e IFEQ c IFEQ d ;
GET n ; SET n f IFEQ e IFEQ c ; SET n f IFNE e IFNE c ; GET n ; SET n g IFEQ f IFNE c ;
SET n g IFEQ f IFDEQ 0123456789abcdef ; SET n g IFDNE 0123456789abcdef IFDNE zz ;
SET n g IFDEQ zz IFDEQ 0123456789abcdef ; SET n g IFDEQ zz XX ; SET n g IFDEQ zz NX ;
SET n g IFDNE 0123456789abcdef XX ; GET n ; SET m g IFDNE zz NX ; SET m g IFDEQ zz NX GET ; GET m ;
SET m h IFEQ g NX EX 10 ; SET m h EX 10 IFEQ g XX ; TTL m ; SET m i IFEQ h XX KEEPTTL ; TTL m ;
RPUSH l a ; SET l b IFEQ a NX ; SET l b IFEQ a XX ; SET l b IFEQ a NX GET ; SET l b IFDEQ zz NX ; TYPE l ;
MSETEX 1 k b NX IFEQ a ; MSETEX 1 k b IFEQ c NX
)",
    // Counts of read and unread entries of groups.
    R"(
XADD s 1 a 1 ; XADD s 2 a 1 ; XADD s 3 a 1 ; XGROUP CREATE s g 2 ENTRIESREAD 100 ; XINFO GROUPS s ;
XGROUP CREATE s h 0 ENTRIESREAD 100 ; XGROUP CREATE s i 3 ENTRIESREAD 100 ;
XGROUP CREATE s j 9 ENTRIESREAD 9223372036854775807 ; XINFO GROUPS s ; XREADGROUP GROUP g c STREAMS s > ;
XINFO GROUPS s ; XADD s 10 a 1 ; XADD s 11 a 1 ; XINFO GROUPS s ; XREADGROUP GROUP h c COUNT 1 STREAMS s > ;
XINFO GROUPS s ; XDEL s 2 ; XINFO GROUPS s ; XTRIM s MAXLEN 1 ; XINFO GROUPS s ;
XGROUP SETID s g 11 ENTRIESREAD -1 ; XGROUP SETID s h 10 ENTRIESREAD 0 ; XINFO GROUPS s ;
XGROUP SETID s h 10 ENTRIESREAD 400 ; XINFO GROUPS s ; XGROUP SETID s h 10 ENTRIESREAD -2 ;
XSETID s 20 ENTRIESADDED 5 ; XINFO GROUPS s ; XSETID s 20 ENTRIESADDED 500 ; XINFO GROUPS s ;
XTRIM s MAXLEN 0 ; XINFO GROUPS s ; XGROUP CREATE t g 0 MKSTREAM ENTRIESREAD 7 ; XINFO GROUPS t ;
XADD t 1 a 1 ; XADD t 2 a 1 ; XGROUP SETID t g 1 ENTRIESREAD 100 ; XINFO GROUPS t
)",
    R"(
MSETEX 0 a b ; MSETEX 2 a b ; MSETEX x a b ; MSETEX -1 a b ; MSETEX 99999999999 a b ;
MSETEX 2147483647 a b ; MSETEX 2147483648 a b ; MSETEX 0x1 a b ; MSETEX 01 a b
)",
    // BITOP's new operations.
    R"(
SET a abc ; SET b abd ; SET c xyz ; BITOP DIFF d a b c ; GET d ; BITOP DIFF1 d a b c ; GET d ;
BITOP ANDOR d a b c ; GET d ; BITOP ONE d a b c ; GET d ; BITOP DIFF d a ; BITOP DIFF1 d a ;
BITOP ANDOR d a ; BITOP ONE d a ; GET d ; BITOP diff d a b ; BITOP DIFF d n a ; EXISTS d ; GET d ;
BITOP DIFF d n n ; EXISTS d ; BITOP DIFF1 d n abcdef ; SET ll abcdefghijklmnop ; BITOP DIFF d a ll ;
GET d ; BITOP DIFF1 d a ll ; GET d ; BITOP ANDOR d a ll b ; GET d ; BITOP ONE d a ll a b ; GET d ;
BITOP ONE d a a ; GET d ; BITOP FOO d a ; BITOP ONE a a b ; GET a ; LPUSH l a ; BITOP DIFF d l ;
BITOP DIFF d a l ; BITOP DIFF ; BITOP DIFF d ; COMMAND INFO bitop
)",
    // Deletions from streams.
    R"(
XADD s 1 a 1 ; XADD s 2 a 2 ; XADD s 3 a 3 ; XADD s 4 a 4 ; XGROUP CREATE s g 0 ; XGROUP CREATE s h 0 ;
XREADGROUP GROUP g c COUNT 2 STREAMS s > ; XREADGROUP GROUP h c COUNT 1 STREAMS s > ; XDELEX ; XDELEX s ;
XDELEX s IDS ; XDELEX s IDS 1 ; XDELEX s IDS 1 1 ; XDELEX s IDS 2 1 2 ; XDELEX s KEEPREF IDS 1 9 ;
XDELEX n IDS 2 1 2 ; XDELEX n FOO ; XDELEX s FOO IDS 1 1 ; XDELEX s IDS 0 1 ; XDELEX s IDS x 1 ;
XDELEX s IDS -1 1 ; XDELEX s IDS 1 x ; XDELEX s IDS 1 1 KEEPREF ; XDELEX s KEEPREF DELREF IDS 1 1 ;
XDELEX s IDS 3 1 2 ; XDELEX s ACKED IDS 2 2 3 ; XDELEX s ACKED IDS 1 1 ; XACK s g 1 2 ; XPENDING s g ;
XDELEX s ACKED IDS 1 3 ; XREADGROUP GROUP g c STREAMS s > ; XREADGROUP GROUP h c STREAMS s > ;
XDELEX s ACKED IDS 1 3 ; XACK s g 3 ; XDELEX s ACKED IDS 1 3 ; XACK s h 3 ; XDELEX s ACKED IDS 1 3 ;
XLEN s ; XDELEX s DELREF IDS 2 4 7 ; XPENDING s g ; XPENDING s h ; XDELEX s DELREF IDS 1 1 ;
XPENDING s h ; XLEN s ; EXISTS s ; SET str x ; XDELEX str IDS 1 1 ; XDELEX str IDS 0 1 ; XDELEX n IDS 1 x ;
XDELEX n IDS 0 x ; XACKDEL ; XACKDEL s g ; XACKDEL s g IDS 1 1 ; XACKDEL n g IDS 1 1 ;
XACKDEL s nog IDS 2 1 1 ; XACKDEL str g IDS 1 1 ; XADD s 10 a 1 ; XADD s 11 a 1 ; XADD s 12 a 1 ;
XADD s 13 a 1 ; XREADGROUP GROUP g c STREAMS s > ; XREADGROUP GROUP h c COUNT 2 STREAMS s > ;
XACKDEL s g IDS 2 10 99 ; XPENDING s g ; XPENDING s h ; XLEN s ; XACKDEL s g KEEPREF IDS 1 10 ;
XACKDEL s g ACKED IDS 1 11 ; XLEN s ; XPENDING s g ; XACKDEL s h ACKED IDS 2 11 12 ; XLEN s ;
XPENDING s h ; XREADGROUP GROUP h c STREAMS s > ; XACKDEL s g DELREF IDS 3 12 13 10 ; XPENDING s h ;
XPENDING s g ; XLEN s ; XACKDEL s g FOO IDS 1 1 ; XACKDEL s g IDS 0 ; XACKDEL s g IDS 2 1 ;
XACKDEL s g IDS 1 1 2 ; XACKDEL s g KEEPREF KEEPREF IDS 1 1 ; XACKDEL s nog FOO 1 1 ; XACKDEL s nog IDS 1 x ;
XADD t 1 a 1 ; XADD t 5 a 1 ; XGROUP CREATE t g 0 ; XREADGROUP GROUP g c COUNT 1 STREAMS t > ;
XDELEX t ACKED IDS 4 1 9 3 0-0 ; XACK t g 1 ; XDELEX t ACKED IDS 3 1 9 5 ; XDELEX t IDS 1 1-* ;
XDELEX t IDS 1 * ; XDELEX t IDS 1 $ ; XDELEX t IDS 1 - ; COMMAND INFO xdelex xackdel
)",
    // Trims with references.
    R"(
XADD s 1 a 1 ; XADD s 2 a 2 ; XADD s 3 a 3 ; XADD s 4 a 4 ; XADD s 5 a 5 ; XADD s 6 a 6 ;
XGROUP CREATE s g 0 ; XGROUP CREATE s h 0 ; XREADGROUP GROUP g c COUNT 4 STREAMS s > ;
XREADGROUP GROUP h c COUNT 2 STREAMS s > ; XTRIM s MAXLEN 5 FOO ; XTRIM s KEEPREF MAXLEN 5 ; XPENDING s g ;
XTRIM s MAXLEN 4 DELREF ; XPENDING s g ; XPENDING s h ; XTRIM s MAXLEN = 1 ACKED ; XLEN s ; XACK s g 3 4 ;
XTRIM s MAXLEN = 1 ACKED ; XLEN s ; XREADGROUP GROUP h c STREAMS s > ; XREADGROUP GROUP g c STREAMS s > ;
XTRIM s MAXLEN 1 ACKED ; XACK s h 3 4 5 6 ; XACK s g 5 6 ; XTRIM s MAXLEN 1 ACKED ; XRANGE s - + ;
XTRIM s ACKED ; XTRIM s MAXLEN 1 ACKED DELREF ; XTRIM s MAXLEN 1 ACKED ACKED ; XTRIM s ACKED MINID 10 ;
XADD s KEEPREF 20 a 1 ; XADD s DELREF NOMKSTREAM MAXLEN 1 21 a 1 ; XADD s ACKED MAXLEN 1 22 a 1 ;
XADD s MAXLEN 1 ACKED 23 a 1 ; XADD s MAXLEN ~ 1 ACKED LIMIT 10 24 a 1 ; XADD s ACKED DELREF 25 a 1 ;
XADD s FOO 25 a 1 ; XADD s KEEPREF ; XRANGE s - + ; XADD n2 ACKED 5 a 1 ; XADD n2 ACKED MAXLEN 0 6 a 1 ;
XLEN n2 ; XADD n2 ACKED MAXLEN = 1 LIMIT 5 6 a 1 ; XGROUP CREATE n2 g 0 ; XADD n2 ACKED MAXLEN 0 7 a 1 ;
XLEN n2 ; XREADGROUP GROUP g c STREAMS n2 > ; XTRIM n2 ACKED MINID 100 ; XACK n2 g 7 ;
XTRIM n2 ACKED MINID 100 ; XLEN n2 ; COMMAND INFO xtrim
)",
    R"(
CONFIG SET stream-node-max-entries 3 ; XADD s 1 a 1 ; XADD s 2 a 2 ; XADD s 3 a 3 ; XADD s 4 a 4 ;
XADD s 5 a 5 ; XADD s 6 a 6 ; XADD s 7 a 6 ; XADD s 8 a 6 ; XADD s 9 a 6 ; XADD s 10 a 1 ;
XGROUP CREATE s g 0 ; XREADGROUP GROUP g c STREAMS s > ; XACK s g 1 3 4 5 6 7 ; XTRIM s MAXLEN ~ 2 ACKED ;
XRANGE s - + ; XTRIM s MAXLEN 2 ACKED ; XRANGE s - + ; XTRIM s MAXLEN ~ 2 DELREF ; XRANGE s - + ;
XPENDING s g ; DEL s ; XADD s 1 a 1 ; XADD s 2 a 2 ; XADD s 3 a 3 ; XADD s 4 a 4 ; XADD s 5 a 5 ;
XADD s 6 a 6 ; XGROUP CREATE s g 0 ; XREADGROUP GROUP g c STREAMS s > ; XACK s g 2 4 5 6 ;
XTRIM s MAXLEN 4 ACKED ; XRANGE s - + ; XTRIM s MINID 6 ACKED ; XRANGE s - + ; DEL s ; XADD s 1 a 1 ;
XADD s 2 a 2 ; XADD s 3 a 3 ; XADD s 4 a 4 ; XADD s 5 a 5 ; XADD s 6 a 6 ; XADD s 7 a 7 ;
XGROUP CREATE s g 0 ; XREADGROUP GROUP g c STREAMS s > ; XACK s g 4 5 6 ; XTRIM s MAXLEN ~ 1 ACKED ;
XRANGE s - + ; XTRIM s MAXLEN ~ 1 LIMIT 2 DELREF ; XTRIM s MINID ~ 7 ACKED ; XRANGE s - + ;
XTRIM s MINID ~ 7 DELREF LIMIT 100 ; XRANGE s - + ; XPENDING s g ; DEL s ; XADD s 1 a 1 ; XADD s 2 a 2 ;
XADD s 3 a 3 ; XADD s 4 a 4 ; XADD s 5 a 5 ; XADD s 6 a 6 ; XGROUP CREATE s g 0 ;
XREADGROUP GROUP g c COUNT 4 STREAMS s > ; XACK s g 2 3 4 ; XDEL s 1 ; XTRIM s MAXLEN ~ 3 ACKED ;
XRANGE s - + ; XGROUP CREATE s g3 3 ; XDELEX s ACKED IDS 4 3 4 5 6 ; CONFIG SET stream-node-max-entries 100
)",
    // Reads that claim; their times are compared in newest_test.cpp.
    R"(
XADD s 1 a 1 ; XGROUP CREATE s g 0 ; XREADGROUP GROUP g c CLAIM ; XREADGROUP GROUP g d CLAIM x STREAMS s > ;
XREADGROUP GROUP g d CLAIM -1 STREAMS s > ; XREADGROUP GROUP g d CLAIM 1 STREAMS s x ;
XREAD CLAIM 0 STREAMS s 0 ; XREADGROUP GROUP g c CLAIM 5 COUNT 1 STREAMS s > ;
XREADGROUP GROUP g d CLAIM 0 STREAMS s 0 ; XREADGROUP GROUP g d CLAIM 100000000 STREAMS s > ;
XREADGROUP GROUP g e CLAIM 9223372036854775807 STREAMS s > ;
XREADGROUP GROUP g c CLAIM 100000 STREAMS n s > > ; XADD s 2 a 1 ;
XREADGROUP GROUP g c CLAIM 100000000 NOACK STREAMS s > ; XPENDING s g ;
COMMAND GETKEYS XREADGROUP GROUP g e CLAIM 5 STREAMS k > ; COMMAND INFO xreadgroup
)",
};

/// Commands with replies of Valkey 9.
inline constexpr std::string_view newest_of_valkey[] = {
    R"(
DELIFEQ ; DELIFEQ a ; DELIFEQ a x ; SET a c ; DELIFEQ a x ; DELIFEQ a c ; DELIFEQ a c ; SET i 12 ;
DELIFEQ i 012 ; DELIFEQ i 12 ; LPUSH l a ; DELIFEQ l a ; COMMAND INFO delifeq ; SET a b IFEQ x ; SET a b ;
SET a c IFEQ b ; SET a c IFEQ x ; SET a c IFEQ x GET ; SET a d IFEQ c GET ; SET n d IFEQ c GET ;
SET n d IFEQ c ; SET a d NX IFEQ c ; SET a d IFEQ d EX 100 ; TTL a ; SET a b IFEQ ;
SET l a IFEQ x ; SET l a IFEQ x GET
)",
    R"(
ZADD z 1 a 2 b ; ZSCAN z 0 NOSCORES ; ZSCAN z 0 NOSCORES MATCH a ; ZSCAN z 0 NOSCORES COUNT ;
ZSCAN n 0 NOSCORES ; HSET h a 1 ; HSCAN h 0 NOSCORES ; SCAN 0 NOSCORES ; SADD s a ; SSCAN s 0 NOSCORES
)",
    R"(
SCRIPT FLUSH ; SCRIPT SHOW e0e1f9fabfc9d4800c877a703b823ac0578ff8db ; EVAL return(1) 0 ;
SCRIPT SHOW x ; SCRIPT SHOW ; SCRIPT SHOW e0e1f9fabfc9d4800c877a703b823ac0578ff8dc ;
SCRIPT LOAD return(3) ; SCRIPT SHOW 80e0e7c4ee5b9d33c3d4bcd84a8ae1b30ff01b8f
)",
    R"(
CLIENT KILL MAXAGE 0 ; CLIENT KILL MAXAGE x ; CLIENT KILL MAXAGE 100000 ; CLIENT KILL NAME foo ;
CLIENT KILL DB 7 ; CLIENT KILL DB 99 ; CLIENT KILL DB x ; CLIENT KILL DB -1 ; CLIENT KILL LIB-NAME foo ;
CLIENT KILL LIB-VER foo ; CLIENT KILL NOT-ID 1 ; CLIENT KILL NOT-TYPE x ; CLIENT KILL NOT-TYPE normal ;
CLIENT KILL FLAGS z ; CLIENT KILL NOT-FLAGS zz ; CLIENT KILL NOT-USER foo ; CLIENT KILL USER foo ;
CLIENT KILL NOT-ADDR x ; CLIENT KILL IP 1 ; CLIENT KILL IDLE 1000 ; CLIENT KILL IDLE x ;
CLIENT KILL IDLE -1 ; CLIENT KILL ID 999999 999998 ; CLIENT KILL ID 999 998 TYPE pubsub ; CLIENT KILL ID 0 ;
CLIENT KILL NOT-SKIPME yes ; CLIENT KILL NOT-MAXAGE 1 ; CLIENT KILL NOT-IDLE 1 ;
CLIENT LIST TYPE normal ID 999999 ; CLIENT LIST ID 999999 999998 ; CLIENT LIST NAME foo ; CLIENT LIST DB 5 ;
CLIENT LIST DB 99 ; CLIENT LIST DB x ; CLIENT LIST DB -1 ; CLIENT LIST USER nosuch ; CLIENT LIST USER ;
CLIENT LIST NOT-USER default ; CLIENT LIST SKIPME x ; CLIENT LIST IDLE 1000 ; CLIENT LIST IDLE 0 ;
CLIENT LIST IDLE x ; CLIENT LIST MAXAGE 100000 ; CLIENT LIST MAXAGE 0 ; CLIENT LIST FLAGS z ;
CLIENT LIST FLAGS b ; CLIENT LIST FLAGS ab ; CLIENT LIST NOT-FLAGS zz ; CLIENT LIST IP 1.2.3.4 ;
CLIENT LIST LADDR x ; CLIENT LIST NOT-LADDR x TYPE master ; CLIENT LIST LIB-NAME x ;
CLIENT LIST NOT-LIB-NAME x TYPE master ; CLIENT LIST LIB-VER x ; CLIENT LIST NOT-ID 5 TYPE master ;
CLIENT LIST NOT-NAME x TYPE primary ; CLIENT LIST CAPA x ; CLIENT LIST CAPA r ; CLIENT LIST CAPA rx ;
CLIENT LIST NOT-CAPA x ; CLIENT LIST NOT-CAPA r TYPE primary ; CLIENT KILL CAPA r ; CLIENT KILL CAPA q ;
CLIENT KILL NOT-CAPA q ; CLIENT LIST NOT-DB 3 TYPE master ; CLIENT LIST FOO BAR ;
CLIENT LIST TYPE normal TYPE pubsub ; CLIENT LIST ADDR x ADDR y ; CLIENT LIST IP ; CLIENT LIST NOT-ID 0
)",
};

/// The same for COMMANDLOG, whose replies have times; differential_newest_test.cpp leaves them out.
inline constexpr std::string_view command_log_of_valkey = R"(
COMMANDLOG ; COMMANDLOG FOO ; COMMANDLOG HELP x ; COMMANDLOG GET ; COMMANDLOG GET 1 ; COMMANDLOG GET x slow ;
COMMANDLOG GET -2 slow ; COMMANDLOG GET 1 foo ; COMMANDLOG GET 1 slow x ; COMMANDLOG LEN ;
COMMANDLOG LEN foo ; COMMANDLOG LEN slow x ; COMMANDLOG RESET ; COMMANDLOG RESET foo ;
COMMANDLOG RESET slow x ; COMMAND INFO commandlog|get commandlog|len commandlog|reset ;
CONFIG GET commandlog-* ; CONFIG GET slowlog-* ; CONFIG SET commandlog-request-larger-than 1mb ;
CONFIG SET commandlog-request-larger-than -2 ; CONFIG SET commandlog-reply-larger-than x ;
CONFIG SET commandlog-large-reply-max-len -1 ; CONFIG SET commandlog-large-request-max-len 1mb ;
CONFIG SET commandlog-execution-slower-than -2 ; CONFIG SET commandlog-slow-execution-max-len -1 ;
CONFIG SET slowlog-max-len 5 ; CONFIG GET commandlog-slow-execution-max-len ;
CONFIG SET commandlog-execution-slower-than 77 ; CONFIG GET slowlog-log-slower-than ;
CONFIG SET commandlog-execution-slower-than -1 commandlog-slow-execution-max-len 128 ;
COMMANDLOG RESET slow ; COMMANDLOG RESET LARGE-REQUEST ; COMMANDLOG RESET Large-Reply ;
CONFIG SET commandlog-request-larger-than 0 commandlog-reply-larger-than 0 ;
SET key value ; GET key ; NOSUCH a ; GET ; LPUSH key x ; PING ; MSET a 1 b 2 c 3 ; MGET a b c nosuch key ;
SET n 12345678901 ; AUTH secret ; ACL SETUSER x >secret ; GETEX key EX 100 ; INCRBYFLOAT f 1.5 ;
SADD s a ; SPOP s ; XLEN nosuch ; HSET h f v ; HGETALL h ; COMMANDLOG LEN slow ;
CONFIG SET commandlog-request-larger-than 22 commandlog-reply-larger-than 11 ;
COMMANDLOG RESET large-request ; COMMANDLOG RESET large-reply ; GET key ; GET ke ; GET keyx ; STRLEN key ;
CONFIG SET commandlog-request-larger-than -1 commandlog-reply-larger-than -1 ; SET a xxxxxxxxxxxxxxxxxxxx ;
COMMANDLOG LEN large-request ; COMMANDLOG LEN large-reply ; COMMANDLOG GET -1 large-request ;
COMMANDLOG GET -1 large-reply ; COMMANDLOG GET 1 large-reply ; COMMANDLOG GET 0 large-reply ;
COMMANDLOG RESET large-request ; CONFIG SET commandlog-large-request-max-len 0 commandlog-request-larger-than 0 ; PING ;
COMMANDLOG LEN large-request ; COMMANDLOG RESET large-reply ; COMMANDLOG LEN large-reply ;
CONFIG SET commandlog-large-request-max-len 128 commandlog-request-larger-than 30 ;
EVAL return(redis.call('set',KEYS[1],ARGV[1])) 1 k xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx ;
CONFIG SET commandlog-request-larger-than -1 ; COMMANDLOG GET -1 large-request ;
COMMANDLOG RESET large-request ; CLIENT CAPA ; CLIENT CAPA foo ; CLIENT CAPA redirect foo ; READONLY ;
READWRITE ; CLIENT LIST CAPA q ; CLIENT KILL CAPA r SKIPME yes ; COMMAND INFO client|capa clusterscan ;
CLUSTERSCAN ; CLUSTERSCAN 0 ; ASKING ; COMMAND GETKEYS CLUSTERSCAN 0-{06S}-0 ; EVAL return(type(server)) 0 ;
EVAL return(server.call('strlen',KEYS[1])) 1 a ; EVAL server.x=1 0 ; EVAL return(server==redis) 0
)";

/// Commands with the same replies of both.
inline constexpr std::string_view newest_of_both[] = {
    R"(
MSETEX 1 a b ; MSETEX 1 a ; MSETEX 2 a b c d ; MSETEX 2 a b e f NX ; MSETEX 2 a b e f XX ;
MSETEX 2 a b c f XX ; MSETEX 1 a b EX 100 ; TTL a ; MSETEX 1 a x KEEPTTL ; TTL a ;
MSETEX 1 a x EX 100 KEEPTTL ; MSETEX 1 a x NX XX ; MSETEX 1 a x EX 0 ; MSETEX 1 a x EXAT 1 ; EXISTS a ;
MSETEX 1 a x PX foo ; MSETEX 1 a b FOO ; LPUSH l a ; MSETEX 1 l x ; TYPE l ; MSETEX 1 a x EX ;
MSETEX 1 q x NX EX 100 ; MSETEX 2 z x z y NX ; GET z ; MSETEX 2 z x z y XX EX 10 ; GET z ;
MSETEX 1 a x EX 10 NX ; MSETEX 1 a x NX EX foo ; MSETEX 1 a x GET ; MSETEX 1 a x IFEQ b ;
MSETEX 1 a x PERSIST ; MSETEX 1 a x EX 10 EX 10 ; MSETEX 1 a x NX NX ; MSETEX 1 a x KEEPTTL KEEPTTL ;
MSETEX 1 a x EX 10 PX 10 ; MSETEX 1 a x EX 9223372036854775807 ; MSETEX 1 a x PXAT -1 ;
MSETEX 2 a x NX NX ; GET NX ; MSETEX 1 foo EX 10 bar ; MSETEX 1 NX EX 10 ; MSETEX 2 a b c d e f ;
MSETEX 1 a b c d ; MSETEX 1 q x XX KEEPTTL ; TTL q ; COMMAND INFO msetex ;
COMMAND GETKEYS MSETEX 2 a b c d NX ; COMMAND GETKEYSANDFLAGS MSETEX 2 a b c d NX ;
COMMAND GETKEYS MSETEX 3 a b c d ; COMMAND GETKEYS MSETEX 0 a b ; COMMAND GETKEYS MSETEX x a b
)",
    R"(
HSET h a 1 b 2 ; HSCAN h 0 NOVALUES ; HSCAN h 0 novalues COUNT 5 MATCH a ; HSCAN h 0 NOVALUES NOVALUES ;
HSCAN n 0 NOVALUES ; SSCAN h 0 NOVALUES ; SSCAN n 0 NOVALUES ; SADD s a ; SSCAN s 0 NOVALUES ; ZADD z 1 a ;
ZSCAN z 0 NOVALUES ; SCAN 0 NOVALUES ; HSCAN h 0 COUNT ; HSCAN n 0 FOO
)",
};

}  // namespace eddy::cache::testing
