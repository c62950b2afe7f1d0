// Rows of lists. See command_row.hpp for the columns.
#pragma once

#include "cache/catalog/command_row.hpp"
#include "cache/catalog/commands.hpp"

namespace eddy::cache::rows {

inline constexpr command_row list_rows[] = {
    {"lpush", commands::lpush, -3, grow_fast | local, category::list, "RW insert|i1|r0.1.0",
     "1.0.0", "list", "key element...", "Adds elements in front of a list."},
    {"rpush", commands::rpush, -3, grow_fast | local, category::list, "RW insert|i1|r0.1.0",
     "1.0.0", "list", "key element...", "Adds elements behind a list."},
    {"lpushx", commands::lpushx, -3, grow_fast | local, category::list, "RW insert|i1|r0.1.0",
     "2.2.0", "list", "key element...", "Adds elements in front of a list that is there."},
    {"rpushx", commands::rpushx, -3, grow_fast | local, category::list, "RW insert|i1|r0.1.0",
     "2.2.0", "list", "key element...", "Adds elements behind a list that is there."},
    {"lpop", commands::lpop, -2, write_fast | local, category::list, "RW access delete|i1|r0.1.0",
     "1.0.0", "list", "key [count/int@6.2.0]", "Takes elements from the front of a list."},
    {"rpop", commands::rpop, -2, write_fast | local, category::list, "RW access delete|i1|r0.1.0",
     "1.0.0", "list", "key [count/int@6.2.0]", "Takes elements from the back of a list."},
    {"llen", commands::llen, 2, read_fast | local, category::list, "RO|i1|r0.1.0", "1.0.0", "list",
     "key", "Returns how many elements a list has."},
    {"lindex", commands::lindex, 3, readonly, category::list, "RO access|i1|r0.1.0", "1.0.0",
     "list", "key index/int", "Returns the element at a place in a list."},
    {"lset", commands::lset, 4, grow, category::list, "RW update|i1|r0.1.0", "1.0.0", "list",
     "key index/int element", "Replaces the element at a place in a list."},
    {"lrange", commands::lrange, 4, readonly, category::list, "RO access|i1|r0.1.0", "1.0.0",
     "list", "key start/int stop/int", "Returns a run of a list's elements."},
    {"ltrim", commands::ltrim, 4, write, category::list, "RW delete|i1|r0.1.0", "1.0.0", "list",
     "key start/int stop/int", "Keeps a run of a list's elements."},
    {"lrem", commands::lrem, 4, write, category::list, "RW delete|i1|r0.1.0", "1.0.0", "list",
     "key count/int element", "Removes elements that are equal to one."},
    {"linsert", commands::linsert, 5, grow, category::list, "RW insert|i1|r0.1.0", "2.2.0", "list",
     "key (where: BEFORE|AFTER) pivot element", "Adds an element beside another."},
    {"lpos", commands::lpos, -3, readonly, category::list, "RO access|i1|r0.1.0", "6.0.6", "list",
     "key element [RANK rank/int] [COUNT num-matches/int] [MAXLEN len/int]",
     "Finds elements that are equal to one."},
    {"lmove", commands::lmove, 5, grow, category::list,
     "RW access delete|i1|r0.1.0;RW insert|i2|r0.1.0", "6.2.0", "list",
     "source/key destination/key (wherefrom: LEFT|RIGHT) (whereto: LEFT|RIGHT)",
     "Moves an element from one end of a list to one of another."},
    {"rpoplpush", commands::rpoplpush, 3, grow | last_to_first, category::list,
     "RW access delete|i1|r0.1.0;RW insert|i2|r0.1.0", "1.2.0!6.2.0", "list",
     "source/key destination/key", "Moves the last element of a list to the front of another."},
    {"lmpop", commands::lmpop, -4, write | movablekeys | pops_one_of, category::list,
     "RW access delete|i1|n0.1.1", "7.0.0", "list",
     "numkeys/int key... (where: LEFT|RIGHT) [COUNT count/int]",
     "Takes elements from the first list that has any."},
};

inline constexpr command_row list_wait_rows[] = {
    {"blpop", commands::blpop, -3, write | blocking | pops_one_of, category::list,
     "RW access delete|i1|r-2.1.0", "2.0.0", "list", "key... timeout/double",
     "Waits for an element at the front of one of several lists."},
    {"brpop", commands::brpop, -3, write | blocking | pops_one_of, category::list,
     "RW access delete|i1|r-2.1.0", "2.0.0", "list", "key... timeout/double",
     "Waits for an element at the back of one of several lists."},
    {"blmove", commands::blmove, 6, grow | blocking, category::list,
     "RW access delete|i1|r0.1.0;RW insert|i2|r0.1.0", "6.2.0", "list",
     "source/key destination/key (wherefrom: LEFT|RIGHT) (whereto: LEFT|RIGHT) timeout/double",
     "Waits for an element of a list and moves it to another."},
    {"brpoplpush", commands::brpoplpush, 4, grow | blocking | last_to_first, category::list,
     "RW access delete|i1|r0.1.0;RW insert|i2|r0.1.0", "2.2.0!6.2.0", "list",
     "source/key destination/key timeout/double",
     "Waits for a list's last element and moves it to the front of another."},
    {"blmpop", commands::blmpop, -5, write | blocking | movablekeys | pops_one_of, category::list,
     "RW access delete|i2|n0.1.1", "7.0.0", "list",
     "timeout/double numkeys/int key... (where: LEFT|RIGHT) [COUNT count/int]",
     "Waits for elements of one of several lists."},
};

}  // namespace eddy::cache::rows
