// Tests of a disk that loses what was written, or has no room: replies to clients, and the data
// after a start.
#include <eddy/base/unique_fd.hpp>

#include "base/files/temporary_folder.hpp"
#include "runtime/cache/files/append_folder.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::HasSubstr;
using ::testing::StartsWith;

EDDY_ON_EVERY_IO_BACKEND(cache_disk_faults);

json saved_in(const temporary_folder& folder, json more = json::object()) {
    json options = {{"port", 0}, {"dir", folder.path()}, {"mode", "admin"}};
    options.update(more);
    return options;
}

task<void> until_written(talker& client, std::string command) {
    while (co_await ask(client, command) != "+OK") must(co_await loop::current().sleep_for(1ms));
}

/// Digest of the data that a cache finds there, after a crash now.
task<std::string> digest_after_crash(const temporary_folder& folder, json options) {
    const temporary_folder crashed;
    std::filesystem::copy(folder.path(), crashed.path(), std::filesystem::copy_options::recursive);
    options["dir"] = crashed.path();
    co_return co_await digest_with(std::move(options));
}

/// Bytes written to the open file are lost while this lives, and syncs fail: fsync(2) of the null
/// device does.
class lossy_disk {
public:
    explicit lossy_disk(const std::string& of) {
        for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
            std::error_code gone;
            const auto path = std::filesystem::read_symlink(each.path(), gone);
            if (!gone && path == of) fd_ = std::stoi(each.path().filename());
        }
        if (fd_ < 0) throw std::runtime_error(of + " is not open");
        const unique_fd null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
        kept_ = unique_fd(::dup(fd_));
        EXPECT_EQ(::dup2(null.get(), fd_), fd_);
    }
    ~lossy_disk() { EXPECT_EQ(::dup2(kept_.get(), fd_), fd_); }
    lossy_disk(const lossy_disk&) = delete;
    lossy_disk& operator=(const lossy_disk&) = delete;

private:
    int fd_ = -1;
    unique_fd kept_;
};

std::string part(const temporary_folder& folder, int number) {
    return folder.file("appendonlydir/appendonly.aof." + std::to_string(number) + ".incr.aof");
}

TEST_P(cache_disk_faults, a_sync_that_fails_is_answered_by_nothing_and_mended_by_a_rewrite) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        const json options =
            saved_in(folder, {{"save", "off"}, {"appendonly", "yes"}, {"appendfsync", "always"}});
        subject cache("cache", options);
        co_await cache.start();
        {
            talker client = co_await talker::to(cache->local());
            talker second = co_await talker::to(cache->local());
            talker other = co_await talker::to(cache->local());
            EXPECT_EQ(co_await ask(other, "SET before 1"), "+OK");
            const std::string rewrites = co_await info(other, "aof_rewrites");
            {
                const lossy_disk disk(part(folder, 1));
                co_await client.say("SET lost 1\r\n");
                EXPECT_EQ(co_await client.rest(), "") << "what the disk has is unknown";
                EXPECT_THAT(co_await ask(other, "SET refused 1"),
                            StartsWith("-MISCONF Errors writing to the AOF file: "));
                EXPECT_EQ(co_await ask(second, "GET refused"), "$-1");
                EXPECT_EQ(co_await info(other, "aof_last_write_status"), "err");
                EXPECT_TRUE(cache.events.has("could not sync the append-only file"));
            }
            co_await until_written(other, "SET after 1");
            EXPECT_NE(co_await info(other, "aof_rewrites"), rewrites);
            EXPECT_EQ(co_await info(other, "aof_last_write_status"), "ok");
            // It was done, and the rewrite has it.
            EXPECT_EQ(co_await ask(other, "EXISTS before lost after refused"), ":3");
            const std::string digest = co_await ask(other, "DEBUG DIGEST");
            EXPECT_EQ(co_await digest_after_crash(folder, options), digest);
        }
        co_await cache->stop(1s);
    });
}

