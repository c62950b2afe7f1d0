// file: asynchronous reads and writes of a file, without blocking the loop.
//
//     result<file> log = co_await file::open("/var/log/demo", O_WRONLY | O_CREAT);
//     if (!log) co_return fail(log.error());
//     result<> written = co_await log->write_at(0, as_bytes(text));
//     if (written) written = co_await log->sync();
//
// On io_uring, reading, writing and syncing are requests of the loop's ring. Opening and the rest
// would occupy a thread of the kernel there: they, and everything on epoll, run on a few threads
// that the loop starts when they are first needed. On the simulator it happens at once, inside the
// call: files are the machine's real ones there, and threads would make a run depend on more than
// its seed.
#pragma once

#include <eddy/base/bytes.hpp>
#include <eddy/base/result.hpp>
#include <eddy/base/unique_fd.hpp>
#include <eddy/io/task.hpp>

#include <fcntl.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace eddy {

/// Status of a file, fstat(2). Times are seconds and nanoseconds since 1970, UTC.
struct file_status {
    mode_t mode = 0;                         ///< kind and permissions
    std::uint64_t size = 0;                  ///< in bytes
    std::uint64_t inode = 0;                 ///< its number on the device
    std::uint64_t device = 0;                ///< that has the inode
    std::int64_t modified_seconds = 0;       ///< of its content, or as utimensat(2) has set them
    std::uint32_t modified_nanoseconds = 0;  ///< the rest
    std::int64_t changed_seconds = 0;        ///< of content or inode, set by the kernel alone
    std::uint32_t changed_nanoseconds = 0;   ///< the rest

    /// True for a folder.
    bool is_folder() const noexcept;
    /// True for a regular file.
    bool is_regular() const noexcept;
    /// Equal if the content is unchanged, within the resolution of the kernel's clock.
    bool operator==(const file_status&) const noexcept = default;
};

/// An entry of a folder.
struct folder_entry {
    std::string name;    ///< without the folder's
    file_status status;  ///< of what it names
};

/// An open file. It must outlive what is awaited of it; any number of reads and writes may be in
/// flight at once. One loop's thread.
///
/// Bytes stay with the caller, and must live until the await has ended. Cancelling an await ends it
/// with errc::cancelled, once its bytes are no longer in use; work that could not be stopped runs
/// to its end, and its result is kept. All fail with errc::limit_reached when
/// loop_options::max_file_queue pieces of work wait for the loop's threads.
class file {
public:
    /// Opens `path` with the flags and, where it creates the file, the mode of open(2);
    /// close-on-exec. Yields a result<file>; errors are open(2)'s.
    static task<result<file>> open(std::string path, int flags, mode_t mode = 0666);
    /// The same for a path that others choose: only a regular file is opened, or /dev/null, or
    /// /dev/full for writing, and nothing that could make a thread wait, such as a FIFO. Yields a
    /// result<file>; errors are open(2)'s, EISDIR, and one that names the kind of the file.
    static task<result<file>> open_regular(std::string path, int flags, mode_t mode = 0666);

    /// Opens an existing regular file below the folder that the descriptor `folder` is of, which
    /// must live until then. No "..", symbolic link or /proc in `path` leads out of that folder,
    /// and nothing that could make a thread wait is opened. What is in the kernel's caches is
    /// opened at once, without a thread. `flags` are open(2)'s without O_CREAT. Yields a
    /// result<file>; errors are openat2(2)'s, such as EXDEV for a way out, EISDIR, and one that
    /// names the kind of the file; ENOSYS before Linux 5.6.
    static task<result<file>> open_beneath(int folder, std::string path, int flags = O_RDONLY);
    /// Status of what `path` names below that folder, of any kind, as open_beneath() finds it.
    /// `folder` must live until then. Yields a result<file_status>; errors are openat2(2)'s.
    static task<result<file_status>> status_beneath(int folder, std::string path);

    /// Regular files and folders in the folder that `path` names below that folder, in no order, at
    /// most `limit` of them; symbolic links appear as what they name there. `folder` must live
    /// until then. A cancellation ends it between two entries. Yields a
    /// result<std::vector<folder_entry>>; errors are openat2(2)'s and readdir(3)'s.
    static task<result<std::vector<folder_entry>>> list_beneath(int folder, std::string path,
                                                                std::size_t limit);

    /// Renames `from` to `to`, replacing an existing `to`, and waits until the disk has the change:
    /// rename(2), then fsync(2) of the folder of `to`, whose errors these are. Yields a result<>.
    static task<result<>> rename(std::string from, std::string to);
    /// Removes the name `path`: unlink(2), whose errors these are. Yields a result<>.
    static task<result<>> remove(std::string path);

    /// `other` may then only be assigned to or destroyed. Operations in flight continue.
    file(file&&) noexcept = default;
    /// The same. The previous file is closed; no operation of it may be in flight.
    file& operator=(file&&) noexcept = default;

    /// Reads what follows `offset`, at most as much as `into` holds, whose bytes must live until
    /// completion. Yields the number of bytes, a result<std::size_t>: fewer at the end of the file,
    /// and 0 behind it. Errors are pread(2)'s.
    task<result<std::size_t>> read_at(std::uint64_t offset, mutable_bytes into) {
        return read(state_.get(), offset, into);
    }
    /// Reads at once what the kernel has in memory of what follows `offset`, at most as much as
    /// `into` holds: fewer bytes, too, before the end of the file; 0 behind it. Fails with EAGAIN
    /// when read_at() would wait for the disk; other errors are preadv2(2)'s.
    result<std::size_t> try_read_at(std::uint64_t offset, mutable_bytes into) noexcept;
    /// Writes all of `bytes` at `offset`; they must live until completion. After an error, or a
    /// cancellation, it is unknown how many were written. With O_APPEND they go to the end of the
    /// file. Yields a result<>; errors are pwrite(2)'s.
    task<result<>> write_at(std::uint64_t offset, const_bytes bytes) {
        return write(state_.get(), offset, bytes);
    }
    /// A temporary's bytes would be gone before they are written.
    template <owning_temporary Bytes>
    task<result<>> write_at(std::uint64_t offset, Bytes&& bytes) = delete;

    /// Waits until the disk has what was written. Yields a result<>; errors are fsync(2)'s.
    task<result<>> sync() { return sync(state_.get(), false); }
    /// The same without metadata that reading does not need, such as its times: fdatasync(2).
    task<result<>> sync_data() { return sync(state_.get(), true); }

    /// Yields the file's length in bytes, a result<std::uint64_t>; errors are fstat(2)'s.
    task<result<std::uint64_t>> size() { return size(state_.get()); }
    /// Its status, which an open file has in memory. Errors are fstat(2)'s.
    result<file_status> status() const noexcept;
    /// Cuts the file, or lengthens it by zeros. Yields a result<>; errors are ftruncate(2)'s.
    task<result<>> truncate(std::uint64_t size) { return truncate(state_.get(), size); }

    /// The descriptor, still owned by this object.
    int native_handle() const noexcept;

private:
    struct state;
    struct end_state {
        void operator()(state* over) const noexcept;
    };
    explicit file(unique_fd fd);
    static task<result<std::size_t>> read(state* of, std::uint64_t offset, mutable_bytes into);
    static task<result<>> write(state* of, std::uint64_t offset, const_bytes bytes);
    static task<result<>> sync(state* of, bool data_only);
    static task<result<std::uint64_t>> size(state* of);
    static task<result<>> truncate(state* of, std::uint64_t size);

    std::unique_ptr<state, end_state> state_;
};

}  // namespace eddy
