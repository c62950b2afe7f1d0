// Files: requests of the ring where there is one, else the loop's threads.
#include <eddy/io/file.hpp>

#include <eddy/io/loop.hpp>

#include "base/files/regular_file.hpp"
#include "io/files/file_access.hpp"
#include "io/files/off_loop.hpp"
#include "io/io_backend.hpp"

#include <dirent.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

namespace eddy {
namespace {

/// Most bytes of one request; the kernel's own limit is 2 GiB less a page.
constexpr std::size_t most_a_step = std::size_t{1} << 30;

/// Result of a system call that returns a count or -1.
result<std::size_t> outcome_of(ssize_t count) noexcept {
    if (count < 0) return fail_errno();
    return static_cast<std::size_t>(count);
}

template <class Call>
auto unless_interrupted(Call call) {
    auto outcome = call();
    while (outcome < 0 && errno == EINTR) outcome = call();
    return outcome;
}

result<std::size_t> do_now(const file_request& what) noexcept {
    const auto offset = static_cast<off_t>(what.offset);
    return outcome_of(unless_interrupted([&]() -> ssize_t {
        switch (what.what) {
            case file_request::action::read: return ::pread(what.fd, what.data, what.size, offset);
            case file_request::action::write:
                return ::pwrite(what.fd, what.data, what.size, offset);
            case file_request::action::sync: return ::fsync(what.fd);
            case file_request::action::sync_data: break;
        }
        return ::fdatasync(what.fd);
    }));
}

/// Awaits `call(cached)`, which does not wait for the disk when `cached` is true: at once if that
/// suffices, else where it does not block the loop.
template <class Call>
task<std::invoke_result_t<Call, bool>> cached_or_off_loop(Call call) {
    auto at_once = call(true);
    // EINVAL is the answer of kernels before 5.12, which do not know such a look-up.
    if (at_once || (at_once.error() != std::errc::resource_unavailable_try_again &&
                    at_once.error() != std::errc::invalid_argument))
        co_return at_once;
    co_return co_await off_loop([&call] { return call(false); });
}

result<file_status> status_of(int fd) noexcept {
    struct stat about{};
    if (::fstat(fd, &about) < 0) return fail_errno();
    file_status seen;
    seen.mode = about.st_mode;
    seen.size = static_cast<std::uint64_t>(about.st_size);
    seen.inode = about.st_ino;
    seen.device = about.st_dev;
    seen.modified_seconds = about.st_mtim.tv_sec;
    seen.modified_nanoseconds = static_cast<std::uint32_t>(about.st_mtim.tv_nsec);
    seen.changed_seconds = about.st_ctim.tv_sec;
    seen.changed_nanoseconds = static_cast<std::uint32_t>(about.st_ctim.tv_nsec);
    return seen;
}

result<file_status> status_beneath_now(int folder, const char* path, bool cached) {
    const auto seen = open_beneath(folder, path, O_PATH, cached);
    if (!seen) return fail(seen.error());
    return status_of(seen->get());
}

/// Flag that a cancellation sets, for work on another thread.
class stop_flag final : private cancel_hook {
public:
    /// `of` may be null. The loop's thread, as the end.
    explicit stop_flag(cancel_source* of) noexcept {
        if (of == nullptr) return;
        if (of->requested())
            is_set_ = true;
        else
            of->add(*this);
    }
    ~stop_flag() { unlink(); }
    stop_flag(const stop_flag&) = delete;
    stop_flag& operator=(const stop_flag&) = delete;

    /// Any thread.
    bool is_set() const noexcept { return is_set_.load(std::memory_order_relaxed); }

private:
    void on_cancel() noexcept override { is_set_ = true; }

    std::atomic<bool> is_set_{false};
};

result<std::vector<folder_entry>> list_now(int folder, const char* path, std::size_t limit,
                                           const stop_flag& stop) {
    auto opened = open_beneath(folder, path, O_RDONLY | O_DIRECTORY, false);
    if (!opened) return fail(opened.error());
    const std::unique_ptr<DIR, int (*)(DIR*)> reading(::fdopendir(opened->get()), ::closedir);
    if (!reading) return fail_errno();
    const int fd = opened->release();  // the DIR's
    std::vector<folder_entry> entries;
    while (entries.size() < limit) {
        if (stop.is_set()) return fail(errc::cancelled);
        errno = 0;
        const dirent* const each = ::readdir(reading.get());
        if (!each && errno != 0) return fail_errno();
        if (!each) break;
        const std::string_view name = each->d_name;
        if (name == "." || name == "..") continue;
        // Below its own folder alone, a link to something beside that folder would lead out.
        const std::string below = std::string(path) + "/" + std::string(name);
        const auto status = each->d_type == DT_LNK || each->d_type == DT_UNKNOWN
                                ? status_beneath_now(folder, below.c_str(), false)
                                : status_beneath_now(fd, each->d_name, false);
        // An entry that cannot be opened, or is gone meanwhile, is left out.
        if (status && (status->is_folder() || status->is_regular()))
            entries.push_back({std::string(name), *status});
    }
    return entries;
}

task<result<std::size_t>> do_step(file_request what) {
    loop& here = loop::current();
    io_backend& kernel = file_access::io_backend_of(here);
    if (kernel.has_file_requests()) co_return co_await awaiting<file_operation>(kernel, what);
    co_return co_await off_loop([what] { return do_now(what); });
}

}  // namespace

bool file_status::is_folder() const noexcept { return S_ISDIR(mode); }

bool file_status::is_regular() const noexcept { return S_ISREG(mode); }

struct file::state {
    explicit state(unique_fd opened) noexcept : fd(std::move(opened)) {}

