// Streams over pipes and terminals, with read(2) and write(2): socket calls refuse them. One driver
// over readiness serves both kernel io-backends, as for UDP.
#include <eddy/io/pipe.hpp>

#include "io/io_backend.hpp"
#include "io/posix/signals.hpp"
#include "io/posix/sockets.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <new>
#include <span>
#include <utility>

namespace eddy {
namespace {

/// Like writev(2), without the signal. Keeps errno.
ssize_t write_pieces(int fd, const iovec* pieces, std::size_t count) noexcept {
    std::size_t wanted = 0;
    for (const iovec& each : std::span(pieces, count)) wanted += each.iov_len;
    no_broken_pipe_signal quiet;
    const ssize_t written = ::writev(fd, pieces, static_cast<int>(count));
    const int error = errno;
    if (written != static_cast<ssize_t>(wanted)) quiet.take();
    errno = error;
    return written;
}

/// True if opening /proc/self/fd/N leads to the same file. False for a pseudo-terminal's master,
/// where that makes a new one; and for a named FIFO without a writer, or a pipe without a reader,
/// report to a new description that the other side has gone.
bool can_be_opened_again(int fd) noexcept {
    struct stat what{};
    if (::fstat(fd, &what) < 0) return false;
    if (S_ISFIFO(what.st_mode)) {
        pollfd state{fd, 0, 0};
        return ::poll(&state, 1, 0) == 0;
    }
    unsigned number = 0;
    return ::isatty(fd) == 1 && ::ioctl(fd, TIOCGPTN, &number) < 0;
}

/// Gives the number `fd` an open file description of its own, non-blocking: the flags of a shared
/// one are shared, and any process may change them. If that fails, nothing changes.
bool open_again(int fd, int flags) noexcept {
    if (!can_be_opened_again(fd)) return false;
    char path[32];
    std::snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    const unique_fd own(::open(path, (flags & O_ACCMODE) | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (!own) return false;
    const int kept = flags & (O_APPEND | O_DIRECT);
    if (kept != 0 && ::fcntl(own.get(), F_SETFL, kept | O_NONBLOCK) < 0) return false;
    const int of_number = ::fcntl(fd, F_GETFD);
    if (of_number < 0) return false;
    return ::dup3(own.get(), fd, (of_number & FD_CLOEXEC) != 0 ? O_CLOEXEC : 0) >= 0;
}

class posix_pipe final : public stream_driver {
public:
    posix_pipe(io_backend& where, buffer_pool& buffers, driver_counts& drivers,
               unique_fd fd) noexcept
        : io_backend_(&where), buffers_(&buffers), drivers_(&drivers), fd_(std::move(fd)) {
        ++drivers.existing;
    }
    ~posix_pipe() { --drivers_->existing; }

    /// Sets O_NONBLOCK. After a failure the object may be deleted directly.
    result<> open(pipe_origin origin) noexcept {
        const int flags = fcntl(fd_.get(), F_GETFL);
        if (flags < 0) return fail_errno();
        if (origin == pipe_origin::foreign) {
            const int of_number = fcntl(fd_.get(), F_GETFD);
            const bool inherited = of_number < 0 || (of_number & FD_CLOEXEC) == 0;
            const bool own = open_again(fd_.get(), flags);
            shared_ = !own || inherited;
            if (own) {
                if ((flags & O_NONBLOCK) == 0) flags_before_ = flags;
                return {};
            }
        }
        if (flags & O_NONBLOCK) return {};
        if (fcntl(fd_.get(), F_SETFL, flags | O_NONBLOCK) < 0) return fail_errno();
        flags_before_ = flags;
        return {};
    }

    bool start(read_operation& op) override {
        EDDY_PRECONDITION(!reader_, "a second read of one stream: await the first before the next");
        if (!op.had_its_share() && receive(op)) return true;
        reader_ = &op;
        readable_.wait(readiness::readable);
        return false;
    }

    bool start(write_operation& op) override {
        EDDY_PRECONDITION(
            !writer_,
            "a second write to one stream: await the first before the next, or use queued_writer");
        if (send(op)) return true;
        writer_ = &op;
        writable_.wait(readiness::writable);
        return false;
    }

    result<std::size_t> try_write(const_bytes bytes) noexcept override {
        if (writer_ || bytes.empty() || !may_go(POLLOUT)) return 0;
        const iovec piece{const_cast<std::byte*>(bytes.data()),
                          std::min(bytes.size(), most_bytes_a_turn)};
        const ssize_t written = write_pieces(fd_.get(), &piece, 1);
        if (written >= 0) return static_cast<std::size_t>(written);
        if (errno == EAGAIN || errno == EINTR) return 0;
        return fail_errno();
    }

    // The polls stay armed for the next wait.
    void cancel(read_operation& op) noexcept override {
        EDDY_ASSERT(reader_ == &op);
        end_reader();
    }
    void cancel(write_operation& op) noexcept override {
        EDDY_ASSERT(writer_ == &op);
        end_writer();
    }

    result<> shutdown_write() noexcept override { return fail(errc::unsupported); }
    endpoint local() const noexcept override { return {}; }
    endpoint peer() const noexcept override { return {}; }
    int native_handle() const noexcept override { return fd_.get(); }

    void close() noexcept override {
        closing_ = true;
        --drivers_->open;
        if (reader_) end_reader();
        if (writer_) end_writer();
        // Processes that share the description, and the receiver of detach(), expect the flags as
        // before.
        if (flags_before_ >= 0) fcntl(fd_.get(), F_SETFL, flags_before_);
        readable_.cancel();
        writable_.cancel();
        free_if_done();
    }

private:
    /// One of the two polls.
    class poll final : public completion {
    public:
        poll(posix_pipe& owner, void (posix_pipe::*ready)(int)) noexcept
            : owner_(&owner), ready_(ready) {}
        void wait(readiness wanted) {
            if (std::exchange(armed_, true)) return;
            owner_->io_backend_->start_poll(owner_->fd_.get(), wanted, *this);
        }
        void cancel() noexcept {
            if (armed_) owner_->io_backend_->cancel_poll(*this);
        }
        bool armed() const noexcept { return armed_; }

    private:
        void on_completion(int result, unsigned) override {
            armed_ = false;
            if (owner_->closing_) return owner_->free_if_done();
            (owner_->*ready_)(result);
        }

        posix_pipe* owner_;
        void (posix_pipe::*ready_)(int);
        bool armed_ = false;
    };

    /// False when a call would wait. Others that share the description may have made it blocking
    /// since: another stream that restored its flags, or a child process.
    bool may_go(short events) noexcept {
        if (!shared_) return true;
        pollfd state{fd_.get(), events, 0};
        if (::poll(&state, 1, 0) <= 0) return false;
        const int flags = fcntl(fd_.get(), F_GETFL);
        if (flags >= 0 && (flags & O_NONBLOCK) == 0 &&
            fcntl(fd_.get(), F_SETFL, flags | O_NONBLOCK) == 0)
            flags_before_ = flags;
        return true;
    }

    /// True when `op` has bytes or an error.
    bool receive(read_operation& op) {
        if (!may_go(POLLIN)) return false;
        const bool lend = op.into().empty();
        std::byte* const bytes = lend ? buffers_->take() : op.into().data();
        if (!bytes) {
            op.set_error(buffers_->refusal());
            return true;
        }
        const std::size_t room = lend ? buffers_->buffer_size() : op.into().size();
        ssize_t size;
        do {
            size = ::read(fd_.get(), bytes, room);
        } while (size < 0 && errno == EINTR);
        const int error = errno;
        if (lend && size <= 0) buffers_->give_back(bytes, 0);
        if (size > 0) {
            if (lend) op.set_received(buffers_->lend(bytes, static_cast<std::size_t>(size)));
            op.set_size(static_cast<std::size_t>(size));
            return true;
        }
        if (size < 0 && error == EAGAIN) return false;
        op.set_error(size == 0 ? make_error_code(errc::end_of_stream) : errno_code(error));
        return true;
    }

    /// True when `op` is finished, well or not.
    bool send(write_operation& op) {
        std::size_t left = most_bytes_a_turn;
        while (left > 0) {
            if (!may_go(POLLOUT)) return false;
            iovec pieces[max_write_pieces];
            const ssize_t written = write_pieces(fd_.get(), pieces, gather(op, pieces));
            if (written >= 0) {
                const auto size = static_cast<std::size_t>(written);
                if (op.advance(size)) return true;
                left -= std::min(size, left);
            } else if (errno == EAGAIN) {
                return false;
            } else if (errno != EINTR) {
                op.set_error(errno_code(errno));
                return true;
            }
        }
        return false;
    }

    // The resumed coroutine may close this driver, so it is not used afterwards.
    void on_readable(int result) {
        if (!reader_) return;
        if (result < 0)
            reader_->set_error(errno_code(-result));
        else if (!receive(*reader_))
            return readable_.wait(readiness::readable);
        std::exchange(reader_, nullptr)->complete_now();
    }
    void on_writable(int result) {
        if (!writer_) return;
        if (result < 0)
            writer_->set_error(errno_code(-result));
        else if (!send(*writer_))
            return writable_.wait(readiness::writable);
        std::exchange(writer_, nullptr)->complete_now();
    }

    void end_reader() noexcept {
        read_operation& op = *std::exchange(reader_, nullptr);
        op.set_error(errc::cancelled);
        op.complete_later();
    }
    void end_writer() noexcept {
        write_operation& op = *std::exchange(writer_, nullptr);
        op.set_error(errc::cancelled);
        op.complete_later();
    }

    void free_if_done() noexcept {
        if (!readable_.armed() && !writable_.armed()) delete this;
    }

    io_backend* io_backend_;
    buffer_pool* buffers_;
    driver_counts* drivers_;
    unique_fd fd_;
    int flags_before_ = -1;  // to be restored at the end; -1 where none were changed
    bool shared_ = false;    // others may have the same description
    read_operation* reader_ = nullptr;
    write_operation* writer_ = nullptr;
    poll readable_{*this, &posix_pipe::on_readable};
    poll writable_{*this, &posix_pipe::on_writable};
    bool closing_ = false;
};

}  // namespace

result<bool> is_pipe_like(int fd) noexcept {
    struct stat what{};
    if (::fstat(fd, &what) < 0) return fail_errno();
    // A regular file is always ready, and its reads would block the loop.
    if (S_ISREG(what.st_mode) || S_ISDIR(what.st_mode) || S_ISBLK(what.st_mode))
        return fail(errc::unsupported);
    return !S_ISSOCK(what.st_mode);
}

result<stream> make_posix_pipe(io_backend& where, buffer_pool& buffers, driver_counts& drivers,
                               unique_fd fd, pipe_origin origin) try {
    // Memory first: other processes may share the descriptor, and must not find its flag changed
    // after a failure.
    auto made = std::make_unique<posix_pipe>(where, buffers, drivers, std::move(fd));
    if (auto opened = made->open(origin); !opened) return fail(opened.error());
    ++drivers.open;
    return stream(*made.release());
} catch (const std::bad_alloc&) {
    return fail_errno(ENOMEM);
}

result<pipe_ends> io_backend::open_pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return fail_errno();
    unique_fd first(ends[0]);
    unique_fd second(ends[1]);
    auto reader = adopt_own(std::move(first));
    if (!reader) return fail(reader.error());
    auto writer = adopt_own(std::move(second));
    if (!writer) return fail(writer.error());
    return pipe_ends{std::move(*reader), std::move(*writer)};
}

result<pipe_ends> make_pipe() { return loop::current().io_backend_->open_pipe(); }

}  // namespace eddy
