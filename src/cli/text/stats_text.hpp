// Statistics of a runtime as lines of text: `eddy stats`.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace eddy::cli {

/// A line for each statistic: those of all types first, then those of the type, with one line for
/// each set of labels. Distributions of nothing are left out.
std::string stats_text(const nlohmann::json& stats);

}  // namespace eddy::cli
