// Files: on the ring, on threads, and inline in the simulator.
#include <eddy/io/file.hpp>

#include <eddy/base/frame_pool.hpp>
#include <eddy/io/pipe.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/timeout.hpp>

#include "io/files/file_access.hpp"
#include "io/testing.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <thread>
#include <vector>

namespace eddy::testing {
namespace {

EDDY_ON_EVERY_IO_BACKEND(file_io);

TEST_P(file_io, what_is_written_is_read_again) {
    run_with_threads([]() -> task<> {
        const temporary_folder folder;
        file made = must(co_await file::open(folder.path() + "/x", O_RDWR | O_CREAT, 0600));
        EXPECT_EQ(must(co_await made.size()), 0u);
        pattern from(5);
        const auto bytes = from.next(3'000'000);
        must(co_await made.write_at(0, bytes));
        must(co_await made.sync());
        must(co_await made.sync_data());
        EXPECT_EQ(must(co_await made.size()), bytes.size());

        std::vector<std::byte> room(bytes.size() + 100);
        const std::size_t size = must(co_await made.read_at(0, room));
        EXPECT_EQ(size, bytes.size());
        room.resize(size);
        EXPECT_EQ(room, bytes);

        std::array<std::byte, 10> few{};
        EXPECT_EQ(must(co_await made.read_at(1000, few)), 10u);
        EXPECT_TRUE(std::equal(few.begin(), few.end(), bytes.begin() + 1000));
        EXPECT_EQ(must(co_await made.read_at(bytes.size() - 3, few)), 3u) << "the end is short";
        EXPECT_EQ(must(co_await made.read_at(bytes.size(), few)), 0u);

        must(co_await made.truncate(5));
        EXPECT_EQ(must(co_await made.size()), 5u);
        EXPECT_EQ(must(co_await made.read_at(0, few)), 5u);
        // A gap is of zeros.
        must(co_await made.write_at(8, as_bytes("z")));
        EXPECT_EQ(must(co_await made.read_at(5, few)), 4u);
        EXPECT_EQ(few[0], std::byte{0});
        EXPECT_EQ(few[3], std::byte{'z'});
    });
}

TEST_P(file_io, a_path_that_others_choose_is_a_regular_file) {
    run_with_threads([]() -> task<> {
        const temporary_folder folder;
        const std::string path = folder.path() + "/x";
        file made = must(co_await file::open_regular(path, O_RDWR | O_CREAT, 0600));
        must(co_await made.write_at(0, as_bytes("text")));
        EXPECT_EQ(must(co_await made.size()), 4u);
        const std::string fifo = folder.path() + "/fifo";
        EXPECT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
        for (const int flags : {O_RDONLY, O_WRONLY, O_RDWR}) {
            const auto refused = co_await file::open_regular(fifo, flags);
            EXPECT_EQ(error_of(refused).message(), "it is a FIFO, and a regular file is needed");
        }
    });
}

TEST_P(file_io, a_path_beneath_a_folder_stays_there) {
    run_with_threads([]() -> task<> {
        const temporary_folder folder;
        const std::string root = folder.path() + "/root";
        EXPECT_EQ(::mkdir(root.c_str(), 0700), 0);
        EXPECT_EQ(::mkfifo((root + "/fifo").c_str(), 0600), 0);
        EXPECT_EQ(::symlink("../x", (root + "/out").c_str()), 0);
        EXPECT_EQ(::symlink("./x", (root + "/in").c_str()), 0);
        for (const std::string& path : {folder.path() + "/x", root + "/x"}) {
            file made = must(co_await file::open(path, O_WRONLY | O_CREAT, 0600));
            must(co_await made.write_at(0, as_bytes("text")));
        }
        const unique_fd at(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
        for (const char* path : {"x", "in", "./x"}) {
            const file opened = must(co_await file::open_beneath(at.get(), path));
            EXPECT_EQ(must(opened.status()).size, 4u);
        }
        const std::string absolute = root + "/x";
        for (const std::string& path : {std::string("../x"), std::string("out"), absolute}) {
            EXPECT_EQ(error_of(co_await file::open_beneath(at.get(), path)),
                      std::errc::cross_device_link);
            EXPECT_EQ(error_of(co_await file::status_beneath(at.get(), path)),
                      std::errc::cross_device_link);
        }
        EXPECT_EQ(error_of(co_await file::open_beneath(at.get(), "none")),
                  std::errc::no_such_file_or_directory);
        EXPECT_EQ(error_of(co_await file::open_beneath(at.get(), ".")), std::errc::is_a_directory);
        EXPECT_TRUE(must(co_await file::status_beneath(at.get(), ".")).is_folder());
        EXPECT_TRUE(must(co_await file::status_beneath(at.get(), "x")).is_regular());
        for (const int flags : {O_RDONLY, O_WRONLY, O_RDWR}) {
            const auto refused = co_await file::open_beneath(at.get(), "fifo", flags);
            EXPECT_EQ(error_of(refused).message(), "it is a FIFO, and a regular file is needed");
        }
    });
}

TEST_P(file_io, a_folder_beneath_another_is_listed) {
    run_with_threads([]() -> task<> {
        const temporary_folder folder;
        const std::string root = folder.path() + "/root";
        EXPECT_EQ(::mkdir(root.c_str(), 0700), 0);
        EXPECT_EQ(::mkdir((root + "/sub").c_str(), 0700), 0);
        EXPECT_EQ(::mkdir((root + "/sub/folder").c_str(), 0700), 0);
        EXPECT_EQ(::mkfifo((root + "/sub/fifo").c_str(), 0600), 0);
        for (const std::string& path : {folder.path() + "/x", root + "/beside", root + "/sub/x"}) {
            file made = must(co_await file::open(path, O_WRONLY | O_CREAT, 0600));
            must(co_await made.write_at(0, as_bytes("text")));
        }
        EXPECT_EQ(::symlink("../../x", (root + "/sub/out").c_str()), 0);
        EXPECT_EQ(::symlink("none", (root + "/sub/nothing").c_str()), 0);
        EXPECT_EQ(::symlink("../beside", (root + "/sub/in").c_str()), 0);
        const unique_fd at(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
        std::vector<folder_entry> entries = must(co_await file::list_beneath(at.get(), "sub", 3));
        std::ranges::sort(entries, {}, &folder_entry::name);
        std::string names;
        for (const folder_entry& each : entries) names += each.name + " ";
        EXPECT_EQ(names, "folder in x ");
        if (entries.size() == 3) {
            EXPECT_TRUE(entries[0].status.is_folder());
            EXPECT_EQ(entries[1].status.size, 4u);
            EXPECT_TRUE(entries[2].status.is_regular());
        }
        EXPECT_EQ(must(co_await file::list_beneath(at.get(), "sub", 2)).size(), 2u);
        EXPECT_EQ(error_of(co_await file::list_beneath(at.get(), "..", 9)),
                  std::errc::cross_device_link);
        EXPECT_EQ(error_of(co_await file::list_beneath(at.get(), "beside", 9)),
                  std::errc::not_a_directory);
    });
}

TEST_P(file_io, what_is_in_memory_is_read_at_once) {
    run_with_threads([]() -> task<> {
        const temporary_folder folder;
        file made = must(co_await file::open(folder.path() + "/x", O_RDWR | O_CREAT, 0600));
        must(co_await made.write_at(0, as_bytes("text")));
        std::array<std::byte, 10> room{};
        const auto refused = std::errc::resource_unavailable_try_again;
        // Some file systems have no such reads.
        const auto got = made.try_read_at(1, room);
        if (got)
            EXPECT_EQ(*got, 3u);
        else
            EXPECT_EQ(error_of(got), refused);
        const auto end = made.try_read_at(4, room);
        if (end)
            EXPECT_EQ(*end, 0u);
        else
            EXPECT_EQ(error_of(end), refused);
        file unreadable = must(co_await file::open(folder.path() + "/x", O_WRONLY));
        EXPECT_EQ(error_of(unreadable.try_read_at(0, room)), std::errc::bad_file_descriptor);
    });
}

/// A kernel whose answers the test gives.
class slow_kernel final : public io_backend {
public:
    io_backend_kind kind() const noexcept override { return io_backend_kind::sim; }
    time_point now() const noexcept override { return {}; }
    bool poll(time_point) override { return false; }
    void wake() noexcept override {}
    result<listener> listen(const endpoint&, const listen_options&) override {
        return fail(errc::unsupported);
    }
    result<datagram> open_datagram(const endpoint&, const endpoint&,
                                   const datagram_options&) override {
        return fail(errc::unsupported);
    }
    result<datagram> adopt_datagram(unique_fd) override { return fail(errc::unsupported); }
    result<listener> adopt_listener(unique_fd) override { return fail(errc::unsupported); }
    result<stream> adopt(unique_fd) override { return fail(errc::unsupported); }
    bool start(connect_operation&) override { return true; }
    void cancel(connect_operation&) noexcept override {}
    void start_poll(int, readiness, completion&) override {}
    void cancel_poll(completion&) noexcept override {}
    void start_file(const file_request&, completion& done) override {
        ++asked;
        waiting = &done;
    }
    void cancel_file(completion&) noexcept override { ++cancelled; }

    void answer(int result) {
        if (completion* const done = std::exchange(waiting, nullptr))
            done->on_completion(result, 0);
        else
            ADD_FAILURE() << "nothing was asked for";
    }

    int asked = 0;
    int cancelled = 0;
    completion* waiting = nullptr;
};

task<> read_into(io_backend& from, result<std::size_t>& outcome) {
    outcome = co_await awaiting<file_operation>(from, file_request());
}

TEST_P(file_io, what_the_kernel_ends_of_itself_is_asked_for_again) {
    run([]() -> task<> {
        slow_kernel kernel;
        scope tasks(co_await current_source());
        result<std::size_t> outcome = fail(errc::closed);
        tasks.spawn(read_into(kernel, outcome));
        kernel.answer(-EINTR);
        kernel.answer(-ECANCELED);
        EXPECT_EQ(kernel.asked, 3);
        kernel.answer(17);
        EXPECT_EQ(must(outcome), 17u);

        tasks.spawn(read_into(kernel, outcome));
        tasks.cancel();
        EXPECT_EQ(kernel.cancelled, 1);
        kernel.answer(-EINTR);
        EXPECT_EQ(kernel.asked, 4) << "nobody waits for it any more";
        EXPECT_EQ(error_of(outcome), errc::cancelled);
        co_await tasks.join();
    });
}

TEST_P(file_io, a_renamed_file_takes_the_place_of_another) {
    run_with_threads([]() -> task<> {
        const temporary_folder folder;
        for (const char* const name : {"/old", "/new"}) {
            file made = must(co_await file::open(folder.path() + name, O_WRONLY | O_CREAT));
            must(co_await made.write_at(0, as_bytes(name)));
        }
        must(co_await file::rename(folder.path() + "/new", folder.path() + "/old"));
        file left = must(co_await file::open(folder.path() + "/old", O_RDONLY));
        std::array<std::byte, 10> few{};
        EXPECT_EQ(must(co_await left.read_at(0, few)), 4u);
        EXPECT_EQ(few[1], std::byte{'n'});
        const result<> gone = co_await file::rename(folder.path() + "/new", folder.path() + "/x");
        EXPECT_EQ(gone.error(), std::errc::no_such_file_or_directory);
        must(co_await file::remove(folder.path() + "/old"));
        const result<> twice = co_await file::remove(folder.path() + "/old");
        EXPECT_EQ(twice.error(), std::errc::no_such_file_or_directory);
    });
}

TEST_P(file_io, errors_are_those_of_the_system) {
    run_with_threads([]() -> task<> {
        const temporary_folder folder;
        const auto missing = co_await file::open(folder.path() + "/none", O_RDONLY);
        EXPECT_EQ(error_of(missing), errno_code(ENOENT));
        file made = must(co_await file::open(folder.path() + "/x", O_WRONLY | O_CREAT, 0600));
        const auto again =
            co_await file::open(folder.path() + "/x", O_WRONLY | O_CREAT | O_EXCL, 0600);
        EXPECT_EQ(error_of(again), errno_code(EEXIST));
        std::array<std::byte, 10> room{};
        EXPECT_EQ(error_of(co_await made.read_at(0, room)), errno_code(EBADF));
        file readable = must(co_await file::open(folder.path() + "/x", O_RDONLY));
        EXPECT_EQ(error_of(co_await readable.write_at(0, as_bytes("x"))), errno_code(EBADF));
        struct stat about{};
        EXPECT_EQ(fstat(made.native_handle(), &about), 0);
        EXPECT_EQ(about.st_mode & 07777, 0600u);
    });
}

task<void> check_block(file& of, std::uint64_t number, std::size_t block) {
    pattern expected(number);
    std::vector<std::byte> bytes = expected.next(block);
    must(co_await of.write_at(number * block, bytes));
    std::vector<std::byte> room(block);
    EXPECT_EQ(must(co_await of.read_at(number * block, room)), block);
    EXPECT_EQ(room, bytes);
}

TEST_P(file_io, many_may_read_and_write_at_once) {
    run_with_threads([]() -> task<> {
        const temporary_folder folder;
        file made = must(co_await file::open(folder.path() + "/x", O_RDWR | O_CREAT, 0600));
        co_await join_scope([&](scope& children) -> task<> {
            for (std::uint64_t i = 0; i < 200; ++i) children.spawn(check_block(made, i, 4096));
            co_return;
        });
        EXPECT_EQ(must(co_await made.size()), 200u * 4096);
    });
}

task<void> read_block(file& of, std::vector<std::byte>& into, int& ended) {
    const auto got = co_await of.read_at(0, into);
    if (got)
        EXPECT_EQ(*got, into.size());
    else
        EXPECT_EQ(error_of(got), errc::cancelled);
    ++ended;
}

TEST_P(file_io, cancelling_awaits_the_use_of_the_bytes) {
    run_with_threads([this]() -> task<> {
        const temporary_folder folder;
        file made = must(co_await file::open(folder.path() + "/x", O_RDWR | O_CREAT, 0600));
        {
            const std::vector<std::byte> bytes(1'000'000, std::byte{7});
            must(co_await made.write_at(0, bytes));
        }
        for (int round = 0; round < 50; ++round) {
            int ended = 0;
            scope children(co_await current_source());
            {
                // They die as soon as the reads have ended: asan sees a late use.
                std::vector<std::vector<std::byte>> rooms(8, std::vector<std::byte>(500'000));
                for (auto& room : rooms) children.spawn(read_block(made, room, ended));
                for (std::uint64_t i = random().below(3); i > 0; --i) co_await here().yield();
                children.cancel();
                co_await children.join();
            }
            EXPECT_EQ(ended, 8);
        }
    });
}

TEST_P(file_io, a_read_that_waits_for_ever_is_cancelled_on_the_ring) {
    if (GetParam() != io_backend_kind::uring)
        GTEST_SKIP() << "a thread cannot be stopped in a read";
    run([]() -> task<> {
        // A FIFO opened as a file: its read waits, as one from a broken network disk would.
        const temporary_folder folder;
        const std::string path = folder.path() + "/fifo";
        EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
        file never = must(co_await file::open(path, O_RDWR));
        std::array<std::byte, 10> room{};
        const auto got = co_await with_timeout(10ms, never.read_at(0, room));
        EXPECT_EQ(error_of(got), errc::timed_out);
    });
}

task<> write_and_sync(file& of, const std::vector<std::byte>& bytes, bool sync_first, int& ended) {
    for (int i = 0; i < 2; ++i) {
        const auto done =
            sync_first == (i == 0) ? co_await of.sync_data() : co_await of.write_at(0, bytes);
        if (!done) EXPECT_EQ(done.error(), errc::cancelled);
    }
    ++ended;
}

TEST_P(file_io, cancelling_awaits_writes_and_syncs) {
    run_with_threads([this]() -> task<> {
        const temporary_folder folder;
        file made = must(co_await file::open(folder.path() + "/x", O_RDWR | O_CREAT, 0600));
        for (int round = 0; round < 30; ++round) {
            int ended = 0;
            scope children(co_await current_source());
            {
                // They die as soon as the writes have ended: asan sees a late use.
                const std::vector<std::vector<std::byte>> bytes(8, std::vector<std::byte>(200'000));
                for (std::size_t i = 0; i < bytes.size(); ++i)
                    children.spawn(write_and_sync(made, bytes[i], i % 2 == 0, ended));
                for (std::uint64_t i = random().below(3); i > 0; --i) co_await here().yield();
                children.cancel();
                co_await children.join();
            }
            EXPECT_EQ(ended, 8);
        }
        // And the file is as good as before.
        must(co_await made.write_at(0, as_bytes("later")));
        must(co_await made.sync());
        std::array<std::byte, 5> room{};
        EXPECT_EQ(must(co_await made.read_at(0, room)), 5u);
        EXPECT_EQ(as_text(room), "later");
    });
}

TEST_P(file_io, what_is_cancelled_beforehand_does_nothing) {
    run_with_threads([]() -> task<> {
        const temporary_folder folder;
        const std::string none = folder.path() + "/none";
        EXPECT_EQ(co_await cancelled_before(file::open(none, O_RDWR | O_CREAT)), errc::cancelled);
        EXPECT_EQ(error_of(co_await file::open(none, O_RDONLY)), errno_code(ENOENT));

        const std::string path = folder.path() + "/x";
        file made = must(co_await file::open(path, O_RDWR | O_CREAT, 0600));
        EXPECT_EQ(co_await cancelled_before(made.write_at(0, as_bytes("unwanted"))),
                  errc::cancelled);
        EXPECT_EQ(co_await cancelled_before(made.truncate(5)), errc::cancelled);
        EXPECT_EQ(must(co_await made.size()), 0u);
        EXPECT_EQ(co_await cancelled_before(made.sync()), errc::cancelled);
        EXPECT_EQ(co_await cancelled_before(made.size()), errc::cancelled);
        std::array<std::byte, 5> room{};
        EXPECT_EQ(co_await cancelled_before(made.read_at(0, room)), errc::cancelled);
        EXPECT_EQ(co_await cancelled_before(file::rename(path, none)), errc::cancelled);
        EXPECT_EQ(co_await cancelled_before(file::remove(path)), errc::cancelled);
        must(co_await file::open(path, O_RDONLY));
    });
}

TEST_P(file_io, a_write_that_waits_for_ever_is_cancelled_on_the_ring) {
    if (GetParam() != io_backend_kind::uring)
        GTEST_SKIP() << "a thread cannot be stopped in a write";
    run([]() -> task<> {
        const temporary_folder folder;
        const std::string path = folder.path() + "/fifo";
        EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
        file never = must(co_await file::open(path, O_RDWR));
        // More than a pipe holds.
        const std::vector<std::byte> much(4 << 20);
        EXPECT_EQ(co_await cancelled_during(never.write_at(0, much)), errc::cancelled);
    });
}

task<> open_there(std::string path, std::error_code& error, bool& ended) {
    error = error_of(co_await file::open(std::move(path), O_RDONLY));
    ended = true;
}

TEST_P(file_io, a_cancelled_open_ends_at_once_in_the_queue_and_keeps_its_file_on_a_thread) {
    if (simulated()) GTEST_SKIP() << "there is no queue: it happens at once";
    loop_options options;
    options.file_threads = 1;
    make_loop(options);
    run_with_threads([this]() -> task<> {
        const temporary_folder folder;
        const std::string path = folder.path() + "/fifo";
        EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
        file other = must(co_await file::open(folder.path() + "/x", O_RDWR | O_CREAT, 0600));
        bool on_thread = false;
        while (!on_thread) {
            std::error_code error;
            bool ended = false;
            scope children(co_await current_source());
            children.spawn(open_there(path, error, ended));  // waits for a writer
            co_await here().yield();
            children.cancel();
            for (int i = 0; i < 2; ++i) co_await here().yield();
            // It continues, unless the thread had not begun it yet.
            on_thread = !ended;
            if (on_thread) {
                // Behind it all waits.
                EXPECT_EQ(co_await cancelled_during(file::open(path, O_RDONLY)), errc::cancelled);
                EXPECT_EQ(co_await cancelled_during(other.truncate(5)), errc::cancelled);
                if (GetParam() == io_backend_kind::epoll) {
                    EXPECT_EQ(co_await cancelled_during(other.write_at(0, as_bytes("x"))),
                              errc::cancelled);
                    EXPECT_EQ(co_await cancelled_during(other.sync()), errc::cancelled);
                }
                EXPECT_FALSE(ended);
            }
            const unique_fd writer(::open(path.c_str(), O_RDWR | O_CLOEXEC));
            co_await children.join();
            EXPECT_EQ(error, on_thread ? std::error_code() : make_error_code(errc::cancelled));
        }
        EXPECT_EQ(must(co_await other.size()), 0u) << "nothing of what was cancelled was done";
    });
}

TEST_P(file_io, a_queue_without_a_limit_takes_what_comes) {
    if (simulated()) GTEST_SKIP() << "there is no queue: it happens at once";
    loop_options options;
    options.max_file_queue = SIZE_MAX;
    make_loop(options);
    run_with_threads([]() -> task<> {
        const temporary_folder folder;
        const std::string path = folder.path() + "/fifo";
        EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
        constexpr int pieces = 8;
        int ended = 0;
        co_await join_scope([&](scope& children) -> task<> {
            // They wait for a writer, four of them in the queue.
            for (int i = 0; i < pieces; ++i)
                children.spawn([](std::string what, int& count) -> task<> {
                    EXPECT_FALSE(error_of(co_await file::open(std::move(what), O_RDONLY)));
                    ++count;
                }(path, ended));
            EXPECT_EQ(ended, 0);
            const unique_fd writer(::open(path.c_str(), O_RDWR | O_CLOEXEC));
            while (ended < pieces) co_await loop::current().yield();
        });
    });
}

TEST_P(file_io, work_beyond_the_queue_is_refused) {
    if (simulated()) GTEST_SKIP() << "there is no queue: it happens at once";
    loop_options options;
    options.file_threads = 1;
    options.max_file_queue = 1;
    make_loop(options);
    run_with_threads([]() -> task<> {
        const temporary_folder folder;
        const std::string path = folder.path() + "/fifo";
        EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
        int refused = 0;
        int opened = 0;
        co_await join_scope([&](scope& children) -> task<> {
            // The first two wait for a writer, on the thread and in the queue.
            for (int i = 0; i < 3; ++i)
                children.spawn([](std::string what, int& no, int& yes) -> task<> {
                    const auto got = co_await file::open(std::move(what), O_RDONLY);
                    yes += got.has_value();
                    no += error_of(got) == errc::limit_reached;
                }(path, refused, opened));
            EXPECT_EQ(refused, 1) << "it was told at once";
            const unique_fd writer(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
            while (opened < 2) co_await loop::current().yield();
        });
        EXPECT_EQ(opened, 2);
    });
}

TEST_P(file_io, reads_cost_no_allocation_on_the_ring) {
    if (GetParam() != io_backend_kind::uring || !frame_pool_recycles())
        GTEST_SKIP() << "for the ring, with frames from the pool";
    run([]() -> task<> {
        const temporary_folder folder;
        file made = must(co_await file::open(folder.path() + "/x", O_RDWR | O_CREAT, 0600));
        must(co_await made.write_at(0, as_bytes("0123456789")));
        std::array<std::byte, 10> room{};
        const auto some = [](file& of, mutable_bytes into) -> task<> {
            for (int i = 0; i < 20; ++i) static_cast<void>(co_await of.read_at(0, into));
        };
        co_await some(made, room);
        const std::uint64_t before = frame_allocations();
        co_await some(made, room);
        EXPECT_EQ(frame_allocations(), before);
    });
}

}  // namespace
}  // namespace eddy::testing
