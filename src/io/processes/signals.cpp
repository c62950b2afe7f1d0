// Signals read from a descriptor.
#include <eddy/io/signals.hpp>

#include <eddy/io/loop.hpp>

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace eddy {

result<signal_set> signal_set::take(std::initializer_list<int> numbers) {
    sigset_t taken;
    sigemptyset(&taken);
    for (const int number : numbers)
        if (number == SIGKILL || number == SIGSTOP || sigaddset(&taken, number) != 0)
            return fail_errno(EINVAL);
    // Not blocked yet: a failure leaves the signals what they were.
    unique_fd from(signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!from) return fail_errno();
    if (const int error = pthread_sigmask(SIG_BLOCK, &taken, nullptr)) return fail_errno(error);
    return signal_set(std::move(from));
}

task<result<int>> signal_set::next() {
    for (;;) {
        signalfd_siginfo signal{};
        const ssize_t size = ::read(from_.get(), &signal, sizeof signal);
        if (size == static_cast<ssize_t>(sizeof signal))
            co_return static_cast<int>(signal.ssi_signo);
        if (errno != EAGAIN && errno != EINTR) co_return fail_errno();
        const auto ready = co_await loop::current().wait_readable(from_.get());
        if (!ready) co_return fail(ready.error());
    }
}

}  // namespace eddy
