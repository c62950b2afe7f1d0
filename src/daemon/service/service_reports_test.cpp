// Tests of reports to a service manager: names of sockets, watchdogs, a loop that does not answer.
#include "daemon/service/service_reports.hpp"

#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>

#include "base/files/temporary_folder.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

namespace eddy::daemon {
namespace {

using namespace std::chrono_literals;

/// The socket of a service manager.
class fake_manager {
public:
    explicit fake_manager(const std::string& name)
        : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
        const auto at = endpoint::unix_path(name);
        EXPECT_EQ(::bind(socket_.get(), at->data(), at->size()), 0) << name;
        ::setenv("NOTIFY_SOCKET", name.c_str(), 1);
    }
    fake_manager(const fake_manager&) = delete;
    fake_manager& operator=(const fake_manager&) = delete;
    ~fake_manager() {
        for (const char* each : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"})
            ::unsetenv(each);
    }

    /// The next report, or nothing within the time.
    std::string next(int within_ms) {
        pollfd waiting{socket_.get(), POLLIN, 0};
        if (::poll(&waiting, 1, within_ms) != 1) return {};
        char text[512];
        const ssize_t size = ::recv(socket_.get(), text, sizeof text, 0);
        return {text, size > 0 ? static_cast<std::size_t>(size) : 0};
    }

private:
    unique_fd socket_;
};

class service_reports_test : public ::testing::Test {
protected:
    service_reports_test() {
        loop_options options;
        options.kind = io_backend_kind::epoll;
        home_ = std::move(*loop::create(options));
        loop_group_options others;
        others.threads = 1;
        others.loop.kind = io_backend_kind::epoll;
        others_ = std::move(*loop_group::start(others));
    }

    const eddy::testing::temporary_folder temporary_;
    std::unique_ptr<loop> home_;
    std::unique_ptr<loop_group> others_;
};

TEST_F(service_reports_test, names_of_both_kinds_are_notified_and_taken_from_the_environment) {
    for (const std::string& name :
         {temporary_.path() + "/notify", "@eddy-notify-" + std::to_string(::getpid())}) {
        fake_manager manager(name);
        const auto to = service_manager::take_from_environment();
        EXPECT_TRUE(to.is_there());
        EXPECT_EQ(std::getenv("NOTIFY_SOCKET"), nullptr);
        EXPECT_TRUE(to.notify("READY=1"));
        EXPECT_EQ(manager.next(10'000), "READY=1");
    }
}

TEST_F(service_reports_test, without_a_usable_name_nothing_is_notified) {
    ::unsetenv("NOTIFY_SOCKET");
    EXPECT_FALSE(service_manager::take_from_environment().is_there());
    for (const std::string& name :
         {std::string("vsock:2:1234"), std::string("relative"), "/" + std::string(200, 'x')}) {
        ::setenv("NOTIFY_SOCKET", name.c_str(), 1);
        const auto to = service_manager::take_from_environment();
        EXPECT_FALSE(to.is_there()) << name;
        EXPECT_TRUE(to.notify("READY=1"));
    }
}

TEST_F(service_reports_test, a_watchdog_counts_for_this_process_alone) {
    const auto watchdog = [&](const char* time, const std::string& process) {
        const fake_manager manager("@eddy-watchdog-" + std::to_string(::getpid()));
        ::setenv("WATCHDOG_USEC", time, 1);
        if (!process.empty()) ::setenv("WATCHDOG_PID", process.c_str(), 1);
        return service_manager::take_from_environment().watchdog();
    };
    EXPECT_EQ(watchdog("3000000", std::to_string(::getpid())), 3s);
    EXPECT_EQ(watchdog("3000000", ""), 3s);
    EXPECT_EQ(watchdog("3000000", "1"), 0s);
    for (const char* none : {"0", "-5", "soon", "99999999999999", ""})
        EXPECT_EQ(watchdog(none, ""), 0s) << none;
}

TEST_F(service_reports_test, a_watchdog_of_no_time_keeps_nothing_busy) {
    fake_manager manager("@eddy-short-" + std::to_string(::getpid()));
    ::setenv("WATCHDOG_USEC", "1", 1);
    const auto to = service_manager::take_from_environment();
    std::size_t asked = 0;
    service_reports reports(to, *others_, [&asked] {
        ++asked;
        return std::string("fine");
    });
    home_->run([](service_reports& reports) -> task<void> {
        scope running(co_await current_source());
        reports.ready();
        running.spawn(reports.run());
        EXPECT_TRUE(co_await loop::current().sleep_for(100ms));
        running.cancel();
        co_await running.join();
    }(reports));
    // Every 10 ms at most; a machine that is busy asks less.
    EXPECT_LE(asked, 12u);
    EXPECT_EQ(manager.next(10'000), "READY=1\nSTATUS=fine\n");
}

TEST_F(service_reports_test, the_watchdog_is_not_fed_while_a_loop_hangs) {
    fake_manager manager("@eddy-hang-" + std::to_string(::getpid()));
    ::setenv("WATCHDOG_USEC", "200000", 1);
    const auto to = service_manager::take_from_environment();
    service_reports reports(to, *others_, [] { return std::string("fine"); });
    auto hangs = std::make_shared<std::atomic<bool>>(false);
    const auto await_report = [&](std::string_view wanted) {
        std::string got;
        while ((got = manager.next(30'000)) != wanted)
            if (got.empty()) return false;
        return true;
    };
    home_->run([](service_reports& reports, loop_group& others, auto& await_report,
                  std::shared_ptr<std::atomic<bool>> hangs, fake_manager& manager) -> task<void> {
        scope running(co_await current_source());
        running.spawn(reports.run());
        reports.ready();
        EXPECT_TRUE(await_report("READY=1\nSTATUS=fine\n"));
        const auto watched = [&] { return manager.next(0) == "WATCHDOG=1\n"; };
        while (!watched()) EXPECT_TRUE(co_await loop::current().sleep_for(5ms));
        EXPECT_TRUE(others.post(0, [](auto hangs) -> task<void> {
            *hangs = true;
            hangs->notify_all();
            hangs->wait(true);
            co_return;
        }(hangs)));
        hangs->wait(false);
        // An answer may be on its way.
        EXPECT_TRUE(co_await loop::current().sleep_for(50ms));
        while (watched()) {
        }
        // Several times the interval.
        EXPECT_TRUE(co_await loop::current().sleep_for(500ms));
        EXPECT_FALSE(watched()) << "after what was sent before the loop hung";
        *hangs = false;
        hangs->notify_all();
        while (!watched()) EXPECT_TRUE(co_await loop::current().sleep_for(5ms));
        running.cancel();
        co_await running.join();
    }(reports, *others_, await_report, hangs, manager));
}

}  // namespace
}  // namespace eddy::daemon
