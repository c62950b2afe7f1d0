// Calls of the state store on the blocking pool.
#include "daemon/state/state_access.hpp"

#include <fmt/format.h>

#include <utility>

namespace eddy::daemon {

outcome<> state_access::noted(outcome<> stored) const {
    if (stored && on_saved_) on_saved_();
    return stored;
}

task<outcome<>> state_access::save(runtime_record record) const {
    const state_store& store = store_;
    auto saved = co_await run_blocking(disk_, [&store, &record] { return store.save(record); });
    if (!saved)
        co_return refuse(503,
                         fmt::format("the state could not be saved: {}", saved.error().message()));
    co_return noted(std::move(*saved));
}

task<outcome<>> state_access::erase(std::string name) const {
    const state_store& store = store_;
    auto erased = co_await run_blocking(disk_, [&store, &name] { return store.erase(name); });
    if (!erased)
        co_return refuse(
            503, fmt::format("the state could not be changed: {}", erased.error().message()));
    co_return noted(std::move(*erased));
}

task<outcome<>> state_access::stage(const state_change& change) const {
    const state_store& store = store_;
    auto staged = co_await run_blocking(disk_, [&store, &change] { return store.stage(change); });
    if (!staged)
        co_return refuse(503,
                         fmt::format("the state could not be saved: {}", staged.error().message()));
    co_return std::move(*staged);
}

task<outcome<>> state_access::commit(const state_change& change) const {
    const state_store& store = store_;
    auto made = co_await run_blocking(disk_, [&store, &change] { return store.commit(change); });
    if (!made)
        co_return refuse(503,
                         fmt::format("the state could not be saved: {}", made.error().message()));
    co_return noted(std::move(*made));
}

task<void> state_access::discard(const state_change& change) const {
    const state_store& store = store_;
    static_cast<void>(co_await run_blocking(disk_, [&store, &change] { store.discard(change); }));
}

task<bool> state_access::contains(std::string name) const {
    const state_store& store = store_;
    const auto there =
        co_await run_blocking(disk_, [&store, &name] { return store.contains(name); });
    co_return there && *there;
}

task<outcome<loaded_state>> state_access::load(unfinished what) const {
    const state_store& store = store_;
    auto read = co_await run_blocking(disk_, [&store, what] { return store.load(what); });
    if (!read) co_return refuse(500, read.error().message());
    co_return std::move(*read);
}

}  // namespace eddy::daemon
