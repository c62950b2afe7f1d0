// Rows of strings, bitmaps, HyperLogLogs, and of commands on several types. See command_row.hpp for
// the columns.
#pragma once

#include "cache/catalog/command_row.hpp"
#include "cache/catalog/commands.hpp"

namespace eddy::cache::rows {

inline constexpr command_row string_rows[] = {
    // Strings
    {"get", commands::get, 2, read_fast | local | reads_string, category::string,
     "RO access|i1|r0.1.0", "1.0.0", "string", "key", "Returns a string."},
    {"set", commands::set, -3,
     grow | brief | local | reads_by_option | replaces_string | keys_by_options, category::string,
     "RW access update variable_flags|i1|r0.1.0", "1.0.0", "string",
     "key value [condition@2.6.12: NX|XX] [GET@6.2.0] [expiration: EX seconds/int@2.6.12|PX "
     "milliseconds/int@2.6.12|EXAT unix-time-seconds/time@6.2.0|PXAT "
     "unix-time-milliseconds/time@6.2.0|KEEPTTL@6.0.0]",
     "Stores a string, with or without an expiry and conditions."},
    {"getset", commands::getset, 3, grow_fast | local | reads_string | replaces_string,
     category::string, "RW access update|i1|r0.1.0", "1.0.0!6.2.0", "string", "key value",
     "Stores a string and returns the one before it."},
    {"getdel", commands::getdel, 2, write_fast | local | reads_string, category::string,
     "RW access delete|i1|r0.1.0", "6.2.0", "string", "key",
     "Returns a string and removes its key."},
    {"getex", commands::getex, -2, write_fast | local | reads_string, category::string,
     "RW access update|i1|r0.1.0", "6.2.0", "string",
     "key [expiration: EX seconds/int|PX milliseconds/int|EXAT unix-time-seconds/time|PXAT "
     "unix-time-milliseconds/time|PERSIST]",
     "Returns a string and changes its key's expiry."},
    {"setnx", commands::setnx, 3, grow_fast | local | reads_string, category::string,
     "OW insert|i1|r0.1.0", "1.0.0!2.6.12", "string", "key value",
     "Stores a string if the key is not there."},
    {"setex", commands::setex, 4, grow | brief | local, category::string, "OW update|i1|r0.1.0",
     "2.0.0!2.6.12", "string", "key seconds/int value",
     "Stores a string that ends after some seconds."},
    {"psetex", commands::psetex, 4, grow | brief | local, category::string, "OW update|i1|r0.1.0",
     "2.6.0!2.6.12", "string", "key milliseconds/int value",
     "Stores a string that ends after some milliseconds."},
    {"mget", commands::mget, -2, read_fast | local | reads_string, category::string,
     "RO access|i1|r-1.1.0", "1.0.0", "string", "key...", "Returns the strings of several keys.",
     "request_policy:multi_shard"},
    {"mset", commands::mset, -3, grow, category::string, "OW update|i1|r-1.2.0", "1.0.1", "string",
     "(data: key value)...", "Stores several strings.",
     "request_policy:multi_shard,response_policy:all_succeeded"},
    {"msetnx", commands::msetnx, -3, grow | reads_string, category::string, "OW insert|i1|r-1.2.0",
     "1.0.1", "string", "(data: key value)...",
     "Stores several strings if none of the keys is there."},
    {"append", commands::append, 3, grow_fast | local | reads_string, category::string,
     "RW insert|i1|r0.1.0", "2.0.0", "string", "key value", "Adds to the end of a string."},
    {"strlen", commands::strlen, 2, read_fast | local | reads_string, category::string,
     "RO|i1|r0.1.0", "2.2.0", "string", "key", "Returns how many bytes a string has."},
    {"getrange", commands::getrange, 4, readonly | reads_string, category::string,
     "RO access|i1|r0.1.0", "2.4.0", "string", "key start/int end/int",
     "Returns a part of a string."},
    {"substr", commands::getrange, 4, readonly | reads_string, category::string,
     "RO access|i1|r0.1.0", "1.0.0!2.0.0", "string", "key start/int end/int",
     "The old name of GETRANGE."},
    {"setrange", commands::setrange, 4, grow | reads_string, category::string,
     "RW update|i1|r0.1.0", "2.2.0", "string", "key offset/int value",
     "Overwrites a part of a string."},
    {"incr", commands::incr, 2, grow_fast | local | reads_string, category::string,
     "RW access update|i1|r0.1.0", "1.0.0", "string", "key", "Adds one to a number."},
    {"decr", commands::decr, 2, grow_fast | local | reads_string, category::string,
     "RW access update|i1|r0.1.0", "1.0.0", "string", "key", "Takes one from a number."},
    {"incrby", commands::incrby, 3, grow_fast | local | reads_string, category::string,
     "RW access update|i1|r0.1.0", "1.0.0", "string", "key increment/int", "Adds to a number."},
    {"decrby", commands::decrby, 3, grow_fast | local | reads_string, category::string,
     "RW access update|i1|r0.1.0", "1.0.0", "string", "key decrement/int", "Takes from a number."},
    {"incrbyfloat", commands::incrbyfloat, 3, grow_fast | local | reads_string, category::string,
     "RW access update|i1|r0.1.0", "2.6.0", "string", "key increment/double",
     "Adds to a floating-point number."},

    // Strings as bits
    {"setbit", commands::setbit, 4, grow | brief | reads_string, category::bitmap,
     "RW access update|i1|r0.1.0", "2.2.0", "bitmap", "key offset/int value/int",
     "Sets one bit of a string."},
    {"getbit", commands::getbit, 3, read_fast | local | reads_string, category::bitmap,
     "RO access|i1|r0.1.0", "2.2.0", "bitmap", "key offset/int", "Returns one bit of a string."},
    {"bitcount", commands::bitcount, -2, readonly | reads_string, category::bitmap,
     "RO access|i1|r0.1.0", "2.6.0", "bitmap",
     "key [range: start/int end/int [unit@7.0.0: BYTE|BIT]]", "Counts the ones in a string."},
    {"bitpos", commands::bitpos, -3, readonly | reads_string, category::bitmap,
     "RO access|i1|r0.1.0", "2.8.7", "bitmap",
     "key bit/int [range: start/int [end-unit-block: end/int [unit@7.0.0: BYTE|BIT]]]",
     "Finds the first one or zero in a string."},
    {"bitop", commands::bitop, -4, grow | reads_string, category::bitmap,
     "OW update|i2|r0.1.0;RO access|i3|r-1.1.0", "2.6.0", "bitmap",
     "(operation: AND|OR|XOR|NOT) destkey/key key...", "Combines strings bit by bit."},
    {"bitfield", commands::bitfield, -2, grow | reads_string | keys_by_options, category::bitmap,
     "RW access update variable_flags|i1|r0.1.0", "3.2.0", "bitmap",
     "key [operation: GET (get-block: encoding offset/int)|(write: [OVERFLOW (overflow-block: "
     "WRAP|SAT|FAIL)] (write-operation: SET (set-block: encoding offset/int value/int)|INCRBY "
     "(incrby-block: encoding offset/int increment/int)))]...",
     "Reads and changes integers of any width within a string."},
    {"bitfield_ro", commands::bitfield_ro, -2, read_fast | reads_string, category::bitmap,
     "RO access|i1|r0.1.0", "6.0.0", "bitmap", "key [GET (get-block: encoding offset/int)]...",
     "Reads integers of any width within a string."},

    // HyperLogLog
    {"pfadd", commands::pfadd, -2, grow_fast | reads_string, category::hyperloglog,
     "RW insert|i1|r0.1.0", "2.8.9", "hyperloglog", "key [element...]",
     "Shows elements to a HyperLogLog."},
    {"pfcount", commands::pfcount, -2, readonly | may_replicate | reads_string,
     category::hyperloglog, "RW access|i1|r-1.1.0", "2.8.9", "hyperloglog", "key...",
     "Estimates how many different elements a HyperLogLog has seen."},
    {"pfmerge", commands::pfmerge, -2, grow | reads_string, category::hyperloglog,
     "RW access insert|i1|r0.1.0;RO access|i2|r-1.1.0", "2.8.9", "hyperloglog",
     "destkey/key [sourcekey/key...]", "Unites HyperLogLogs."},
    {"pfdebug", commands::pfdebug, 3, grow | admin | syscmd, category::hyperloglog,
     "RW access|i2|r0.1.0", "2.8.9", "hyperloglog", "subcommand key", "Looks into a HyperLogLog."},
    {"pfselftest", commands::pfselftest, 1, admin | syscmd, category::hyperloglog, "", "2.8.9",
     "hyperloglog", "", "Tests the HyperLogLog's own workings."},

    // Commands on several types
    {"lcs", commands::lcs, -3, readonly | reads_string, category::string, "RO access|i1|r1.1.0",
     "7.0.0", "string",
     "key1/key key2/key#0 [LEN] [IDX] [MINMATCHLEN min-match-len/int] [WITHMATCHLEN]",
     "Finds the longest common subsequence of two strings."},
    {"sort", commands::sort, -2, grow | movablekeys | keys_by_options,
     category::set | category::sortedset | category::list | category::dangerous,
     "RO access|i1|r0.1.0;RO access|u|u;OW update|u|u", "1.0.0", "generic",
     "key [BY by-pattern=pattern/pattern#1] [LIMIT (limit: offset/int count/int)] [GET "
     "get-pattern=pattern/pattern#1]... [order: ASC|DESC] [ALPHA<sorting>] [STORE "
     "destination/key#2]",
     "Sorts a list, set or sorted set, and returns or stores what comes out."},
    {"sort_ro", commands::sort_ro, -2, readonly | movablekeys,
     category::set | category::sortedset | category::list | category::dangerous,
     "RO access|i1|r0.1.0;RO access|u|u", "7.0.0", "generic",
     "key [BY by-pattern=pattern/pattern#1] [LIMIT (limit: offset/int count/int)] [GET "
     "get-pattern=pattern/pattern#1]... [order: ASC|DESC] [ALPHA<sorting>]",
     "Sorts a list, set or sorted set."},
};

}  // namespace eddy::cache::rows
