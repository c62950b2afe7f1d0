// Signal masks of the threads that Eddy starts: signals belong to the program's main thread.
#pragma once

#include <csignal>

namespace eddy {

/// Blocks every signal on the calling thread while it lives. Threads inherit the mask that is in
/// force when they start.
class signals_blocked {
public:
    signals_blocked() noexcept {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~signals_blocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    signals_blocked(const signals_blocked&) = delete;
    signals_blocked& operator=(const signals_blocked&) = delete;

private:
    sigset_t before_;
};

}  // namespace eddy
