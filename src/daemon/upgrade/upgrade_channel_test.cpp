// Messages of an upgrade between two daemons, the texts of what passes, and the check of the
// program.
#include "daemon/upgrade/upgrade_channel.hpp"

#include <eddy/io/loop.hpp>

#include "base/files/temporary_folder.hpp"
#include "daemon/state/runtime_record.hpp"
#include "daemon/upgrade/incoming_upgrade.hpp"
#include "daemon/upgrade/new_program.hpp"
#include "daemon/upgrade/passed_socket.hpp"
#include "io/testing.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace eddy::daemon {
namespace {

using eddy::testing::must;
using eddy::testing::temporary_folder;
using ::testing::HasSubstr;

template <class T>
T need(outcome<T> made) {
    if (!made) throw std::runtime_error(made.error().message);
    if constexpr (!std::is_void_v<T>) return std::move(*made);
}

class upgrade_channels : public eddy::testing::on_io_backend {};
INSTANTIATE_TEST_SUITE_P(daemon, upgrade_channels,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll),
                         eddy::testing::io_backend_name);

struct both_ends {
    both_ends() : both_ends(need(upgrade_channel::make_pair())) {}
    explicit both_ends(std::pair<upgrade_channel, unique_fd> pair)
        : here(std::move(pair.first)), there(std::move(pair.second)) {}
    upgrade_channel here;
    upgrade_channel there;
};

TEST_P(upgrade_channels, carry_messages_and_descriptors_in_order) {
    run([]() -> task<void> {
        both_ends ends;
        int pipe[2];
        EXPECT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
        const unique_fd reader(pipe[0]);
        const unique_fd writer(pipe[1]);
        need(co_await ends.here.send({{"first", 1}}));
        need(co_await ends.here.send({{"second", "text"}}, writer.get()));
        EXPECT_FALSE(need(co_await ends.there.receive(patience)).descriptor);
        const upgrade_message second = need(co_await ends.there.receive(patience));
        EXPECT_EQ(second.text("second"), "text");
        EXPECT_EQ(second.text("first"), "");
        EXPECT_EQ(::write(second.descriptor.get(), "x", 1), 1);
        char got = 0;
        EXPECT_EQ(::read(reader.get(), &got, 1), 1);
        EXPECT_EQ(got, 'x');
    });
}

TEST_P(upgrade_channels, wait_for_a_slow_reader) {
    run([]() -> task<void> {
        both_ends ends;
        constexpr int count = 5000;
        scope tasks;
        tasks.spawn([](upgrade_channel& to) -> task<void> {
            for (int i = 0; i < count; ++i)
                need(co_await to.send({{"number", i}, {"more", std::string(100, 'x')}}));
        }(ends.here));
        for (int i = 0; i < count; ++i) {
            const upgrade_message got = need(co_await ends.there.receive(patience));
            EXPECT_EQ(got.what["number"], i);
        }
        co_await tasks.join();
    });
}

TEST_P(upgrade_channels, refuse_what_is_no_message) {
    run([]() -> task<void> {
        auto pair = need(upgrade_channel::make_pair());
        const int raw = pair.second.get();
        for (const std::string& each : {std::string("x"), std::string("[]"), std::string("1"),
                                        std::string(max_upgrade_message + 1, ' ')}) {
            EXPECT_EQ(::send(raw, each.data(), each.size(), 0), static_cast<ssize_t>(each.size()));
            EXPECT_FALSE(co_await pair.first.receive(patience)) << each.substr(0, 2);
            EXPECT_FALSE(pair.first.is_at_end());
        }
        EXPECT_FALSE(co_await pair.first.send({{"x", std::string(max_upgrade_message, 'x')}}));
        const auto late = co_await pair.first.receive(std::chrono::milliseconds(10));
        EXPECT_EQ(late.error().status, 504);
        pair.second.reset();
        EXPECT_FALSE(co_await pair.first.receive(patience));
        EXPECT_TRUE(pair.first.is_at_end());
        EXPECT_FALSE(co_await pair.first.send({{"x", 1}}));
    });
}

TEST_P(upgrade_channels, end_at_their_time_whatever_is_sent) {
    run([]() -> task<void> {
        both_ends ends;
        ends.here.end_at(loop::current().after(std::chrono::milliseconds(50)));
        // They are not read.
        outcome<> sent;
        while (sent) sent = co_await ends.here.send({{"more", std::string(1000, 'x')}});
        EXPECT_EQ(sent.error().status, 504) << sent.error().message;
        need(co_await ends.there.send({{"alive", true}}));
        const auto got = co_await ends.here.receive(patience);
        EXPECT_EQ(got.error().status, 504);
        EXPECT_FALSE(ends.here.is_at_end());
        ends.here.end_at(time_point::max());
        need(co_await ends.here.receive(patience));
    });
}

