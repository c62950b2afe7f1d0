// The commands of differential_test.cpp, separated by semicolons.
#pragma once

#include <string_view>

namespace eddy::cache::testing {

/// What random commands are made of: %k key, %v value, %m member or field, %i integer, %n small
/// count, %f float, %p pattern, %x a time to live that is over at once or not during the test; the
/// rest stands for itself.
inline constexpr std::string_view command_templates = R"(
GET %k ; SET %k %v ; SET %k %v ; SET %k %i ; SET %k %v NX ; SET %k %v XX ; SET %k %v GET ;
SET %k %v XX GET ; SET %k %v NX GET ; SET %k %v KEEPTTL ; SET %k %v EX %x ;
SET %k %v PX 10000%n EX 5 ; SET %k %v EX 100000 XX ; SET %k %v PXAT 999999999999%n ; SETNX %k %v ;
SETEX %k 1000%n %v ; PSETEX %k 1000000%n %v ; SETEX %k %x %v ; GETSET %k %v ; GETDEL %k ;
GETEX %k ; GETEX %k PERSIST ; GETEX %k EX 1000%n ; GETEX %k EXAT 1 ; MGET %k %k %k ;
MSET %k %v %k %v ; MSETNX %k %v %k %v ; MSET %k %v %k ; APPEND %k %v ; STRLEN %k ;
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
GETBIT %k %n ; GETBIT %k 3%n ; GETBIT %k %i ; BITCOUNT %k ; BITCOUNT %k %n %n ;
BITCOUNT %k %n %n BIT ; BITCOUNT %k %n %n BYTE ; BITCOUNT %k %i %i BIT ; BITPOS %k 0 ;
BITPOS %k 1 ; BITPOS %k 1 %n ; BITPOS %k 0 %n %n ; BITPOS %k 1 %n %n BIT ; BITPOS %k 0 %i %i BIT ;
BITPOS %k 0 %n %n BYTE ; BITOP AND %k %k %k ; BITOP OR %k %k %k ; BITOP XOR %k %k %k %k ;
BITOP NOT %k %k ; BITFIELD %k GET u8 %n ; BITFIELD %k SET i5 1%n %i GET u16 #%n ;
BITFIELD %k OVERFLOW SAT INCRBY i8 %n %i OVERFLOW FAIL INCRBY u7 2%n %i ;
BITFIELD %k INCRBY i64 %n %i SET i63 #%n %i ; BITFIELD %k OVERFLOW SAT SET i63 %n %i ;
BITFIELD %k SET u63 %n %i OVERFLOW SAT INCRBY u63 %n %i ; BITFIELD %k INCRBY u1 %n 1 GET i1 %n ;
BITFIELD %k OVERFLOW FAIL SET u4 %n %i INCRBY i3 %n %n ; BITFIELD_RO %k GET i64 %n GET u3 #%n ;
BITFIELD_RO %k SET u8 0 1 ;

PFADD hll%n %m %m ; PFADD hll%n %v %v %v ; PFADD hll%n %i ; PFADD hll%n ; PFADD %k %m ;
PFCOUNT hll%n ; PFCOUNT hll%n hll%n ; PFCOUNT hll%n nosuch %k ; PFMERGE hll%n hll%n hll%n ;
PFMERGE new%n hll%n ; GET hll%n ; GET new%n ; PFDEBUG DECODE hll%n ; PFDEBUG ENCODING hll%n ;
PFDEBUG TODENSE new%n ; APPEND new%n x ; SETRANGE new%n 2%n x ; DEL new%n ;

LCS %k %k ; LCS %k %k LEN ; LCS %k %k IDX ; LCS %k %k IDX MINMATCHLEN %n WITHMATCHLEN ;

RPUSH ls%n %n %n 3 1%n ; RPUSH ls%n b a c a ; DEL ls%n ; LTRIM ls%n -5 -1 ; SORT ls%n ;
SORT ls%n DESC ; SORT ls%n ALPHA LIMIT %n %n ; SORT ls%n BY k* ALPHA ; SORT ls%n BY k* GET # GET k* ;
SORT ls%n BY k*->m%n DESC GET k*->m%n GET # ; SORT ls%n BY nosort DESC LIMIT %n %n GET # GET k* ;
SORT ls%n BY nosort LIMIT %n %n ; SORT ls%n ALPHA DESC STORE ls%n ; SORT ls%n LIMIT 1 2 STORE %k ;
SORT ls%n BY k* LIMIT %n %n ; SORT_RO ls%n ALPHA ; SORT_RO ls%n STORE x ; SORT %k ;
SORT %k ALPHA ; SORT %k ALPHA DESC STORE ls%n ; SORT %k BY nosort ; SORT %k BY nosort STORE %k ;
SORT %k BY k* GET # STORE %k ; SORT %k DESC LIMIT 0 %n
)";

