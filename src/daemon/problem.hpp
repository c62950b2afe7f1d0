// The daemon's refusals: the same type that runtimes use, so that a message travels unchanged from
// where it arises to the user.
#pragma once

#include "runtime/problem.hpp"

namespace eddy::daemon {

using runtime::outcome;
using runtime::problem;
using runtime::refuse;

}  // namespace eddy::daemon
