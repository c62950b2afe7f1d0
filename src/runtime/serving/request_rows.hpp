// Rows of the options that all types which answer HTTP requests have: the number of fields, and the
// format of their log. `Config` has a member `format`.
#pragma once

#include "base/problem.hpp"
#include "runtime/logs/access_log.hpp"
#include "runtime/options/bound_options.hpp"
#include "runtime/options/option.hpp"
#include "runtime/options/settings.hpp"

#include <string>
#include <string_view>

namespace eddy::runtime {

/// --max-fields with this help.
inline option max_fields_option(std::string_view help) {
    return {.name = "max-fields",
            .kind = option_kind::integer,
            .value_name = "N",
            .default_value = "100",
            .help = help,
            .minimum = 1,
            .maximum = 10'000};
}

/// --access-format.
template <class Config>
bound_option<Config> access_format_row() {
    return bound_option<Config>::choice(
        &Config::format,
        {.name = "access-format",
         .kind = option_kind::choice,
         .value_name = "FORMAT",
         .default_value = "common",
         .help = "lines of the access log: common or combined, as other servers write them, or "
                 "json"},
        {{"common", access_format::common},
         {"combined", access_format::combined},
         {"json", access_format::json}});
}

/// Refuses the option without a log.
inline outcome<> check_access_format(const settings& chosen, const std::string& access_log) {
    if (!chosen.given("access-format") || !access_log.empty()) return {};
    return refuse(400, "--access-format has no effect without --access-log FILE");
}

}  // namespace eddy::runtime
