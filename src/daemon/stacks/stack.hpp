// A stack: the runtimes that one file declares. What is asked of one, and the plan of the changes
// that bring it about.
#pragma once

#include "base/problem.hpp"
#include "daemon/control/json.hpp"
#include "daemon/runtimes/managed_runtime.hpp"
#include "daemon/state/runtime_record.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::daemon {

/// A runtime as a stack declares it.
struct stack_member {
    std::string name;
    std::string type;
    std::string owner = {};
    std::string group = {};
    json options = json::object();  ///< all of them: what is not here has its default
    bool is_to_run = true;
    on_parent_stop policy = on_parent_stop::stop;
};

/// A stack as the user asks for it: what it made before and does not declare any more is removed.
struct stack_request {
    std::string name;
    std::vector<stack_member> members;
    /// Runtimes of these names that are there already become the stack's.
    bool adopts = false;
    /// Else what does not run is left so.
    bool starts = true;
    /// Names of runtimes whose risk is accepted; "*" is all.
    std::vector<std::string> accepted = {};
};

enum class stack_step : std::uint8_t { create, edit, start, stop, remove };
std::string_view to_string(stack_step step) noexcept;

/// A value that an edit changes, its secrets masked; null is an absent one.
struct value_change {
    /// An option, as in JSON, or "type", "owner", "on_parent_stop", "group", "stack".
    std::string name;
    json before;
    json after;
};

/// One planned change.
struct stack_change {
    std::string name;
    std::string type;
    stack_step step;
    std::vector<value_change> values = {};
    edit_plan plan = {};  ///< of an edit
    /// It is started besides being created or edited.
    bool starts = false;
    /// Effect on clients or data; a sentence without the name. Empty: none.
    std::string risk = {};
    /// A runtime of no file, removed with this owner.
    std::string removed_with = {};
};

struct stack_plan {
    std::vector<stack_change> changes;
    std::size_t unchanged = 0;
    /// Consequences of what was done, such as data that was lost.
    std::vector<std::string> notes = {};
};

/// A fault of one runtime of the stack.
struct stack_fault {
    std::string name;
    std::string message;
};

struct stack_refusal {
    problem why;
    std::vector<stack_fault> faults = {};  ///< all of them, in the order of the members
    std::vector<stack_change> risks = {};  ///< that were not accepted
};

template <class T = void>
using stack_outcome = std::expected<T, stack_refusal>;

inline std::unexpected<stack_refusal> refuse_stack(problem why) {
    return std::unexpected(stack_refusal{std::move(why)});
}

}  // namespace eddy::daemon
