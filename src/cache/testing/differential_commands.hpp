// The commands of differential_test.cpp, separated by semicolons.
#pragma once

#include <string_view>

namespace eddy::cache::testing {

/// Templates of random commands: %k key, %v value, %m member or field, %i integer, %n small count,
/// %f float, %p pattern, %x a time to live that ends at once or not during the test, %z the key of
/// a sorted set whose members have one score, %b a bound by score, %l one by text, %g the key of
/// positions, %d degrees; the rest stands for itself.
inline constexpr std::string_view command_templates = R"(
GET %k ; SET %k %v ; SET %k %v ; SET %k %i ; SET %k %v NX ; SET %k %v XX ; SET %k %v GET ;
SET %k %v XX GET ; SET %k %v NX GET ; SET %k %v KEEPTTL ; SET %k %v EX %x ;
SET %k %v PX 10000%n EX 5 ; SET %k %v EX 100000 XX ; SET %k %v PXAT 999999999999%n ; SETNX %k %v ;
SETEX %k 1000%n %v ; PSETEX %k 1000000%n %v ; SETEX %k %x %v ; GETSET %k %v ; GETDEL %k ;
GETEX %k ; GETEX %k PERSIST ; GETEX %k EX 1000%n ; GETEX %k EXAT 1 ; MGET %k %k %k ;
MSET %k %v %k %v ; MSETNX %k %v second %v ; MSET %k %v %k ; APPEND %k %v ; STRLEN %k ;
GETRANGE %k %n %n ; SUBSTR %k %n %n ; SETRANGE %k %n %v ; SETRANGE %k %i %v ; INCR %k ; DECR %k ;
INCRBY %k %i ; DECRBY %k %i ; INCRBYFLOAT %k %f ; LPUSH %k %v ; LPUSH %k %v %v %v ; RPUSH %k %v ;
RPUSH %k %v %v %v %v %v ; RPUSH %k a b a c a b ; LPUSHX %k %v %v ; RPUSHX %k %v ; LPOP %k ;
RPOP %k ; LPOP %k %n ; RPOP %k %n ; LLEN %k ; LINDEX %k %n ; LSET %k %n %v ; LRANGE %k %n %n ;
LRANGE %k 0 -1 ; LTRIM %k %n %n ; LREM %k %n %v ; LREM %k %n a ; LINSERT %k BEFORE %v %v ;
LINSERT %k AFTER a %v ; LINSERT %k BEFORE b %v ; LPOS %k a ; LPOS %k a RANK %n ;
LPOS %k b COUNT %n ; LPOS %k a RANK %n COUNT %n MAXLEN %n ; LPOS %k %v ; LMOVE %k %k LEFT RIGHT ;
LMOVE %k %k RIGHT RIGHT ; LMOVE %k %k RIGHT LEFT ; LMOVE %k %k LEFT LEFT ; RPOPLPUSH %k %k ;
LMPOP 2 %k %k LEFT ; LMPOP 1 %k RIGHT COUNT %n ; LMPOP %n %k %k LEFT COUNT 2 ; SADD %k %m ;
SADD %k %m %m %m ; SADD %k %i %n %n %n ; SREM %k %m %m ; SMEMBERS %k ; SISMEMBER %k %m ;
SMISMEMBER %k %m %m %m ; SCARD %k ; SPOP %k 100000 ; SPOP %k 0 ; SRANDMEMBER %k 100000 ;
SMOVE %k %k %m ; SINTER %k %k ; SINTER %k %k %k ; SUNION %k %k ; SDIFF %k %k ; SDIFF %k %k %k ;
SINTERSTORE %k %k %k ; SUNIONSTORE %k %k %k ; SDIFFSTORE %k %k %k ; SINTERCARD 2 %k %k ;
SINTERCARD 2 %k %k LIMIT %n ; SINTERCARD %n %k %k ; SSCAN %k 0 COUNT 100000 ;
SSCAN %k 0 MATCH %p COUNT 100000 ; HSET %k %m %v ; HSET %k %m %v %m %i %m %v ; HSET %k %m %i ;
HMSET %k %m %v %m %v ; HSETNX %k %m %v ; HGET %k %m ; HMGET %k %m %m %m ; HGETALL %k ;
HDEL %k %m %m ; HLEN %k ; HEXISTS %k %m ; HKEYS %k ; HVALS %k ; HSTRLEN %k %m ; HINCRBY %k %m %i ;
HINCRBY %k %m %n ; HINCRBYFLOAT %k %m %f ; HRANDFIELD %k 100000 ;
HRANDFIELD %k 100000 WITHVALUES ; HSCAN %k 0 COUNT 100000 ; DEL %k ; DEL %k %k ; UNLINK %k ;
EXISTS %k %k %k ; TOUCH %k %k ; TYPE %k ; RENAME %k %k ; RENAMENX %k %k ; COPY %k %k ;
COPY %k %k REPLACE ; COPY %k %k DB 1 ; MOVE %k 1 ; KEYS %p ; KEYS * ; SCAN 0 COUNT 100000 ;
SCAN 0 MATCH %p COUNT 100000 ; SCAN 0 COUNT 100000 TYPE set ; DBSIZE ; EXPIRE %k 1000%n ;
EXPIRE %k %x ; PEXPIRE %k 1000000%n ; EXPIREAT %k 99999999%n ; PEXPIREAT %k 999999999999%n ;
EXPIREAT %k 9999999999%n ; EXPIRE %k 100000 NX ; EXPIRE %k 100%n00 XX ;
EXPIREAT %k 999999999%n GT ; EXPIREAT %k 999999999%n LT ; PEXPIREAT %k 999999999999%n XX LT ;
TTL %k ; PTTL %k ; EXPIRETIME %k ; PEXPIRETIME %k ; PERSIST %k ; SELECT 1 ; SELECT 0 ; SELECT 0 ;
SELECT 0 ; SWAPDB 0 1 ; PING ; PING %v ; ECHO %v ;

SETBIT %k %n 1 ; SETBIT %k 10%n 0 ; SETBIT %k 77%n 1 ; SETBIT %k %n %n ; SETBIT %k %i 1 ;
GETBIT %k %n ; GETBIT %k 3%n ; GETBIT %k %i ; BITOP AND %k %k %k ; BITOP OR %k %k %k ;
BITOP XOR %k %k %k %k ; BITOP NOT %k %k ; BITFIELD %k GET u8 %n ;
BITFIELD %k SET i5 1%n %i GET u16 #%n ;
BITFIELD %k OVERFLOW SAT INCRBY i8 %n %i OVERFLOW FAIL INCRBY u7 2%n %i ;
BITFIELD %k INCRBY i64 %n %i SET i63 #%n %i ; BITFIELD %k OVERFLOW SAT SET i63 %n %i ;
BITFIELD %k SET u63 %n %i OVERFLOW SAT INCRBY u63 %n %i ; BITFIELD %k INCRBY u1 %n 1 GET i1 %n ;
BITFIELD %k OVERFLOW FAIL SET u4 %n %i INCRBY i3 %n %n ; BITFIELD_RO %k GET i64 %n GET u3 #%n ;
BITFIELD_RO %k SET u8 0 1 ;

PFADD hll%n %m %m ; PFADD hll%n %v %v %v ; PFADD hll%n %i ; PFADD hll%n ; PFADD %k %m ;
PFCOUNT hll%n ; PFCOUNT hll%n hll%n ; PFCOUNT hll%n nosuch %k ; PFMERGE hll%n hll%n hll%n ;
PFMERGE new%n hll%n ; GET hll%n ; GET new%n ; PFDEBUG DECODE hll%n ; PFDEBUG ENCODING hll%n ;
PFDEBUG TODENSE new%n ; APPEND new%n x ; DEL new%n ;

LCS %k %k ; LCS %k %k LEN ; LCS %k %k IDX ; LCS %k %k IDX MINMATCHLEN %n WITHMATCHLEN ;

BITCOUNT %k ; BITCOUNT %k %n %n ; BITCOUNT %k %n %n BIT ; BITCOUNT %k %n %n BYTE ;
BITCOUNT %k %i %i BIT ; BITPOS %k 0 ; BITPOS %k 1 ; BITPOS %k 1 %n ; BITPOS %k 0 %n %n ;
BITPOS %k 1 %n %n BIT ; BITPOS %k 0 %i %i BIT ; BITPOS %k 0 %n %n BYTE ;

ZADD %k %f %m ; ZADD %k %f %m %f %m %f %m ; ZADD %k %n %m %n %m %n %m ; ZADD %k 1 a 1 b 1 c ;
ZADD %k NX %f %m %n %m ; ZADD %k XX %f %m ; ZADD %k XX CH %n %m %n %m ; ZADD %k GT CH %n %m ;
ZADD %k LT %f %m %f %m ; ZADD %k XX GT %n %m ; ZADD %k INCR %f %m ; ZADD %k NX INCR %n %m ;
ZADD %k XX INCR %f %m ; ZADD %k GT INCR %f %m ; ZADD %k LT XX INCR %n %m ; ZADD %k CH %f %m ;
ZINCRBY %k %f %m ; ZINCRBY %k %n %m ; ZREM %k %m %m ; ZREM %k a %m ; ZSCORE %k %m ;
ZMSCORE %k %m %m a ; ZCARD %k ; ZRANK %k %m ; ZREVRANK %k %m ; ZPOPMIN %k ; ZPOPMAX %k ;
ZPOPMIN %k %n ; ZPOPMAX %k %n ; ZMPOP 2 %k %k MIN ; ZMPOP 1 %k MAX COUNT %n ;
ZMPOP %n %k %k MIN COUNT 2 ; ZRANDMEMBER %k 100000 ; ZRANDMEMBER %k 100000 WITHSCORES ;
ZSCAN %k 0 COUNT 100000 ; ZSCAN %k 0 MATCH %p COUNT 100000 ; ZRANGE %k %n %n ; ZRANGE %k 0 -1 ;
ZRANGE %k 0 -1 WITHSCORES ; ZRANGE %k %n %n REV WITHSCORES ; ZRANGE %k %b %b BYSCORE ;
ZRANGE %k %b %b BYSCORE REV WITHSCORES ; ZREVRANGE %k %n %n ; ZREVRANGE %k 0 -1 WITHSCORES ;
ZRANGEBYSCORE %k %b %b ; ZREVRANGEBYSCORE %k %b %b WITHSCORES ; ZCOUNT %k %b %b ;
ZREMRANGEBYRANK %k %n %n ; ZREMRANGEBYSCORE %k %b %b ; ZRANGESTORE %k %k %n %n ;
ZRANGESTORE %k %k 0 -1 REV ; ZUNION 2 %k %k ;
ZUNION 3 %k %k %k WITHSCORES ; ZUNION 2 %k %k WEIGHTS %f %f WITHSCORES ;
ZUNION 2 %k %k AGGREGATE MAX WITHSCORES ; ZINTER 2 %k %k WITHSCORES ; ZINTER 3 %k %k %k ;
ZINTER 2 %k %k WEIGHTS %n %f AGGREGATE MIN WITHSCORES ; ZDIFF 2 %k %k ;
ZDIFF 3 %k %k %k WITHSCORES ; ZUNIONSTORE %k 2 %k %k ; ZUNIONSTORE %k 2 %k %k WEIGHTS %f %n ;
ZINTERSTORE %k 2 %k %k AGGREGATE MAX ; ZINTERSTORE %k %n %k %k ; ZDIFFSTORE %k 2 %k %k ;
ZINTERCARD 2 %k %k ; ZINTERCARD 2 %k %k LIMIT %n ; OBJECT ENCODING %z ; SCAN 0 COUNT 100000 TYPE zset ;
ZADD %z 0 %m ; ZADD %z 0 %m 0 %m 0 %m 0 %m ; ZADD %z 0 %m 0 %m 0 %m 0 %m 0 %m 0 %m 0 %m 0 %m ;
ZREM %z %m ; ZRANGEBYLEX %z %l %l ; ZREVRANGEBYLEX %z %l %l ;
ZRANGE %z %l %l BYLEX ; ZRANGE %z %l %l BYLEX REV ;
ZLEXCOUNT %z %l %l ; ZREMRANGEBYLEX %z %l %l ;
ZRANGESTORE %z %z %l %l BYLEX ; ZCARD %z ; ZRANK %z %m ; ZPOPMIN %z %n ; DEL %z
)";

