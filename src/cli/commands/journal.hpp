// Output of a runtime's journal as it comes from the daemon.
#pragma once

#include "cli/program.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cli {

/// A sink that prints the lines of a journal: as they are, or each as a JSON object.
body_sink journal_printer(bool as_json);

/// Runtimes that `eddy logs -f` follows at a time: each is a connection to the daemon.
inline constexpr std::size_t follow_limit = 32;

/// Prints the journals of several runtimes, each line with the runtime's name: in the order of
/// their times, or with `follow` as they come. `query` is what stands behind "?follow=..." of the
/// requests. Returns the exit status.
int show_journals(const context& with, std::vector<std::string> names, std::string_view query,
                  bool follow);

}  // namespace eddy::cli
