// Child processes: start, watch, reaping.
#include <eddy/io/process.hpp>

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>

#include "io/processes/child_start.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <mutex>
#include <new>

namespace eddy {
namespace {

/// Arguments of posix_spawnp(3), freed with the object.
class spawn_plan {
public:
    spawn_plan() {
        note(posix_spawn_file_actions_init(&actions_));
        note(posix_spawnattr_init(&attributes_));
        // The child inherits neither blocked nor ignored signals.
        sigset_t signals;
        sigemptyset(&signals);
        note(posix_spawnattr_setsigmask(&attributes_, &signals));
        sigfillset(&signals);
        note(posix_spawnattr_setsigdefault(&attributes_, &signals));
        note(
            posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
    }
    ~spawn_plan() {
        posix_spawn_file_actions_destroy(&actions_);
        posix_spawnattr_destroy(&attributes_);
    }
    spawn_plan(const spawn_plan&) = delete;
    spawn_plan& operator=(const spawn_plan&) = delete;

    /// Prepares the child's descriptor `number`; `ours` becomes the other end of a stream.
    result<> connect(stdio how, int number, stream& ours, int shared) {
        if (how == stdio::shared) {
            if (shared < 0) return fail_errno(EBADF);
            note(posix_spawn_file_actions_adddup2(&actions_, shared, number));
        }
        const auto index = static_cast<std::size_t>(number);
        sources_[index] = how == stdio::shared ? shared : number;
        if (how == stdio::null) {
            theirs_[index].reset(::open("/dev/null", O_RDWR | O_CLOEXEC));
            if (!theirs_[index]) return fail_errno();
            sources_[index] = theirs_[index].get();
            note(posix_spawn_file_actions_adddup2(&actions_, sources_[index], number));
        }
        if (how != stdio::stream && how != stdio::pipe) return {};
        int ends[2];  // ours, the child's
        if (how == stdio::stream ? ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0
                                 : ::pipe2(ends, O_CLOEXEC) != 0)
            return fail_errno();
        // A pipe has its end to read first.
        if (how == stdio::pipe && number == STDIN_FILENO) std::swap(ends[0], ends[1]);
        theirs_[index].reset(ends[1]);
        sources_[index] = ends[1];
        auto adopted = loop::current().adopt(unique_fd(ends[0]));
        if (!adopted) return fail(adopted.error());
        ours = std::move(*adopted);
        note(posix_spawn_file_actions_adddup2(&actions_, ends[1], number));
        return {};
    }

    void make_group() {
        note(posix_spawnattr_setpgroup(&attributes_, 0));
        note(posix_spawnattr_setflags(
            &attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP));
    }

    void start_in(const std::string& folder) {
        note(posix_spawn_file_actions_addchdir_np(&actions_, folder.c_str()));
    }

    /// The child's number, or an error; for what posix_spawn(3) cannot set.
    result<int> start(char* const* arguments, const process_options& options) {
        if (error_ != 0) return fail_errno(error_);
        std::vector<std::string> own;
        if (options.environment)
            own = *options.environment;
        else
            for (char** each = environ; *each != nullptr; ++each) own.emplace_back(*each);
        detail::child_plan plan;
        if (!options.number_variable.empty()) {
            const std::string begin = options.number_variable + '=';
            std::erase_if(own, [&](const std::string& each) { return each.starts_with(begin); });
            own.push_back(begin + std::string(detail::max_number_size, '\0'));
            plan.number = own.back().data() + begin.size();
        }
        std::vector<char*> variables;
        for (std::string& each : own) variables.push_back(each.data());
        variables.push_back(nullptr);
        plan.program = arguments[0];
        plan.arguments = arguments;
        plan.environment = variables.data();
        plan.descriptors.assign(sources_.begin(), sources_.end());
        plan.descriptors.insert(plan.descriptors.end(), options.descriptors.begin(),
                                options.descriptors.end());
        if (!options.folder.empty()) plan.folder = options.folder.c_str();
        plan.leads_group = options.own_group;
        plan.limits = &options.limits;
        if (options.user) plan.user = &*options.user;
        plan.death_signal = options.death_signal;
        return detail::start_child(plan);
    }

    /// The child's number, or an error.
    result<int> spawn(char* const* arguments, char* const* environment) {
        // Descriptors inherited from this process's parent may lack FD_CLOEXEC.
        note(posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1));
        // A child without one of these actions would have a wrong set of descriptors.
        if (error_ != 0) return fail_errno(error_);
        pid_t child = 0;
        const int error =
            posix_spawnp(&child, arguments[0], &actions_, &attributes_, arguments, environment);
        if (error != 0) return fail_errno(error);
        return child;
    }

private:
    /// The first error stays.
    void note(int error) noexcept {
        if (error_ == 0) error_ = error;
    }

