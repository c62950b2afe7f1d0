// Command functions, by the file of the room commands that defines them. Each replies exactly once.
//
// The room commands implements the commands themselves, one file a family: string.cpp, hash.cpp,
// list.cpp, set.cpp, sorted_set*.cpp, stream*.cpp, geo*.cpp, bit*.cpp, key.cpp and expiry.cpp for
// the data; transaction.cpp, pubsub.cpp, client.cpp and connection.cpp for sessions; info.cpp,
// server.cpp, debug.cpp and the rest for the server. Read string.cpp first, then list_ends.hpp with
// list.cpp. Headers there hold what the files of one family share (sorted_set_reply.hpp,
// stream_reply.hpp) or several families share (scan_options.hpp, expiry_argument.hpp,
// range_bounds.hpp).
//
// It stands on all other rooms but testing; each function gets its arguments, checks and replies
// through engine/call.hpp. Subcommands have functions of their own, which the dispatcher calls by
// the rows of the table with arguments as many as these say. A new command is a function here, and
// its row in rows/.
#pragma once

namespace eddy::cache {
struct call;
}

namespace eddy::cache::commands {

// commands/strings/string.cpp
void get(call&);
void set(call&);
void getset(call&);
void getdel(call&);
void getex(call&);
void setnx(call&);
void setex(call&);
void psetex(call&);
void mget(call&);
void mset(call&);
void msetnx(call&);
void msetex(call&);
void digest(call&);
void delex(call&);
void delifeq(call&);
void append(call&);
void strlen(call&);
void getrange(call&);
void setrange(call&);

// commands/strings/number.cpp
void incr(call&);
void decr(call&);
void incrby(call&);
void decrby(call&);
void incrbyfloat(call&);

// commands/strings/bit.cpp
void setbit(call&);
void getbit(call&);
void bitcount(call&);
void bitpos(call&);
void bitop(call&);

// commands/strings/bitfield.cpp
void bitfield(call&);
void bitfield_ro(call&);

// commands/strings/hyperloglog.cpp
void pfadd(call&);
void pfcount(call&);
void pfmerge(call&);
void pfdebug(call&);
void pfselftest(call&);

// commands/strings/lcs.cpp
void lcs(call&);

// commands/keys/sort.cpp
void sort(call&);
void sort_ro(call&);

// commands/server/slowlog.cpp
void commandlog_get(call&);
void commandlog_help(call&);
void commandlog_len(call&);
void commandlog_reset(call&);
void slowlog_get(call&);
void slowlog_help(call&);
void slowlog_len(call&);
void slowlog_reset(call&);
void latency_doctor(call&);
void latency_graph(call&);
void latency_help(call&);
void latency_histogram(call&);
void latency_history(call&);
void latency_latest(call&);
void latency_reset(call&);

// commands/server/cluster.cpp
void cluster(call&);
void clusterscan(call&);
void cluster_count_failure_reports(call&);
void cluster_countkeysinslot(call&);
void cluster_getkeysinslot(call&);
void cluster_help(call&);
void cluster_info(call&);
void cluster_keyslot(call&);
void cluster_links(call&);
void cluster_myid(call&);
void cluster_myshardid(call&);
void cluster_nodes(call&);
void cluster_replicas(call&);
void cluster_shards(call&);
void cluster_slots(call&);
void cluster_change(call&);  ///< refuses each form that would change the cluster
void readonly(call&);
void readwrite(call&);
void asking(call&);
void role(call&);
void wait(call&);
void waitaof(call&);
void replicaof(call&);
void failover(call&);
void replconf(call&);
void psync(call&);
void sync(call&);

// commands/server/persistence.cpp
void save(call&);
void bgsave(call&);
void bgrewriteaof(call&);
void lastsave(call&);

// commands/server/command.cpp
void command(call&);
void command_count(call&);
void command_docs(call&);
void command_getkeys(call&);
void command_getkeysandflags(call&);
void command_help(call&);
void command_info(call&);
void command_list(call&);

// commands/subcommand.cpp: the form that the first argument names, as CONFIG SET
void subcommand(call&);

// commands/server/memory.cpp
void memory_doctor(call&);
void memory_help(call&);
void memory_malloc_stats(call&);
void memory_purge(call&);
void memory_stats(call&);

// commands/server/lolwut.cpp
void lolwut(call&);
void module_help(call&);
void module_list(call&);
void module_load(call&);

// commands/collections/list.cpp
void lpush(call&);
void rpush(call&);
void lpushx(call&);
void rpushx(call&);
void lpop(call&);
void rpop(call&);
void llen(call&);
void lindex(call&);
void lset(call&);
void lrange(call&);
void ltrim(call&);
void lrem(call&);
void linsert(call&);
void lpos(call&);
void lmove(call&);
void rpoplpush(call&);
void lmpop(call&);

// commands/collections/set.cpp
void sadd(call&);
void srem(call&);
void smembers(call&);
void sismember(call&);
void smismember(call&);
void scard(call&);
void spop(call&);
void srandmember(call&);
void smove(call&);
void sscan(call&);

// commands/collections/set_algebra.cpp
void sinter(call&);
void sunion(call&);
void sdiff(call&);
void sinterstore(call&);
void sunionstore(call&);
void sdiffstore(call&);
void sintercard(call&);

// commands/collections/hash.cpp
void hset(call&);
void hmset(call&);
void hsetnx(call&);
void hget(call&);
void hmget(call&);
void hgetall(call&);
void hdel(call&);
void hlen(call&);
void hexists(call&);
void hkeys(call&);
void hvals(call&);
void hstrlen(call&);
void hincrby(call&);
void hincrbyfloat(call&);
void hrandfield(call&);
void hscan(call&);

// commands/collections/hash_expiry.cpp
void hexpire(call&);
void hpexpire(call&);
void hexpireat(call&);
void hpexpireat(call&);
void hpersist(call&);
void httl(call&);
void hpttl(call&);
void hexpiretime(call&);
void hpexpiretime(call&);
void hgetex(call&);
void hgetdel(call&);
void hsetex(call&);

// commands/sorted_sets/sorted_set.cpp
void zadd(call&);
void zincrby(call&);
void zrem(call&);
void zscore(call&);
void zmscore(call&);
void zcard(call&);
void zrank(call&);
void zrevrank(call&);
void zpopmin(call&);
void zpopmax(call&);
void zmpop(call&);
void zrandmember(call&);
void zscan(call&);

// commands/sorted_sets/sorted_set_range.cpp
void zrange(call&);
void zrangestore(call&);
void zrangebyscore(call&);
void zrevrangebyscore(call&);
void zrangebylex(call&);
void zrevrangebylex(call&);
void zrevrange(call&);
void zcount(call&);
void zlexcount(call&);
void zremrangebyrank(call&);
void zremrangebyscore(call&);
void zremrangebylex(call&);

// commands/sorted_sets/sorted_set_algebra.cpp
void zunion(call&);
void zinter(call&);
void zdiff(call&);
void zunionstore(call&);
void zinterstore(call&);
void zdiffstore(call&);
void zintercard(call&);

// commands/sorted_sets/geo.cpp
void geoadd(call&);
void geopos(call&);
void geodist(call&);
void geohash(call&);

// commands/sorted_sets/geo_search.cpp
void georadius(call&);
void georadius_ro(call&);
void georadiusbymember(call&);
void georadiusbymember_ro(call&);
void geosearch(call&);
void geosearchstore(call&);

// commands/keys/key.cpp
void dbsize(call&);
void flushdb(call&);
void flushall(call&);
void keys(call&);
void scan(call&);
void type(call&);
void exists(call&);
void del(call&);
void touch(call&);
void rename(call&);
void renamenx(call&);
void copy(call&);
void move(call&);
void randomkey(call&);
void object_encoding(call&);
void object_freq(call&);
void object_help(call&);
void object_idletime(call&);
void object_refcount(call&);
void swapdb(call&);
void memory_usage(call&);

// commands/keys/expiry.cpp
void expire(call&);
void pexpire(call&);
void expireat(call&);
void pexpireat(call&);
void ttl(call&);
void pttl(call&);
void expiretime(call&);
void pexpiretime(call&);
void persist(call&);

// commands/connection.cpp
void ping(call&);
void echo(call&);
void quit(call&);
void reset(call&);
void select(call&);
void hello(call&);
void auth(call&);

// commands/client.cpp
void client_getname(call&);
void client_help(call&);
void client_id(call&);
void client_info(call&);
void client_kill(call&);
void client_list(call&);
void client_capa(call&);
void client_no_evict(call&);
void client_no_touch(call&);
void client_pause(call&);
void client_reply(call&);
void client_setinfo(call&);
void client_setname(call&);
void client_unblock(call&);
void client_unpause(call&);

// commands/tracking.cpp: forms of CLIENT
void client_tracking(call&);
void client_caching(call&);
void client_getredir(call&);
void client_trackinginfo(call&);

// commands/server/acl.cpp
void acl_cat(call&);
void acl_deluser(call&);
void acl_dryrun(call&);
void acl_genpass(call&);
void acl_getuser(call&);
void acl_help(call&);
void acl_list(call&);
void acl_load(call&);
void acl_log(call&);
void acl_save(call&);
void acl_setuser(call&);
void acl_users(call&);
void acl_whoami(call&);

// commands/transaction.cpp
void multi(call&);
void exec(call&);
void discard(call&);
void watch(call&);
void unwatch(call&);

// commands/pubsub.cpp
void subscribe(call&);
void psubscribe(call&);
void ssubscribe(call&);
void unsubscribe(call&);
void punsubscribe(call&);
void sunsubscribe(call&);
void publish(call&);
void spublish(call&);
void pubsub_channels(call&);
void pubsub_help(call&);
void pubsub_numpat(call&);
void pubsub_numsub(call&);
void pubsub_shardchannels(call&);
void pubsub_shardnumsub(call&);
void monitor(call&);

// commands/collections/list_blocking.cpp
void blpop(call&);
void brpop(call&);
void blmove(call&);
void brpoplpush(call&);
void blmpop(call&);

// commands/sorted_sets/sorted_set_blocking.cpp
void bzpopmin(call&);
void bzpopmax(call&);
void bzmpop(call&);
// commands/streams/stream.cpp
void xadd(call&);
void xtrim(call&);
void xdel(call&);
void xlen(call&);
void xrange(call&);
void xrevrange(call&);
void xsetid(call&);

// commands/streams/stream_deletion.cpp
void xdelex(call&);
void xackdel(call&);

// commands/streams/stream_read.cpp
void xread(call&);
void xreadgroup(call&);

// commands/streams/stream_group.cpp
void xgroup_create(call&);
void xgroup_createconsumer(call&);
void xgroup_delconsumer(call&);
void xgroup_destroy(call&);
void xgroup_help(call&);
void xgroup_setid(call&);
void xack(call&);
void xpending(call&);
void xclaim(call&);
void xautoclaim(call&);

// commands/streams/stream_info.cpp
void xinfo_consumers(call&);
void xinfo_groups(call&);
void xinfo_help(call&);
void xinfo_stream(call&);

// config/config.cpp
void config_get(call&);
void config_set(call&);

// commands/server/server.cpp
void info(call&);
void config_help(call&);
void config_resetstat(call&);
void config_rewrite(call&);
void time(call&);

// commands/keys/dump.cpp
void dump(call&);
void restore(call&);
void migrate(call&);

// commands/server/admin.cpp
void shutdown(call&);
void debug(call&);

// commands/script.cpp
void eval(call&);
void evalsha(call&);
void eval_ro(call&);
void evalsha_ro(call&);
void script_debug(call&);
void script_exists(call&);
void script_flush(call&);
void script_help(call&);
void script_kill(call&);
void script_load(call&);
void script_show(call&);
/// SCRIPT KILL, or FUNCTION KILL.
void kill_script(call&, bool function);

// commands/function.cpp
void fcall(call&);
void fcall_ro(call&);
void function_delete(call&);
void function_dump(call&);
void function_flush(call&);
void function_help(call&);
void function_kill(call&);
void function_list(call&);
void function_load(call&);
void function_restore(call&);
void function_stats(call&);

}  // namespace eddy::cache::commands