TEST_P(cache_disk_faults, a_stop_that_cannot_save_is_refused_and_changes_nothing) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        const json options = saved_in(folder, {{"save", "3600 1"}});
        subject cache("cache", options);
        co_await cache.start();
        {
            talker client = co_await talker::to(cache->local());
            talker writer = co_await talker::to(cache->local());
            EXPECT_EQ(co_await ask(client, "SET a 1"), "+OK");
            // In the way of the new file.
            std::filesystem::create_directory(folder.file("dump.rdb.tmp"));
            const auto refused = co_await cache->prepare_stop(1s);
            EXPECT_FALSE(refused);
            if (!refused) EXPECT_THAT(refused.error().message, HasSubstr("dump.rdb.tmp"));
            EXPECT_EQ(co_await ask(client, "SET b 1"), "+OK") << "as Redis does";
            EXPECT_EQ(co_await info(client, "rdb_last_bgsave_status"), "ok");

            std::filesystem::remove(folder.file("dump.rdb.tmp"));
            must_do(co_await cache->prepare_stop(1s));
            EXPECT_EQ(co_await info(client, "rdb_changes_since_last_save"), "0");
            // Changes are not acknowledged while the file lacks them.
            co_await writer.say("SET c 1\r\n");
            EXPECT_EQ(co_await ask(client, "GET c"), "$-1");
            cache->resume();
            EXPECT_EQ(co_await writer.line(), "+OK\r");
            must_do(co_await cache->prepare_stop(1s));
        }
        co_await cache->stop(1s);
        EXPECT_EQ(cache->lost(), "");
    });
}

TEST_P(cache_disk_faults, a_stop_whose_append_only_file_cannot_be_synced_is_refused) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        const json options =
            saved_in(folder, {{"save", "off"}, {"appendonly", "yes"}, {"appendfsync", "no"}});
        subject cache("cache", options);
        co_await cache.start();
        {
            talker client = co_await talker::to(cache->local());
            EXPECT_EQ(co_await ask(client, "SET a 1"), "+OK");
            {
                const lossy_disk disk(part(folder, 1));
                EXPECT_EQ(co_await ask(client, "SET b 1"), "+OK");
                const auto refused = co_await cache->prepare_stop(1s);
                EXPECT_FALSE(refused);
                if (!refused)
                    EXPECT_THAT(refused.error().message,
                                HasSubstr("the append-only file in " + folder.path()));
            }
            // The disk's content is unknown: it is written anew first.
            must_do(co_await cache->prepare_stop(1s));
            const std::string digest = co_await ask(client, "DEBUG DIGEST");
            EXPECT_EQ(co_await digest_after_crash(folder, options), digest);
        }
        co_await cache->stop(1s);
        EXPECT_EQ(cache->lost(), "");
    });
}

TEST_P(cache_disk_faults, a_sync_that_fails_later_has_writes_refused_until_a_rewrite) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        const json options =
            saved_in(folder, {{"save", "off"}, {"appendonly", "yes"}, {"appendfsync", "everysec"}});
        subject cache("cache", options);
        co_await cache.start();
        {
            talker client = co_await talker::to(cache->local());
            {
                const lossy_disk disk(part(folder, 1));
                EXPECT_EQ(co_await ask(client, "SET lost 1"), "+OK");
                while (!(co_await ask(client, "SET other 1")).starts_with("-MISCONF"))
                    must(co_await loop::current().sleep_for(5ms));
                EXPECT_EQ(co_await ask(client, "EXISTS lost"), ":1");
            }
            co_await until_written(client, "SET after 1");
            EXPECT_EQ(co_await info(client, "aof_last_write_status"), "ok");
        }
        co_await cache->stop(1s);
        subject again("cache", options);
        co_await again.start();
        {
            talker client = co_await talker::to(again->local());
            EXPECT_EQ(co_await ask(client, "EXISTS lost after"), ":2");
        }
        co_await again->stop(1s);
    });
}

// Its commands would be executed without a check.
TEST_P(cache_disk_faults, a_file_with_what_no_server_writes_is_refused) {
    run([&]() -> task<void> {
        const temporary_folder folder;
        const json options = saved_in(folder, {{"save", "off"}, {"appendonly", "yes"}});
        subject cache("cache", options);
        co_await cache.start();
        co_await cache->stop(1s);
        std::ofstream(part(folder, 1), std::ios::binary | std::ios::app)
            << "*4\r\n$6\r\nCONFIG\r\n$3\r\nSET\r\n$9\r\nmaxmemory\r\n$1\r\n1\r\n";
        subject again("cache", options);
        EXPECT_THAT(co_await again.failure_to_start(),
                    HasSubstr("it has 'config|set', which no server writes there"));
    });
}