    posix_spawn_file_actions_t actions_{};
    posix_spawnattr_t attributes_{};
    std::array<unique_fd, 3> theirs_;
    std::array<int, 3> sources_{STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
    int error_ = 0;
};

bool needs_own_start(const process_options& options) noexcept {
    return !options.descriptors.empty() || !options.number_variable.empty() ||
           !options.limits.empty() || options.user || options.death_signal != 0;
}

/// As exec wants it; the pointers are to `texts`.
std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    pointers.reserve(texts.size() + 1);
    for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
    pointers.push_back(nullptr);
    return pointers;
}

/// Reaps a child that has ended; false while it runs. Never waits.
bool reaped(int handle) noexcept {
    siginfo_t ended{};
    for (;;) {
        if (::waitid(P_PIDFD, static_cast<id_t>(handle), &ended, WEXITED | WNOHANG) == 0)
            return ended.si_pid != 0;
        if (errno != EINTR) return true;  // ECHILD: already reaped
    }
}

/// Children that outlived their objects: set-user-ID programs, which only their own user may kill,
/// and children that are slow to die. Each is reaped when another one starts or ends. At most one
/// entry for each running child.
class left_children {
public:
    static left_children& of_this_process() {
        static auto* const all = new left_children();  // also for threads that outlive main()
        return *all;
    }
    void add(unique_fd child) noexcept try {
        const std::lock_guard lock(mutex_);
        all_.push_back(std::move(child));
    } catch (const std::bad_alloc&) {
        // It stays a zombie until this process ends.
    }
    void reap() noexcept {
        const std::lock_guard lock(mutex_);
        std::erase_if(all_, [](const unique_fd& child) { return reaped(child.get()); });
    }

private:
    std::mutex mutex_;
    std::vector<unique_fd> all_;
};

/// Longest wait of the loop for the end of a killed child.
constexpr int most_ms_to_die = 5;

}  // namespace

result<process> process::start(const std::vector<std::string>& arguments,
                               const process_options& options) {
    if (arguments.empty() || arguments[0].empty()) return fail_errno(EINVAL);
    process made;
    spawn_plan plan;
    if (auto ok = plan.connect(options.input, STDIN_FILENO, made.input, options.descriptor); !ok)
        return fail(ok.error());
    if (auto ok = plan.connect(options.output, STDOUT_FILENO, made.output, options.descriptor); !ok)
        return fail(ok.error());
    if (auto ok = plan.connect(options.error, STDERR_FILENO, made.error, options.descriptor); !ok)
        return fail(ok.error());
    if (!options.folder.empty()) plan.start_in(options.folder);
    if (options.own_group) plan.make_group();

    left_children::of_this_process().reap();

    // Keeps a descriptor for the child's handle: without one there is no safe way to end it.
    unique_fd kept_free(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!kept_free) return fail_errno();
    const std::vector<char*> words = pointers_to(arguments);
    std::vector<char*> chosen;
    if (options.environment) chosen = pointers_to(*options.environment);
    const auto child =
        needs_own_start(options)
            ? plan.start(words.data(), options)
            : plan.spawn(words.data(), options.environment ? chosen.data() : environ);
    if (!child) return fail(child.error());
    made.pid_ = *child;
    made.leads_group_ = options.own_group;
    kept_free.reset();
    // Only this code reaps it, so the number is still its own; with SIGCHLD ignored it may be gone.
    // By their numbers: glibc has these functions since 2.36 alone.
    made.handle_.reset(static_cast<int>(::syscall(SYS_pidfd_open, made.pid_, 0)));
    if (!made.handle_) {
        const int error = errno;
        if (error != ESRCH && ::kill(made.pid_, SIGKILL) == 0) ::waitpid(made.pid_, nullptr, 0);
        return fail_errno(error);
    }
    return made;
}

process::process(process&& other) noexcept
    : input(std::move(other.input)),
      output(std::move(other.output)),
      error(std::move(other.error)),
      handle_(std::move(other.handle_)),
      pid_(std::exchange(other.pid_, 0)),
      leads_group_(std::exchange(other.leads_group_, false)) {}

process& process::operator=(process&& other) noexcept {
    if (this == &other) return *this;
    end();
    input = std::move(other.input);
    output = std::move(other.output);
    error = std::move(other.error);
    handle_ = std::move(other.handle_);
    pid_ = std::exchange(other.pid_, 0);
    leads_group_ = std::exchange(other.leads_group_, false);
    return *this;
}

process::~process() { end(); }

void process::end() noexcept {
    if (!handle_) return;
    // Until the child is reaped no other group can have its number.
    if (leads_group_) ::kill(-pid_, SIGKILL);
    if (::syscall(SYS_pidfd_send_signal, handle_.get(), SIGKILL, nullptr, 0) == 0) {
        pollfd ending{handle_.get(), POLLIN, 0};
        ::poll(&ending, 1, most_ms_to_die);
    }
    if (!reaped(handle_.get())) left_children::of_this_process().add(std::move(handle_));
    handle_.reset();
    left_children::of_this_process().reap();
}

void process::release() noexcept {
    handle_.reset();
    leads_group_ = false;
}

result<> process::kill(int signal) noexcept {
    if (!handle_) return fail_errno(ESRCH);
    if (::syscall(SYS_pidfd_send_signal, handle_.get(), signal, nullptr, 0) != 0)
        return fail_errno();
    return {};
}

result<> process::kill_group(int signal) noexcept {
    EDDY_PRECONDITION(
        leads_group_ || !handle_,
        "kill_group() of a process that was not started with process_options::own_group");
    if (!handle_) return fail_errno(ESRCH);
    // Until the child is reaped no other group can have its number.
    if (::kill(-pid_, signal) != 0) return fail_errno();
    return {};
}

task<result<exit_status>> process::wait() {
    EDDY_PRECONDITION(handle_, "wait() of a process that is none: it has ended, or was moved from");
    const auto ready = co_await loop::current().wait_readable(handle_.get());
    if (!ready) co_return fail(ready.error());
    siginfo_t ended{};
    while (::waitid(P_PIDFD, static_cast<id_t>(handle_.get()), &ended, WEXITED) != 0)
        if (errno != EINTR) co_return fail_errno();
    handle_.reset();
    exit_status status;
    (ended.si_code == CLD_EXITED ? status.code : status.signal) = ended.si_status;
    co_return status;
}

}  // namespace eddy
