// Composition of the runtimes' parts.
#include "daemon/runtimes/runtime_parts.hpp"

#include "daemon/runtimes/instance_host.hpp"

#include <cstdint>
#include <utility>

namespace eddy::daemon {

runtime_parts::runtime_parts(const state_store& store, blocking_pool& disk, loop_group& loops,
                             runtime_parts_options options)
    : journals_(std::move(options.journal_folder)),
      control_(std::move(options.control)),
      state_(store, disk),
      registry(options.types, options.runtimes),
      lifecycle(registry, state_, disk, loops, {options.drain, std::move(options.handover_folder)},
                host_factory()),
      editor(registry, lifecycle, state_, journals_, disk),
      restore(registry, lifecycle, editor, state_, journals_, disk, options.address_grace),
      stacks(registry, lifecycle, editor, state_) {
    lifecycle.set_remover(
        [this](runtime_ref which, unsaved data) { return editor.remove(std::move(which), data); });
    state_.observe_saves([this] { lifecycle.note_saved(); });
}

runtime_parts::~runtime_parts() {
    *self_ = nullptr;
    journals_.stop();
}

runtime_lifecycle::host_factory runtime_parts::host_factory() {
    return [this](std::string name, std::uint64_t number) {
        const runtime_ref which = registry.get(name);
        return make_host(self_, {registry.published(), messages_, control_},
                         which ? which->messages() : nullptr, std::move(name), number);
    };
}

}  // namespace eddy::daemon
