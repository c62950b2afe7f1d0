// Loader of one part of an append-only file: keys as RDB, commands, or the one behind the other.
#pragma once

#include <eddy/io/task.hpp>

#include "base/problem.hpp"
#include "cache/engine/engine.hpp"
#include "serving/journal.hpp"

#include <cstdint>
#include <string>

namespace eddy::runtime::cache {

struct append_counts {
    std::uint64_t size = 0;      ///< bytes that are good
    std::uint64_t cut_off = 0;   ///< bytes behind them that were cut off
    std::uint64_t commands = 0;  ///< executed
    std::uint64_t refused = 0;   ///< those of them that answered with an error
};

/// Place of a part among the files that are loaded one after the other.
enum class append_place : std::uint8_t {
    followed,  ///< later parts have changes that build on all of it
    last,
    cuttable,  ///< the last one, and its incomplete end may be dropped
};

/// Executes the part. Slices of work between turns of the loop; the engine must not be used
/// meanwhile. An incomplete end, or a MULTI without its EXEC, is cut off a file that is `cuttable`;
/// otherwise that is an error like other damage, which names the file and the byte, and leaves the
/// file as it is. All given must stay until the end.
task<outcome<append_counts>> load_append_part(eddy::cache::engine& to, std::string path,
                                              append_place place, serving::journal& events);

}  // namespace eddy::runtime::cache
