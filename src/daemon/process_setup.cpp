// Process-wide settings of a daemon.
#include "daemon/process_setup.hpp"

#include <eddy/base/log.hpp>
#include <eddy/base/unique_fd.hpp>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

namespace eddy::daemon {
namespace {

/// Descriptors 0 to 2 must be taken, or a socket gets one of them and what is printed goes there.
void fill_standard_descriptors() {
    for (;;) {
        unique_fd fd(::open("/dev/null", O_RDWR | O_CLOEXEC));
        if (!fd || fd.get() > STDERR_FILENO) return;
        static_cast<void>(fd.release());
    }
}

/// A connection needs a descriptor; the soft limit is there for programs that use select().
void raise_descriptor_limit() {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        log_warn("daemon", "the limit on open files could not be raised");
}

/// Signals without a meaning here whose default effect is the end of the process: timers and
/// notifications that were meant for another program, or sent by mistake. SIGPIPE and SIGXFSZ come
/// back as errors of the write.
void ignore_other_signals() {
    for (const int number : {SIGPIPE, SIGXFSZ, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO,
                             SIGPWR, SIGSTKFLT})
        std::signal(number, SIG_IGN);
    for (int number = SIGRTMIN; number <= SIGRTMAX; ++number) std::signal(number, SIG_IGN);
}

}  // namespace

result<signal_set> set_up_process() {
    fill_standard_descriptors();
    ::umask(0077);
    raise_descriptor_limit();
    ignore_other_signals();
    return signal_set::take({SIGTERM, SIGINT, SIGHUP});
}

}  // namespace eddy::daemon
