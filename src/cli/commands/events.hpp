// Following of events: shared by `eddy events` and `eddy cluster watch`.
#pragma once

#include "cli/program.hpp"

#include <cstddef>
#include <string_view>
#include <vector>

namespace eddy::cli {

/// Names and patterns of a command line at most.
inline constexpr std::size_t most_event_names = 1'000'000;

/// The flags by which events are chosen and shown.
std::vector<flag> event_flags();

/// Prints the events of `target`, such as /v1/events, that the arguments choose, until they or the
/// daemon end. Returns the exit status.
int follow_events(context& with, const arguments& given, std::string_view target);

}  // namespace eddy::cli