/// More of them, which a redis-server answers otherwise after version 7.0: it checks arguments in
/// another order, takes negative offsets, writes positions in another way, and its SORT keeps no
/// errno of others.
inline constexpr std::string_view command_templates_of_7_0 = R"(
ZRANGEBYLEX %z %l %l LIMIT %n %n ; ZREVRANGEBYLEX %z %l %l LIMIT %n %n ;
ZRANGE %z %l %l BYLEX REV LIMIT %n %n ; ZRANGE %k %b %b BYSCORE LIMIT %n %n ;
ZRANGE %k %b %b REV BYSCORE LIMIT %n %n ; ZRANGEBYSCORE %k %b %b WITHSCORES LIMIT %n %n ;
ZREVRANGEBYSCORE %k %b %b LIMIT %n %n ; ZRANGESTORE %k %k %b %b BYSCORE LIMIT %n %n ;

GEOADD %g %d %d %m ; GEOADD %g %d %d %m %d %d %m %d %d %m ; GEOADD %g NX CH %d %d %m ;
GEOADD %g XX CH %d %d %m ; GEOADD %g %f %d %m ; GEOPOS %g %m %m ; GEOHASH %g %m %m ;
GEODIST %g %m %m ; GEODIST %g %m %m km ; GEODIST %g %m %m %m ;
GEOSEARCH %g FROMLONLAT %d %d BYRADIUS 1000 km ;
GEOSEARCH %g FROMLONLAT %d %d BYBOX 2000 1000 mi WITHDIST WITHHASH WITHCOORD ASC ;
GEOSEARCH %g FROMMEMBER %m BYRADIUS 9000 km DESC WITHDIST ; GEOSEARCH %g FROMMEMBER %m BYBOX %d %d km ;
GEOSEARCH %g FROMMEMBER %m BYRADIUS 15000000 ft COUNT %n ; GEORADIUS %g %d %d 1000 km WITHDIST ;
GEORADIUS %g %d %d 3000 km COUNT %n STORE %g ; GEORADIUSBYMEMBER %g %m 3000 km ASC WITHCOORD ;
GEORADIUSBYMEMBER_RO %g %m 2000 mi DESC ; GEORADIUS_RO %g %d %d %f km ; ZREM %g %m ; DEL %g ;
GEOSEARCHSTORE %g %g FROMMEMBER %m BYRADIUS 8000 km ; ZRANGE %g 0 -1 WITHSCORES ;

RESTORE %k 0 %v ; RESTORE %k %i %v REPLACE ; RESTORE %k %i %v ; DUMP none ;

RPUSH ls%n %n %n 3 1%n ; RPUSH ls%n b a c a ; DEL ls%n ; LTRIM ls%n -5 -1 ; SORT ls%n ;
SORT ls%n DESC ; SORT ls%n ALPHA LIMIT %n %n ; SORT ls%n BY k* ALPHA ; SORT ls%n BY k* GET # GET k* ;
SORT ls%n BY k*->m%n DESC GET k*->m%n GET # ; SORT ls%n BY nosort DESC LIMIT %n %n GET # GET k* ;
SORT ls%n BY nosort LIMIT %n %n ; SORT ls%n ALPHA DESC STORE ls%n ; SORT ls%n LIMIT 1 2 STORE %k ;
SORT ls%n BY k* LIMIT %n %n ; SORT_RO ls%n ALPHA ; SORT_RO ls%n STORE x ; SORT %k ;
SORT %k ALPHA ; SORT %k ALPHA DESC STORE ls%n ; SORT %k BY nosort ; SORT %k BY nosort STORE %k ;
SORT %k BY k* GET # STORE %k ; SORT %k DESC LIMIT 0 %n
)";

/// True for a line of edge_scripts that Redis answers otherwise after version 7.0.
constexpr bool differs_between_versions(std::string_view line) {
    for (const std::string_view changed :
         {"GEOPOS g Palermo nosuch ne sw zero", "LREM m -9223372036854775808 a",
          "LPOP m 9223372036854775807", "SSCAN a ''", "SSCAN a -1", "ZRANGE z 0x1 3 BYSCORE",
          "ZRANGE d 0 -1 WITHSCORES", "SORT f", "MODULE LIST", "COMMAND GETKEYS GET",
          "COMMAND GETKEYS PING", "COMMAND GETKEYSANDFLAGS SINTERSTORE d a b",
          "COMMAND INFO getdel setex msetnx", "COMMAND INFO del unlink rename copy scan",
          "COMMAND INFO expire ttl persist touch randomkey",
          "COMMAND INFO info time role lastsave"})
        if (line == changed) return true;
    return false;
}

/// True for a line that is answered here as later versions do.
constexpr bool is_later_than_7_0(std::string_view line) {
    for (const std::string_view changed :
         {"OBJECT ENCODING s", "OBJECT ENCODING l", "COMMAND INFO getdel setex msetnx",
          "COMMAND INFO del unlink rename copy scan",
          "COMMAND INFO expire ttl persist touch randomkey"})
        if (line == changed) return true;
    return false;
}

/// Edges, by subject; each script starts with empty databases. '' is the empty argument.
inline constexpr std::string_view edge_scripts[] = {
    // Arity, names and settings.
    R"(
GET ; GET a b ; get ; FOO ; FOO bar ; foo a b c ; '' a ; SET a ; ping a b ; ECHO ; ECHO a b ;
CLIENT ; CLIENT FOO ; CLIENT SETNAME ; CLIENT SETNAME a b ; CLIENT GETNAME ; CLIENT SETNAME me ;
CLIENT GETNAME ; CLIENT ID a ; CLIENT NO-EVICT ; CLIENT NO-EVICT maybe ; CLIENT NO-EVICT on ;
COMMAND FOO ; COMMAND COUNT a ; CONFIG ; CONFIG GET ; CONFIG SET a ; CONFIG FOO ;
CONFIG SET nosuch 1 ; CONFIG GET nosuch ; CONFIG GET save ; CONFIG GET appendonly ;
CONFIG GET databases ; CONFIG SET maxmemory x ; CONFIG RESETSTAT ; CONFIG REWRITE ; OBJECT ;
OBJECT ENCODING ; OBJECT FOO a ; OBJECT FREQ nosuch ; OBJECT IDLETIME nosuch ; MEMORY ;
MEMORY USAGE ; MEMORY USAGE nosuch ; MEMORY FOO ; DEBUGG ; HELLO 9 ; HELLO x ; HELLO 2 FOO ;
HELLO 2 AUTH a ; HELLO 2 SETNAME ; AUTH x ; AUTH a b c ; AUTH default x ; AUTH other x ;
SELECT 16 ; SELECT 2147483648 ; MOVE a 2147483648 ; COPY a b DB -2147483649 ;
SWAPDB 0 2147483648 ; SWAPDB -10 2147483648 ; SWAPDB 99 x ; SWAPDB -10 99 ;
CONFIG SET maxmemory-clients 200% ; CONFIG SET maxmemory-clients -1% ; SELECT -1 ; SELECT x ; SELECT 99999999999999999999 ; SWAPDB a 1 ;
SWAPDB 1 b ; SWAPDB 0 16 ; COPY a a ; COPY a b DB 16 ; COPY a b DB x ; COPY a b FOO ; MOVE a 0 ;
MOVE a 16 ; MOVE a x ; FLUSHALL FOO ; FLUSHDB SYNC ASYNC ; FLUSHALL ASYNC ; QUIT2
)",
    // SET and its relatives.
    R"(
SET a 1 EX ; SET a 1 EX 0 ; SET a 1 EX -1 ; SET a 1 EX x ; SET a 1 EX 9223372036854775807 ;
SET a 1 PX 9223372036854775807 ; SET a 1 EXAT 0 ; SET a 1 PXAT -5 ; SET a 1 NX XX ;
SET a 1 XX NX ; SET a 1 EX 10 PX 10 ; SET a 1 EX 10 KEEPTTL ; SET a 1 KEEPTTL EX 10 ;
SET a 1 PERSIST ; SET a 1 FOO ; SET a 1 NX GET ; SET a 2 XX GET ; GET a ; SET a 1 GET EX 100000 ;
TTL a ; SET a 3 KEEPTTL ; TTL a ; SET a 4 ; TTL a ; SET a 5 EX 10 EX 100000 ; TTL a ;
GETEX a PERSIST EX 10 ; GETEX a EX 10 PERSIST ; GETEX a NX ; GETEX a EX ; GETEX a EX 0 ;
GETEX a EX x ; GETEX a PERSIST ; TTL a ; GETEX a PXAT 1 ; EXISTS a ; GETEX nosuch EX 0 ;
SETEX a 0 v ; SETEX a -1 v ; SETEX a x v ; SETEX a 9223372036854775807 v ;
PSETEX a 9223372036854775807 v ; PSETEX a 0 v ; SETNX a 1 ; SETNX a 2 ; GETSET a 3 ;
GETSET new 1 ; GETDEL a ; GETDEL a ; LPUSH l 1 ; GETSET l 1 ; GETDEL l ; SET l 1 GET ; GETEX l ;
SET l 1 NX GET ; SET l 5 ; GET l
)",
    // Numbers.
    R"(
