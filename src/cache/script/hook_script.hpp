// A script with hooks: on_miss(), on_write(), on_delete(), on_expire(), in a Lua state of its own
// that may load libraries and block. It runs on a thread that serves no clients; see hooks.hpp for
// the other side.
//
// Such a script is written by whoever runs the daemon, not by clients, so it may open files and
// load C libraries. What would end the daemon or change it as a whole is taken away: os.exit,
// os.setlocale, ffi, loading of bytecode and of single C functions, the debug library's hooks.
// LuaJIT's compiler is off, since compiled loops cannot be ended.
#pragma once

#include "cache/read_through/hooks.hpp"

#include <chrono>
#include <cstddef>
#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace eddy::cache {

/// Which hooks a script has.
struct hook_functions {
    bool miss = false;
    bool write = false;
    bool erase = false;
    bool expire = false;
    bool any() const noexcept { return miss || write || erase || expire; }
};

/// What a script's call came to.
struct hook_answer {
    hook_result result;
    std::string error;  ///< why it failed, with the place where that is known
};

/// One thread at a time.
class hook_script {
public:
    /// What the script's values may take; libraries in C have memory of their own.
    static constexpr std::size_t max_bytes = std::size_t{256} << 20;
    /// How long the script's text itself may run, which defines the functions.
    static constexpr std::chrono::seconds load_limit{30};
    static constexpr std::size_t max_error = 1000;  ///< bytes of an error's text

    using printer = std::function<void(std::string_view line)>;

    /// Compiles the text and runs it once. `name` is what errors call it, `says` is told what it
    /// prints. The error is a sentence.
    static std::expected<std::unique_ptr<hook_script>, std::string> load(std::string_view text,
                                                                         const std::string& name,
                                                                         printer says);
    /// Compiles the text alone. The error as above.
    static std::expected<void, std::string> compile(std::string_view text, const std::string& name);
    hook_script(const hook_script&) = delete;
    hook_script& operator=(const hook_script&) = delete;
    ~hook_script();

    hook_functions functions() const noexcept { return functions_; }

    /// Calls the hook for the job. After `limit` it is ended, unless it is within a function of C.
    hook_answer run(const hook_job& job, std::chrono::nanoseconds limit);

private:
    class machine;
    explicit hook_script(std::unique_ptr<machine> of, hook_functions functions);

    std::unique_ptr<machine> machine_;
    hook_functions functions_;
};

}  // namespace eddy::cache
