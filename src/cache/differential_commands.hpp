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
RESTORE %k 0 %v ; RESTORE %k %i %v REPLACE ; RESTORE %k %i %v ; DUMP none
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
    // Values as bytes; rdb/redis_test.cpp has more of it.
    R"(
DUMP ; DUMP a b ; DUMP nosuch ; RESTORE ; RESTORE a 0 ; RESTORE a 0 junk ; RESTORE a x junk ;
RESTORE a -1 junk ; RESTORE a 0 '' ; RESTORE a 0 tenbytesof ; RESTORE a 0 junk FOO ;
RESTORE a 0 junk REPLACE FOO ; RESTORE a 0 junk IDLETIME ; RESTORE a 0 junk IDLETIME x ;
RESTORE a 0 junk IDLETIME -1 ; RESTORE a 0 junk FREQ ; RESTORE a 0 junk FREQ x ;
RESTORE a 0 junk FREQ 256 ; RESTORE a 0 junk FREQ 1 IDLETIME 1 ; RESTORE a x junk FREQ -1 ;
SET a 1 ; RESTORE a x junk ; RESTORE a x junk REPLACE ; GET a
)",
};

}  // namespace eddy::cache::testing
