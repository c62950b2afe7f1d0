// Listening Unix sockets with a file: paths that exist can be connected to, simultaneous starts at
// one path, and remains of killed processes.
#include "io/posix/unix_listener.hpp"

#include "io/testing.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace eddy::testing {
namespace {

EDDY_ON_EVERY_KERNEL_IO_BACKEND(unix_listener_kernel_io);

endpoint at(const std::string& path) { return must(endpoint::unix_path(path)); }

unique_fd new_socket(int type = SOCK_STREAM) {
    return unique_fd(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
}

/// 0, or the errno of connect(2).
int error_of_connect(const endpoint& to, int type = SOCK_STREAM) {
    const unique_fd client = new_socket(type);
    return ::connect(client.get(), to.data(), to.size()) == 0 ? 0 : errno;
}

void leave_dead_socket(const std::string& path) {
    const unique_fd dead = new_socket();
    const endpoint where = at(path);
    EXPECT_EQ(::bind(dead.get(), where.data(), where.size()), 0);
}

std::set<std::string> names_in(const temporary_folder& folder) {
    std::set<std::string> names;
    for (const auto& each : std::filesystem::directory_iterator(folder.path()))
        names.insert(each.path().filename());
    return names;
}

/// The end of a listener that open_listener() made.
void end(const opened_listener& of) { remove_socket_file(of.local, of.file); }

// A client waits for the path and connects at once, beside a process that starts to listen.
TEST(unix_listener, a_path_that_exists_can_be_connected_to) {
    constexpr int rounds = 100;
    const temporary_folder folder;
    listen_options options;
    options.unix_mode = 0600;
    for (const int type : {SOCK_STREAM, SOCK_SEQPACKET}) {
        for (int round = 0; round < rounds; ++round) {
            const std::string path = folder.file("s" + std::to_string(round));
            std::atomic<bool> is_waiting{false};
            int refused = -1;
            struct stat first{};
            std::thread client([&] {
                is_waiting = true;
                while (::stat(path.c_str(), &first) < 0) continue;
                refused = error_of_connect(at(path), type);
            });
            while (!is_waiting) continue;
            auto listening = must(open_unix_listener(at(path), options, type, true));
            client.join();
            EXPECT_EQ(refused, 0) << "round " << round;
            EXPECT_EQ(first.st_mode & 0777, 0600U) << "round " << round;
            end(listening);
        }
    }
    EXPECT_EQ(names_in(folder), std::set<std::string>());
}

// The same without chance: the path itself is never made, only moved to.
TEST(unix_listener, a_path_appears_by_a_rename) {
    const temporary_folder folder;
    const unique_fd watch(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    ASSERT_GE(::inotify_add_watch(watch.get(), folder.path().c_str(), IN_CREATE | IN_MOVED_TO), 0);
    auto listening = must(open_listener(at(folder.file("chat.sock")), {}, true));
    alignas(inotify_event) char events[4096];
    const ssize_t size = ::read(watch.get(), events, sizeof(events));
    std::vector<std::uint32_t> of_path;
    for (ssize_t i = 0; i < size;) {
        const auto& each = reinterpret_cast<const inotify_event&>(events[i]);
        if (std::string_view(each.name) == "chat.sock") of_path.push_back(each.mask);
        i += static_cast<ssize_t>(sizeof(inotify_event) + each.len);
    }
    EXPECT_EQ(of_path, std::vector<std::uint32_t>{IN_MOVED_TO});
    end(listening);
}

TEST(unix_listener, of_several_that_start_at_a_path_one_serves) {
    constexpr int rounds = 100;
    constexpr std::size_t starters = 6;
    const temporary_folder folder;
    const std::string path = folder.file("s");
    for (int round = 0; round < rounds; ++round) {
        // Every second time a killed process has left its socket.
        if (round % 2 == 1) leave_dead_socket(path);
        std::atomic<std::size_t> waiting{0};
        std::vector<result<opened_listener>> made(starters);
        {
            std::vector<std::jthread> threads;
            for (auto& its : made) {
                threads.emplace_back([&] {
                    ++waiting;
                    while (waiting < starters) std::this_thread::yield();
                    its = open_listener(at(path), {}, true);
                });
            }
        }
        std::size_t listening = 0;
        for (const auto& each : made) {
            if (!each) {
                EXPECT_EQ(each.error(), errno_code(EADDRINUSE));
                continue;
            }
            ++listening;
            EXPECT_EQ(error_of_connect(at(path)), 0);
            EXPECT_GE(unique_fd(::accept(each->socket.get(), nullptr, nullptr)).get(), 0)
                << "another one has the path";
        }
        EXPECT_EQ(listening, 1U) << "round " << round;
        EXPECT_EQ(names_in(folder), std::set<std::string>{"s"});
        for (const auto& each : made)
            if (each) end(*each);
        EXPECT_EQ(names_in(folder), std::set<std::string>());
    }
}

TEST(unix_listener, a_socket_that_is_bound_and_does_not_listen_yet_stays) {
    const temporary_folder folder;
    const std::string path = folder.file("s");
    const endpoint where = at(path);
    for (const int type : {SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM}) {
        const unique_fd starting = new_socket(type);
        ASSERT_EQ(::bind(starting.get(), where.data(), where.size()), 0);
        EXPECT_EQ(error_of(open_listener(where, {}, true)), errno_code(EADDRINUSE));
        if (type != SOCK_DGRAM) {
            EXPECT_EQ(::listen(starting.get(), 1), 0);
            EXPECT_EQ(error_of_connect(where, type), 0);
        }
        std::filesystem::remove(path);
    }
}

// The trial would else be a client of the other process.
TEST(unix_listener, a_trial_of_a_path_in_use_makes_no_connection) {
    const temporary_folder folder;
    const endpoint where = at(folder.file("s"));
    auto first = must(open_listener(where, {}, true));
    EXPECT_EQ(error_of(open_listener(where, {}, true)), errno_code(EADDRINUSE));
    EXPECT_EQ(::accept(first.socket.get(), nullptr, nullptr), -1);
    EXPECT_EQ(errno, EAGAIN);
    end(first);
}

TEST(unix_listener, remains_of_a_killed_process_go_at_the_next_start) {
    const temporary_folder folder;
    const std::string path = folder.file("chat.sock");
    leave_dead_socket(bound_name(path));
    std::ofstream(folder.file(".chat.sock.eddy-lock")).close();
    leave_dead_socket(path);
    auto listening = must(open_listener(at(path), {}, true));
    EXPECT_EQ(names_in(folder), std::set<std::string>{"chat.sock"});
    EXPECT_EQ(error_of_connect(at(path)), 0);
    end(listening);
    EXPECT_EQ(names_in(folder), std::set<std::string>());
}

TEST(unix_listener, a_path_that_another_one_is_about_to_take_is_in_use) {
    const temporary_folder folder;
    const std::string path = folder.file("chat.sock");
    const unique_fd lock(
        ::open(folder.file(".chat.sock.eddy-lock").c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0600));
    ASSERT_EQ(::flock(lock.get(), LOCK_EX), 0);
    EXPECT_EQ(error_of(open_listener(at(path), {}, true)), errno_code(EADDRINUSE));
    ASSERT_EQ(::flock(lock.get(), LOCK_UN), 0);
    auto listening = must(open_listener(at(path), {}, true));
    end(listening);
}

TEST(unix_listener, files_with_the_names_beside_a_path_stay) {
    const temporary_folder folder;
    auto other = must(open_listener(at(folder.file(".chat.eddy")), {}, true));
    EXPECT_EQ(error_of(open_listener(at(folder.file("chat")), {}, true)), errno_code(EADDRINUSE));
    EXPECT_EQ(error_of_connect(at(folder.file(".chat.eddy"))), 0);
    std::ofstream(folder.file(".s.eddy-lock")) << "precious";
    EXPECT_EQ(error_of(open_listener(at(folder.file("s")), {}, true)), errno_code(EADDRINUSE));
    EXPECT_EQ(names_in(folder), (std::set<std::string>{".chat.eddy", ".s.eddy-lock"}));
    end(other);
}

TEST(unix_listener, links_and_folders_in_the_way_stay) {
    const temporary_folder folder;
    const std::string precious = folder.file("precious");
    std::ofstream(precious) << "precious";
    std::filesystem::create_symlink("nowhere", folder.file("dangling"));
    std::filesystem::create_symlink(precious, folder.file("link"));
    std::filesystem::create_directory(folder.file("folder"));
    std::filesystem::create_symlink(precious, folder.file(".chat.eddy-lock"));
    const auto before = names_in(folder);
    for (const std::string name : {"precious", "dangling", "link", "folder", "chat", ".", ".."})
        EXPECT_EQ(error_of(open_listener(at(folder.file(name)), {}, true)), errno_code(EADDRINUSE))
            << name;
    EXPECT_EQ(error_of(open_listener(at(folder.file("none/s")), {}, true)), errno_code(ENOENT));
    EXPECT_EQ(error_of(open_listener(at(folder.file("none/")), {}, true)), errno_code(ENOENT));
    EXPECT_EQ(error_of(open_listener(at(precious + "/s"), {}, true)), errno_code(ENOTDIR));
    EXPECT_EQ(names_in(folder), before);
    EXPECT_EQ(std::filesystem::file_size(precious), 8U);
}

TEST(unix_listener, a_failure_leaves_nothing_behind) {
    const temporary_folder folder;
    listen_options impossible;
    impossible.unix_mode = 0600;
    const unique_fd tcp(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_FALSE(listen_at_path(tcp.get(), at(folder.file("s")), impossible));
    const unique_fd datagrams = new_socket(SOCK_DGRAM);
    EXPECT_EQ(error_of(listen_at_path(datagrams.get(), at(folder.file("s")), impossible)),
              errno_code(EOPNOTSUPP));
    EXPECT_EQ(names_in(folder), std::set<std::string>());
}

TEST(unix_listener, abstract_names_have_no_permissions) {
    listen_options options;
    options.unix_mode = 0600;
    const endpoint name = at("@eddy-unix-listener-test-" + std::to_string(::getpid()));
    EXPECT_EQ(error_of(open_listener(name, options, true)), errno_code(EINVAL));
    EXPECT_TRUE(open_listener(name, {}, true));
}

TEST(unix_listener, bound_names_lead_back_to_their_paths) {
    EXPECT_EQ(bound_name("/run/chat.sock"), "/run/.chat.sock.eddy");
    EXPECT_EQ(bound_name("s"), ".s.eddy");
    for (const std::string path : {"/run/chat.sock", "s", "/.s", "./x.eddy", "/a/.b.eddy"})
        EXPECT_EQ(published(at(bound_name(path))), at(path));
    for (const std::string other :
         {"/run/x.eddy", "/run/.eddy", "/run/..eddy", "/run/.x", "@.x.eddy"})
        EXPECT_EQ(published(at(other)), at(other));
    const endpoint ip = must(endpoint::ip("127.0.0.1", 80));
    EXPECT_EQ(published(ip), ip);
    const endpoint unnamed = at("s");
    EXPECT_EQ(published(endpoint(unnamed.data(), sizeof(sa_family_t))).host(), "");
}

// Paths of all lengths, with components of all lengths.
TEST_P(unix_listener_kernel_io, takes_paths_of_any_length) {
    constexpr std::size_t longest = 107;
    const temporary_folder folder;
    run([&]() -> task<> {
        for (const std::size_t length : {std::size_t{1}, std::size_t{20}, std::size_t{60}}) {
            const std::string below = folder.file(std::string(length, 'd'));
            std::filesystem::create_directory(below);
            for (std::size_t size = below.size() + 2; size <= longest; ++size) {
                const std::string path = below + "/" + std::string(size - below.size() - 1, 's');
                listener accepting = must(here().listen(at(path)));
                EXPECT_EQ(accepting.local().to_string(), path);
                stream client = must(co_await here().connect(at(path)));
                stream server = must(co_await accepting.accept());
                const std::size_t component = size - below.size() - 1;
                if (size + 6 <= longest && component <= 76) {
                    EXPECT_EQ(client.peer().to_string(), path);
                    EXPECT_EQ(server.local().to_string(), path);
                }
                accepting.close();
                EXPECT_TRUE(std::filesystem::is_empty(below)) << path;
            }
        }
    });
}

// As a restart after a kill -9: clients find the old socket or the new one, never none.
TEST_P(unix_listener_kernel_io, replaces_a_dead_socket_in_one_step) {
    const temporary_folder folder;
    const std::string path = folder.file("s");
    run([&]() -> task<> {
        leave_dead_socket(path);
        std::atomic<bool> is_over{false};
        std::atomic<bool> is_watching{false};
        bool was_missing = false;
        std::jthread watch([&] {
            while (!is_over) {
                if (::access(path.c_str(), F_OK) < 0) was_missing = true;
                is_watching = true;
            }
        });
        while (!is_watching) std::this_thread::yield();
        listener accepting = must(here().listen(at(path)));
        is_over = true;
        watch.join();
        EXPECT_FALSE(was_missing);
        stream client = must(co_await here().connect(at(path)));
        EXPECT_TRUE(must(co_await accepting.accept()));
    });
}

}  // namespace
}  // namespace eddy::testing