SET n 10 ; INCR n ; DECR n ; INCRBY n x ; INCRBY n 9223372036854775807 ;
INCRBY n 9223372036854775797 ; DECRBY n -9223372036854775808 ; DECRBY n 1 ;
SET n 9223372036854775807 ; INCR n ; SET n -9223372036854775808 ; DECR n ; SET n abc ; INCR n ;
SET n 010 ; INCR n ; SET n '' ; INCR n ; APPEND n 5 ; INCR n ; OBJECT ENCODING n ;
INCRBYFLOAT n 1.5 ; INCRBYFLOAT n -1.5 ; INCRBYFLOAT n x ; INCRBYFLOAT n inf ; INCRBYFLOAT n nan ;
INCRBYFLOAT f 5.0e3 ; INCRBYFLOAT f 1e-20 ; INCRBYFLOAT f 0.1 ; INCRBYFLOAT g 3.0 ;
INCRBYFLOAT g -3 ; GET g ; SET h 1e4931 ; INCRBYFLOAT h 1e4932 ; LPUSH l a ; INCR l ;
INCRBYFLOAT l x ; INCRBYFLOAT l 1 ; HSET hh f x ; HINCRBY hh f 1 ; HINCRBY hh g x ;
HINCRBY hh g 5 ; HINCRBY hh g 9223372036854775807 ; HINCRBY l f 1 ; HINCRBY l f x ;
HINCRBYFLOAT hh f 1 ; HINCRBYFLOAT hh z 1.25 ;
HINCRBYFLOAT hh z x ; HINCRBYFLOAT l z 1 ; HGETALL hh ; SET s 5 ; EXPIRE s 100000 ; INCR s ;
TTL s ; APPEND s 1 ; TTL s ; SETRANGE s 1 9 ; TTL s ; INCRBYFLOAT s 1 ; TTL s ; GETSET s 1 ;
TTL s
)",
    // Encodings.
    R"(
SET a hello ; OBJECT ENCODING a ; APPEND a x ; OBJECT ENCODING a ; SET b 123 ; OBJECT ENCODING b ;
SET c 12345678901234567890123456789012345678901234 ; OBJECT ENCODING c ;
SET c 123456789012345678901234567890123456789012345 ; OBJECT ENCODING c ; SETRANGE d 0 x ;
OBJECT ENCODING d ; APPEND e 12 ; OBJECT ENCODING e ; SADD s 1 2 3 ; OBJECT ENCODING s ;
SADD s x ; OBJECT ENCODING s ; HSET h a b ; OBJECT ENCODING h ; RPUSH l a ; OBJECT ENCODING l ;
OBJECT REFCOUNT l ; OBJECT FREQ l
)",
    // Parts of strings.
    R"(
SETRANGE a 0 '' ; SETRANGE a -1 x ; SETRANGE a x x ; SETRANGE a 536870912 x ;
SETRANGE a 536870911 '' ; EXISTS a ; SETRANGE a 5 x ; GET a ;
SET n 12345 ; SETRANGE n 2 x ; GET n ; GETRANGE n 0 -1 ; GETRANGE n -3 -1 ; GETRANGE n -1 -3 ;
GETRANGE n 3 1 ; GETRANGE n 10 20 ; GETRANGE n -100 1 ; GETRANGE n x 1 ; GETRANGE n 1 x ;
GETRANGE nosuch x 1 ; GETRANGE nosuch 0 1 ; SUBSTR n 1 2 ; GETRANGE n 0 -100 ;
GETRANGE n -9223372036854775808 9223372036854775807 ; STRLEN n ; STRLEN nosuch ; LPUSH l a ;
STRLEN l ; APPEND l x ; SETRANGE l 0 x ; SETRANGE l 0 '' ; GETRANGE l 0 1 ; MGET n l nosuch ;
MSET a 1 b ; MSETNX x 1 n 2 ; GET x ; MSETNX x 1 y 2 ; GET x
)",
    // Lists.
    R"(
RPUSH l a b c d ; LPOP l -1 ; LPOP l x ; LPOP l 0 ; LPOP l 1 2 ; LPOP nosuch 0 ; LPOP nosuch ;
LPOP nosuch 3 ; LPOP nosuch x ; LINDEX l 0 ; LINDEX l -1 ; LINDEX l 10 ; LINDEX l x ;
LINDEX nosuch x ; LSET l 0 A ; LSET l -1 D ; LSET l 10 x ; LSET l x x ; LSET nosuch 0 x ;
LRANGE l 0 -1 ; LRANGE l 5 10 ; LRANGE l -100 100 ; LRANGE l 2 1 ; LRANGE l x 1 ;
LINSERT l FOO a b ; LINSERT l BEFORE nosuch b ; LINSERT nosuch BEFORE a b ; LINSERT l BEFORE A z ;
LINSERT l AFTER D y ; LRANGE l 0 -1 ; LREM l x a ; LREM l 0 z ; LREM l -1 y ; LREM nosuch 0 z ;
LTRIM l 1 -2 ; LRANGE l 0 -1 ; LTRIM l 5 10 ; EXISTS l ; LTRIM l 0 x ; LTRIM nosuch 0 1 ;
RPUSH l a b c a b c ; LPOS l a ; LPOS l a RANK 2 ; LPOS l a RANK -1 ; LPOS l a RANK 0 ;
LPOS l a COUNT 0 ; LPOS l a COUNT -1 ; LPOS l a MAXLEN -1 ; LPOS l a MAXLEN 0 ;
LPOS l b MAXLEN 1 ; LPOS l c RANK -1 MAXLEN 1 ; LPOS l a FOO 1 ; LPOS l a RANK ; LPOS l a RANK x ;
LPOS nosuch a ; LPOS nosuch a COUNT 1 ; LPOS l x ; LPOS l x COUNT 2 ;
LPOS l a RANK -9223372036854775807 ; LPOS l a RANK 9223372036854775807 ; LMOVE l m FOO LEFT ;
LMOVE l m LEFT FOO ; LMOVE nosuch m LEFT RIGHT ; LMOVE l m LEFT RIGHT ; LMOVE l l LEFT RIGHT ;
RPOPLPUSH l l ; RPOPLPUSH nosuch l ; SET s x ; LMOVE l s LEFT LEFT ; LMOVE s l LEFT LEFT ;
RPOPLPUSH l s ; LMPOP 0 l LEFT ; LMPOP x l LEFT ; LMPOP 1 l FOO ; LMPOP 1 l LEFT COUNT ;
LMPOP 5 l LEFT ; LMPOP 1 l LEFT COUNT 0 ; LMPOP 1 l LEFT COUNT x ;
LMPOP 1 l LEFT COUNT 1 COUNT 1 ; LMPOP 1 l LEFT FOO 1 ; LMPOP 2 nosuch s LEFT ;
LMPOP 2 nosuch nosuch2 LEFT ; LMPOP 2 nosuch l RIGHT COUNT 100 ; EXISTS l ; LPUSH s a ;
LPUSHX s a ; LPUSHX nosuch a ; RPUSHX nosuch a b ; LLEN s ; LLEN nosuch ; LREM s 0 a ;
LINDEX s 0 ; LRANGE s 0 1 ; LREM m -9223372036854775808 a ; LPOP m 9223372036854775807
)",
    // Sets.
    R"(
SADD s a b c ; SADD s a ; SREM s x ; SREM s a b c d ; EXISTS s ; SREM nosuch a ; SPOP nosuch ;
SPOP nosuch 1 ; SPOP s -1 ; SPOP s x ; SPOP s 1 2 ; SADD s a ; SPOP s ; SPOP s ;
SRANDMEMBER nosuch ; SRANDMEMBER nosuch 1 ; SRANDMEMBER nosuch x ; SADD s a ; SRANDMEMBER s ;
SRANDMEMBER s -3 ; SRANDMEMBER s 0 ; SRANDMEMBER s 1 2 ; SRANDMEMBER s x ;
SRANDMEMBER s 100000 ; SET str x ; SADD str a ;
SMOVE s str a ; SMOVE str s a ; SMOVE nosuch str a ; SMOVE s s a ; SMOVE s s x ; SMOVE s t x ;
SMOVE s t a ; EXISTS s ; SMEMBERS t ; SINTER t str ; SINTER nosuch str ; SINTER str nosuch ;
SINTER nosuch t ; SUNION t str ; SDIFF t str ; SDIFF nosuch str ; SINTERSTORE str t t ;
SMEMBERS str ; SINTERSTORE str nosuch t ; EXISTS str ; SUNIONSTORE t t t ; SMEMBERS t ;
SDIFFSTORE t t t ; EXISTS t ; SINTERCARD 0 a ; SINTERCARD x a ; SINTERCARD -1 a ; SINTERCARD 3 a ;
SINTERCARD 1 a LIMIT ; SINTERCARD 1 a LIMIT -1 ; SINTERCARD 1 a LIMIT x ; SINTERCARD 1 a FOO 1 ;
SADD a 1 2 3 ; SADD b 2 3 4 ; SINTERCARD 2 a b ; SINTERCARD 2 a b LIMIT 1 ;
SINTERCARD 2 a b LIMIT 0 ; SINTERCARD 1 a LIMIT 1 LIMIT 2 ; SSCAN a x ; SSCAN a 0 COUNT ;
SSCAN a 0 COUNT 0 ; SSCAN a 0 COUNT x ; SSCAN a 0 FOO 1 ; SSCAN nosuch 0 FOO ; SSCAN a 0 MATCH 2 ;
SSCAN a 0 TYPE set ; SSCAN a '' ; SSCAN a -1 ; SSCAN a +0 ; SCAN x ; SCAN 0 COUNT 0 ;
SCAN 0 TYPE ; SCAN 0 COUNT 1000 TYPE nosuch ; SCAN 0 COUNT 1000 TYPE SET ;
SCAN 99999999999999999999 ; SISMEMBER nosuch a ; SMISMEMBER nosuch a b ; SCARD nosuch ;
SMEMBERS nosuch ; SDIFF nosuch ; SUNION nosuch
)",
    // Hashes.
    R"(
HSET h a ; HSET h a 1 b ; HSET h a 1 b 2 a 3 ; HMSET h a ; HMSET h a 1 c ; HMSET h c 3 ;
HSETNX h a x ; HSETNX h d x ; HGET h nosuch ; HGET nosuch a ; HMGET nosuch a b ;
HMGET h a nosuch b ; HGETALL nosuch ; HKEYS nosuch ; HVALS nosuch ; HLEN nosuch ; HDEL nosuch a ;
HDEL h nosuch ; HSTRLEN h a ; HSTRLEN h nosuch ; HEXISTS h a ; HEXISTS h nosuch ; HDEL h a b c d ;
EXISTS h ; SET s x ; HSET s a 1 ; HMSET s a 1 ; HSETNX s a 1 ; HGET s a ; HMGET s a ; HGETALL s ;
HKEYS s ; HDEL s a ; HLEN s ; HEXISTS s a ; HSTRLEN s a ; HSCAN s 0 ; HSCAN nosuch x ;
HSCAN nosuch 0 ; HRANDFIELD nosuch ; HRANDFIELD nosuch 1 ; HRANDFIELD nosuch 1 WITHVALUES ;
HRANDFIELD s ; HRANDFIELD s 1 ; HSET h a 1 ; HRANDFIELD h ; HRANDFIELD h -3 ;
HRANDFIELD h -2 WITHVALUES ; HRANDFIELD h 0 ; HRANDFIELD h 0 WITHVALUES ; HRANDFIELD h 1 FOO ;
HRANDFIELD h 1 WITHVALUES x ; HRANDFIELD h x ; HRANDFIELD h 100000 WITHVALUES ;
HSCAN h 0 MATCH a ; HSCAN h 0 MATCH b
)",
    // Sorted sets: ranges.
    R"(
