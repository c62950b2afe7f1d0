// Command table and a perfect-enough hash over it, both made by the compiler.
#include "cache/catalog/command_table.hpp"

#include "cache/catalog/commands.hpp"

#include <array>
#include <cstring>

namespace eddy::cache {
namespace {

using namespace command_flag;

constexpr std::uint32_t read_fast = readonly | fast;
constexpr std::uint32_t write_fast = write | fast;
constexpr std::uint32_t grow = write | denyoom;
constexpr std::uint32_t grow_fast = write | denyoom | fast;
constexpr std::uint32_t always = loading | stale;
constexpr std::uint32_t scripting_ro = noscript | stale | runs_script;
constexpr std::uint32_t scripting = scripting_ro | may_replicate;

constexpr command_spec table[] = {
    // Strings
    {"get", commands::get, 2, read_fast | local, 1, 1, 1},
    {"set", commands::set, -3, grow | brief | local, 1, 1, 1},
    {"getset", commands::getset, 3, grow_fast | local, 1, 1, 1},
    {"getdel", commands::getdel, 2, write_fast | local, 1, 1, 1},
    {"getex", commands::getex, -2, write_fast | local, 1, 1, 1},
    {"setnx", commands::setnx, 3, grow_fast | local, 1, 1, 1},
    {"setex", commands::setex, 4, grow | brief | local, 1, 1, 1},
    {"psetex", commands::psetex, 4, grow | brief | local, 1, 1, 1},
    {"mget", commands::mget, -2, read_fast | local, 1, -1, 1},
    {"mset", commands::mset, -3, grow, 1, -1, 2},
    {"msetnx", commands::msetnx, -3, grow, 1, -1, 2},
    {"append", commands::append, 3, grow_fast | local, 1, 1, 1},
    {"strlen", commands::strlen, 2, read_fast | local, 1, 1, 1},
    {"getrange", commands::getrange, 4, readonly, 1, 1, 1},
    {"substr", commands::getrange, 4, readonly, 1, 1, 1},
    {"setrange", commands::setrange, 4, grow, 1, 1, 1},
    {"incr", commands::incr, 2, grow_fast | local, 1, 1, 1},
    {"decr", commands::decr, 2, grow_fast | local, 1, 1, 1},
    {"incrby", commands::incrby, 3, grow_fast | local, 1, 1, 1},
    {"decrby", commands::decrby, 3, grow_fast | local, 1, 1, 1},
    {"incrbyfloat", commands::incrbyfloat, 3, grow_fast | local, 1, 1, 1},

    // Strings as bits
    {"setbit", commands::setbit, 4, grow | brief, 1, 1, 1},
    {"getbit", commands::getbit, 3, read_fast | local, 1, 1, 1},
    {"bitcount", commands::bitcount, -2, readonly, 1, 1, 1},
    {"bitpos", commands::bitpos, -3, readonly, 1, 1, 1},
    {"bitop", commands::bitop, -4, grow, 2, -1, 1},
    {"bitfield", commands::bitfield, -2, grow, 1, 1, 1},
    {"bitfield_ro", commands::bitfield_ro, -2, read_fast, 1, 1, 1},

    // HyperLogLog
    {"pfadd", commands::pfadd, -2, grow_fast, 1, 1, 1},
    {"pfcount", commands::pfcount, -2, readonly | may_replicate, 1, -1, 1},
    {"pfmerge", commands::pfmerge, -2, grow, 1, -1, 1},
    {"pfdebug", commands::pfdebug, 3, grow | admin, 2, 2, 1},
    {"pfselftest", commands::pfselftest, 1, admin, 0, 0, 0},

    // Of several types
    {"lcs", commands::lcs, -3, readonly, 1, 2, 1},
    {"sort", commands::sort, -2, grow, 1, 1, 1},
    {"sort_ro", commands::sort_ro, -2, readonly, 1, 1, 1},

    // About the server
    {"slowlog", commands::slowlog, -2, always | admin | has_forms, 0, 0, 0},
    {"latency", commands::latency, -2, always | admin | noscript | has_forms, 0, 0, 0},
    {"cluster", commands::cluster, -2, always | has_forms, 0, 0, 0},
    {"readonly", commands::readonly, 1, fast | always, 0, 0, 0},
    {"readwrite", commands::readwrite, 1, fast | always, 0, 0, 0},
    {"asking", commands::asking, 1, fast, 0, 0, 0},
    {"role", commands::role, 1, fast | always | noscript, 0, 0, 0},
    {"wait", commands::wait, 3, blocking, 0, 0, 0},
    {"waitaof", commands::waitaof, 4, blocking | noscript, 0, 0, 0},
    {"replicaof", commands::replicaof, 3, admin | noscript | stale | alters, 0, 0, 0},
    {"slaveof", commands::replicaof, 3, admin | noscript | stale | alters, 0, 0, 0},
    {"failover", commands::failover, -1, admin | noscript | stale | alters, 0, 0, 0},
    {"replconf", commands::replconf, -1, admin | noscript | always, 0, 0, 0},
    {"psync", commands::psync, -3, admin | noscript | no_multi, 0, 0, 0},
    {"sync", commands::sync, 1, admin | noscript | no_multi, 0, 0, 0},
    {"lastsave", commands::lastsave, 1, fast | always, 0, 0, 0},
    {"save", commands::save, 1, admin | noscript | no_multi | alters, 0, 0, 0},
    {"bgsave", commands::bgsave, -1, admin | noscript | alters, 0, 0, 0},
    {"bgrewriteaof", commands::bgrewriteaof, 1, admin | noscript | alters, 0, 0, 0},
    {"lolwut", commands::lolwut, -1, read_fast, 0, 0, 0},
    {"module", commands::module, -2, admin | noscript | has_forms, 0, 0, 0},

    // Lists
    {"lpush", commands::lpush, -3, grow_fast | local, 1, 1, 1},
    {"rpush", commands::rpush, -3, grow_fast | local, 1, 1, 1},
    {"lpushx", commands::lpushx, -3, grow_fast | local, 1, 1, 1},
    {"rpushx", commands::rpushx, -3, grow_fast | local, 1, 1, 1},
    {"lpop", commands::lpop, -2, write_fast | local, 1, 1, 1},
    {"rpop", commands::rpop, -2, write_fast | local, 1, 1, 1},
    {"llen", commands::llen, 2, read_fast | local, 1, 1, 1},
    {"lindex", commands::lindex, 3, readonly, 1, 1, 1},
    {"lset", commands::lset, 4, grow, 1, 1, 1},
    {"lrange", commands::lrange, 4, readonly, 1, 1, 1},
    {"ltrim", commands::ltrim, 4, write, 1, 1, 1},
    {"lrem", commands::lrem, 4, write, 1, 1, 1},
    {"linsert", commands::linsert, 5, grow, 1, 1, 1},
    {"lpos", commands::lpos, -3, readonly, 1, 1, 1},
    {"lmove", commands::lmove, 5, grow, 1, 2, 1},
    {"rpoplpush", commands::rpoplpush, 3, grow, 1, 2, 1},
    {"lmpop", commands::lmpop, -4, write, 0, 0, 0},

    // Sets
    {"sadd", commands::sadd, -3, grow_fast | local, 1, 1, 1},
    {"srem", commands::srem, -3, write_fast | local, 1, 1, 1},
    {"smembers", commands::smembers, 2, readonly, 1, 1, 1},
    {"sismember", commands::sismember, 3, read_fast | local, 1, 1, 1},
    {"smismember", commands::smismember, -3, read_fast | local, 1, 1, 1},
    {"scard", commands::scard, 2, read_fast | local, 1, 1, 1},
    {"spop", commands::spop, -2, write_fast, 1, 1, 1},
    {"srandmember", commands::srandmember, -2, readonly, 1, 1, 1},
    {"smove", commands::smove, 4, write_fast, 1, 2, 1},
    {"sscan", commands::sscan, -3, readonly, 1, 1, 1},
    {"sinter", commands::sinter, -2, readonly, 1, -1, 1},
    {"sunion", commands::sunion, -2, readonly, 1, -1, 1},
    {"sdiff", commands::sdiff, -2, readonly, 1, -1, 1},
    {"sinterstore", commands::sinterstore, -3, grow, 1, -1, 1},
    {"sunionstore", commands::sunionstore, -3, grow, 1, -1, 1},
    {"sdiffstore", commands::sdiffstore, -3, grow, 1, -1, 1},
    {"sintercard", commands::sintercard, -3, readonly, 0, 0, 0},

    // Hashes
    {"hset", commands::hset, -4, grow_fast | local, 1, 1, 1},
    {"hmset", commands::hmset, -4, grow_fast | local, 1, 1, 1},
    {"hsetnx", commands::hsetnx, 4, grow_fast | local, 1, 1, 1},
    {"hget", commands::hget, 3, read_fast | local, 1, 1, 1},
    {"hmget", commands::hmget, -3, read_fast | local, 1, 1, 1},
    {"hgetall", commands::hgetall, 2, readonly, 1, 1, 1},
    {"hdel", commands::hdel, -3, write_fast | local, 1, 1, 1},
    {"hlen", commands::hlen, 2, read_fast | local, 1, 1, 1},
    {"hexists", commands::hexists, 3, read_fast | local, 1, 1, 1},
    {"hkeys", commands::hkeys, 2, readonly, 1, 1, 1},
    {"hvals", commands::hvals, 2, readonly, 1, 1, 1},
    {"hstrlen", commands::hstrlen, 3, read_fast | local, 1, 1, 1},
    {"hincrby", commands::hincrby, 4, grow_fast | local, 1, 1, 1},
    {"hincrbyfloat", commands::hincrbyfloat, 4, grow_fast | local, 1, 1, 1},
    {"hrandfield", commands::hrandfield, -2, readonly, 1, 1, 1},
    {"hscan", commands::hscan, -3, readonly, 1, 1, 1},
    {"hexpire", commands::hexpire, -6, write_fast, 1, 1, 1},
    {"hpexpire", commands::hpexpire, -6, write_fast, 1, 1, 1},
    {"hexpireat", commands::hexpireat, -6, write_fast, 1, 1, 1},
    {"hpexpireat", commands::hpexpireat, -6, write_fast, 1, 1, 1},
    {"hpersist", commands::hpersist, -5, write_fast, 1, 1, 1},
    {"httl", commands::httl, -5, read_fast, 1, 1, 1},
    {"hpttl", commands::hpttl, -5, read_fast, 1, 1, 1},
    {"hexpiretime", commands::hexpiretime, -5, read_fast, 1, 1, 1},
    {"hpexpiretime", commands::hpexpiretime, -5, read_fast, 1, 1, 1},
    {"hgetex", commands::hgetex, -5, write_fast, 1, 1, 1},
    {"hgetdel", commands::hgetdel, -5, write_fast, 1, 1, 1},
    {"hsetex", commands::hsetex, -6, grow_fast, 1, 1, 1},

    // Sorted sets
    {"zadd", commands::zadd, -4, grow_fast | local, 1, 1, 1},
    {"zincrby", commands::zincrby, 4, grow_fast | local, 1, 1, 1},
    {"zrem", commands::zrem, -3, write_fast | local, 1, 1, 1},
    {"zscore", commands::zscore, 3, read_fast | local, 1, 1, 1},
    {"zmscore", commands::zmscore, -3, read_fast | local, 1, 1, 1},
    {"zcard", commands::zcard, 2, read_fast | local, 1, 1, 1},
    {"zrank", commands::zrank, -3, read_fast | local, 1, 1, 1},
    {"zrevrank", commands::zrevrank, -3, read_fast | local, 1, 1, 1},
    {"zpopmin", commands::zpopmin, -2, write_fast | local, 1, 1, 1},
    {"zpopmax", commands::zpopmax, -2, write_fast | local, 1, 1, 1},
    {"zmpop", commands::zmpop, -4, write, 0, 0, 0},
    {"zrandmember", commands::zrandmember, -2, readonly, 1, 1, 1},
    {"zscan", commands::zscan, -3, readonly, 1, 1, 1},
    {"zrange", commands::zrange, -4, readonly, 1, 1, 1},
    {"zrangestore", commands::zrangestore, -5, grow, 1, 2, 1},
    {"zrangebyscore", commands::zrangebyscore, -4, readonly, 1, 1, 1},
    {"zrevrangebyscore", commands::zrevrangebyscore, -4, readonly, 1, 1, 1},
    {"zrangebylex", commands::zrangebylex, -4, readonly, 1, 1, 1},
    {"zrevrangebylex", commands::zrevrangebylex, -4, readonly, 1, 1, 1},
    {"zrevrange", commands::zrevrange, -4, readonly, 1, 1, 1},
    {"zcount", commands::zcount, 4, read_fast | local, 1, 1, 1},
    {"zlexcount", commands::zlexcount, 4, read_fast, 1, 1, 1},
    {"zremrangebyrank", commands::zremrangebyrank, 4, write, 1, 1, 1},
    {"zremrangebyscore", commands::zremrangebyscore, 4, write, 1, 1, 1},
    {"zremrangebylex", commands::zremrangebylex, 4, write, 1, 1, 1},
    {"zunion", commands::zunion, -3, readonly, 0, 0, 0},
    {"zinter", commands::zinter, -3, readonly, 0, 0, 0},
    {"zdiff", commands::zdiff, -3, readonly, 0, 0, 0},
    {"zunionstore", commands::zunionstore, -4, grow, 1, 1, 1},
    {"zinterstore", commands::zinterstore, -4, grow, 1, 1, 1},
    {"zdiffstore", commands::zdiffstore, -4, grow, 1, 1, 1},
    {"zintercard", commands::zintercard, -3, readonly, 0, 0, 0},

    // Streams
    {"xadd", commands::xadd, -5, grow_fast, 1, 1, 1},
    {"xtrim", commands::xtrim, -4, write, 1, 1, 1},
    {"xdel", commands::xdel, -3, write_fast, 1, 1, 1},
    {"xlen", commands::xlen, 2, read_fast, 1, 1, 1},
    {"xrange", commands::xrange, -4, readonly, 1, 1, 1},
    {"xrevrange", commands::xrevrange, -4, readonly, 1, 1, 1},
    {"xsetid", commands::xsetid, -3, grow_fast, 1, 1, 1},
    {"xread", commands::xread, -4, readonly | blocking, 0, 0, 0},
    {"xreadgroup", commands::xreadgroup, -7, write | blocking, 0, 0, 0},
    {"xgroup", commands::xgroup, -2, grow | has_forms, 0, 0, 0},
    {"xack", commands::xack, -4, write_fast, 1, 1, 1},
    {"xpending", commands::xpending, -3, readonly, 1, 1, 1},
    {"xclaim", commands::xclaim, -6, write_fast, 1, 1, 1},
    {"xautoclaim", commands::xautoclaim, -6, write_fast, 1, 1, 1},
    {"xinfo", commands::xinfo, -2, readonly | has_forms, 0, 0, 0},

    // Positions
    {"geoadd", commands::geoadd, -5, grow, 1, 1, 1},
    {"geopos", commands::geopos, -2, readonly, 1, 1, 1},
    {"geodist", commands::geodist, -4, readonly, 1, 1, 1},
    {"geohash", commands::geohash, -2, readonly, 1, 1, 1},
    {"georadius", commands::georadius, -6, grow, 1, 1, 1},
    {"georadius_ro", commands::georadius_ro, -6, readonly, 1, 1, 1},
    {"georadiusbymember", commands::georadiusbymember, -5, grow, 1, 1, 1},
    {"georadiusbymember_ro", commands::georadiusbymember_ro, -5, readonly, 1, 1, 1},
    {"geosearch", commands::geosearch, -7, readonly, 1, 1, 1},
    {"geosearchstore", commands::geosearchstore, -8, grow, 1, 2, 1},

    // Keys
    {"dbsize", commands::dbsize, 1, read_fast, 0, 0, 0},
    {"flushdb", commands::flushdb, -1, write, 0, 0, 0},
    {"flushall", commands::flushall, -1, write, 0, 0, 0},
    {"keys", commands::keys, 2, readonly, 0, 0, 0},
    {"scan", commands::scan, -2, readonly, 0, 0, 0},
    {"type", commands::type, 2, read_fast | local, 1, 1, 1},
    {"exists", commands::exists, -2, read_fast | local, 1, -1, 1},
    {"del", commands::del, -2, write | brief | local, 1, -1, 1},
    {"unlink", commands::del, -2, write_fast | local, 1, -1, 1},
    {"touch", commands::touch, -2, read_fast | local, 1, -1, 1},
    {"rename", commands::rename, 3, write, 1, 2, 1},
    {"renamenx", commands::renamenx, 3, write_fast, 1, 2, 1},
    {"copy", commands::copy, -3, grow, 1, 2, 1},
    {"move", commands::move, 3, write_fast, 1, 1, 1},
    {"randomkey", commands::randomkey, 1, readonly, 0, 0, 0},
    {"object", commands::object, -2, readonly | has_forms, 0, 0, 0},
    {"swapdb", commands::swapdb, 3, write_fast, 0, 0, 0},
    {"memory", commands::memory, -2, readonly | has_forms, 0, 0, 0},

    // Values as bytes
    {"dump", commands::dump, 2, readonly, 1, 1, 1},
    {"restore", commands::restore, -4, grow, 1, 1, 1},
    {"migrate", commands::migrate, -6, write, 3, 3, 1},
    {"restore-asking", commands::restore, -4, grow, 1, 1, 1},

    // Expiry
    {"expire", commands::expire, -3, write_fast | local, 1, 1, 1},
    {"pexpire", commands::pexpire, -3, write_fast | local, 1, 1, 1},
    {"expireat", commands::expireat, -3, write_fast | local, 1, 1, 1},
    {"pexpireat", commands::pexpireat, -3, write_fast | local, 1, 1, 1},
    {"ttl", commands::ttl, 2, read_fast | local, 1, 1, 1},
    {"pttl", commands::pttl, 2, read_fast | local, 1, 1, 1},
    {"expiretime", commands::expiretime, 2, read_fast | local, 1, 1, 1},
    {"pexpiretime", commands::pexpiretime, 2, read_fast | local, 1, 1, 1},
    {"persist", commands::persist, 2, write_fast | local, 1, 1, 1},

    // Connections
    {"ping", commands::ping, -1, fast, 0, 0, 0},
    {"echo", commands::echo, 2, fast | always, 0, 0, 0},
    {"quit", commands::quit, -1, fast | always | noauth | noscript, 0, 0, 0},
    {"reset", commands::reset, 1, fast | always | noauth | noscript, 0, 0, 0},
    {"select", commands::select, 2, fast | always, 0, 0, 0},
    {"hello", commands::hello, -1, fast | always | noauth | noscript, 0, 0, 0},
    {"auth", commands::auth, -2, fast | always | noauth | noscript, 0, 0, 0},
    {"client", commands::client, -2, always | noscript | has_forms, 0, 0, 0},

    // Transactions
    {"multi", commands::multi, 1, fast | always | noscript, 0, 0, 0},
    {"exec", commands::exec, 1, always | noscript, 0, 0, 0},
    {"discard", commands::discard, 1, fast | always | noscript, 0, 0, 0},
    {"watch", commands::watch, -2, fast | always | noscript, 1, -1, 1},
    {"unwatch", commands::unwatch, 1, fast | always | noscript, 0, 0, 0},

    // Messages
    {"subscribe", commands::subscribe, -2, pubsub | noscript | always, 0, 0, 0},
    {"unsubscribe", commands::unsubscribe, -1, pubsub | noscript | always, 0, 0, 0},
    {"psubscribe", commands::psubscribe, -2, pubsub | noscript | always, 0, 0, 0},
    {"punsubscribe", commands::punsubscribe, -1, pubsub | noscript | always, 0, 0, 0},
    {"ssubscribe", commands::ssubscribe, -2, pubsub | noscript | always, 1, -1, 1},
    {"sunsubscribe", commands::sunsubscribe, -1, pubsub | noscript | always, 1, -1, 1},
    {"publish", commands::publish, 3, pubsub | always | fast | may_replicate, 0, 0, 0},
    {"spublish", commands::spublish, 3, pubsub | always | fast | may_replicate, 1, 1, 1},
    {"pubsub", commands::pubsub, -2, pubsub | always | has_forms, 0, 0, 0},
    {"monitor", commands::monitor, 1, admin | noscript | always, 0, 0, 0},

    // Lists, waiting
    {"blpop", commands::blpop, -3, write | blocking, 1, -2, 1},
    {"brpop", commands::brpop, -3, write | blocking, 1, -2, 1},
    {"blmove", commands::blmove, 6, grow | blocking, 1, 2, 1},
    {"brpoplpush", commands::brpoplpush, 4, grow | blocking, 1, 2, 1},
    {"blmpop", commands::blmpop, -5, write | blocking, 0, 0, 0},

    // Scripts
    {"eval", commands::eval, -3, scripting, 0, 0, 0},
    {"evalsha", commands::evalsha, -3, scripting, 0, 0, 0},
    {"eval_ro", commands::eval_ro, -3, scripting_ro, 0, 0, 0},
    {"evalsha_ro", commands::evalsha_ro, -3, scripting_ro, 0, 0, 0},
    {"script", commands::script, -2, noscript | has_forms, 0, 0, 0},
    {"fcall", commands::fcall, -3, scripting, 0, 0, 0},
    {"fcall_ro", commands::fcall_ro, -3, scripting_ro, 0, 0, 0},
    {"function", commands::function, -2, noscript | has_forms, 0, 0, 0},
    // Users
    {"acl", commands::acl, -2, always | noscript | has_forms, 0, 0, 0},

    // Sorted sets, waiting
    {"bzpopmin", commands::bzpopmin, -3, write | fast | blocking, 1, -2, 1},
    {"bzpopmax", commands::bzpopmax, -3, write | fast | blocking, 1, -2, 1},
    {"bzmpop", commands::bzmpop, -5, write | blocking, 0, 0, 0},

    // The server
    {"command", commands::command, -1, always | has_forms, 0, 0, 0},
    {"info", commands::info, -1, always, 0, 0, 0},
    {"config", commands::config, -2, always | admin | noscript | has_forms, 0, 0, 0},
    {"shutdown", commands::shutdown, -1, always | admin | noscript | dangerous | no_multi | alters,
     0, 0, 0},
    {"debug", commands::debug, -2, always | admin | noscript | dangerous | alters, 0, 0, 0},
    {"time", commands::time, 1, fast | always, 0, 0, 0},
};
constexpr std::size_t table_size = std::size(table);

constexpr command_name fold_slowly(std::string_view name) noexcept {
    command_name words;
    for (std::size_t i = 0; i < name.size(); ++i) {
        const bool is_lower = name[i] >= 'a' && name[i] <= 'z';
        const auto upper = static_cast<unsigned char>(is_lower ? name[i] - ('a' - 'A') : name[i]);
        std::uint64_t& word = i < 8 ? words.first : i < 16 ? words.second : words.third;
        word |= static_cast<std::uint64_t>(upper) << 8 * (i % 8);
    }
    words.third |= static_cast<std::uint64_t>(name.size()) << 56;
    return words;
}

constexpr std::size_t index_bits = 10;
constexpr std::size_t index_size = std::size_t{1} << index_bits;
static_assert(table_size * 2 <= index_size, "the index is too full: add one to index_bits");

constexpr std::size_t index_of(command_name name) noexcept {
    return (name.first * 0x9e37'79b9'7f4a'7c15ULL ^
            (name.second ^ name.third) * 0xc2b2'ae3d'27d4'eb4fULL) >>
           (64 - index_bits);
}

// names[i] belongs to table[i]; index[h] is a place in both, or table_size.
struct lookup {
    std::array<command_name, table_size + 1> names{};
    std::array<std::uint16_t, index_size> index{};
};

constexpr lookup folded = [] {
    lookup made;
    made.index.fill(table_size);
    for (std::size_t i = 0; i < table_size; ++i) {
        made.names[i] = fold_slowly(table[i].name);
        std::size_t at = index_of(made.names[i]);
        while (made.index[at] != table_size) at = (at + 1) % index_size;
        made.index[at] = static_cast<std::uint16_t>(i);
    }
    return made;
}();

static_assert(
    [] {
        for (const command_spec& each : table) {
            if (each.name.size() > max_command_name) return false;
        }
        return true;
    }(),
    "the name of a command is longer than max_command_name");

std::uint64_t load(const char* from, std::size_t size) noexcept {
    std::uint64_t word = 0;
    if (size >= 8) {
        std::memcpy(&word, from, 8);
    } else if (size >= 4) {
        std::uint32_t low, high;
        std::memcpy(&low, from, 4);
        std::memcpy(&high, from + size - 4, 4);
        word = static_cast<std::uint64_t>(high) << 8 * (size - 4) | low;
    } else {
        for (std::size_t i = 0; i < size; ++i) {
            word |= static_cast<std::uint64_t>(static_cast<unsigned char>(from[i])) << 8 * i;
        }
    }
    return word;
}

// Eight letters at once; what is no lower-case letter stays as it is.
std::uint64_t to_upper(std::uint64_t word) noexcept {
    constexpr std::uint64_t each = 0x0101'0101'0101'0101ULL;
    constexpr std::uint64_t high = 0x80 * each;
    const std::uint64_t low7 = word & ~high;
    const std::uint64_t from_a = low7 + (0x80 - 'a') * each;
    const std::uint64_t behind_z = low7 + (0x80 - 'z' - 1) * each;
    return word - ((from_a & ~behind_z & ~word & high) >> 2);
}

}  // namespace

command_name fold_command_name(std::string_view name) noexcept {
    const std::size_t size = name.size();
    if (size > max_command_name) return {};
    command_name words{to_upper(load(name.data(), size)), 0,
                       static_cast<std::uint64_t>(size) << 56};
    if (size > 8) {
        words.second = to_upper(load(name.data() + 8, size - 8));
        if (size > 16) words.third |= to_upper(load(name.data() + 16, size - 16));
    }
    return words;
}

const command_spec* find_command(command_name name) noexcept {
    for (std::size_t at = index_of(name);; at = (at + 1) % index_size) {
        const std::size_t i = folded.index[at];
        if (folded.names[i] == name && i != table_size) return &table[i];
        if (i == table_size) return nullptr;
    }
}

std::span<const command_spec> all_commands() noexcept { return table; }

}  // namespace eddy::cache
