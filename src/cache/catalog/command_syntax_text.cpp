// Syntax lines of all commands and forms, in the notation of command_syntax.hpp, from Redis 7.2's
// own description; newer commands from the version that introduced them.
#include "cache/catalog/command_syntax.hpp"

namespace eddy::cache {

std::string_view command_syntax_text() noexcept {
    return R"(
acl
acl|cat@6.0.0 [category] -- Lists the categories, or the commands of one.
acl|deluser@6.0.0 username... -- Removes users.
acl|dryrun@7.0.0 username command [arg...] -- Tells whether a user may call a command.
acl|genpass@6.0.0 [bits/int] -- Makes a random password.
acl|getuser@6.0.0 username -- Returns what a user may do.
acl|help@6.0.0 -- Explains the command.
acl|list@6.0.0 -- Returns all users as rules.
acl|load@6.0.0 -- Reads the users from their file again.
acl|log@6.0.0 [operation: count/int|RESET] -- Returns or clears what was refused of late.
acl|save@6.0.0 -- Writes the users to their file.
acl|setuser@6.0.0 username [rule...] -- Makes a user, or changes what one may do.
acl|users@6.0.0 -- Returns the names of all users.
acl|whoami@6.0.0 -- Returns the connection's user.
append key value
asking
auth [username@6.0.0] password
bgrewriteaof
bgsave [SCHEDULE@3.2.2]
bitcount key [range: start/int end/int [unit@7.0.0: BYTE|BIT]]
bitfield key [operation: GET (get-block: encoding offset/int)|
    (write: [OVERFLOW (overflow-block: WRAP|SAT|FAIL)]
    (write-operation: SET (set-block: encoding offset/int value/int)|
    INCRBY (incrby-block: encoding offset/int increment/int)))]...
bitfield_ro key [GET (get-block: encoding offset/int)]...
bitop (operation: AND|OR|XOR|NOT) destkey/key key...
bitpos key bit/int [range: start/int [end-unit-block: end/int [unit@7.0.0: BYTE|BIT]]]
blmove source/key destination/key (wherefrom: LEFT|RIGHT) (whereto: LEFT|RIGHT) timeout/double
blmpop timeout/double numkeys/int key... (where: LEFT|RIGHT) [COUNT count/int]
blpop key... timeout/double
brpop key... timeout/double
brpoplpush!6.2.0 source/key destination/key timeout/double
bzmpop timeout/double numkeys/int key... (where: MIN|MAX) [COUNT count/int]
bzpopmax key... timeout/double
bzpopmin key... timeout/double
client
client|caching@6.0.0 (mode: YES|NO) -- Decides whether the next command's keys are tracked.
client|getname@2.6.9 -- Returns the connection's name.
client|getredir@6.0.0 -- Returns who is told of tracked keys that change.
client|help@5.0.0 -- Explains the command.
client|id@5.0.0 -- Returns the connection's number.
client|info@6.2.0 -- Describes the connection.
client|kill@2.4.0 (filter: old-format=ip:port!2.8.12|(new-format: [ID client-id/int@2.8.12]|
    [TYPE (client-type@2.8.12: NORMAL|MASTER@3.2.0|SLAVE|REPLICA@5.0.0|PUBSUB)]|
    [USER username]|[ADDR addr=ip:port]|[LADDR laddr=ip:port@6.2.0]|
    [SKIPME (skipme: YES|NO)])...) -- Ends connections.
client|list@2.4.0 [TYPE (client-type@5.0.0: NORMAL|MASTER|REPLICA|PUBSUB)]
    [ID client-id/int@6.2.0...] -- Describes all connections, or some.
client|no-evict@7.0.0 (enabled: ON|OFF) -- Keeps the connection when the clients' memory is short.
client|no-touch@7.2.0 (enabled: ON|OFF) -- Lets commands leave no trace in when keys were used.
client|pause@3.0.0 timeout/int [mode@6.2.0: WRITE|ALL] -- Holds up what clients ask for.
client|reply@3.2.0 (action: ON|OFF|SKIP) -- Turns replies off, or on again.
client|setinfo@7.2.0 (attr: LIB-NAME libname|LIB-VER libver) -- Names the connection's library.
client|setname@2.6.9 connection-name -- Names the connection.
client|tracking@6.0.0 (status: ON|OFF) [REDIRECT client-id/int] [PREFIX prefix]... [BCAST] [OPTIN]
    [OPTOUT] [NOLOOP] -- Has changes of the keys that are read told, or ends that.
client|trackinginfo@6.2.0 -- Tells how the connection tracks keys.
client|unblock@5.0.0 client-id/int [unblock-type: TIMEOUT|ERROR]
    -- Ends another connection's wait.
client|unpause@6.2.0 -- Ends CLIENT PAUSE.
cluster
cluster|addslots@3.0.0 slot/int... -- Gives the node slots.
cluster|addslotsrange@7.0.0 (range: start-slot/int end-slot/int)...
    -- Gives the node ranges of slots.
cluster|bumpepoch@3.0.0 -- Raises the node's epoch.
cluster|count-failure-reports@3.0.0 node-id -- Counts who says that a node has failed.
cluster|countkeysinslot@3.0.0 slot/int -- Counts a slot's keys.
cluster|delslots@3.0.0 slot/int... -- Takes slots from the node.
cluster|delslotsrange@7.0.0 (range: start-slot/int end-slot/int)...
    -- Takes ranges of slots from the node.
cluster|failover@3.0.0 [options: FORCE|TAKEOVER] -- Makes a replica its master's successor.
cluster|flushslots@3.0.0 -- Takes all slots from the node.
cluster|forget@3.0.0 node-id -- Forgets another node.
cluster|getkeysinslot@3.0.0 slot/int count/int -- Returns keys of a slot.
cluster|help@5.0.0 -- Explains the command.
cluster|info@3.0.0 -- Tells how the cluster is.
cluster|keyslot@3.0.0 key/string -- Returns a key's slot.
cluster|links@7.0.0 -- Returns the connections to other nodes.
cluster|meet@3.0.0 ip port/int [cluster-bus-port/int@4.0.0] -- Joins the node to another.
cluster|myid@3.0.0 -- Returns the node's name.
cluster|myshardid@7.2.0 -- Returns the name of the node's shard.
cluster|nodes@3.0.0 -- Describes all nodes as text.
cluster|replicas@5.0.0 node-id -- Describes a node's replicas.
cluster|replicate@3.0.0 node-id -- Makes the node another one's replica.
cluster|reset@3.0.0 [reset-type: HARD|SOFT] -- Makes the node as new.
cluster|saveconfig@3.0.0 -- Writes the node's settings to disk.
cluster|set-config-epoch@3.0.0 config-epoch/int -- Gives a new node its epoch.
cluster|setslot@3.0.0 slot/int (subcommand: IMPORTING importing=node-id|
    MIGRATING migrating=node-id|NODE node=node-id|STABLE)
    -- Gives a slot to a node, or begins to move it.
cluster|shards@7.0.0 -- Returns the shards, each with its slots and nodes.
cluster|slaves@3.0.0!5.0.0 node-id -- The old name of CLUSTER REPLICAS.
cluster|slots@3.0.0!7.0.0 -- Returns the slots, each range with its nodes.
command
command|count@2.8.13 -- Counts the commands.
command|docs@7.0.0 [command-name...] -- Tells what commands are for and what they take.
command|getkeys@2.8.13 command [arg...] -- Finds the keys in a command.
command|getkeysandflags@7.0.0 command [arg...]
    -- Finds the keys in a command, and what is done with each.
command|help@5.0.0 -- Explains the command.
command|info@2.8.13 [command-name...] -- Tells of some commands, or of all.
command|list@7.0.0 [FILTERBY (filterby: MODULE module-name|ACLCAT category|PATTERN pattern)]
    -- Returns the names of commands.
config
config|get@2.0.0 parameter... -- Reads settings.
config|help@5.0.0 -- Explains the command.
config|resetstat@2.0.0 -- Sets the counters of INFO back.
config|rewrite@2.8.0 -- Keeps the settings beyond a restart.
config|set@2.0.0 (data: parameter value)... -- Changes settings.
copy source/key destination/key [DB destination-db/int] [REPLACE]
dbsize
debug*
decr key
decrby key decrement/int
del key...
discard
dump key
echo message
eval script numkeys/int [key...] [arg...]
eval_ro script numkeys/int [key...] [arg...]
evalsha sha1 numkeys/int [key...] [arg...]
evalsha_ro sha1 numkeys/int [key...] [arg...]
exec
exists key...
expire key seconds/int [condition@7.0.0: NX|XX|GT|LT]
expireat key unix-time-seconds/time [condition@7.0.0: NX|XX|GT|LT]
expiretime key
failover [TO (target: host port/int [FORCE])] [ABORT] [TIMEOUT milliseconds/int]
fcall function numkeys/int [key...] [arg...]
fcall_ro function numkeys/int [key...] [arg...]
flushall [flush-type: ASYNC@4.0.0|SYNC@6.2.0]
flushdb [flush-type: ASYNC@4.0.0|SYNC@6.2.0]
function
function|delete@7.0.0 library-name -- Removes a library.
function|dump@7.0.0 -- Returns all libraries in a form that FUNCTION RESTORE takes.
function|flush@7.0.0 [flush-type: ASYNC|SYNC] -- Removes all libraries.
function|help@7.0.0 -- Explains the command.
function|kill@7.0.0 -- Ends the function that runs.
function|list@7.0.0 [LIBRARYNAME library-name-pattern] [WITHCODE] -- Describes libraries.
function|load@7.0.0 [REPLACE] function-code -- Adds a library, or replaces one.
function|restore@7.0.0 serialized-value [policy: FLUSH|APPEND|REPLACE]
    -- Adds the libraries that FUNCTION DUMP returned.
function|stats@7.0.0 -- Tells which function runs, and counts the libraries.
geoadd key [condition@6.2.0: NX|XX] [CH<change>@6.2.0]
    (data: longitude/double latitude/double member)...
geodist key member1 member2 [unit: M|KM|FT|MI]
geohash key [member...]
geopos key [member...]
georadius!6.2.0 key longitude/double latitude/double radius/double (unit: M|KM|FT|MI) [WITHCOORD]
    [WITHDIST] [WITHHASH] [count-block: COUNT count/int [ANY@6.2.0]] [order: ASC|DESC]
    [store: STORE storekey=key/key|STOREDIST storedistkey=key/key]
georadius_ro!6.2.0 key longitude/double latitude/double radius/double (unit: M|KM|FT|MI)
    [WITHCOORD] [WITHDIST] [WITHHASH] [count-block: COUNT count/int [ANY@6.2.0]] [order: ASC|DESC]
georadiusbymember!6.2.0 key member radius/double (unit: M|KM|FT|MI) [WITHCOORD] [WITHDIST]
    [WITHHASH] [count-block: COUNT count/int [ANY]] [order: ASC|DESC]
    [store: STORE storekey=key/key|STOREDIST storedistkey=key/key]
georadiusbymember_ro!6.2.0 key member radius/double (unit: M|KM|FT|MI) [WITHCOORD] [WITHDIST]
    [WITHHASH] [count-block: COUNT count/int [ANY]] [order: ASC|DESC]
geosearch key (from: FROMMEMBER member|FROMLONLAT (fromlonlat: longitude/double latitude/double))
    (by: (circle: BYRADIUS radius/double (unit: M|KM|FT|MI))|
    (box: BYBOX width/double height/double (unit: M|KM|FT|MI))) [order: ASC|DESC]
    [count-block: COUNT count/int [ANY]] [WITHCOORD] [WITHDIST] [WITHHASH]
geosearchstore destination/key source/key (from: FROMMEMBER member|
    FROMLONLAT (fromlonlat: longitude/double latitude/double))
    (by: (circle: BYRADIUS radius/double (unit: M|KM|FT|MI))|
    (box: BYBOX width/double height/double (unit: M|KM|FT|MI))) [order: ASC|DESC]
    [count-block: COUNT count/int [ANY]] [STOREDIST]
get key
getbit key offset/int
getdel key
getex key [expiration: EX seconds/int|PX milliseconds/int|EXAT unix-time-seconds/time|
    PXAT unix-time-milliseconds/time|PERSIST]
getrange key start/int end/int
getset!6.2.0 key value
hdel key field...
hello [arguments: protover/int [AUTH (auth: username password)] [SETNAME clientname]]
hexists key field
hexpire key seconds/int [condition: NX|XX|GT|LT] FIELDS (fields: numfields/int field...)
hexpireat key unix-time-seconds/time [condition: NX|XX|GT|LT]
    FIELDS (fields: numfields/int field...)
hexpiretime key FIELDS (fields: numfields/int field...)
hget key field
hgetall key
hgetdel key FIELDS (fields: numfields/int field...)
hgetex key [expiration: EX seconds/int|PX milliseconds/int|EXAT unix-time-seconds/time|
    PXAT unix-time-milliseconds/time|PERSIST] FIELDS (fields: numfields/int field...)
hincrby key field increment/int
hincrbyfloat key field increment/double
hkeys key
hlen key
hmget key field...
hmset!4.0.0 key (data: field value)...
hpersist key FIELDS (fields: numfields/int field...)
hpexpire key milliseconds/int [condition: NX|XX|GT|LT] FIELDS (fields: numfields/int field...)
hpexpireat key unix-time-milliseconds/time [condition: NX|XX|GT|LT]
    FIELDS (fields: numfields/int field...)
hpexpiretime key FIELDS (fields: numfields/int field...)
hpttl key FIELDS (fields: numfields/int field...)
hrandfield key [options: count/int [WITHVALUES]]
hscan key cursor/int [MATCH pattern] [COUNT count/int]
hset key (data: field value)...
hsetex key [condition: FNX|FXX] [expiration: EX seconds/int|PX milliseconds/int|
    EXAT unix-time-seconds/time|PXAT unix-time-milliseconds/time|KEEPTTL]
    FIELDS (fields: numfields/int (data: field value)...)
hsetnx key field value
hstrlen key field
httl key FIELDS (fields: numfields/int field...)
hvals key
incr key
incrby key increment/int
incrbyfloat key increment/double
info [section...]
keys pattern
lastsave
latency
latency|doctor@2.8.13 -- Explains what took long.
latency|graph@2.8.13 event -- Draws how long an event took of late.
latency|help@2.8.13 -- Explains the command.
latency|histogram@7.0.0 [command...] -- Tells how long commands take.
latency|history@2.8.13 event -- Returns how long an event took of late.
latency|latest@2.8.13 -- Returns the latest times of all events.
latency|reset@2.8.13 [event...] -- Forgets the times of events.
lcs key1/key key2/key#0 [LEN] [IDX] [MINMATCHLEN min-match-len/int] [WITHMATCHLEN]
lindex key index/int
linsert key (where: BEFORE|AFTER) pivot element
llen key
lmove source/key destination/key (wherefrom: LEFT|RIGHT) (whereto: LEFT|RIGHT)
lmpop numkeys/int key... (where: LEFT|RIGHT) [COUNT count/int]
lolwut [VERSION version/int]
lpop key [count/int@6.2.0]
lpos key element [RANK rank/int] [COUNT num-matches/int] [MAXLEN len/int]
lpush key element...
lpushx key element...
lrange key start/int stop/int
lrem key count/int element
lset key index/int element
ltrim key start/int stop/int
memory
memory|doctor@4.0.0 -- Explains how memory is used.
memory|help@4.0.0 -- Explains the command.
memory|malloc-stats@4.0.0 -- Tells of the allocator.
memory|purge@4.0.0 -- Gives unused memory back.
memory|stats@4.0.0 -- Returns what the memory is used for.
memory|usage@4.0.0 key [SAMPLES count/int] -- Returns how many bytes a key takes.
mget key...
migrate host port/int (key-selector: key|''<empty-string>) destination-db/int timeout/int
    [COPY@3.0.0] [REPLACE@3.0.0]
    [authentication: AUTH auth=password@4.0.7|AUTH2 (auth2@6.0.0: username password)]
    [KEYS keys=key/key#1@3.0.6...]
module
module|help@5.0.0 -- Explains the command.
module|list@4.0.0 -- Lists the modules.
module|load@4.0.0 path [arg...] -- Loads a module.
module|loadex@7.0.0 path [CONFIG (configs: name value)]... [ARGS args...]
    -- Loads a module, with settings.
module|unload@4.0.0 name -- Removes a module.
monitor
move key db/int
mset (data: key value)...
msetnx (data: key value)...
multi
object
object|encoding@2.2.3 key -- Returns how a value is kept.
object|freq@4.0.0 key -- Returns how often a key is used.
object|help@6.2.0 -- Explains the command.
object|idletime@2.2.3 key -- Returns how long a key has not been used.
object|refcount@2.2.3 key -- Returns how many hold a value.
persist key
pexpire key milliseconds/int [condition@7.0.0: NX|XX|GT|LT]
pexpireat key unix-time-milliseconds/time [condition@7.0.0: NX|XX|GT|LT]
pexpiretime key
pfadd key [element...]
pfcount key...
pfdebug* subcommand key
pfmerge destkey/key [sourcekey/key...]
pfselftest*
ping [message]
psetex!2.6.12 key milliseconds/int value
psubscribe pattern...
psync replicationid offset/int
pttl key
publish channel message
pubsub
pubsub|channels@2.8.0 [pattern] -- Lists the channels that somebody listens to.
pubsub|help@6.2.0 -- Explains the command.
pubsub|numpat@2.8.0 -- Counts the patterns that somebody listens to.
pubsub|numsub@2.8.0 [channel...] -- Counts who listens to channels.
pubsub|shardchannels@7.0.0 [pattern] -- Lists the shards' channels that somebody listens to.
pubsub|shardnumsub@7.0.0 [shardchannel...] -- Counts who listens to shards' channels.
punsubscribe [pattern...]
quit!7.2.0
randomkey
readonly
readwrite
rename key newkey/key
renamenx key newkey/key
replconf*
replicaof (args: (host-port: host port/int)|(no-one: NO ONE))
reset
restore key ttl/int serialized-value [REPLACE@3.0.0] [ABSTTL@5.0.0] [IDLETIME seconds/int@5.0.0]
    [FREQ frequency/int@5.0.0]
restore-asking* key ttl/int serialized-value [REPLACE@3.0.0] [ABSTTL@5.0.0]
    [IDLETIME seconds/int@5.0.0] [FREQ frequency/int@5.0.0]
role
rpop key [count/int@6.2.0]
rpoplpush!6.2.0 source/key destination/key
rpush key element...
rpushx key element...
sadd key member...
save
scan cursor/int [MATCH pattern] [COUNT count/int] [TYPE type@6.0.0]
scard key
script
script|debug@3.2.0 (mode: YES|SYNC|NO) -- Decides how scripts are debugged.
script|exists@2.6.0 sha1... -- Tells which scripts are known.
script|flush@2.6.0 [flush-type@6.2.0: ASYNC|SYNC] -- Forgets all scripts.
script|help@5.0.0 -- Explains the command.
script|kill@2.6.0 -- Ends the script that runs.
script|load@2.6.0 script -- Remembers a script.
sdiff key...
sdiffstore destination/key key...
select index/int
set key value [condition@2.6.12: NX|XX] [GET@6.2.0]
    [expiration: EX seconds/int@2.6.12|PX milliseconds/int@2.6.12|
    EXAT unix-time-seconds/time@6.2.0|PXAT unix-time-milliseconds/time@6.2.0|KEEPTTL@6.0.0]
setbit key offset/int value/int
setex!2.6.12 key seconds/int value
setnx!2.6.12 key value
setrange key offset/int value
shutdown [save-selector: NOSAVE|SAVE] [NOW@7.0.0] [FORCE@7.0.0] [ABORT@7.0.0]
sinter key...
sintercard numkeys/int key... [LIMIT limit/int]
sinterstore destination/key key...
sismember key member
slaveof!5.0.0 (args: (host-port: host port/int)|(no-one: NO ONE))
slowlog
slowlog|get@2.2.12 [count/int] -- Returns the commands that took long.
slowlog|help@6.2.0 -- Explains the command.
slowlog|len@2.2.12 -- Counts the commands that took long.
slowlog|reset@2.2.12 -- Forgets the commands that took long.
smembers key
smismember key member...
smove source/key destination/key member
sort key [BY by-pattern=pattern/pattern#1] [LIMIT (limit: offset/int count/int)]
    [GET get-pattern=pattern/pattern#1]... [order: ASC|DESC] [ALPHA<sorting>]
    [STORE destination/key#2]
sort_ro key [BY by-pattern=pattern/pattern#1] [LIMIT (limit: offset/int count/int)]
    [GET get-pattern=pattern/pattern#1]... [order: ASC|DESC] [ALPHA<sorting>]
spop key [count/int@3.2.0]
spublish shardchannel message
srandmember key [count/int@2.6.0]
srem key member...
sscan key cursor/int [MATCH pattern] [COUNT count/int]
ssubscribe shardchannel...
strlen key
subscribe channel...
substr!2.0.0 key start/int end/int
sunion key...
sunionstore destination/key key...
sunsubscribe [shardchannel...]
swapdb index1/int index2/int
sync
time
touch key...
ttl key
type key
unlink key...
unsubscribe [channel...]
unwatch
wait numreplicas/int timeout/int
waitaof numlocal/int numreplicas/int timeout/int
watch key...
xack key group id...
xadd key [NOMKSTREAM@6.2.0] [trim: (strategy: MAXLEN|MINID@6.2.0)
    [operator: '='<equal>|'~'<approximately>] threshold [LIMIT count/int@6.2.0]]
    (id-selector: '*'<auto-id>|id) (data: field value)...
xautoclaim key group consumer min-idle-time start [COUNT count/int] [JUSTID]
xclaim key group consumer min-idle-time id... [IDLE ms/int] [TIME unix-time-milliseconds/time]
    [RETRYCOUNT count/int] [FORCE] [JUSTID] [LASTID lastid]
xdel key id...
xgroup
xgroup|create@5.0.0 key group (id-selector: id|'$'<new-id>) [MKSTREAM]
    [ENTRIESREAD entries-read/int] -- Makes a group.
xgroup|createconsumer@6.2.0 key group consumer -- Makes a consumer.
xgroup|delconsumer@5.0.0 key group consumer -- Removes a consumer.
xgroup|destroy@5.0.0 key group -- Removes a group.
xgroup|help@5.0.0 -- Explains the command.
xgroup|setid@5.0.0 key group (id-selector: id|'$'<new-id>)
    [ENTRIESREAD entriesread=entries-read/int] -- Moves a group to an entry.
xinfo
xinfo|consumers@5.0.0 key group -- Lists a group's consumers.
xinfo|groups@5.0.0 key -- Lists a stream's groups.
xinfo|help@5.0.0 -- Explains the command.
xinfo|stream@5.0.0 key [full-block: FULL [COUNT count/int]] -- Describes a stream.
xlen key
xpending key group [filters: [IDLE min-idle-time/int@6.2.0] start end count/int [consumer]]
xrange key start end [COUNT count/int]
xread [COUNT count/int] [BLOCK milliseconds/int] STREAMS (streams: key... id...)
xreadgroup GROUP (group-block: group consumer) [COUNT count/int] [BLOCK milliseconds/int] [NOACK]
    STREAMS (streams: key... id...)
xrevrange key end start [COUNT count/int]
xsetid key last-id [ENTRIESADDED entries-added/int@7.0.0] [MAXDELETEDID max-deleted-id@7.0.0]
xtrim key (trim: (strategy: MAXLEN|MINID@6.2.0) [operator: '='<equal>|'~'<approximately>]
    threshold [LIMIT count/int@6.2.0])
zadd key [condition@3.0.2: NX|XX] [comparison@6.2.0: GT|LT] [CH<change>@3.0.2]
    [INCR<increment>@3.0.2] (data: score/double member)...
zcard key
zcount key min/double max/double
zdiff numkeys/int key... [WITHSCORES]
zdiffstore destination/key numkeys/int key...
zincrby key increment/int member
zinter numkeys/int key... [WEIGHTS weight/int...] [AGGREGATE (aggregate: SUM|MIN|MAX)]
    [WITHSCORES]
zintercard numkeys/int key... [LIMIT limit/int]
zinterstore destination/key numkeys/int key... [WEIGHTS weight/int...]
    [AGGREGATE (aggregate: SUM|MIN|MAX)]
zlexcount key min max
zmpop numkeys/int key... (where: MIN|MAX) [COUNT count/int]
zmscore key member...
zpopmax key [count/int]
zpopmin key [count/int]
zrandmember key [options: count/int [WITHSCORES]]
zrange key start stop [sortby@6.2.0: BYSCORE|BYLEX] [REV@6.2.0]
    [LIMIT (limit@6.2.0: offset/int count/int)] [WITHSCORES]
zrangebylex!6.2.0 key min max [LIMIT (limit: offset/int count/int)]
zrangebyscore!6.2.0 key min/double max/double [WITHSCORES@2.0.0]
    [LIMIT (limit: offset/int count/int)]
zrangestore dst/key src/key min max [sortby: BYSCORE|BYLEX] [REV]
    [LIMIT (limit: offset/int count/int)]
zrank key member [WITHSCORE]
zrem key member...
zremrangebylex key min max
zremrangebyrank key start/int stop/int
zremrangebyscore key min/double max/double
zrevrange!6.2.0 key start/int stop/int [WITHSCORES]
zrevrangebylex!6.2.0 key max min [LIMIT (limit: offset/int count/int)]
zrevrangebyscore!6.2.0 key max/double min/double [WITHSCORES]
    [LIMIT (limit: offset/int count/int)]
zrevrank key member [WITHSCORE]
zscan key cursor/int [MATCH pattern] [COUNT count/int]
zscore key member
zunion numkeys/int key... [WEIGHTS weight/int...] [AGGREGATE (aggregate: SUM|MIN|MAX)]
    [WITHSCORES]
zunionstore destination/key numkeys/int key... [WEIGHTS weight/int...]
    [AGGREGATE (aggregate: SUM|MIN|MAX)]
)";
}

}  // namespace eddy::cache
