// JSON of stacks in the control API: requests, plans and refusals.
#pragma once

#include "base/problem.hpp"
#include "daemon/control/json.hpp"
#include "daemon/stacks/stack.hpp"

#include <string>

namespace eddy::daemon {

/// The members of a request's body, which is an object.
outcome<stack_request> stack_from_json(std::string name, const json& body);

json show_plan(const stack_plan& plan);
/// {"error": {...}}, with the faults and the risks.
json show_refusal(const stack_refusal& refusal);

}  // namespace eddy::daemon
