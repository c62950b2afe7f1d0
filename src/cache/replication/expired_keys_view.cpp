// Expired keys stay visible.
#include "cache/replication/expired_keys_view.hpp"

#include "cache/engine/engine_state.hpp"

#include <utility>

namespace eddy::cache {

expired_keys_view::expired_keys_view(engine& of) noexcept
    : env_(of.internals().data.env), before_(std::exchange(env_.expired, expired_keys::stay)) {}

}  // namespace eddy::cache