    unique_fd fd;
    std::size_t in_flight = 0;
};

namespace {

/// Counts one use of a file, which must not be closed meanwhile: its number could name another.
class in_use {
public:
    explicit in_use(std::size_t& count) noexcept : count_(&count) { ++count; }
    ~in_use() { --*count_; }
    in_use(const in_use&) = delete;
    in_use& operator=(const in_use&) = delete;

private:
    std::size_t* count_;
};

}  // namespace

void file::end_state::operator()(state* over) const noexcept {
    EDDY_PRECONDITION(over->in_flight == 0,
                      "a file was destroyed while an operation of it waits: await it first");
    delete over;
}

file::file(unique_fd fd) : state_(new state(std::move(fd))) {}

int file::native_handle() const noexcept { return state_->fd.get(); }

task<result<>> file::rename(std::string from, std::string to) {
    co_return co_await off_loop([&]() -> result<> {
        if (::rename(from.c_str(), to.c_str()) != 0) return fail_errno();
        const std::size_t slash = to.rfind('/');
        const std::string folder = slash == std::string::npos ? "."
                                   : slash == 0               ? "/"
                                                              : to.substr(0, slash);
        const unique_fd opened(unless_interrupted(
            [&] { return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
        if (!opened) return fail_errno();
        if (unless_interrupted([&] { return ::fsync(opened.get()); }) != 0) return fail_errno();
        return {};
    });
}

task<result<>> file::remove(std::string path) {
    co_return co_await off_loop([&]() -> result<> {
        if (::unlink(path.c_str()) != 0) return fail_errno();
        return {};
    });
}

task<result<file>> file::open(std::string path, int flags, mode_t mode) {
    result<unique_fd> opened = co_await off_loop([&]() -> result<unique_fd> {
        unique_fd fd(
            unless_interrupted([&] { return ::open(path.c_str(), flags | O_CLOEXEC, mode); }));
        if (!fd) return fail_errno();
        return fd;
    });
    if (!opened) co_return fail(opened.error());
    co_return file(std::move(*opened));
}

task<result<file>> file::open_regular(std::string path, int flags, mode_t mode) {
    result<unique_fd> opened =
        co_await off_loop([&] { return eddy::open_regular(path.c_str(), flags, mode); });
    if (!opened) co_return fail(opened.error());
    co_return file(std::move(*opened));
}

task<result<file>> file::open_beneath(int folder, std::string path, int flags) {
    auto opened = co_await cached_or_off_loop(
        [&](bool cached) { return open_regular_beneath(folder, path.c_str(), flags, cached); });
    if (!opened) co_return fail(opened.error());
    co_return file(std::move(*opened));
}

task<result<file_status>> file::status_beneath(int folder, std::string path) {
    co_return co_await cached_or_off_loop([&](bool cached) -> result<file_status> {
        return status_beneath_now(folder, path.c_str(), cached);
    });
}

task<result<std::vector<folder_entry>>> file::list_beneath(int folder, std::string path,
                                                           std::size_t limit) {
    const stop_flag stop(co_await current_source());
    co_return co_await off_loop([&] { return list_now(folder, path.c_str(), limit, stop); });
}

result<file_status> file::status() const noexcept { return status_of(native_handle()); }

result<std::size_t> file::try_read_at(std::uint64_t offset, mutable_bytes into) noexcept {
    iovec room{into.data(), std::min(into.size(), most_a_step)};
    const auto count = outcome_of(unless_interrupted([&] {
        return ::preadv2(native_handle(), &room, 1, static_cast<off_t>(offset), RWF_NOWAIT);
    }));
    // File systems without such reads.
    if (!count && count.error() == std::errc::operation_not_supported) return fail_errno(EAGAIN);
    return count;
}

task<result<std::size_t>> file::read(state* of, std::uint64_t offset, mutable_bytes into) {
    const in_use use(of->in_flight);
    file_request what;
    what.what = file_request::action::read;
    what.fd = of->fd.get();
    what.data = into.data();
    what.size = std::min(into.size(), most_a_step);
    what.offset = offset;
    co_return co_await do_step(what);
}

task<result<>> file::write(state* of, std::uint64_t offset, const_bytes bytes) {
    const in_use use(of->in_flight);
    file_request what;
    what.what = file_request::action::write;
    what.fd = of->fd.get();
    while (!bytes.empty()) {
        // The kernel only reads the bytes of a write request.
        what.data = const_cast<std::byte*>(bytes.data());
        what.size = std::min(bytes.size(), most_a_step);
        what.offset = offset;
        const result<std::size_t> written = co_await do_step(what);
        if (!written) co_return fail(written.error());
        if (*written == 0) co_return fail_errno(EIO);
        bytes = bytes.subspan(*written);
        offset += *written;
    }
    co_return result<>();
}

task<result<>> file::sync(state* of, bool data_only) {
    const in_use use(of->in_flight);
    file_request what;
    what.what = data_only ? file_request::action::sync_data : file_request::action::sync;
    what.fd = of->fd.get();
    const result<std::size_t> done = co_await do_step(what);
    if (!done) co_return fail(done.error());
    co_return result<>();
}

task<result<std::uint64_t>> file::size(state* of) {
    const in_use use(of->in_flight);
    co_return co_await off_loop([fd = of->fd.get()]() -> result<std::uint64_t> {
        struct stat about{};
        if (::fstat(fd, &about) < 0) return fail_errno();
        return static_cast<std::uint64_t>(about.st_size);
    });
}

task<result<>> file::truncate(state* of, std::uint64_t size) {
    const in_use use(of->in_flight);
    co_return co_await off_loop([fd = of->fd.get(), size]() -> result<> {
        if (unless_interrupted([&] { return ::ftruncate(fd, static_cast<off_t>(size)); }) < 0)
            return fail_errno();
        return {};
    });
}

}  // namespace eddy
