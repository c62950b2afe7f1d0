// Rows of streams. See command_row.hpp for the columns.
#pragma once

#include "cache/catalog/command_row.hpp"
#include "cache/catalog/commands.hpp"

namespace eddy::cache::rows {

inline constexpr command_row stream_rows[] = {
    {"xadd", commands::xadd, -5, grow_fast, category::stream, "RW update|i1|r0.1.0", "5.0.0",
     "stream",
     "key [NOMKSTREAM@6.2.0] [trim: (strategy: MAXLEN|MINID@6.2.0) [operator: "
     "'='<equal>|'~'<approximately>] threshold [LIMIT count/int@6.2.0]] (id-selector: "
     "'*'<auto-id>|id) (data: field value)...",
     "Appends an entry.", "nondeterministic_output"},
    {"xtrim", commands::xtrim, -4, write, category::stream, "RW delete|i1|r0.1.0", "5.0.0",
     "stream",
     "key (trim: (strategy: MAXLEN|MINID@6.2.0) [operator: '='<equal>|'~'<approximately>] "
     "threshold [LIMIT count/int@6.2.0])",
     "Removes the oldest entries.", "nondeterministic_output"},
    {"xdel", commands::xdel, -3, write_fast, category::stream, "RW delete|i1|r0.1.0", "5.0.0",
     "stream", "key id...", "Removes entries."},
    {"xlen", commands::xlen, 2, read_fast, category::stream, "RO|i1|r0.1.0", "5.0.0", "stream",
     "key", "Counts entries."},
    {"xrange", commands::xrange, -4, readonly, category::stream, "RO access|i1|r0.1.0", "5.0.0",
     "stream", "key start end [COUNT count/int]", "Returns entries of a range."},
    {"xrevrange", commands::xrevrange, -4, readonly, category::stream, "RO access|i1|r0.1.0",
     "5.0.0", "stream", "key end start [COUNT count/int]",
     "Returns entries of a range, the last first."},
    {"xsetid", commands::xsetid, -3, grow_fast, category::stream, "RW update|i1|r0.1.0", "5.0.0",
     "stream",
     "key last-id [ENTRIESADDED entries-added/int@7.0.0] [MAXDELETEDID max-deleted-id@7.0.0]",
     "Sets a stream's last identifier."},
    {"xread", commands::xread, -4, readonly | blocking | movablekeys | keys_by_options,
     category::stream, "RO access|kSTREAMS.1|r-1.1.2", "5.0.0", "stream",
     "[COUNT count/int] [BLOCK milliseconds/int] STREAMS (streams: key... id...)",
     "Returns new entries, waiting for them if asked to."},
    {"xreadgroup", commands::xreadgroup, -7,
     write | blocking | movablekeys | changes_group | keys_by_options, category::stream,
     "RO access|kSTREAMS.4|r-1.1.2", "5.0.0", "stream",
     "GROUP (group-block: group consumer) [COUNT count/int] [BLOCK milliseconds/int] [NOACK] "
     "STREAMS (streams: key... id...)",
     "The same for a consumer of a group."},
    {"xgroup", commands::subcommand, -2, grow, 0, "", "5.0.0", "stream", "",
     "Commands about groups."},
    {"xgroup|create", commands::xgroup_create, -5, grow, category::stream, "RW insert|i2|r0.1.0",
     "5.0.0", "",
     "key group (id-selector: id|'$'<new-id>) [MKSTREAM] [ENTRIESREAD entries-read/int]",
     "Makes a group."},
    {"xgroup|createconsumer", commands::xgroup_createconsumer, 5, grow, category::stream,
     "RW insert|i2|r0.1.0", "6.2.0", "", "key group consumer", "Makes a consumer."},
    {"xgroup|delconsumer", commands::xgroup_delconsumer, 5, write, category::stream,
     "RW delete|i2|r0.1.0", "5.0.0", "", "key group consumer", "Removes a consumer."},
    {"xgroup|destroy", commands::xgroup_destroy, 4, write, category::stream, "RW delete|i2|r0.1.0",
     "5.0.0", "", "key group", "Removes a group."},
    {"xgroup|help", commands::xgroup_help, 2, always, category::stream, "", "5.0.0", "", "",
     "Explains the command."},
    {"xgroup|setid", commands::xgroup_setid, -5, write, category::stream, "RW update|i2|r0.1.0",
     "5.0.0", "",
     "key group (id-selector: id|'$'<new-id>) [ENTRIESREAD entriesread=entries-read/int]",
     "Moves a group to an entry."},
    {"xack", commands::xack, -4, write_fast, category::stream, "RW update|i1|r0.1.0", "5.0.0",
     "stream", "key group id...", "Marks entries as done by a group."},
    {"xpending", commands::xpending, -3, readonly, category::stream, "RO access|i1|r0.1.0", "5.0.0",
     "stream", "key group [filters: [IDLE min-idle-time/int@6.2.0] start end count/int [consumer]]",
     "Shows the pending entries of a group.", "nondeterministic_output"},
    {"xclaim", commands::xclaim, -6, write_fast, category::stream, "RW update|i1|r0.1.0", "5.0.0",
     "stream",
     "key group consumer min-idle-time id... [IDLE ms/int] [TIME unix-time-milliseconds/time] "
     "[RETRYCOUNT count/int] [FORCE] [JUSTID] [LASTID lastid]",
     "Gives a consumer certain pending entries.", "nondeterministic_output"},
    {"xautoclaim", commands::xautoclaim, -6, write_fast, category::stream, "RW delete|i1|r0.1.0",
     "6.2.0", "stream", "key group consumer min-idle-time start [COUNT count/int] [JUSTID]",
     "Gives a consumer what others left pending.", "nondeterministic_output"},
    {"xinfo", commands::subcommand, -2, readonly, 0, "", "5.0.0", "stream", "",
     "Commands that tell of streams."},
    {"xinfo|consumers", commands::xinfo_consumers, 4, readonly, category::stream,
     "RO access|i2|r0.1.0", "5.0.0", "", "key group", "Lists a group's consumers.",
     "nondeterministic_output"},
    {"xinfo|groups", commands::xinfo_groups, 3, readonly, category::stream, "RO access|i2|r0.1.0",
     "5.0.0", "", "key", "Lists a stream's groups."},
    {"xinfo|help", commands::xinfo_help, 2, always, category::stream, "", "5.0.0", "", "",
     "Explains the command."},
    {"xinfo|stream", commands::xinfo_stream, -3, readonly, category::stream, "RO access|i2|r0.1.0",
     "5.0.0", "", "key [full-block: FULL [COUNT count/int]]", "Describes a stream."},
};

}  // namespace eddy::cache::rows