TEST_P(upgrade_channels, begin_with_versions) {
    run([]() -> task<void> {
        const unique_fd lock(::open("/dev/null", O_RDONLY | O_CLOEXEC));
        const auto refusal = [&lock](int protocol, int state, bool has_lock) -> task<std::string> {
            auto pair = need(upgrade_channel::make_pair());
            incoming_upgrade incoming(upgrade_channel(std::move(pair.second)));
            need(co_await pair.first.send({{"upgrade", protocol},
                                           {"state_version", state},
                                           {"version", "1"},
                                           {"listeners", 1}},
                                          has_lock ? lock.get() : -1));
            need(co_await pair.first.send({{"listener", "control"}}, lock.get()));
            const auto begun = co_await incoming.begin();
            if (!begun) co_return begun.error().message;
            EXPECT_TRUE(incoming.take_lock());
            EXPECT_TRUE(incoming.take_listener("control"));
            EXPECT_FALSE(incoming.take_listener("metrics"));
            co_return std::string();
        };
        EXPECT_EQ(co_await refusal(upgrade_protocol, state_version, true), "");
        EXPECT_EQ(co_await refusal(upgrade_protocol, state_version - 1, true), "");
        EXPECT_THAT(co_await refusal(upgrade_protocol, state_version + 1, true),
                    HasSubstr("use a newer program"));
        EXPECT_THAT(co_await refusal(upgrade_protocol + 1, state_version, true),
                    HasSubstr("stop the daemon, and start this one"));
        EXPECT_THAT(co_await refusal(upgrade_protocol, state_version, false), HasSubstr("lock"));
    });
}

TEST(passed_sockets, have_a_text) {
    runtime::passed_listener each;
    each.what = runtime::passed_listener::kind::senders;
    each.where = must(transport::parse("handoff:///run/s?mode=0600&allow=33"));
    each.port = 65535;
    each.file = {7, ~ino_t{0}};
    each.mode = 0660;
    each.is_seqpacket = true;
    const auto read = read_passed(show_passed(each));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->what, each.what);
    EXPECT_EQ(read->where, each.where);
    EXPECT_EQ(read->port, each.port);
    EXPECT_EQ(read->file, each.file);
    EXPECT_EQ(read->mode, each.mode);
    EXPECT_TRUE(read->is_seqpacket);
    for (const auto& [name, ignored] : show_passed(each).items()) {
        json less = show_passed(each);
        less.erase(name);
        EXPECT_FALSE(read_passed(less)) << name;
        less[name] = json::object();
        EXPECT_FALSE(read_passed(less)) << name;
    }
}

TEST(passed_clients, have_a_file) {
    std::vector<runtime::passed_client> all(3);
    all[0].state = "state";
    all[0].input = std::string("\0\xff\n", 3);
    all[2].input = std::string(1'000'000, 'x');
    const auto file = write_clients(all);
    ASSERT_TRUE(file);
    const auto read = read_clients(file->get(), 3);
    ASSERT_TRUE(read);
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ((*read)[i].state, all[i].state);
        EXPECT_EQ((*read)[i].input, all[i].input);
    }
    EXPECT_FALSE(read_clients(file->get(), 2));
    EXPECT_FALSE(read_clients(file->get(), 4));
    ASSERT_EQ(::ftruncate(file->get(), 1000), 0);
    EXPECT_FALSE(read_clients(file->get(), 3));
    EXPECT_FALSE(read_clients(-1, 1));
}

TEST(new_program, must_be_one_that_others_cannot_replace) {
    const temporary_folder folder;
    const std::string path = folder.file("program");
    const auto fault = [&path] {
        const auto checked = check_program(path);
        return checked ? std::string() : checked.error().message;
    };
    EXPECT_THAT(fault(), HasSubstr("No such file"));
    std::ofstream(path) << "#!/bin/sh\n";
    const auto change = [&path](mode_t mode) { ASSERT_EQ(::chmod(path.c_str(), mode), 0); };
    change(0644);
    EXPECT_THAT(fault(), HasSubstr("cannot be executed"));
    change(0775);
    EXPECT_THAT(fault(), HasSubstr("can replace " + path));
    change(0757);
    EXPECT_THAT(fault(), HasSubstr("can replace " + path));
    change(0755);
    EXPECT_EQ(fault(), "");
    const std::string above = std::filesystem::path(path).parent_path();
    ASSERT_EQ(::chmod(above.c_str(), 0777), 0);
    EXPECT_THAT(fault(), HasSubstr("can replace " + above));
    ASSERT_EQ(::chmod(above.c_str(), 0700), 0);
    std::filesystem::create_symlink(path, folder.file("link"));
    EXPECT_EQ(check_program(folder.file("link")).value(),
              std::filesystem::canonical(path).string());
    EXPECT_THAT(check_program(above).error().message, HasSubstr("no regular file"));
}

TEST(new_program, has_the_arguments_and_environment_of_this_one) {
    const auto arguments = arguments_of_this_process("/bin/true");
    ASSERT_FALSE(arguments.empty());
    EXPECT_EQ(arguments.front(), "/bin/true");
    const auto environment = environment_for_upgrade();
    EXPECT_EQ(std::ranges::count_if(
                  environment,
                  [](const std::string& each) { return each.starts_with(upgrade_variable); }),
              1);
    EXPECT_TRUE(std::ranges::any_of(
        environment, [](const std::string& each) { return each.starts_with("PATH="); }));
}

}  // namespace
}  // namespace eddy::daemon
