// Cascades: what a stop or a removal means for owned runtimes, shown before it happens.
#pragma once

#include "cli/request.hpp"

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cli {

enum class cascade : unsigned char { of_stop, of_removal };

/// The flag of `create` and `edit`.
flag on_parent_stop_flag();

/// Fates of runtimes beside the named ones, in the order of `all`.
struct consequences {
    std::vector<std::string> stopped = {};
    std::vector<std::string> removed = {};
    std::vector<std::string> kept = {};  ///< running still; after a removal without an owner

    bool empty() const noexcept { return stopped.empty() && removed.empty() && kept.empty(); }
};

/// Consequences of an end of the runtimes `named`, as far as the daemon's list `all` shows.
consequences consequences_of(const json& all, const std::vector<std::string>& named, cascade of);

/// "stops a and b; removes c"
std::string describe(const consequences& what);

/// On a terminal: shows what goes with the runtimes that the words mean, and for a removal which of
/// them run, and asks. The error is an exit status, after a complaint.
std::expected<void, int> confirm_cascade(const context& with, const arguments& given, cascade of);

}  // namespace eddy::cli
