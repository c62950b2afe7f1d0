// eddy.blocking(function, ...): a function of a script's that may block, such as a driver in C,
// called on a worker thread, with a state of its own, while the script's call waits.
//
// Only values go there and back: numbers, texts, truth values and tables of these, as arguments, as
// results, and as the local variables around the function. Its globals are the thread's: the
// standard libraries with io, os and modules of C, and what calls before have left.
#pragma once

#include "script/library.hpp"
#include "script/script_threads.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace eddy::script {

struct blocking_limits {
    std::size_t threads = 4;
    std::size_t waiting = 100;  ///< calls that wait for a thread
    /// Limit of a call; one that is within a function of C then is ended after that.
    std::chrono::seconds time{30};
    std::size_t bytes = std::size_t{64} << 20;  ///< of a thread's values
};

struct blocking_options {
    bool is_allowed = false;                ///< otherwise each call fails with the flag's name
    std::string owner = {};                 ///< as script_threads::await_all() calls it
    std::vector<std::string> modules = {};  ///< folders for require(), before the usual ones
    blocking_limits limits = {};
};

/// It must outlive the host. Threads begin with the first call; at the end of this object those at
/// work are left alone. One loop's thread.
class blocking_calls final : script_threads_observer {
public:
    explicit blocking_calls(blocking_options options) : options_(std::move(options)) {}

    /// blocking() of the table with that name, which is in static storage.
    library functions(const char* table) noexcept;

private:
    struct pending;
    class work;
    friend struct blocking_functions;

    answer submit(invocation& of);
    script_threads& threads();
    void thread_loaded(std::expected<std::vector<bool>, std::string> /*defined*/) override {}
    void thread_printed(std::string /*line*/) override {}
    void thread_ended() override {}

    const blocking_options options_;
    std::unique_ptr<script_threads> threads_;
};

}  // namespace eddy::script