ZADD z 1 a 2 b 3 c 4 d 5 e ; ZRANGE z ; ZRANGE z 0 ; ZRANGE z x 1 ; ZRANGE z 0 x ; ZRANGE z 0 -1 ;
ZRANGE z -2 -1 ; ZRANGE z -100 100 ; ZRANGE z 3 1 ; ZRANGE z 5 6 ; ZRANGE z 0 -6 ;
ZRANGE z -9223372036854775808 9223372036854775807 ; ZRANGE z 0 1 FOO ; ZRANGE z 0 1 WITHSCORES REV ;
ZRANGE z 0 1 REV REV ; ZRANGE z 0 1 BYSCORE BYSCORE ; ZRANGE z 0 1 BYSCORE BYLEX ;
ZRANGE z 0 1 LIMIT 0 1 ; ZRANGE z 0 1 LIMIT 0 -1 ; ZRANGE z 0 1 LIMIT 5 -1 ; ZRANGE z 0 1 LIMIT 0 ;
ZRANGE z 0 1 LIMIT x 1 BYSCORE ; ZRANGE z 0 1 BYSCORE LIMIT 0 x ; ZRANGE z - + BYLEX WITHSCORES ;
ZRANGE z 2 4 BYSCORE ; ZRANGE z (2 4 BYSCORE ; ZRANGE z (2 (4 BYSCORE WITHSCORES ;
ZRANGE z 4 2 BYSCORE ; ZRANGE z 4 2 BYSCORE REV ; ZRANGE z (4 2 BYSCORE REV WITHSCORES ;
ZRANGE z -inf +inf BYSCORE LIMIT 1 2 ; ZRANGE z +inf -inf BYSCORE REV LIMIT 1 2 ;
ZRANGE z -inf inf BYSCORE LIMIT 0 0 ; ZRANGE z -inf inf BYSCORE LIMIT 5 1 ;
ZRANGE z -inf inf BYSCORE LIMIT -1 1 ; ZRANGE z -inf inf BYSCORE LIMIT 1 -5 ;
ZRANGE z -inf inf LIMIT 1 2 BYSCORE LIMIT 2 1 ; ZRANGE z 3 3 BYSCORE ; ZRANGE z (3 3 BYSCORE ;
ZRANGE z x 3 BYSCORE ; ZRANGE z 3 (x BYSCORE ; ZRANGE z nan 3 BYSCORE ; ZRANGE z '' 3 BYSCORE ;
ZRANGE z ( 3 BYSCORE ; ZRANGE z 0x1 3 BYSCORE ; ZRANGE z -1e999 1e999 BYSCORE ; ZRANGE nosuch x 1 ;
ZRANGE nosuch 0 1 ; ZRANGE nosuch 0 1 WITHSCORES ; ZRANGE nosuch 0 1 BYSCORE ;
ZREVRANGE z 0 1 ; ZREVRANGE z 0 1 WITHSCORES ; ZREVRANGE z 0 1 REV ; ZREVRANGE z 0 1 BYSCORE ;
ZREVRANGE z -1 -1 ; ZREVRANGE z 1 0 ; ZREVRANGE z 0 -1 LIMIT 0 1 ; ZREVRANGE z x 1 ;
ZRANGEBYSCORE z 1 2 ; ZRANGEBYSCORE z 1 2 BYSCORE ; ZRANGEBYSCORE z 1 2 REV ;
ZRANGEBYSCORE z 1 (2 WITHSCORES ; ZRANGEBYSCORE z 1 5 LIMIT 1 2 WITHSCORES ;
ZRANGEBYSCORE z a b ; ZREVRANGEBYSCORE z 5 3 ; ZREVRANGEBYSCORE z 3 5 ; ZREVRANGEBYSCORE z (5 (3 ;
ZREVRANGEBYSCORE z 5 1 LIMIT 1 2 ; ZREVRANGEBYSCORE z 5 1 WITHSCORES LIMIT 4 9 ; ZCOUNT z 2 4 ;
ZCOUNT z (2 (4 ; ZCOUNT z 4 2 ; ZCOUNT z x 2 ; ZCOUNT nosuch x 2 ; ZCOUNT nosuch 1 2 ;
ZCOUNT z -inf +inf ; ZCOUNT z 1 2 3 ; ZADD l 0 a 0 b 0 c 0 d 0 aa 0 '' ; ZRANGEBYLEX l - + ;
ZRANGEBYLEX l + - ; ZREVRANGEBYLEX l + - ; ZREVRANGEBYLEX l - + ; ZRANGEBYLEX l [a [b ;
ZRANGEBYLEX l (a (b ; ZRANGEBYLEX l [a (a ; ZRANGEBYLEX l [b [a ; ZRANGEBYLEX l a b ;
ZRANGEBYLEX l [ [b ; ZRANGEBYLEX l ( + ; ZRANGEBYLEX l '' + ; ZRANGEBYLEX l -x + ;
ZRANGEBYLEX l - ++ ; ZRANGEBYLEX l - - ; ZRANGEBYLEX l + + ; ZRANGEBYLEX l - + LIMIT 1 2 ;
ZREVRANGEBYLEX l (c [a LIMIT 0 1 ; ZRANGEBYLEX l - + WITHSCORES ; ZRANGEBYLEX nosuch - + ;
ZRANGEBYLEX nosuch x + ; ZLEXCOUNT l - + ; ZLEXCOUNT l [a (c ; ZLEXCOUNT l x y ; ZLEXCOUNT nosuch - + ;
ZRANGE l [a [c BYLEX ; ZRANGE l [c [a BYLEX REV ; ZRANGE l [a [c BYLEX REV ; ZREMRANGEBYLEX l x y ;
ZREMRANGEBYLEX l (a (c ; ZRANGE l 0 -1 ; ZREMRANGEBYLEX nosuch - + ; ZREMRANGEBYLEX l - + ; EXISTS l ;
ZRANGESTORE d z 1 2 ; ZRANGE d 0 -1 WITHSCORES ; ZRANGESTORE d z 1 2 WITHSCORES ;
ZRANGESTORE d z 9 10 ; EXISTS d ; ZRANGESTORE d z (1 3 BYSCORE ; ZRANGE d 0 -1 WITHSCORES ;
ZRANGESTORE d z 5 1 BYSCORE REV LIMIT 0 2 ; ZRANGE d 0 -1 WITHSCORES ; ZRANGESTORE d nosuch 0 1 ;
EXISTS d ; ZRANGESTORE d z 0 x ; SET s x ; ZRANGESTORE s z 0 0 ; TYPE s ; SET s x ;
ZRANGESTORE d s 0 1 ; ZRANGESTORE z z 0 3 ; ZRANGE z 0 -1 ; EXPIRE z 100000 ; ZRANGESTORE z z 0 3 ;
TTL z ; ZREMRANGEBYRANK z 5 6 ; ZREMRANGEBYRANK z 0 0 ; ZREMRANGEBYRANK z -1 -1 ;
ZREMRANGEBYRANK z x 0 ; ZREMRANGEBYRANK nosuch 0 0 ; ZRANGE z 0 -1 ; ZREMRANGEBYSCORE z (3 3 ;
ZREMRANGEBYSCORE z x 3 ; ZREMRANGEBYSCORE z 3 (4 ; ZREMRANGEBYSCORE nosuch 1 2 ; ZRANGE z 0 -1 ;
ZREMRANGEBYRANK z 0 -1 ; EXISTS z ; ZRANGE s 0 1 ; ZRANGE s x 1 ; ZRANGEBYSCORE s x y ;
ZRANGEBYSCORE s 1 2 ; ZREVRANGE s 0 1 ; ZRANGEBYLEX s - + ; ZCOUNT s 1 2 ; ZLEXCOUNT s - + ;
ZREMRANGEBYRANK s 0 1 ; ZREMRANGEBYSCORE s 1 2 ; ZREMRANGEBYLEX s - +
)",
    // Sorted sets: unions and the like; encodings.
    R"(
ZADD a 1 x 2 y 3 z ; ZADD b 10 y 20 z 30 w ; SADD s x y q ; SET str v ; ZUNION ; ZUNION 1 ;
ZUNION 0 a ; ZUNION x a ; ZUNION -1 a ; ZUNION 3 a b ; ZUNION 9223372036854775807 a ; ZUNION 1 a b ;
ZUNION 2 a b ; ZUNION 2 a b WITHSCORES ; ZUNION 2 a s WITHSCORES ; ZUNION 2 a nosuch WITHSCORES ;
ZUNION 1 nosuch ; ZUNION 1 str ; ZUNION 2 a str ; ZUNION 2 a b WEIGHTS 2 ; ZUNION 2 a b WEIGHTS 2 x ;
ZUNION 2 a b WEIGHTS 2 3 WITHSCORES ; ZUNION 2 a b WEIGHTS 2 3 AGGREGATE MIN WITHSCORES ;
ZUNION 2 a b AGGREGATE MAX WITHSCORES ; ZUNION 2 a b AGGREGATE FOO ; ZUNION 2 a b AGGREGATE ;
ZUNION 2 a b WITHSCORES WITHSCORES ; ZUNION 2 a b FOO ; ZUNION 2 a a WITHSCORES ;
ZUNION 1 a WEIGHTS 0 WITHSCORES ; ZUNION 1 a WEIGHTS -0 WITHSCORES ; ZUNION 1 a WEIGHTS inf WITHSCORES ;
ZUNION 2 a b WEIGHTS inf -inf WITHSCORES ; ZUNION 1 a LIMIT 1 ; ZINTER 2 a b ;
ZINTER 2 a b WITHSCORES ; ZINTER 2 a s WITHSCORES ; ZINTER 3 a b s WITHSCORES ; ZINTER 2 a nosuch ;
ZINTER 2 a b WEIGHTS 1 -1 AGGREGATE MIN WITHSCORES ; ZINTER 2 a a WEIGHTS 1 5 WITHSCORES ;
ZINTER 2 s s WITHSCORES ; ZINTER 0 a ; ZINTER 2 a str ; ZDIFF 2 a b WITHSCORES ; ZDIFF 2 a s ;
ZDIFF 1 s WITHSCORES ; ZDIFF 2 nosuch a ; ZDIFF 2 a nosuch ; ZDIFF 2 a a ; ZDIFF 2 a b WEIGHTS 1 2 ;
ZDIFF 2 a b AGGREGATE MAX ; ZDIFF 0 a ; ZUNIONSTORE ; ZUNIONSTORE d 0 a ; ZUNIONSTORE d x a ;
ZUNIONSTORE d 2 a b ; ZRANGE d 0 -1 WITHSCORES ; ZUNIONSTORE d 2 a b WITHSCORES ;
ZUNIONSTORE d 2 a b WEIGHTS 0.1 0.7 ; ZRANGE d 0 -1 WITHSCORES ; ZINTERSTORE d 2 a nosuch ; EXISTS d ;
ZINTERSTORE d 2 a b AGGREGATE MAX ; ZRANGE d 0 -1 WITHSCORES ; ZDIFFSTORE d 2 a b ;
ZRANGE d 0 -1 WITHSCORES ; ZDIFFSTORE d 2 a b WITHSCORES ; ZDIFFSTORE d 2 a a ; EXISTS d ;
ZUNIONSTORE str 1 a ; TYPE str ; SET str v ; ZUNIONSTORE d 1 str ; ZUNIONSTORE a 2 a a ;
ZRANGE a 0 -1 WITHSCORES ; EXPIRE a 100000 ; ZUNIONSTORE a 1 a ; TTL a ; ZINTERCARD 0 a ;
ZINTERCARD x a ; ZINTERCARD 1 a ; ZINTERCARD 2 a b ; ZINTERCARD 2 a b LIMIT 1 ;
ZINTERCARD 2 a b LIMIT 0 ; ZINTERCARD 2 a b LIMIT -1 ; ZINTERCARD 2 a b LIMIT x ;
ZINTERCARD 2 a b LIMIT ; ZINTERCARD 2 a b WEIGHTS 1 2 ; ZINTERCARD 2 a b WITHSCORES ;
ZINTERCARD 3 a b ; ZINTERCARD 2 a str ; ZINTERCARD 2 a s ; ZINTERCARD 2 a nosuch ; SINTER a s ;
SUNION s a ; SDIFF s a ; SINTERCARD 2 s a ; SINTERSTORE d s a ; OBJECT ENCODING a ; TYPE a ;
ZADD n1 inf i -inf j ; ZADD n2 -inf i inf j ; ZUNION 2 n1 n2 WITHSCORES ; ZINTER 2 n1 n2 WITHSCORES ;
ZINTER 2 n1 n2 WEIGHTS 0 1 WITHSCORES ; ZINTER 2 n1 n2 WEIGHTS 1 0 WITHSCORES ;
ZINTER 2 n1 n2 WEIGHTS 1 0 AGGREGATE MAX WITHSCORES ; ZUNION 2 n1 n2 WEIGHTS 0 0 WITHSCORES ;
ZUNIONSTORE d 1 a WEIGHTS -0 ; ZRANGE d 0 -1 WITHSCORES ; COPY a c ; ZADD c 1 new ; ZCARD a ;
ZADD e 1 xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx ; OBJECT ENCODING e ;
ZADD e 1 xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx ; OBJECT ENCODING e ;
ZREM e xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx ; OBJECT ENCODING e ;
ZADD e -0 zero ; ZSCORE e zero ; ZADD e 1e18 big ; ZSCAN e 0 ; COPY e f ; OBJECT ENCODING f ;
ZUNIONSTORE g 1 e ; OBJECT ENCODING g ; ZSCORE g zero ; ZSCAN g 0 ; ZRANGESTORE h e 0 0 ;
OBJECT ENCODING h ; ZSCORE h zero
)",
    // Expiry.
    R"(
EXPIRE nosuch 10 ; SET a 1 ; EXPIRE a x ; EXPIRE a 9223372036854775807 ;
EXPIRE a -9223372036854775808 ; PEXPIRE a 9223372036854775807 ; EXISTS a ; TTL a ; PTTL a ;
EXPIRETIME a ; PEXPIRETIME a ; TTL nosuch ; EXPIRETIME nosuch ; PERSIST a ; PERSIST nosuch ;
EXPIRE a 100 FOO ; EXPIRE a 100 NX XX ; EXPIRE a 100 GT LT ; EXPIRE a 100 NX GT ;
EXPIRE a x NX XX ; EXPIRE nosuch x ; EXPIRE a 100 XX ; TTL a ; EXPIRE a 100 GT ; TTL a ;
EXPIRE a 100000 LT ; TTL a ; EXPIRE a 200000 LT ; TTL a ; EXPIRE a 200000 GT ; TTL a ;
EXPIRE a 300000 NX ; EXPIREAT a 99999999999 ; EXPIRETIME a ; PEXPIRETIME a ;
PEXPIREAT a 99999999999500 ; EXPIRETIME a ; PEXPIREAT a 99999999999499 ; EXPIRETIME a ;
PERSIST a ; EXPIRE a -1 ; EXISTS a ; SET a 1 ; EXPIRE a 0 ; EXISTS a ; SET a 1 ; EXPIREAT a 1 ;
EXISTS a ; SET a 1 ; PEXPIREAT a -1 ; EXISTS a ; SET a 1 ; PEXPIREAT a 9223372036854775807 ;
PEXPIRETIME a ; EXPIRETIME a ; EXPIRE a 100 XX GT ; EXPIRE a 1 LT FOO
)",
    // Keys and databases.
    R"(
RENAME nosuch a ; RENAME nosuch nosuch ; SET a 1 ; RENAME a a ; RENAMENX a a ; RENAMENX nosuch a ;
SET b 2 ; RENAMENX a b ; EXPIRE a 100000 ; RENAME a b ; TTL b ; GET b ; EXISTS a ; SET c 3 ;
RENAME c b ; TTL b ; COPY b d ; COPY b d ; COPY b d REPLACE ; COPY nosuch d ; COPY b b ;
COPY b b DB 1 ; EXPIRE b 100000 ; COPY b e ; TTL e ; MOVE b 1 ; MOVE b 1 ; SET b 5 ; MOVE b 1 ;
SELECT 1 ; GET b ; DBSIZE ; SWAPDB 0 1 ; GET b ; KEYS * ; SELECT 0 ; KEYS * ; RANDOMKEY2 ;
FLUSHDB ; DBSIZE ; RANDOMKEY ; SELECT 1 ; DBSIZE ; FLUSHALL ; DBSIZE ; TYPE nosuch ; TOUCH a b ;
EXISTS a a ; RPUSH l 1 2 3 ; COPY l m ; RPUSH m 4 ; LRANGE l 0 -1 ; LRANGE m 0 -1 ; SADD s a b ;
COPY s t ; SADD t c ; SMEMBERS s ; SMEMBERS t ; HSET h a 1 ; COPY h i ; HSET i b 2 ; HGETALL h ;
HGETALL i ; RENAME h s ; HGETALL s ; TYPE s ; RESET ; PING
)",
    // Values as bytes; rdb/redis_test.cpp has more of it.
    R"(
DUMP ; DUMP a b ; DUMP nosuch ; RESTORE ; RESTORE a 0 ; RESTORE a 0 junk ; RESTORE a x junk ;
RESTORE a -1 junk ; RESTORE a 0 '' ; RESTORE a 0 tenbytesof ; RESTORE a 0 junk FOO ;
RESTORE a 0 junk REPLACE FOO ; RESTORE a 0 junk IDLETIME ; RESTORE a 0 junk IDLETIME x ;
RESTORE a 0 junk IDLETIME -1 ; RESTORE a 0 junk FREQ ; RESTORE a 0 junk FREQ x ;
RESTORE a 0 junk FREQ 256 ; RESTORE a 0 junk FREQ 1 IDLETIME 1 ; RESTORE a x junk FREQ -1 ;
SET a 1 ; RESTORE a x junk ; RESTORE a x junk REPLACE ; GET a ; RESTORE-ASKING ; RESTORE-ASKING a 0 ;
RESTORE-ASKING a 0 junk ; RESTORE-ASKING b 0 junk ; RESTORE-ASKING a 0 junk FOO ;
COMMAND INFO restore restore-asking ; COMMAND GETKEYSANDFLAGS RESTORE-ASKING a 0 junk ;
MIGRATE ; MIGRATE h 1 a 0 ; MIGRATE h 1 nosuch 0 5 ; MIGRATE h x nosuch 0 5 ; MIGRATE h 1 a 0 5 FOO ;
MIGRATE h 1 a x 5 ; MIGRATE h 1 a 0 x ; MIGRATE h 1 a x y ; MIGRATE h 1 a 0 5 AUTH ; MIGRATE h 1 a 0 5 AUTH2 x ;
MIGRATE h 1 a 0 5 KEYS ; MIGRATE h 1 a 0 5 KEYS a ; MIGRATE h 1 '' 0 5 KEYS ; MIGRATE h 1 '' 0 5 KEYS nosuch no ;
MIGRATE h 1 nosuch 9999 5 COPY REPLACE AUTH x ; MIGRATE h 1 '' 0 5 AUTH KEYS KEYS nosuch ; EXISTS a ;
COMMAND INFO migrate ; COMMAND GETKEYSANDFLAGS MIGRATE h 1 k 0 5 ;
COMMAND GETKEYS MIGRATE h 1 '' 0 5 COPY AUTH2 keys keys KEYS a b ; COMMAND GETKEYS MIGRATE h 1 k 0 5 KEYS a
)",
    // Bits.
    R"(
SETBIT a ; SETBIT a 0 ; SETBIT a 0 2 ; SETBIT a 0 -1 ; SETBIT a x 1 ; SETBIT a -1 1 ;
SETBIT a 0 x ; SETBIT a 4294967296 1 ; SETBIT a 4294967296 x ; EXISTS a ; SETBIT a 0 0 ; GET a ;
OBJECT ENCODING a ; SETBIT a 7 1 ; SETBIT a 7 1 ; SETBIT a 7 0 ; SETBIT a 100 1 ; STRLEN a ;
GETBIT a 100 ; GETBIT a 101 ; GETBIT a 100000 ; GETBIT a x ; GETBIT a -1 ; GETBIT a 4294967296 ;
GETBIT nosuch 0 ; GETBIT nosuch x ; SET n 123 ; SETBIT n 7 0 ; OBJECT ENCODING n ; GET n ;
SET n 123 ; GETBIT n 3 ; OBJECT ENCODING n ; BITCOUNT n ; BITPOS n 1 ; EXPIRE n 100000 ;
SETBIT n 0 1 ; TTL n ; LPUSH l a ; SETBIT l 0 1 ; SETBIT l x 1 ; GETBIT l 0 ; BITCOUNT l ;
BITCOUNT l 0 ; BITPOS l 1 ; BITPOS l 2 ; BITPOS l x ; BITFIELD l GET u1 0 ; BITFIELD l SET u1 0 1 ;
BITOP AND d l ; BITOP NOT d l l ; BITOP FOO d l ; BITOP AND d ; BITCOUNT nosuch ;
BITCOUNT nosuch 0 x ; BITCOUNT nosuch 0 1 FOO ; BITCOUNT nosuch 5 ; BITCOUNT l 5 ; BITCOUNT l a b ;
BITPOS l 1 a b ; BITPOS l 1 0 1 FOO ; BITCOUNT b -1 -2 FOO ; BITPOS nosuch 0 0 1 hello ; SET b foobar ; BITCOUNT b ; BITCOUNT b 0 ;
BITCOUNT b 0 0 ; BITCOUNT b 1 1 ; BITCOUNT b 0 -1 ; BITCOUNT b -2 -1 ; BITCOUNT b -1 -2 ;
BITCOUNT b 5 30 BIT ; BITCOUNT b 5 30 BYTE ; BITCOUNT b 5 30 FOO ; BITCOUNT b -10 -3 BIT ;
BITCOUNT b 0 1000 BIT ; BITCOUNT b -1000 1000 BIT ; BITCOUNT b 3 3 BIT ; BITCOUNT b 1 1 BIT X ;
BITCOUNT b x 1 ; BITCOUNT b 1 x ; BITCOUNT b 1 x FOO ; BITCOUNT b 10 20 ; BITCOUNT b -100 -90 ;
BITPOS b 1 ; BITPOS b 0 ; BITPOS b 1 1 ; BITPOS b 0 -1 ; BITPOS b 0 0 -1 BIT ; BITPOS b 1 7 15 BIT ;
BITPOS b 1 8 8 BIT ; BITPOS b 1 2 1 ; BITPOS b 1 0 1 FOO ; BITPOS b 1 0 x ; BITPOS b 1 x ;
BITPOS b 1 0 1 BIT X ; BITPOS nosuch 0 ; BITPOS nosuch 1 ; BITPOS nosuch 0 5 ; BITPOS nosuch 2 ;
SETBIT ones 0 1 ; BITFIELD ones SET i16 0 -1 ; BITPOS ones 0 ; BITPOS ones 0 0 ; BITPOS ones 0 1 ;
BITPOS ones 0 2 ; BITPOS ones 0 0 -1 ; BITPOS ones 0 0 15 BIT ; SET e '' ; BITPOS e 0 ; BITPOS e 1 ;
BITPOS e 0 0 ; BITCOUNT e ; BITCOUNT e 0 -1 ; BITOP NOT e e ; EXISTS e ; BITOP AND d nosuch ;
EXISTS d ; BITOP OR d b nosuch ; GET d ; BITOP AND d b nosuch ; GET d ; BITOP XOR d b b ; GET d ;
BITOP NOT d b ; GET d ; OBJECT ENCODING d ; BITOP OR b b n ; GET b ; RPUSH list x ;
BITOP OR list b b ; TYPE list ; SET t x EX 100000 ; BITOP NOT t t ; TTL t ; GET t ;
SET t x EX 100000 ; BITOP OR t b ; TTL t ; BITOP OR t b l ; BITOP NOT num n ; BITOP OR num n ;
GET num ; OBJECT ENCODING num ; INCR num ; SET num 7 ; BITOP OR num num num ; GET num ;
OBJECT ENCODING num
)",
    R"(
BITFIELD a ; EXISTS a ; BITFIELD a GET ; BITFIELD a GET u8 ; BITFIELD a GET u64 0 ;
BITFIELD a GET u0 0 ; BITFIELD a GET i65 0 ; BITFIELD a GET i0 0 ; BITFIELD a GET x8 0 ;
BITFIELD a GET U8 0 ; BITFIELD a GET u 0 ; BITFIELD a GET '' 0 ; BITFIELD a GET u8 x ;
BITFIELD a GET u8 -1 ; BITFIELD a GET u8 #x ; BITFIELD a GET u8 # ; BITFIELD a GET u8 '' ;
BITFIELD a GET u8 #-1 ; BITFIELD a GET u8 4294967296 ; BITFIELD a GET u8 4294967295 ;
BITFIELD a SET u8 0 ; BITFIELD a SET u8 0 x ; BITFIELD a INCRBY u8 0 ; BITFIELD a FOO ;
BITFIELD a OVERFLOW ; BITFIELD a OVERFLOW FOO ; BITFIELD a OVERFLOW WRAP ; EXISTS a ;
BITFIELD a GET u8 0 OVERFLOW FOO ; BITFIELD a SET u8 0 1 FOO ; EXISTS a ; BITFIELD_RO a ;
BITFIELD_RO a GET u8 0 ; BITFIELD_RO a SET u8 0 1 ; BITFIELD_RO a INCRBY u8 0 1 ;
BITFIELD_RO a OVERFLOW SAT ; EXISTS a ; BITFIELD a SET u8 0 255 GET u8 0 GET i8 0 ; GET a ;
BITFIELD a INCRBY u8 0 1 ; BITFIELD a INCRBY u8 0 -1 ; BITFIELD a OVERFLOW SAT INCRBY u8 0 10 ;
BITFIELD a OVERFLOW SAT INCRBY u8 0 -1000 ; BITFIELD a OVERFLOW FAIL INCRBY u8 0 -1 ;
BITFIELD a OVERFLOW FAIL SET u8 0 256 ; BITFIELD a OVERFLOW SAT SET u8 0 256 ;
BITFIELD a SET u8 0 256 ; BITFIELD a OVERFLOW SAT SET u8 0 -1 ; BITFIELD a SET u8 0 -2 ;
BITFIELD a GET u8 0 ; BITFIELD a SET i8 8 127 INCRBY i8 8 1 ; BITFIELD a SET i8 8 -128 ;
BITFIELD a INCRBY i8 8 -1 ; BITFIELD a OVERFLOW SAT SET i8 8 1000 OVERFLOW SAT INCRBY i8 8 1 ;
BITFIELD a OVERFLOW SAT SET i8 8 -1000 INCRBY i8 8 -1 ;
BITFIELD a OVERFLOW FAIL SET i8 8 1000 GET i8 8 ;
BITFIELD a SET i64 3 9223372036854775807 INCRBY i64 3 1 ;
BITFIELD a OVERFLOW SAT SET i64 3 9223372036854775807 INCRBY i64 3 1 ;
BITFIELD a OVERFLOW SAT SET i64 3 -9223372036854775808 INCRBY i64 3 -1 ;
BITFIELD a OVERFLOW FAIL INCRBY i64 3 -1 ; BITFIELD a GET i64 3 GET u63 4 GET u1 3 ;
BITFIELD a OVERFLOW SAT SET u63 5 9223372036854775807 INCRBY u63 5 1 INCRBY u63 5 -1 ;
BITFIELD a OVERFLOW SAT SET i63 5 -9223372036854775808 ; BITFIELD a GET i63 5 ;
BITFIELD a SET i63 5 -9223372036854775808 GET i63 5 ; BITFIELD a SET u5 #3 17 GET u5 15 ;
BITFIELD a SET u3 1000 7 ; STRLEN a ; BITFIELD a GET u16 1000 GET u16 2000 ;
BITFIELD b OVERFLOW FAIL SET u1 0 2 ; EXISTS b ; STRLEN b ; SET n 55 ; BITFIELD n GET u8 0 ;
OBJECT ENCODING n ; BITFIELD n INCRBY u8 #1 1 ; GET n ; OBJECT ENCODING n
)",
    // HyperLogLog.
    R"(
PFADD ; PFADD h ; GET h ; PFADD h ; PFCOUNT h ; GET h ; PFADD h a ; GET h ; PFADD h a ; PFCOUNT h ;
GET h ; PFADD h a b c d e f g ; PFCOUNT h ; PFDEBUG DECODE h ; PFDEBUG ENCODING h ; GET h ;
PFADD h '' ; PFCOUNT h ; OBJECT ENCODING h ; PFCOUNT nosuch ; PFCOUNT nosuch h ; PFADD i x y z a ;
PFCOUNT h i ; PFMERGE d h i ; PFCOUNT d ; GET d ; PFMERGE e ; GET e ; PFMERGE h i ; GET h ;
PFDEBUG TODENSE i ; PFDEBUG TODENSE i ; PFDEBUG ENCODING i ; PFDEBUG DECODE i ; GET i ; PFADD i q ;
PFADD i q ; PFCOUNT i ; PFMERGE d i ; PFDEBUG ENCODING d ; GET d ; PFDEBUG FOO d ;
PFDEBUG GETREG d ; PFDEBUG GETREG nosuch ; PFDEBUG ENCODING ; PFDEBUG GETREG h ;
PFDEBUG ENCODING h ; PFSELFTEST ; SET s x ; PFADD s a ; PFCOUNT s ; PFCOUNT s s ; PFMERGE s h ;
PFMERGE h s ; PFDEBUG ENCODING s ; SET n 12345 ; PFADD n a ; PFCOUNT n ; LPUSH l a ; PFADD l a ;
PFCOUNT l ; PFCOUNT l h ; PFMERGE l h ; PFMERGE h l ; PFDEBUG ENCODING l ; EXPIRE d 100000 ;
PFADD d zz ; TTL d ; PFMERGE d i ; TTL d ; PFADD c a ; APPEND c xx ; PFADD c b ; PFCOUNT c ;
PFCOUNT c h ; PFMERGE h c ; PFDEBUG TODENSE c ; SETRANGE i 4 '2' ; PFADD k a ; SETRANGE k 0 HYL2 ;
PFCOUNT k ; APPEND i x ; PFCOUNT i
)",
    // The longest common subsequence.
    R"(
LCS ; LCS a ; LCS a b ; LCS a b LEN ; LCS a b IDX ; SET a ohmytext ; SET b mynewtext ; LCS a b ;
LCS a nosuch ; LCS nosuch a LEN ; LCS a b LEN ; LCS a b IDX ; LCS a b IDX MINMATCHLEN 4 ;
LCS a b IDX MINMATCHLEN 4 WITHMATCHLEN ; LCS a b IDX MINMATCHLEN -4 WITHMATCHLEN ;
LCS a b IDX MINMATCHLEN 100 ; LCS a b IDX MINMATCHLEN ; LCS a b MINMATCHLEN x ; LCS a b LEN IDX ;
LCS a b IDX LEN ; LCS a b FOO ; LCS a b WITHMATCHLEN ; LCS a b LEN WITHMATCHLEN ; LCS a a IDX ;
LCS a a ; SET n 12345 ; SET m 2345677 ; LCS n m ; LCS n m IDX WITHMATCHLEN ; LPUSH l a ; LCS l a ;
LCS a l ; LCS l l FOO ; LCS nosuch l ; SET x abcbdabxyzzyabcbdababcbdabxyzzyabcbdabxyzqqqaaaabbbb ;
SET y bdcabaxyzyzbdcabaqxzyybdcabaxyzzybdcabaxyzqqaabbaabbqqbdcabaxyzyzbdcabaqxzy ; LCS x y ;
LCS y x ; LCS x y LEN ; LCS x y IDX ; LCS y x IDX WITHMATCHLEN ; LCS x y IDX MINMATCHLEN 2 ;
SETRANGE big 20000 x ; LCS big big LEN ; LCS big big ; SETRANGE big2 6000 x ; LCS a big LEN
)",
    // Sorting.
    R"(
SORT nosuch ; SORT nosuch FOO ; SORT nosuch STORE d ; RPUSH l 3 1 2 10 -5 2.5 ; SORT l ;
SORT l DESC ; SORT l ASC ; SORT l DESC ASC ; SORT l ALPHA ; SORT l ALPHA DESC ; SORT l LIMIT 1 2 ;
SORT l LIMIT 0 0 ; SORT l LIMIT 2 -1 ; SORT l LIMIT -1 2 ; SORT l LIMIT 100 1 ; SORT l LIMIT 4 100 ;
SORT l LIMIT x 1 ; SORT l LIMIT 1 x ; SORT l LIMIT 1 ; SORT l LIMIT 1000000 1 ;
SORT l LIMIT 1 1000000 ; SORT l LIMIT -1000000 -1000000 ;
SORT l BY ; SORT l GET ; SORT l STORE ; SORT l FOO ; SORT l BY nosort ; SORT l BY nosort DESC ;
SORT l BY nosort LIMIT 1 2 ; SORT l BY nosort DESC LIMIT 1 2 ; SORT l BY nosort LIMIT 0 0 ;
SORT l BY nosort LIMIT 10 1 ; SORT l BY nosort GET # ; SORT l GET # GET # GET nosuch ; SORT l GET l ;
SET w1 30 ; SET w2 20 ; SET w3 10 ; SET w10 abc ; SORT l BY w* ; SORT l BY w* ALPHA ;
SORT l BY w* ALPHA DESC ; DEL w10 ; SORT l BY w* ; SORT l BY w* DESC ; SORT l BY w* GET w* GET # ;
SORT l BY w* LIMIT 1 2 ; SORT l BY w*y ; SORT l BY * ; HSET h1 f 5 g x ; HSET h2 f 1 ; HSET h3 f 3 ;
SORT l BY h*->f ; SORT l BY h*->f GET h*->f GET h*->g ; SORT l BY h*-> ; SORT l GET h*-> ;
SORT l GET h* ; SORT l BY h* ; SORT l GET w*->f ; SORT l BY h*->f DESC GET # ; HSET h1->f->g x 9 ;
SORT l GET h*->f->g ; SORT l BY nosort BY w* ; SORT l BY w* BY nosort ; SORT l STORE d ;
LRANGE d 0 -1 ; SORT l BY w* GET w* STORE d ; LRANGE d 0 -1 ; SORT l LIMIT 0 0 STORE d ; EXISTS d ;
SET d x EX 100000 ; SORT l ALPHA DESC STORE d ; LRANGE d 0 -1 ; TTL d ; TYPE d ; SORT l STORE l ;
LRANGE l 0 -1 ; SORT_RO l ; SORT_RO l DESC LIMIT 0 1 ; SORT_RO l STORE d ; SORT_RO nosuch ;
RPUSH m a 1 ; SORT m ; SORT m LIMIT 0 1 ; SORT m LIMIT 0 0 ; SORT m ALPHA ; SORT m STORE d ;
LRANGE d 0 -1 ; RPUSH f 1e3 0x10 -inf inf 5 ; SORT f ; RPUSH f nan ; SORT f ; DEL f ;
RPUSH f 1e400 ; SORT f ; DEL f ; RPUSH f '' 5 ; SORT f ; DEL f ; RPUSH f 5 5 5.0 05 ; SORT f ;
SORT f DESC ; SADD s 3 1 2 ; SORT s ; SORT s DESC ; SORT s BY w* ; SORT s BY nosort STORE d ;
LRANGE d 0 -1 ; SORT s BY nosort DESC STORE d ; LRANGE d 0 -1 ; SORT s BY w* GET # GET w* STORE d ;
LRANGE d 0 -1 ; SORT s GET nosuch* STORE d ; LRANGE d 0 -1 ; SORT s LIMIT 1 1 ; SET str x ;
SORT str ; SORT str FOO ; HSET hash a 1 ; SORT hash ; SORT_RO hash ; SORT ; SORT_RO ;
RPUSH c banana apple Cherry 10 9 apple ; SORT c ALPHA ; SORT c ALPHA DESC LIMIT 1 3 ; SORT c ;
SORT c BY x*x ; SORT c BY x*x ALPHA ; SORT c BY x*x ALPHA DESC
)",
    // About the server.
    R"(
SLOWLOG ; SLOWLOG FOO ; SLOWLOG LEN a ; SLOWLOG GET x ; SLOWLOG GET -2 ; SLOWLOG GET 1 2 ;
SLOWLOG RESET a ; SLOWLOG RESET ; SLOWLOG GET ; SLOWLOG LEN ; LATENCY ; LATENCY FOO ;
LATENCY RESET ; LATENCY RESET command ; LATENCY LATEST ; LATENCY LATEST a ; LATENCY HISTORY ;
LATENCY HISTORY command ; LATENCY GRAPH nosuch ; LATENCY GRAPH ; CLUSTER ; CLUSTER INFO ;
CLUSTER FOO ; CLUSTER KEYSLOT ; CLUSTER KEYSLOT a ; CLUSTER SLOTS a ; CLUSTER SLOTS ;
CLUSTER SHARDS ; CLUSTER NODES ; CLUSTER MYID ; CLUSTER COUNTKEYSINSLOT 1 ; READONLY ; READWRITE ;
ASKING ; ROLE ; ROLE a ; WAIT x 0 ; WAIT 0 x ; WAIT 0 -1 ; WAIT 0 0 ; WAIT 0 ; WAIT x x ;
WAIT -1 1 ; MODULE ; MODULE LIST ; MODULE LIST a ; MODULE FOO ; CONFIG SET slowlog-max-len x ;
CONFIG SET slowlog-max-len -1 ; CONFIG SET slowlog-log-slower-than -2 ;
CONFIG SET slowlog-log-slower-than x ; CONFIG GET slowlog-max-len ;
CONFIG GET slowlog-log-slower-than ; CONFIG GET latency-monitor-threshold ;
CONFIG SET latency-monitor-threshold -1 ; CONFIG GET hll-sparse-max-bytes ;
CONFIG SET hll-sparse-max-bytes x ; CONFIG SET slowlog-max-len 5 slowlog-max-len 6 ;
CONFIG SET slowlog-max-len 5 SLOWLOG-MAX-LEN 6 ; CONFIG GET slowlog-max-len ;
CONFIG GET cluster-enabled ; CONFIG SET slowlog-max-len 77 ; CONFIG GET slowlog-max-len ;
CONFIG SET slowlog-max-len 128 ; CONFIG GET maxclients ; CONFIG GET list-max-listpack-size ;
CONFIG SET nosuch x slowlog-max-len ; MEMORY PURGE ; MEMORY PURGE a ; MEMORY DOCTOR a ;
LASTSAVE a ; LOLWUT VERSION 5 x
)",
    R"(
COMMAND GETKEYS ; COMMAND GETKEYS GET ; COMMAND GETKEYS GET a ; COMMAND GETKEYS GET a b ;
COMMAND GETKEYS NOSUCH a ; COMMAND GETKEYS PING ; COMMAND GETKEYS PING a ;
COMMAND GETKEYS MSET a 1 b 2 ; COMMAND GETKEYS LMPOP 2 a b LEFT ; COMMAND GETKEYS LMPOP 9 a LEFT ;
COMMAND GETKEYS LMPOP x a LEFT ; COMMAND GETKEYS SINTERCARD 2 a b LIMIT 1 ;
COMMAND GETKEYS SINTERCARD 0 a ; COMMAND GETKEYS BITOP AND d a b ; COMMAND GETKEYS OBJECT FREQ a ;
COMMAND GETKEYS OBJECT HELP ; COMMAND GETKEYS MEMORY USAGE a ; COMMAND GETKEYS MEMORY DOCTOR ;
COMMAND GETKEYS SORT a ; COMMAND GETKEYS SORT a BY x GET y STORE d STORE e ;
COMMAND GETKEYS SORT a LIMIT 1 2 STORE d ; COMMAND GETKEYS COPY a b DB 1 ;
COMMAND GETKEYS CONFIG GET x ; COMMAND GETKEYS PFCOUNT a b ; COMMAND GETKEYS LCS a b LEN ;
COMMAND GETKEYSANDFLAGS ; COMMAND GETKEYSANDFLAGS GET a ; COMMAND GETKEYSANDFLAGS MSET a 1 b 2 ;
COMMAND GETKEYSANDFLAGS DEL a b ; COMMAND GETKEYSANDFLAGS SORT a STORE b ;
COMMAND GETKEYSANDFLAGS LMOVE a b LEFT LEFT ; COMMAND GETKEYSANDFLAGS RENAME a b ;
COMMAND GETKEYSANDFLAGS BITFIELD a GET u8 0 ; COMMAND GETKEYSANDFLAGS BITFIELD a INCRBY u8 0 1 ;
COMMAND GETKEYSANDFLAGS SET a b ; COMMAND GETKEYSANDFLAGS SET a b NX GET ; COMMAND GETKEYSANDFLAGS SINTERSTORE d a b ;
COMMAND LIST FILTERBY ; COMMAND LIST FILTERBY FOO x ; COMMAND LIST FOO ; COMMAND LIST FOO a b ;
COMMAND LIST FILTERBY MODULE x ; COMMAND LIST FILTERBY ACLCAT nosuch ;
COMMAND LIST FILTERBY PATTERN nosuch* ; COMMAND LIST FILTERBY PATTERN GETR* ; COMMAND DOCS nosuch ;
COMMAND INFO nosuch ; COMMAND INFO get nosuch mget ; COMMAND INFO getdel setex msetnx ;
COMMAND INFO lpush lpop lmpop lmove linsert lpos ; COMMAND INFO sadd spop sinter sintercard smove ;
COMMAND INFO hset hgetall hscan hrandfield hincrbyfloat ; COMMAND INFO del unlink rename copy scan ;
COMMAND INFO expire ttl persist touch randomkey ; COMMAND INFO setbit bitcount bitop bitfield_ro ;
COMMAND INFO pfadd pfmerge pfselftest ; COMMAND INFO lcs ;
COMMAND INFO ping hello auth quit reset select echo ; COMMAND INFO info time role lastsave ;
COMMAND INFO flushall keys dbsize swapdb move lolwut readonly readwrite asking
)",
    // Sorted sets: members and scores.
    R"(
ZADD ; ZADD z ; ZADD z 1 ; ZADD z 1 a 2 ; ZADD z NX ; ZADD z NX 1 ; ZADD z x a ; ZADD z 1 a x b ;
EXISTS z ; ZADD z NX XX 1 a ; ZADD z GT LT 1 a ; ZADD z GT NX 1 a ; ZADD z NX LT 1 a ;
ZADD z INCR 1 a 2 b ; ZADD z XX 1 a ; ZADD z XX INCR 1 a ; EXISTS z ; ZADD z nan a ;
ZADD z 1 a 2 b 3 c ; ZADD z 1 a ; ZADD z CH 1 a 5 b ; ZADD z ch nx 7 a 7 d ; ZADD z CH XX 7 a 7 e ;
ZADD z GT CH 6 a ; ZADD z GT CH 8 a ; ZADD z LT CH 9 a ; ZADD z LT CH 6 a ; ZADD z GT INCR -1 a ;
ZADD z GT INCR 1 a ; ZADD z LT INCR 1 a ; ZADD z NX INCR 1 a ; ZADD z NX INCR 1.5 new ;
ZADD z inf a -inf b +inf c ; ZINCRBY z -inf a ; ZINCRBY z inf b ; ZINCRBY z inf a ;
ZADD z INCR -inf c ; ZRANGE z 0 -1 WITHSCORES ; ZINCRBY z x a ; ZINCRBY z nan a ; ZINCRBY z 1 a b ;
ZINCRBY z nx a ; ZINCRBY z ch 1 ; ZINCRBY z 0.1 f ; ZINCRBY z 0.2 f ; ZSCORE z f ; ZADD z 3.3 f ;
ZSCORE z f ; ZADD z 1e300 f ; ZSCORE z f ; ZADD z 1e17 f ; ZSCORE z f ; ZADD z 123456789012345680 f ;
ZSCORE z f ; ZADD z 1e-300 f ; ZSCORE z f ; ZADD z 0x1p4 f ; ZSCORE z f ; ZADD z -0 f ; ZSCORE z f ;
ZINCRBY z -0 g ; ZSCORE z g ; ZADD z 1e400 f ; ZADD z -1e400 f ; ZADD z 1e-400 f ; ZADD z 5e-324 f ;
ZSCORE z f ; ZADD z ' f ; ZADD z '' f ; ZADD z 4611686018427387904 big ; ZADD z 1e18 big2 ;
ZADD z 1e19 big3 ; ZADD z -1e18 big4 ; ZSCAN z 0 ; ZRANGE z 0 -1 WITHSCORES ; ZMSCORE z a nosuch ;
ZMSCORE nosuch a b ; ZMSCORE z ; ZSCORE nosuch a ; ZSCORE z nosuch ; ZCARD nosuch ; ZREM nosuch a ;
ZREM z nosuch ; ZREM z a a b ; ZRANK z nosuch ; ZRANK nosuch a ; ZRANK z c ; ZREVRANK z c ;
ZADD t 1 a ; ZREM t a b ; EXISTS t ; ZPOPMIN nosuch ; ZPOPMIN nosuch 1 ; ZPOPMIN z -1 ;
ZPOPMIN z x ; ZPOPMIN z 0 ; ZPOPMIN z 1 2 ; ZPOPMIN z ; ZPOPMAX z ; ZPOPMIN z 2 ; ZPOPMAX z 2 ;
ZPOPMIN z 9223372036854775807 ; EXISTS z ; ZADD z 1 a 2 b 3 c ; ZMPOP 0 z MIN ; ZMPOP x z MIN ;
ZMPOP 1 z FOO ; ZMPOP 1 z ; ZMPOP 2 z MIN ; ZMPOP 5 z MIN ; ZMPOP 1 z MIN COUNT ;
ZMPOP 1 z MIN COUNT 0 ; ZMPOP 1 z MIN COUNT x ; ZMPOP 1 z MIN COUNT 1 COUNT 1 ;
ZMPOP 1 z MIN FOO 1 ; ZMPOP 2 nosuch z MAX COUNT 2 ; ZMPOP 2 nosuch nosuch2 MIN ; SET s x ;
ZMPOP 2 nosuch s MIN ; ZMPOP 2 z s MIN ; EXISTS z ; ZADD z 1 a 2 b ; ZRANDMEMBER nosuch ;
ZRANDMEMBER nosuch 1 ; ZRANDMEMBER nosuch 1 WITHSCORES ; ZRANDMEMBER z x ; ZRANDMEMBER z 0 ;
ZRANDMEMBER z 2 ; ZRANDMEMBER z 2 WITHSCORES ; ZRANDMEMBER z 5 withscores ; ZRANDMEMBER z 1 FOO ;
ZRANDMEMBER z 1 WITHSCORES x ; ZRANDMEMBER z 100000 ;
ZRANDMEMBER z 100000 WITHSCORES ; ZREM z b ; ZRANDMEMBER z ; ZRANDMEMBER z -3 ;
ZRANDMEMBER z -2 WITHSCORES ; ZSCAN nosuch 0 ; ZSCAN z x ; ZSCAN z 0 COUNT 0 ; ZSCAN z 0 COUNT x ;
ZSCAN z 0 FOO ; ZSCAN z 0 MATCH b ; ZSCAN z 0 MATCH a ; ZSCAN nosuch 0 FOO ; ZADD s 1 a ;
ZINCRBY s 1 a ; ZSCORE s a ; ZRANK s a ; ZCARD s ; ZPOPMIN s ; ZSCAN s 0 ; ZRANDMEMBER s ;
ZREM s a ; ZMSCORE s a ; ZADD s x a ; ZADD s NX XX 1 a ; ZPOPMIN s x ; ZPOPMIN s 0
)",
    // Positions.
    R"(
GEOADD g ; GEOADD g 13.361389 38.115556 Palermo 15.087269 37.502669 Catania ; GEOADD g 1 2 ;
GEOADD g 1 2 a 3 ; GEOADD g NX XX 1 2 a ; GEOADD g NX CH XX ; GEOADD g x 2 a ; GEOADD g 1 x a ;
GEOADD g 181 0 a ; GEOADD g 0 86 a ; GEOADD g -180.5 -90 a ; GEOADD g inf 0 a ; GEOADD g 1e300 0 a ;
GEOADD g CH 13.4 38.1 Palermo ; GEOADD g NX 0 0 Palermo ; GEOADD g XX 0 0 nosuch ;
GEOADD g CH 13.361389 38.115556 Palermo ; GEOADD g 180 85.05112878 ne -180 -85.05112878 sw 0 0 zero ;
ZRANGE g 0 -1 WITHSCORES ; GEOPOS g Palermo nosuch ne sw zero ; GEOPOS g ; GEOPOS nosuch a ;
GEOPOS nosuch ; GEOHASH g Palermo Catania nosuch ne sw zero ; GEOHASH nosuch a ; GEODIST g Palermo ;
GEODIST g Palermo Catania ; GEODIST g Palermo Catania km ; GEODIST g Palermo Catania MI ;
GEODIST g Palermo Catania ft ; GEODIST g Palermo Catania x ; GEODIST g Palermo Catania m x ;
GEODIST g Palermo nosuch ; GEODIST nosuch a b ; GEODIST nosuch a b x ; GEODIST g zero zero ;
GEODIST g ne sw km ; ZREM g ne sw zero ; GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 200 km ASC ;
GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 200 km DESC WITHDIST ;
GEOSEARCH g FROMLONLAT 15 37 BYBOX 400 400 km ASC WITHCOORD WITHDIST WITHHASH ;
GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 200 km WITHHASH COUNT 1 ;
GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 200 km COUNT 1 DESC ; GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 1 km ;
GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 200 km COUNT 0 ; GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 200 km COUNT x ;
GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 200 km ANY ; GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 200 km ANY COUNT 9 ASC ;
GEOSEARCH g FROMLONLAT 15 37 BYRADIUS x km ; GEOSEARCH g FROMLONLAT 15 37 BYRADIUS -1 km ;
GEOSEARCH g FROMLONLAT 15 37 BYRADIUS 1 x ; GEOSEARCH g FROMLONLAT 15 37 BYBOX x 1 km ;
GEOSEARCH g FROMLONLAT 15 37 BYBOX 1 x km ; GEOSEARCH g FROMLONLAT 15 37 BYBOX -1 1 km ;
GEOSEARCH g FROMLONLAT 15 37 BYBOX 1 1 x ; GEOSEARCH g FROMLONLAT 15 x BYRADIUS 1 km ;
GEOSEARCH g FROMLONLAT 15 99 BYRADIUS 1 km ; GEOSEARCH g FROMMEMBER Palermo BYRADIUS 200 km ASC WITHDIST ;
GEOSEARCH g FROMMEMBER nosuch BYRADIUS 200 km ; GEOSEARCH g FROMMEMBER Palermo FROMLONLAT 1 2 BYRADIUS 1 km ;
GEOSEARCH g FROMLONLAT 1 2 FROMMEMBER Palermo BYRADIUS 1 km ; GEOSEARCH g BYRADIUS 1 km ASC ASC ;
GEOSEARCH g FROMLONLAT 1 2 ASC ASC ; GEOSEARCH g FROMLONLAT 1 2 BYRADIUS 1 km BYBOX 1 1 km ;
GEOSEARCH g FROMLONLAT 1 2 BYBOX 1 1 km BYRADIUS 1 km ; GEOSEARCH g FROMLONLAT 1 2 BYRADIUS 1 km STORE d ;
GEOSEARCH g FROMLONLAT 1 2 BYRADIUS 1 km STOREDIST ; GEOSEARCH g FROMLONLAT 1 2 BYRADIUS 1 km FOO ;
GEOSEARCH nosuch FROMMEMBER a BYRADIUS 1 km ; GEOSEARCH nosuch FROMLONLAT 1 2 BYRADIUS x km ;
geosearch nosuch ASC ASC ASC ASC ASC ; GEOSEARCHSTORE d g FROMLONLAT 15 37 BYRADIUS 200 km ;
ZRANGE d 0 -1 WITHSCORES ; GEOSEARCHSTORE d g FROMLONLAT 15 37 BYBOX 400 400 km STOREDIST COUNT 1 ;
ZRANGE d 0 -1 WITHSCORES ; GEOSEARCHSTORE d g FROMLONLAT 15 37 BYRADIUS 200 km WITHDIST ;
GEOSEARCHSTORE d g FROMLONLAT 1 2 BYRADIUS 1 km ; EXISTS d ; SET s x ;
GEOSEARCHSTORE s g FROMLONLAT 15 37 BYRADIUS 200 km ; TYPE s ;
GEOSEARCHSTORE s nosuch FROMLONLAT 15 37 BYRADIUS 200 km ; EXISTS s ; GEORADIUS g 15 37 200 km ASC ;
GEORADIUS g 15 37 200 km WITHDIST WITHCOORD DESC ; GEORADIUS g 15 37 200 km WITHHASH COUNT 1 ;
GEORADIUS g 15 37 200 km STORE d ; ZRANGE d 0 -1 WITHSCORES ; GEORADIUS g 15 37 200 km STOREDIST d ;
ZRANGE d 0 -1 WITHSCORES ; GEORADIUS g 15 37 200 km STORE d WITHDIST ; GEORADIUS g 15 37 200 km STORE ;
GEORADIUS g x 37 200 km ; GEORADIUS g 15 37 x km ; GEORADIUS g 15 37 -2 km ; GEORADIUS g 15 37 200 x ;
GEORADIUS nosuch 15 37 200 km ; GEORADIUS nosuch 15 37 200 km STORE d ; EXISTS d ;
GEORADIUS nosuch x 37 200 km ; GEORADIUS g 15 37 200 km FROMMEMBER Palermo ; GEORADIUS_RO g 15 37 200 km ASC ;
GEORADIUS_RO g 15 37 200 km STORE d ; GEORADIUSBYMEMBER g Palermo 200 km ASC ;
GEORADIUSBYMEMBER g nosuch 200 km ; GEORADIUSBYMEMBER g Palermo 200 km STORE d ;
ZRANGE d 0 -1 WITHSCORES ; GEORADIUSBYMEMBER nosuch a x y ; GEORADIUSBYMEMBER nosuch a x y FOO ;
GEORADIUSBYMEMBER nosuch a x y STORE d ; EXISTS d ; GEORADIUSBYMEMBER_RO g Palermo 200 km ASC WITHDIST ;
GEORADIUSBYMEMBER_RO g Palermo 200 km STORE d ; SET s x ; GEOADD s 1 2 a ; GEOADD s x 2 a ; GEOPOS s a ;
GEOHASH s a ; GEODIST s a b ; GEODIST s a b x ; GEORADIUS s x 2 3 m ; GEOSEARCH s FROMMEMBER a FOO 1 m ;
GEOSEARCHSTORE d s FROMMEMBER a BYRADIUS 1 m ; ZADD odd -1 a 0.5 b inf c 1e300 d ; GEOPOS odd b d ;
OBJECT ENCODING g ; GEORADIUSBYMEMBER_RO ; GEORADIUS_RO g
)",
};

}  // namespace eddy::cache::testing