/// The temporary file is a device: one whose sync fails, or one that is full.
TEST_P(cache_disk_faults, a_snapshot_that_the_disk_does_not_keep_leaves_the_old_file) {
    run([&]() -> task<void> {
        for (const std::string device : {"/dev/null", "/dev/full"}) {
            SCOPED_TRACE(device);
            const temporary_folder folder;
            const std::string path = folder.file("dump.rdb");
            const json options = saved_in(folder, {{"save", "3600 1"}});
            subject cache("cache", options);
            co_await cache.start();
            {
                talker client = co_await talker::to(cache->local());
                EXPECT_EQ(co_await ask(client, "SET before 1"), "+OK");
                EXPECT_EQ(co_await ask(client, "SAVE"), "+OK");
                const std::string good = content(path);
                const std::string digest = co_await ask(client, "DEBUG DIGEST");
                EXPECT_EQ(co_await ask(client, "SET behind 1"), "+OK");
                std::filesystem::create_symlink(device, path + ".tmp");
                EXPECT_THAT(co_await ask(client, "SAVE"),
                            device == "/dev/full"
                                ? HasSubstr("could not write " + path + ".tmp: the disk is full")
                                : HasSubstr("could not write " + path + ".tmp: "));
                EXPECT_EQ(content(path), good);
                EXPECT_FALSE(std::filesystem::is_symlink(path + ".tmp"));
                EXPECT_TRUE(std::filesystem::exists(device));
                EXPECT_EQ(co_await info(client, "rdb_last_bgsave_status"), "ok");
                EXPECT_EQ(co_await ask(client, "SET behind 2"), "+OK");
                std::filesystem::create_symlink(device, path + ".tmp");
                EXPECT_EQ(co_await ask(client, "BGSAVE"), "+Background saving started");
                while (co_await info(client, "rdb_bgsave_in_progress") == "1") {
                }
                EXPECT_EQ(content(path), good);
                EXPECT_EQ(co_await info(client, "rdb_last_bgsave_status"), "err");
                EXPECT_THAT(co_await ask(client, "SET refused 1"), StartsWith("-MISCONF"));
                EXPECT_EQ(co_await digest_after_crash(folder, options), digest);
                EXPECT_EQ(co_await ask(client, "SAVE"), "+OK");
                EXPECT_EQ(co_await ask(client, "SET after 1"), "+OK");
                EXPECT_EQ(co_await info(client, "rdb_last_bgsave_status"), "ok");
            }
            co_await cache->stop(1s);
        }
    });
}

TEST_P(cache_disk_faults, a_rewrite_that_the_disk_does_not_keep_leaves_the_old_files) {
    run([&]() -> task<void> {
        for (const char* const device : {"/dev/null", "/dev/full"}) {
            SCOPED_TRACE(device);
            const temporary_folder folder;
            const json options = saved_in(
                folder, {{"save", "off"}, {"appendonly", "yes"}, {"appendfsync", "always"}});
            subject cache("cache", options);
            co_await cache.start();
            {
                talker client = co_await talker::to(cache->local());
                EXPECT_EQ(co_await ask(client, "SET before 1"), "+OK");
                std::filesystem::create_symlink(
                    device, folder.file("appendonlydir/temp-rewriteaof-bg-0.aof"));
                EXPECT_THAT(co_await ask(client, "BGREWRITEAOF"), StartsWith("+Background"));
                co_await until([&] { return cache.events.has("not rewritten: "); });
                EXPECT_EQ(co_await info(client, "aof_last_bgrewrite_status"), "err");
                EXPECT_EQ(co_await ask(client, "SET behind 1"), "+OK");
                const std::string digest = co_await ask(client, "DEBUG DIGEST");
                EXPECT_EQ(co_await digest_after_crash(folder, options), digest);
            }
            co_await cache->stop(1s);
            EXPECT_TRUE(std::filesystem::exists(device));
        }
    });
}

}  // namespace
}  // namespace eddy::runtime
