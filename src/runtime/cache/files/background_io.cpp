// Pool of threads with a lower priority than the loops'.
#include "runtime/cache/files/background_io.hpp"

#include <eddy/base/unique_fd.hpp>
#include <eddy/io/blocking.hpp>
#include <eddy/io/loop.hpp>

#include "base/files/regular_file.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace eddy::runtime::cache {
namespace {

/// setpriority(2)'s, of the thread alone. The process's others get nine times its share of a core
/// that all want, so that it gets on all the same.
constexpr int niceness = 10;

/// For all caches: ending a thread that has its core last would keep the loop waiting.
blocking_pool& threads() {
    static blocking_pool all({.max_threads = 4});
    return all;
}

template <class Work>
task<std::invoke_result_t<Work&>> in_background(Work work) {
    if (loop::current().kind() == io_backend_kind::sim) co_return work();
    co_return co_await run_blocking(threads(), [&work] {
        thread_local bool is_lowered = false;
        if (!std::exchange(is_lowered, true))
            static_cast<void>(::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), niceness));
        return work();
    });
}

result<> write_whole(int fd, std::uint64_t offset, const_bytes bytes) {
    while (!bytes.empty()) {
        const ssize_t done = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return fail_errno();
        offset += static_cast<std::uint64_t>(done);
        bytes = bytes.subspan(static_cast<std::size_t>(done));
    }
    return {};
}

/// A file that is open keeps what it has without a name, too. Nothing when there is none.
task<result<unique_fd>> hold(const std::string& path) {
    return in_background(
        [&path]() -> result<unique_fd> { return open_regular(path.c_str(), O_RDONLY); });
}

/// Closes it, which ends a file that has no name any more.
task<void> let_go(result<unique_fd> held) {
    if (!held || !*held) co_return;
    static_cast<void>(co_await in_background([&held]() -> result<> {
        held->reset();
        return {};
    }));
}

}  // namespace

task<result<>> background_writer::write_at(std::uint64_t offset, const_bytes bytes) {
    return in_background([fd = fd_, offset, bytes] { return write_whole(fd, offset, bytes); });
}

task<result<>> background_writer::sync_data() {
    return in_background([fd = fd_]() -> result<> {
        if (::fdatasync(fd) != 0) return fail_errno();
        return {};
    });
}

task<result<>> background_writer::sync() {
    return in_background([fd = fd_]() -> result<> {
        if (::fsync(fd) != 0) return fail_errno();
        return {};
    });
}

task<result<>> background_rename(std::string from, std::string to) {
    result<unique_fd> old = co_await hold(to);
    const result<> renamed = co_await file::rename(std::move(from), std::move(to));
    co_await let_go(std::move(old));
    co_return renamed;
}

task<result<>> background_remove(std::string path) {
    result<unique_fd> old = co_await hold(path);
    const result<> removed = co_await file::remove(std::move(path));
    co_await let_go(std::move(old));
    co_return removed;
}

}  // namespace eddy::runtime::cache
