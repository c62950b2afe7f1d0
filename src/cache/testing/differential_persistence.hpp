// Commands of differential_test.cpp about saving, as far as they need no disk.
#pragma once

#include <string_view>

namespace eddy::cache::testing {

inline constexpr std::string_view persistence_scripts[] = {
    R"(
SAVE now ; BGSAVE now ; BGSAVE SCHEDULE now ; BGSAVE '' ; LASTSAVE now ;
BGSAVE a b c ;
COMMAND INFO save bgsave lastsave ; COMMAND GETKEYS save ;
)",
    R"(
CONFIG GET save ; CONFIG SET save '' ; CONFIG SET save 1 ; CONFIG SET save x ;
CONFIG SET dir /nowhere ; CONFIG SET dbfilename other.rdb ; CONFIG GET dbfilename ;
CONFIG GET stop-writes-on-bgsave-error ; CONFIG SET stop-writes-on-bgsave-error maybe ;
CONFIG SET stop-writes-on-bgsave-error no ; CONFIG GET stop-writes-on-bgsave-error ;
CONFIG SET stop-writes-on-bgsave-error YES ; CONFIG GET stop-writes-on-bgsave-error ;
CONFIG GET rdbcompression ; CONFIG GET rdbchecksum
)",
    R"(
SET a 1 ; RPUSH l a b c ; SADD s 1 2 3 ; ZADD z 1 a 2.5 b ; HSET h f v g w ; EXPIRE a 1000 ;
DEBUG RELOAD ; DEBUG DIGEST ; GET a ; TTL a ; LRANGE l 0 -1 ; ZRANGE z 0 -1 WITHSCORES ; SELECT 1 ;
SET b 2 ; DEBUG RELOAD ; GET b ; SELECT 0 ; DBSIZE ; FLUSHALL ; DEBUG RELOAD ; DBSIZE
)",
};

}  // namespace eddy::cache::testing
