// Journal: the lines of `eddy logs NAME`.
#pragma once

#include "serving/journal.hpp"

namespace eddy::runtime {

using serving::journal;

}  // namespace eddy::runtime
