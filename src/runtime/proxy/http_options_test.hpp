// Effects of the options of HTTP proxies, for the table of the type's effects.
#pragma once

#include "runtime/options/option_effects.hpp"

namespace eddy::runtime::proxy {

void add_http_effects(runtime::testing::effect_table& to);
/// The same of a script's: script/options_test.cpp.
void add_script_effects(runtime::testing::effect_table& to);

}  // namespace eddy::runtime::proxy
