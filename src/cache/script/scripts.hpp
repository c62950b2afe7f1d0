// Scripts of an engine. To be read in this order:
//
//   runner.hpp           the script that runs, and one that is late
//   values.hpp           replies to Lua's values, and back
//   redis_library.hpp    redis.call() and its like
//   script_cache.hpp     EVAL's scripts
//   functions.hpp        FUNCTION's libraries, each with its sandbox
//   script_text.hpp      the first line of a script
//   scripting.hpp        the face for the rest of the engine
// EVAL and SCRIPT are in commands/script.cpp, FUNCTION and FCALL in commands/function.cpp.
//
// The sandbox and the fiber are of the layer lua: src/lua/state.hpp begins there.
#pragma once

#include "cache/script/functions.hpp"
#include "cache/script/runner.hpp"
#include "cache/script/script_cache.hpp"

#include <memory>

namespace eddy::cache {

/// All that an engine has of scripts; made when the first one comes. One thread.
class scripts {
public:
    explicit scripts(engine& home) : runner_(home), cache_(runner_) {}
    scripts(const scripts&) = delete;
    scripts& operator=(const scripts&) = delete;

    script_runner& runner() noexcept { return runner_; }
    const script_runner& runner() const noexcept { return runner_; }
    script_cache& cache() noexcept { return cache_; }
    /// Created at the first call.
    libraries& functions();
    const libraries* functions_if_any() const noexcept { return functions_.get(); }

private:
    script_runner runner_;
    script_cache cache_;
    std::unique_ptr<libraries> functions_;
};

}  // namespace eddy::cache
