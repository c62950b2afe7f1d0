// Holding scripts back while one is late.
#include "cache/script/script_gap.hpp"

#include "cache/engine/engine_state.hpp"
#include "cache/script/scripting.hpp"

#include <utility>

namespace eddy::cache {

bool script_gap::is_there(bool is_wanted) noexcept {
    if (!is_wanted) {
        release();
        return false;
    }
    engine_state& s = home_.internals();
    if (!scripting::is_late(s)) {
        release();
        return true;
    }
    if (!std::exchange(holds_scripts_, true)) scripting::hold_back(s);
    return false;
}

void script_gap::release() noexcept {
    if (std::exchange(holds_scripts_, false)) scripting::let_begin(home_.internals());
}

}  // namespace eddy::cache
