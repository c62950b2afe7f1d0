// Child processes that are programs of every Debian.
#include <eddy/io/process.hpp>

#include <eddy/io/timeout.hpp>

#include "io/loop/rescuer.hpp"
#include "io/testing.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace eddy::testing {
namespace {

EDDY_ON_EVERY_KERNEL_IO_BACKEND(process_io);

task<std::string> read_all(stream& from) {
    std::string text;
    for (;;) {
        auto piece = co_await from.read();
        if (!piece) co_return text;
        text += piece->text();
    }
}

TEST_P(process_io, the_end_of_a_child_that_leads_a_group_is_that_of_what_it_started) {
    run([]() -> task<> {
        process_options how;
        how.output = stdio::stream;
        how.own_group = true;
        stream output;
        {
            process shell = must(process::start({"sh", "-c", "echo ready; sleep 1000; true"}, how));
            EXPECT_EQ(must(co_await shell.output.read()).text(), "ready\n");
            output = std::move(shell.output);
        }
        // It would stay open as long as sleep(1) runs.
        EXPECT_EQ(error_of(co_await output.read()), errc::end_of_stream);
    });
}

TEST_P(process_io, a_signal_reaches_all_of_a_group) {
    run([]() -> task<> {
        process_options how;
        how.output = stdio::stream;
        how.own_group = true;
        // The inner program prints it: dash delays signals while it starts a program, which then
        // misses them.
        process shell =
            must(process::start({"sh", "-c", "sh -c 'echo ready; exec sleep 1000'; true"}, how));
        EXPECT_EQ(must(co_await shell.output.read()).text(), "ready\n");
        must(shell.kill_group(SIGHUP));
        EXPECT_EQ(error_of(co_await shell.output.read()), errc::end_of_stream);
        EXPECT_EQ(must(co_await shell.wait()).signal, SIGHUP);
        EXPECT_EQ(error_of(shell.kill_group(SIGHUP)), errno_code(ESRCH));
    });
}

TEST_P(process_io, a_child_may_have_a_descriptor_of_its_caller) {
    run([]() -> task<> {
        int ends[2];
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        stream ours = must(loop::current().adopt(unique_fd(ends[0])));
        unique_fd theirs(ends[1]);
        process_options how;
        how.input = how.output = stdio::shared;
        EXPECT_EQ(error_of(process::start({"cat"}, how)), errno_code(EBADF)) << "without one";
        how.descriptor = theirs.get();
        process cat = must(process::start({"cat"}, how));
        theirs.reset();
        must(co_await ours.write_all("hello"));
        EXPECT_EQ(must(co_await ours.read()).text(), "hello");
        must(ours.shutdown_write());
        EXPECT_TRUE(must(co_await cat.wait()).success());
        EXPECT_EQ(error_of(co_await ours.read()), errc::end_of_stream);
    });
}

TEST_P(process_io, is_written_to_and_read_from) {
    run([]() -> task<> {
        process sort =
            must(process::start({"sort", "-n"}, {.input = stdio::stream, .output = stdio::stream}));
        must(co_await sort.input.write_all("10\n9\n"));
        sort.input.close();
        EXPECT_EQ(co_await read_all(sort.output), "9\n10\n");
        EXPECT_TRUE(must(co_await sort.wait()).success());
        EXPECT_EQ(error_of(sort.kill(SIGTERM)), errno_code(ESRCH));
    });
}

TEST_P(process_io, reports_how_it_ended) {
    run([]() -> task<> {
        process seven = must(process::start({"sh", "-c", "exit 7"}));
        EXPECT_EQ(must(co_await seven.wait()).code, 7);
        process sleeper = must(process::start({"sleep", "1000"}));
        EXPECT_EQ(error_of(co_await with_timeout(1ms, sleeper.wait())), errc::timed_out);
        must(sleeper.kill(SIGTERM));
        const exit_status status = must(co_await sleeper.wait());
        EXPECT_EQ(status.signal, SIGTERM);
        EXPECT_FALSE(status.success());
    });
}

TEST_P(process_io, has_the_folder_and_the_environment_it_was_given) {
    run([]() -> task<> {
        process child =
            must(process::start({"/bin/sh", "-c", "pwd; echo \"$COLOUR\"; echo complaint >&2"},
                                {.input = stdio::null,
                                 .output = stdio::stream,
                                 .error = stdio::stream,
                                 .folder = "/",
                                 .environment = std::vector<std::string>{"COLOUR=blue"}}));
        EXPECT_EQ(co_await read_all(child.output), "/\nblue\n");
        EXPECT_EQ(co_await read_all(child.error), "complaint\n");
        EXPECT_TRUE(must(co_await child.wait()).success());
    });
}

/// Ignores signals while it lives.
class ignored_signals {
public:
    explicit ignored_signals(std::initializer_list<int> these) {
        for (const int each : these) before_.emplace_back(each, ::signal(each, SIG_IGN));
    }
    ~ignored_signals() {
        for (const auto& [number, handler] : before_) ::signal(number, handler);
    }
    ignored_signals(const ignored_signals&) = delete;
    ignored_signals& operator=(const ignored_signals&) = delete;

private:
    std::vector<std::pair<int, void (*)(int)>> before_;
};

TEST_P(process_io, has_no_descriptor_of_ours_and_the_usual_signals) {
    const ignored_signals as_under_nohup({SIGHUP, SIGINT, SIGUSR1, SIGPIPE, SIGTERM});
    run([]() -> task<> {
        process child = must(process::start(
            {"/bin/sh", "-c", "ls /proc/self/fd | wc -l; grep -E 'Sig(Blk|Ign)' /proc/self/status"},
            {.output = stdio::stream}));
        const std::string told = co_await read_all(child.output);
        // 0, 1, 2, and the folder that ls reads.
        const std::string_view expected = "4\nSigBlk:\t0000000000000000\nSigIgn:\t";
        EXPECT_TRUE(told.starts_with(expected)) << told;
        const std::uint64_t ignored = std::stoull(told.substr(expected.size()), nullptr, 16);
        constexpr std::uint64_t own_of_glibc = std::uint64_t{3} << 31;  // signals 32 and 33
        EXPECT_EQ(ignored & ~own_of_glibc, 0U) << told;
        must(co_await child.wait());
    });
}

TEST_P(process_io, without_a_kept_status_is_reaped_all_the_same) {
    const ignored_signals as_some_parents_have_it({SIGCHLD});
    run([]() -> task<> {
        process child = must(process::start({"cat"}, {.input = stdio::stream}));
        child.input.close();
        EXPECT_EQ(error_of(co_await child.wait()), errno_code(ECHILD));
        process quick = must(process::start({"cat"}, {.input = stdio::stream}));
        const int pid = quick.pid();
        quick.input.close();
        while (::kill(pid, 0) == 0) must(co_await loop::current().sleep_for(1ms));
        EXPECT_EQ(error_of(co_await quick.wait()), errno_code(ECHILD));
    });
}

/// One that takes its time to die is reaped when another one starts.
task<> until_gone(int pid) {
    while (::kill(pid, 0) == 0) {
        process other = must(process::start({"true"}));
        static_cast<void>(co_await other.wait());
        must(co_await loop::current().sleep_for(1ms));
    }
}

TEST_P(process_io, is_killed_with_its_object) {
    run([]() -> task<> {
        int pid = 0;
        {
            const process child = must(process::start({"sleep", "1000"}));
            pid = child.pid();
            EXPECT_EQ(::kill(pid, 0), 0);
        }
        co_await until_gone(pid);
    });
}

/// While it lives, this thread runs as another user, without the right to send signals to root's
/// processes. True if that succeeded: for root.
class as_nobody {
public:
    as_nobody() noexcept : changed_(set(nobody)) {}
    ~as_nobody() {
        if (!changed_) return;
        EXPECT_TRUE(set(0));
        prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);  // lost by the change; the leak checker needs it
    }
    as_nobody(const as_nobody&) = delete;
    as_nobody& operator=(const as_nobody&) = delete;
    explicit operator bool() const noexcept { return changed_; }

private:
    static constexpr uid_t nobody = 65534;
    /// The system call: the C library's function would change all threads.
    static bool set(uid_t user) noexcept { return syscall(SYS_setresuid, user, user, 0) == 0; }

