// Signals and the library's threads: they belong to the program's main thread, and SIGPIPE reaches
// none.
#pragma once

#include <cerrno>
#include <csignal>
#include <ctime>

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

/// Keeps SIGPIPE from the process while it lives. write(2) and sendfile(2) have no MSG_NOSIGNAL,
/// and a library has no business with the process's own answer to signals; but the kernel sends
/// this one to the thread that writes, and there it can be blocked and taken back.
class no_broken_pipe_signal {
public:
    no_broken_pipe_signal() noexcept {
        sigemptyset(&only_);
        sigaddset(&only_, SIGPIPE);
        pthread_sigmask(SIG_BLOCK, &only_, &before_);
        // Where it was blocked before, one may be pending that is not of this call.
        blocked_before_ = sigismember(&before_, SIGPIPE) == 1;
    }
    ~no_broken_pipe_signal() {
        if (!blocked_before_) pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    no_broken_pipe_signal(const no_broken_pipe_signal&) = delete;
    no_broken_pipe_signal& operator=(const no_broken_pipe_signal&) = delete;

    /// Takes the signal back, if there is one: after any call that has not taken all its bytes. One
    /// that meets the end of the other side behind its first bytes returns their number, and yet
    /// the signal has been sent.
    void take() noexcept {
        if (blocked_before_) return;
        const timespec at_once{};
        while (sigtimedwait(&only_, nullptr, &at_once) < 0 && errno == EINTR) {
        }
    }

private:
    sigset_t only_{};
    sigset_t before_{};
    bool blocked_before_ = false;
};

}  // namespace eddy
