// Composition of the manager.
#include "daemon/manager.hpp"

#include <eddy/io/loop.hpp>

#include "daemon/instance_host.hpp"
#include "daemon/runtime_view.hpp"

namespace eddy::daemon {

manager::manager(const state_store& store, blocking_pool& disk, loop_group& loops,
                 manager_options options)
    : journals_(std::move(options.journal_folder)),
      state_(store, disk),
      registry_(options.types, options.runtimes),
      lifecycle_(registry_, state_, disk, loops,
                 {options.drain, std::move(options.handover_folder)}, host_factory()),
      editor_(registry_, lifecycle_, state_, journals_),
      restore_(registry_, lifecycle_, editor_, state_, journals_, disk, options.address_grace) {}

manager::~manager() {
    *self_ = nullptr;
    journals_.stop();
}

runtime_lifecycle::host_factory manager::host_factory() {
    return [this](std::string name, std::uint64_t number) {
        return make_host(self_, {registry_.published(), messages_}, std::move(name), number);
    };
}

json manager::describe(const managed_runtime& which) const {
    return show_runtime(which, loop::current().now());
}

}  // namespace eddy::daemon