    bool changed_;
};

TEST_P(process_io, that_may_not_be_killed_does_not_block_the_loop) {
    if (geteuid() != 0) GTEST_SKIP() << "needs root, who can become another user";
    run([]() -> task<> {
        int pid = 0;
        stream input;
        {
            process child = must(process::start({"cat"}, {.input = stdio::stream}));
            pid = child.pid();
            input = std::move(child.input);
            const rescuer helper([pid] { ::kill(pid, SIGKILL); });
            {
                const as_nobody weak;
                if (!weak) co_return;  // root without the right to change
                EXPECT_EQ(::kill(pid, 0), -1);
                const process gone = std::move(child);
            }
            EXPECT_FALSE(helper.called()) << "it waited for the child's end";
        }
        EXPECT_EQ(::kill(pid, 0), 0) << "it goes on by itself";
        input.close();
        co_await until_gone(pid);
    });
}

TEST_P(process_io, ends_as_well_where_the_kernel_reaps_children) {
    struct sigaction before{};
    struct sigaction ignored{};
    ignored.sa_handler = SIG_IGN;
    sigaction(SIGCHLD, &ignored, &before);
    run([]() -> task<> {
        // One that waits for its input: another could be reaped before start() has its handle.
        process child = must(process::start({"cat"}, {.input = stdio::stream}));
        child.input.close();
        EXPECT_EQ(error_of(co_await child.wait()), errno_code(ECHILD));
        const int pid = must(process::start({"sleep", "1000"})).pid();
        while (::kill(pid, 0) == 0) must(co_await loop::current().sleep_for(1ms));
    });
    sigaction(SIGCHLD, &before, nullptr);
}

