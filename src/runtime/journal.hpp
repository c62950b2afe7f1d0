// Journal: the lines of `eddy logs NAME`.
#pragma once

#include "transport/serving/journal.hpp"

namespace eddy::runtime {

using serving::journal;

}  // namespace eddy::runtime
