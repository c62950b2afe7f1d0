// Line log: the file, written on a thread.
#include "runtime/logs/line_log.hpp"

#include <eddy/base/assert.hpp>

#include "base/files/regular_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

namespace eddy::runtime {
namespace {

/// Removes the bytes that were written from `bytes`.
result<> write_fully(int file, std::string_view& bytes) noexcept {
    while (!bytes.empty()) {
        const ssize_t written = ::write(file, bytes.data(), bytes.size());
        if (written < 0) {
            if (errno == EINTR) continue;
            return fail_errno();
        }
        bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    return {};
}

/// Cuts the last `size` bytes off a regular file, if this process's last write is its end.
bool take_back(int file, std::size_t size) noexcept {
    struct stat info{};
    if (::fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) return false;
    const off_t end = ::lseek(file, 0, SEEK_CUR);
    return end == info.st_size && ::ftruncate(file, end - static_cast<off_t>(size)) == 0;
}

std::unexpected<problem> cannot_append(const std::string& path, std::error_code why) {
    const bool permission = why == std::errc::permission_denied;
    return refuse(permission ? 403 : 400,
                  fmt::format("cannot append to the log {}: {}", path, why.message()));
}

result<unique_fd> open_to_append(const std::string& path) noexcept {
    constexpr mode_t private_to_group = 0640;
    return open_regular(path.c_str(), O_WRONLY | O_APPEND | O_CREAT, private_to_group);
}

}  // namespace

result<> append_lines(int file, std::string_view lines, bool& torn, std::size_t& kept) noexcept {
    kept = 0;
    if (torn) {
        std::string_view line_end = "\n";
        if (auto written = write_fully(file, line_end); !written) return written;
        torn = false;
    }
    std::string_view left = lines;
    const result<> written = write_fully(file, left);
    const std::string_view done = lines.substr(0, lines.size() - left.size());
    kept = done.size();
    if (written) return written;
    const std::size_t whole = done.rfind('\n') + 1;  // 0 where there is none
    kept = whole;
    if (whole < done.size()) torn = !take_back(file, done.size() - whole);
    return written;
}

outcome<> line_log::check(const std::string& path) {
    const result<unique_fd> opened = open_regular(path.c_str(), O_WRONLY | O_APPEND);
    if (opened) return {};
    if (opened.error() != std::errc::no_such_file_or_directory)
        return cannot_append(path, opened.error());
    const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
    if (::access(folder.c_str(), W_OK) == 0) return {};
    return cannot_append(path, std::error_code(errno, std::system_category()));
}

outcome<> line_log::open(const std::string& path) {
    result<unique_fd> opened = open_to_append(path);
    if (!opened) return cannot_append(path, opened.error());
    file_ = std::move(*opened);
    path_ = path;
    blocking_options one_thread;
    one_thread.max_threads = 1;
    threads_ = std::make_unique<blocking_pool>(one_thread);
    finishing_ = false;
    said_full_ = false;
    said_failed_ = false;
    lost_ = 0;
    torn_ = false;
    return {};
}

outcome<> line_log::reopen() {
    result<unique_fd> opened = open_to_append(path_);
    if (!opened) return cannot_append(path_, opened.error());
    next_file_ = std::move(*opened);
    return {};
}

bool line_log::append(std::string_view messages, std::uint64_t count) {
    if (waiting_.size() + messages.size() > max_waiting) {
        if (!std::exchange(said_full_, true))
            events_.write(
                fmt::format("the disk is too slow for {}: some messages are not logged", path_));
        return false;
    }
    waiting_.append(messages);
    waiting_messages_ += count;
    filled_.set();
    return true;
}

task<void> line_log::run() {
    EDDY_ASSERT(file_ && threads_);
    while (!(finishing_ && waiting_.empty())) {
        if (waiting_.empty()) {
            filled_.reset();
            if (!co_await filled_.wait()) co_return;
            continue;
        }
        if (next_file_) {
            file_ = std::move(next_file_);
            torn_ = false;
        }
        byte_buffer going;
        going.swap(waiting_);
        const std::uint64_t messages = std::exchange(waiting_messages_, 0);
        const int file = file_.get();
        const std::string_view bytes = going.text();
        std::size_t kept = 0;
        const result<> written = co_await run_blocking(*threads_, [this, file, bytes, &kept] {
            return append_lines(file, bytes, torn_, kept);
        });
        if (!written) {
            note_failure(bytes, kept, messages, written.error());
            continue;
        }
        said_full_ = false;
        if (!std::exchange(said_failed_, false)) continue;
        events_.write(fmt::format("appending to {} works again; {} messages were not logged", path_,
                                  std::exchange(lost_, 0)));
    }
}

/// Counts what is lost of a batch of so many messages, the first `kept` bytes of which are written.
void line_log::note_failure(std::string_view batch, std::size_t kept, std::uint64_t messages,
                            std::error_code why) {
    EDDY_ASSERT(kept <= batch.size());
    std::uint64_t lost = messages;
    if (kept > 0) {
        // Raw messages need not be lines: at least one of the messages that were cut is lost.
        const std::string_view rest = batch.substr(kept);
        const auto lines = static_cast<std::uint64_t>(std::count(rest.begin(), rest.end(), '\n'));
        lost = std::min(messages, std::max<std::uint64_t>(lines, 1));
    }
    lost_ += lost;
    if (dropped_ != nullptr) *dropped_ += lost;
    if (std::exchange(said_failed_, true)) return;
    events_.write(
        fmt::format("cannot append to {}: {}; messages are not logged until it works "
                    "again",
                    path_, why.message()));
}

void line_log::finish() noexcept {
    finishing_ = true;
    filled_.set();
}

void line_log::close() noexcept {
    threads_.reset();
    file_.reset();
    next_file_.reset();
    waiting_ = byte_buffer();
    waiting_messages_ = 0;
}

}  // namespace eddy::runtime
