// Planner of stacks: checks a stack as a whole, and finds the changes that bring it about, before
// anything is changed.
#pragma once

#include <eddy/io/semaphore.hpp>
#include <eddy/io/task.hpp>
#include <eddy/transport/transport.hpp>

#include "daemon/runtimes/runtime_lifecycle.hpp"
#include "daemon/runtimes/runtime_registry.hpp"
#include "daemon/stacks/stack.hpp"
#include "runtime/options/settings.hpp"
#include "runtime/type.hpp"

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::daemon {

/// A change that is planned in detail.
struct planned_change {
    stack_change shown;
    runtime_ref which;     ///< null for one that is to be created
    runtime_record fresh;  ///< of all but a removal
    std::optional<runtime::settings> options;
    const runtime::type* type = nullptr;
    std::vector<transport::address> held = {};    ///< now
    std::vector<transport::address> wanted = {};  ///< afterwards, where they change
    std::size_t depth = 0;                        ///< number of its owners
    std::size_t round = 0;                        ///< see order_changes()
    bool is_retyped = false;                      ///< its type changes
    /// Its instance stops, with its data kept, before others take its addresses; the next one
    /// starts in the change's own round.
    bool is_set_aside = false;
    permit change;  ///< the runtime's change_lock

    bool is_stop() const noexcept {
        return shown.step == stack_step::stop || shown.step == stack_step::remove;
    }
    /// It has an instance afterwards that it does not have now.
    bool is_start() const noexcept { return shown.step == stack_step::start || shown.starts; }
    /// Its instance of before has stopped for it.
    bool is_next_start() const noexcept { return is_set_aside && fresh.running; }
};

/// Round of the stops and removals that others await; instances that are set aside stop behind
/// it. Changes before need no address that is to be released.
inline constexpr std::size_t stopping_round = 1;

/// Part of an address that is equal where two are the same claim: comparing each with each would
/// take long.
std::string claim_key(const transport::address& where);

/// Gives each change its round: what wants an address that another change releases comes after
/// that, and stops that nothing awaits come last. Of changes that wait for each other one is set
/// aside, of a type whose clients a restart closes if there is one. Within a round owners come
/// first; the stops begin with the owned ones.
void order_changes(std::vector<planned_change>& changes);

/// The control loop's. Everything given outlives it.
class stack_planner {
public:
    /// Without a lifecycle it checks a file alone: owners that are not there may be made by others,
    /// and addresses are not tried. The registry is an empty one then.
    stack_planner(const runtime_registry& registry, const runtime_lifecycle* lifecycle)
        : registry_(registry), lifecycle_(lifecycle) {}

    struct found {
        std::vector<planned_change> changes;  ///< in the order of their execution
        std::size_t unchanged = 0;
    };
    /// Checks all members and refuses with all faults. Changes nothing. Other tasks of the loop run
    /// in between.
    task<stack_outcome<found>> plan(const stack_request& wanted);

private:
    struct draft;

    stack_outcome<> check_size(const stack_request& wanted) const;
    void check_names(draft& of) const;
    void check_owners(draft& of) const;
    void find_removed(draft& of) const;
    void check_addresses(draft& of) const;
    void try_addresses(draft& of) const;
    outcome<std::optional<planned_change>> plan_member(const stack_request& wanted,
                                                       const stack_member& member) const;
    outcome<> plan_edit(planned_change& made, const stack_request& wanted,
                        const stack_member& member) const;
    void note_edit(planned_change& made) const;
    void note_retype(planned_change& made) const;
    void note_exchange(planned_change& made) const;
    void keep_addresses(planned_change& made) const;
    std::optional<planned_change> plan_release(const runtime_ref& which) const;
    planned_change plan_removal(const runtime_ref& which) const;
    std::string loss_text(const managed_runtime& of) const;

    const runtime_registry& registry_;
    const runtime_lifecycle* const lifecycle_;
};

}  // namespace eddy::daemon
