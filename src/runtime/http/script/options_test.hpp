// Effects of the options of a site's script, for the table of all.
#pragma once

#include "runtime/options/option_effects.hpp"

namespace eddy::runtime::http {

void add_script_effects(runtime::testing::effect_table& to);

}  // namespace eddy::runtime::http
