// Rows of sets. See command_row.hpp for the columns.
#pragma once

#include "cache/catalog/command_row.hpp"
#include "cache/catalog/commands.hpp"

namespace eddy::cache::rows {

inline constexpr command_row set_rows[] = {
    {"sadd", commands::sadd, -3, grow_fast | local, category::set, "RW insert|i1|r0.1.0", "1.0.0",
     "set", "key member...", "Adds members to a set."},
    {"srem", commands::srem, -3, write_fast | local, category::set, "RW delete|i1|r0.1.0", "1.0.0",
     "set", "key member...", "Removes members from a set."},
    {"smembers", commands::smembers, 2, readonly, category::set, "RO access|i1|r0.1.0", "1.0.0",
     "set", "key", "Returns all members of a set.", "nondeterministic_output_order"},
    {"sismember", commands::sismember, 3, read_fast | local, category::set, "RO|i1|r0.1.0", "1.0.0",
     "set", "key member", "Checks whether a member is in a set."},
    {"smismember", commands::smismember, -3, read_fast | local, category::set,
     "RO access|i1|r0.1.0", "6.2.0", "set", "key member...",
     "Checks which of several members are in a set."},
    {"scard", commands::scard, 2, read_fast | local, category::set, "RO|i1|r0.1.0", "1.0.0", "set",
     "key", "Returns how many members a set has."},
    {"spop", commands::spop, -2, write_fast, category::set, "RW access delete|i1|r0.1.0", "1.0.0",
     "set", "key [count/int@3.2.0]", "Takes random members from a set.", "nondeterministic_output"},
    {"srandmember", commands::srandmember, -2, readonly, category::set, "RO access|i1|r0.1.0",
     "1.0.0", "set", "key [count/int@2.6.0]", "Returns random members of a set.",
     "nondeterministic_output"},
    {"smove", commands::smove, 4, write_fast, category::set,
     "RW access delete|i1|r0.1.0;RW insert|i2|r0.1.0", "1.0.0", "set",
     "source/key destination/key member", "Moves a member from one set to another."},
    {"sscan", commands::sscan, -3, readonly, category::set, "RO access|i1|r0.1.0", "2.8.0", "set",
     "key cursor/int [MATCH pattern] [COUNT count/int]", "Goes through a set's members in steps.",
     "nondeterministic_output"},
    {"sinter", commands::sinter, -2, readonly, category::set, "RO access|i1|r-1.1.0", "1.0.0",
     "set", "key...", "Returns what sets have in common.", "nondeterministic_output_order"},
    {"sunion", commands::sunion, -2, readonly, category::set, "RO access|i1|r-1.1.0", "1.0.0",
     "set", "key...", "Returns what is in any of some sets.", "nondeterministic_output_order"},
    {"sdiff", commands::sdiff, -2, readonly, category::set, "RO access|i1|r-1.1.0", "1.0.0", "set",
     "key...", "Returns what is in the first set and in none of the others.",
     "nondeterministic_output_order"},
    {"sinterstore", commands::sinterstore, -3, grow, category::set,
     "RW update|i1|r0.1.0;RO access|i2|r-1.1.0", "1.0.0", "set", "destination/key key...",
     "Stores what sets have in common."},
    {"sunionstore", commands::sunionstore, -3, grow, category::set,
     "OW update|i1|r0.1.0;RO access|i2|r-1.1.0", "1.0.0", "set", "destination/key key...",
     "Stores what is in any of some sets."},
    {"sdiffstore", commands::sdiffstore, -3, grow, category::set,
     "OW update|i1|r0.1.0;RO access|i2|r-1.1.0", "1.0.0", "set", "destination/key key...",
     "Stores what is in the first set and in none of the others."},
    {"sintercard", commands::sintercard, -3, readonly | movablekeys, category::set,
     "RO access|i1|n0.1.1", "7.0.0", "set", "numkeys/int key... [LIMIT limit/int]",
     "Counts what sets have in common."},
};

}  // namespace eddy::cache::rows