/// Whether a line of edge_scripts is one that Redis answered otherwise after version 7.0.
constexpr bool differs_between_versions(std::string_view line) {
    for (const std::string_view changed :
         {"OBJECT ENCODING s", "OBJECT ENCODING l", "LREM m -9223372036854775808 a",
          "LPOP m 9223372036854775807", "SSCAN a ''", "SSCAN a -1"})
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
SWAPDB 0 2147483648 ; SELECT -1 ; SELECT x ; SELECT 99999999999999999999 ; SWAPDB a 1 ;
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
HINCRBYFLOAT hh f 1 ; HINCRBYFLOAT hh z 1.25 ; HINCRBYFLOAT hh z nan ; HINCRBYFLOAT hh z inf ;
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
SETRANGE a 536870911 '' ; SETRANGE a 9223372036854775807 x ; EXISTS a ; SETRANGE a 5 x ; GET a ;
SET n 12345 ; SETRANGE n 2 x ; GET n ; GETRANGE n 0 -1 ; GETRANGE n -3 -1 ; GETRANGE n -1 -3 ;
GETRANGE n 3 1 ; GETRANGE n 10 20 ; GETRANGE n -100 1 ; GETRANGE n x 1 ; GETRANGE n 1 x ;
GETRANGE nosuch x 1 ; GETRANGE nosuch 0 1 ; SUBSTR n 1 2 ; GETRANGE n 0 -100 ;
GETRANGE n -9223372036854775808 9223372036854775807 ; STRLEN n ; STRLEN nosuch ; LPUSH l a ;
STRLEN l ; APPEND l x ; SETRANGE l 0 x ; SETRANGE l 0 '' ; GETRANGE l 0 1 ; MGET n l nosuch ;
MSET a 1 b ; MSETNX x 1 n 2 ; GET x ; MSETNX x 1 y 2 x 3 ; GET x
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
SRANDMEMBER s -9223372036854775808 ; SRANDMEMBER s 9223372036854775807 ; SET str x ; SADD str a ;
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
HRANDFIELD h 1 WITHVALUES x ; HRANDFIELD h x ; HRANDFIELD h 9223372036854775807 WITHVALUES ;
HRANDFIELD h 4611686018427387903 WITHVALUES ; HRANDFIELD h -9223372036854775808 ;
HSCAN h 0 MATCH a ; HSCAN h 0 MATCH b
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
BITCOUNT nosuch 0 x ; BITCOUNT nosuch 0 1 FOO ; SET b foobar ; BITCOUNT b ; BITCOUNT b 0 ;
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
PFCOUNT k ; PFADD m a b c ; SETRANGE m 16 x ; PFADD m d e f g ; PFCOUNT m ; APPEND i x ; PFCOUNT i
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
SORT l LIMIT x 1 ; SORT l LIMIT 1 x ; SORT l LIMIT 1 ; SORT l LIMIT 9223372036854775807 1 ;
SORT l LIMIT 1 9223372036854775807 ; SORT l LIMIT -9223372036854775808 -9223372036854775808 ;
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
};

}  // namespace eddy::cache::testing
