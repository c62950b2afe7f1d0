// Start of a child process: clone(2) with shared memory, and the system calls until its exec.
#include "io/processes/child_start.hpp"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

// ThreadSanitizer's clone() is a fork: the child would begin with a memory of its own.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
extern "C" int __clone(int (*run)(void*), void* stack, int flags, void* argument, ...);
#define EDDY_CLONE ::__clone
#endif
#endif
#ifndef EDDY_CLONE
#define EDDY_CLONE ::clone
#endif

namespace eddy::detail {
namespace {

/// Stack of the child until its exec: it calls nothing that takes much.
constexpr std::size_t stack_size = 64 * 1024;

struct child_state {
    const child_plan* plan;
    int* sources;  // room for the descriptors on their way
    pid_t parent;
    int error = 0;
};

// The child is a copy that shares the parent's memory: no sanitizer may note its calls, of which
// the last one does not return. They are bare system calls, since functions of the C library may
// be a sanitizer's, which notes handlers and descriptors of the child as the parent's.
#define EDDY_IN_CHILD __attribute__((disable_sanitizer_instrumentation, noinline))

/// Bytes of the kernel's set of signals.
constexpr std::size_t signal_set_size = 8;

[[noreturn]] EDDY_IN_CHILD void end_child() {
    for (;;) ::syscall(SYS_exit_group, 127);
}

EDDY_IN_CHILD bool reset_signals() {
    // The kernel's own structure, whose zeros are SIG_DFL.
    const std::size_t usual[4] = {};
    // SIGKILL, SIGSTOP and those of the C library cannot be set.
    for (int each = 1; each < SIGRTMAX; ++each)
        ::syscall(SYS_rt_sigaction, each, usual, nullptr, signal_set_size);
    return true;
}

EDDY_IN_CHILD bool place_descriptors(const child_plan& plan, int* sources) {
    const int count = static_cast<int>(plan.descriptors.size());
    // None of them may be in another one's place.
    for (int i = 0; i < count; ++i) {
        sources[i] = static_cast<int>(
            ::syscall(SYS_fcntl, plan.descriptors.data()[i], F_DUPFD_CLOEXEC, count));
        if (sources[i] < 0) return false;
    }
    for (int i = 0; i < count; ++i)
        if (::syscall(SYS_dup3, sources[i], i, 0) < 0) return false;
    return ::syscall(SYS_close_range, static_cast<unsigned>(count), ~0U, 0U) == 0;
}

EDDY_IN_CHILD bool set_limits(const std::vector<process_limit>& limits) {
    for (std::size_t i = 0; i < limits.size(); ++i) {
        const process_limit& each = limits.data()[i];
        const rlimit most = {each.most, each.most};
        if (::syscall(SYS_prlimit64, 0, each.resource, &most, nullptr) != 0) return false;
    }
    return true;
}

/// Functions of the C library would change all threads of the parent, besides.
EDDY_IN_CHILD bool become(const process_user& who) {
    return ::syscall(SYS_setgroups, who.groups.size(), who.groups.data()) == 0 &&
           ::syscall(SYS_setresgid, who.group, who.group, who.group) == 0 &&
           ::syscall(SYS_setresuid, who.user, who.user, who.user) == 0;
}

EDDY_IN_CHILD void write_number(char* to) {
    auto rest = static_cast<unsigned>(::syscall(SYS_getpid));
    char digits[max_number_size];
    int count = 0;
    do digits[count++] = static_cast<char>('0' + rest % 10);
    while ((rest /= 10) != 0);
    while (count > 0) *to++ = digits[--count];
    *to = '\0';
}

EDDY_IN_CHILD bool prepare_child(const child_state& state) {
    const child_plan& plan = *state.plan;
    reset_signals();
    if (plan.leads_group && ::syscall(SYS_setpgid, 0, 0) != 0) return false;
    if (!place_descriptors(plan, state.sources)) return false;
    if (plan.limits != nullptr && !set_limits(*plan.limits)) return false;
    if (plan.user != nullptr && !become(*plan.user)) return false;
    // As that user: the folder may be closed to it.
    if (plan.folder != nullptr && ::syscall(SYS_chdir, plan.folder) != 0) return false;
    if (plan.death_signal != 0) {
        // A change of the user takes it back, so it comes last.
        if (::syscall(SYS_prctl, PR_SET_PDEATHSIG, static_cast<long>(plan.death_signal), 0L, 0L,
                      0L) != 0)
            return false;
        if (::syscall(SYS_getppid) != state.parent) end_child();  // it has ended meanwhile
    }
    if (plan.number != nullptr) write_number(plan.number);
    const unsigned long long none = 0;
    return ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, nullptr, signal_set_size) == 0;
}

EDDY_IN_CHILD int run_child(void* argument) {
    auto& state = *static_cast<child_state*>(argument);
    if (prepare_child(state))
        ::syscall(SYS_execve, state.plan->program, state.plan->arguments, state.plan->environment);
    state.error = errno;
    end_child();
}

}  // namespace

result<int> start_child(child_plan& plan) {
    std::vector<int> room(plan.descriptors.size());
    child_state state{&plan, room.data(), ::getpid()};
    void* const stack = ::mmap(nullptr, stack_size, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED) return fail_errno();
    // No handler of the parent may run in the child.
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    const int child = EDDY_CLONE(run_child, static_cast<char*>(stack) + stack_size,
                                 CLONE_VM | CLONE_VFORK | SIGCHLD, &state);
    const int error = child < 0 ? errno : state.error;
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    ::munmap(stack, stack_size);
    if (child < 0) return fail_errno(error);
    if (error == 0) return child;
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) continue;
    return fail_errno(error);
}

}  // namespace eddy::detail