TEST_P(process_io, a_child_has_the_descriptors_limits_and_number_of_its_options) {
    run([]() -> task<> {
        int ends[2];
        EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
        const unique_fd reader(ends[0]);
        const unique_fd writer(ends[1]);
        process_options how;
        how.input = stdio::null;
        how.output = stdio::pipe;
        how.error = stdio::pipe;
        how.folder = "/";
        how.own_group = true;
        how.descriptors = {reader.get(), writer.get()};
        how.number_variable = "LISTEN_PID";
        how.limits = {{RLIMIT_NOFILE, 57}};
        how.death_signal = SIGKILL;
        how.environment = std::vector<std::string>{"LISTEN_PID=1", "A=b"};
        const std::string script =
            "test $LISTEN_PID = $$ && echo own; ulimit -n; pwd; echo $A; echo x >/dev/stderr; "
            "echo through >&4; read line <&3; echo $line; test -e /proc/self/fd/5 || echo no more";
        process shell = must(process::start({"/bin/sh", "-c", script}, how));
        EXPECT_EQ(co_await read_all(shell.output), "own\n57\n/\nb\nthrough\nno more\n");
        EXPECT_EQ(co_await read_all(shell.error), "x\n");
        EXPECT_TRUE(must(co_await shell.wait()).success());
        EXPECT_EQ(error_of(process::start({"/no/such"}, how)), errno_code(ENOENT));
        how.folder = "/no/such";
        EXPECT_EQ(error_of(process::start({"/bin/sh"}, how)), errno_code(ENOENT));
    });
}

TEST_P(process_io, a_child_gets_its_death_signal_and_another_user) {
    run([]() -> task<> {
        int pid = 0;
        std::thread starter([&] {
            auto here = must(loop::create());
            here->run([](int& to) -> task<> {
                process_options how;
                how.death_signal = SIGKILL;
                auto* const left = new process(must(process::start({"/bin/sleep", "1000"}, how)));
                to = left->pid();  // its object must not end it
                co_return;
            }(pid));
        });
        starter.join();
        siginfo_t ended{};
        EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED), 0);
        EXPECT_EQ(ended.si_status, SIGKILL);

        process_options how;
        how.output = stdio::pipe;
        how.user = process_user{65534, 65534, {65534}};
        auto other = process::start({"/usr/bin/id", "-u"}, how);
        if (::geteuid() != 0) {
            EXPECT_EQ(error_of(other), errno_code(EPERM));
            co_return;
        }
        EXPECT_EQ(co_await read_all(other->output), "65534\n");
        must(co_await other->wait());
    });
}

TEST_P(process_io, that_cannot_start_says_why) {
    run([]() -> task<> {
        EXPECT_EQ(error_of(process::start({"no-such-program"})), errno_code(ENOENT));
        EXPECT_EQ(error_of(process::start({"/etc/passwd"})), errno_code(EACCES));
        EXPECT_EQ(error_of(process::start({"true"}, {.folder = "/no/such/folder"})),
                  errno_code(ENOENT));
        EXPECT_EQ(error_of(process::start({})), errno_code(EINVAL));
        co_return;
    });
}

}  // namespace
}  // namespace eddy::testing
