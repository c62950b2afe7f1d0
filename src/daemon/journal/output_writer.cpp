// Output writer: the queue, and the thread behind it.
#include "daemon/journal/output_writer.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/base/log.hpp>

#include "io/posix/signals.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace eddy::daemon {
namespace {

/// Longest wait of flush() for a reader.
constexpr std::chrono::seconds flush_time{1};

bool is_regular_file(int fd) {
    struct stat info{};
    return ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
}

/// There is nowhere to report a failure to, so what cannot be written is lost.
void write_fully(int fd, std::string_view text) {
    while (!text.empty()) {
        const ssize_t written = ::write(fd, text.data(), text.size());
        if (written >= 0) {
            text.remove_prefix(static_cast<std::size_t>(written));
        } else if (errno == EAGAIN) {
            // Another process has made the open file description non-blocking.
            pollfd room{fd, POLLOUT, 0};
            static_cast<void>(::poll(&room, 1, -1));
        } else if (errno != EINTR) {
            return;
        }
    }
}

std::size_t count_lines(std::string_view text) {
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

struct output_writer::queue {
    queue(int to, std::string called)
        : fd(to), name(std::move(called)), never_blocks(is_regular_file(to)) {}

    void run();
    bool is_idle() const { return waiting.empty() && !writing; }

    const int fd;
    const std::string name;
    const bool never_blocks;

    std::mutex mutex;
    std::condition_variable filled;
    std::condition_variable emptied;
    std::string waiting;
    std::size_t dropped = 0;
    bool has_thread = false;
    bool writing = false;  // what was taken out of `waiting` is not written yet
    bool ending = false;
};

void output_writer::queue::run() {
    std::unique_lock lock(mutex);
    for (;;) {
        filled.wait(lock, [this] { return !waiting.empty() || ending; });
        if (waiting.empty()) return;
        std::string text = std::exchange(waiting, {});
        // Lines are dropped behind these ones only: the queue has room from now on.
        if (const std::size_t lost = std::exchange(dropped, 0); lost > 0)
            text +=
                format_log_line(std::chrono::system_clock::now(), log_level::warn, "daemon",
                                fmt::format("{} lines are lost here: {} was not read", lost, name));
        EDDY_ASSERT(!writing);
        writing = true;
        lock.unlock();
        write_fully(fd, text);
        lock.lock();
        writing = false;
        if (is_idle()) emptied.notify_all();
    }
}

output_writer::output_writer(int fd, std::string name)
    : queue_(std::make_shared<queue>(fd, std::move(name))) {}

output_writer::~output_writer() {
    static_cast<void>(flush());
    const std::lock_guard lock(queue_->mutex);
    queue_->ending = true;
    queue_->filled.notify_all();
}

bool output_writer::start_thread() try {
    if (queue_->has_thread) return true;
    const signals_blocked mask;
    std::thread([shared = queue_] {
        static_cast<void>(::pthread_setname_np(::pthread_self(), "eddy-output"));
        shared->run();
    }).detach();
    queue_->has_thread = true;
    return true;
} catch (const std::system_error&) {
    return false;  // no thread is to be had; the next line tries again
}

void output_writer::write(std::string_view lines) {
    queue& its = *queue_;
    const std::lock_guard lock(its.mutex);
    if (its.never_blocks) return write_fully(its.fd, lines);
    if (its.waiting.size() + lines.size() > max_waiting || !start_thread()) {
        its.dropped += count_lines(lines);
        return;
    }
    its.waiting += lines;
    EDDY_ASSERT(its.waiting.size() <= max_waiting);
    its.filled.notify_one();
}

bool output_writer::flush() const {
    std::unique_lock lock(queue_->mutex);
    if (!queue_->has_thread) return true;
    return queue_->emptied.wait_for(lock, flush_time, [this] { return queue_->is_idle(); });
}

std::size_t output_writer::dropped() const {
    const std::lock_guard lock(queue_->mutex);
    return queue_->dropped;
}

}  // namespace eddy::daemon
