// Files of journals: the thread that writes them, and reading at the start.
#include "daemon/journal/journal_files.hpp"

#include <eddy/base/log.hpp>
#include <eddy/base/unique_fd.hpp>

#include "base/files/regular_file.hpp"
#include "daemon/journal/write_all.hpp"
#include "io/posix/signals.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <system_error>
#include <utility>

namespace eddy::daemon {
namespace {

/// Bytes that are read of a file's end: enough for what memory keeps, also where a file that was
/// made longer by hand has other lines among them.
constexpr std::size_t read_limit = 4 * journal_files::file_limit;

std::string text_of(const std::vector<journal_line>& lines) {
    std::string text;
    for (const journal_line& each : lines) text += format_journal_line(each);
    return text;
}

/// Bytes of a regular file from `from` on, at most `most`. Errors are pread(2)'s.
result<std::string> read_at(int file, std::size_t from, std::size_t most) {
    std::string text(most, '\0');
    std::size_t size = 0;
    while (size < most) {
        const ssize_t got =
            ::pread(file, text.data() + size, most - size, static_cast<off_t>(from + size));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail_errno();
        if (got == 0) break;
        size += static_cast<std::size_t>(got);
    }
    text.resize(size);
    return text;
}

std::size_t size_of(int file) {
    struct stat about{};
    return ::fstat(file, &about) == 0 ? static_cast<std::size_t>(about.st_size) : 0;
}

/// The last whole lines of a file, in read_limit bytes at most.
result<std::string> read_end(const std::string& path) {
    const auto file = open_regular(path.c_str(), O_RDONLY);
    if (!file) return fail(file.error());
    const std::size_t size = size_of(file->get());
    if (size <= read_limit) return read_at(file->get(), 0, size);
    auto text = read_at(file->get(), size - read_limit, read_limit);
    if (text) text->erase(0, std::min(text->find('\n'), text->size() - 1) + 1);
    return text;
}

/// True when an open file of that size has the lines up to file.last_number and ends there. At the
/// start of a daemon the end of the file is compared with memory.
bool is_as_left(int fd, std::size_t size, const runtime_journal& journal,
                const journal_file& file) {
    if (file.size) return size == *file.size;
    auto lines = journal.read(0, runtime_journal::line_limit);
    std::erase_if(lines, [&](const journal_line& l) { return l.number > file.last_number; });
    if (lines.empty()) return file.last_number == 0 && size == 0;
    const std::string text = text_of(lines);
    if (size < text.size()) return false;
    const std::size_t before = std::min<std::size_t>(size - text.size(), 1);
    const auto end = read_at(fd, size - text.size() - before, before + text.size());
    return end && end->ends_with(text) && (before == 0 || end->front() == '\n');
}

}  // namespace

std::string journal_files::path_of(std::string_view name) const {
    return fmt::format("{}/{}.log", folder_, name);
}

std::vector<journal_line> journal_files::load(std::string_view name) const {
    std::vector<journal_line> lines;
    const auto text = read_end(path_of(name));
    if (!text) return lines;
    std::string_view rest = *text;
    while (!rest.empty()) {
        const std::size_t end = std::min(rest.find('\n'), rest.size());
        if (auto line = parse_journal_line(rest.substr(0, end))) lines.push_back(std::move(*line));
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    if (lines.size() > runtime_journal::line_limit)
        lines.erase(lines.begin(), lines.end() - runtime_journal::line_limit);
    return lines;
}

void journal_files::add(std::shared_ptr<runtime_journal> journal) {
    const std::lock_guard lock(mutex_);
    if (is_ending_) return;
    queue_.push_back(std::move(journal));
    filled_.notify_one();
    if (thread_.joinable()) return;
    try {
        const signals_blocked mask;
        thread_ = std::thread([this] {
            static_cast<void>(::pthread_setname_np(::pthread_self(), "eddy-journals"));
            run();
        });
    } catch (const std::system_error&) {
        // No thread can be created. The next add() tries again.
    }
}

void journal_files::run() {
    using clock = std::chrono::steady_clock;
    const auto is_due = [this] { return !queue_.empty() || is_ending_; };
    auto retry_at = clock::time_point::max();
    std::unique_lock lock(mutex_);
    for (;;) {
        if (unwritten_.empty())
            filled_.wait(lock, is_due);
        else
            filled_.wait_until(lock, retry_at, is_due);
        const bool is_last = is_ending_;  // nothing is added from then on
        const auto round = std::exchange(queue_, {});
        is_writing_ = true;
        lock.unlock();
        // A runtime's removal comes before the first line of the next one of that name, so all that
        // was added comes first, in its order.
        for (const auto& each : round) write(each);
        if (is_last || clock::now() >= retry_at) {
            const std::vector again(unwritten_.begin(), unwritten_.end());
            for (const auto& each : again) write(each);
            retry_at = clock::time_point::max();
        }
        if (retry_at == clock::time_point::max() && !unwritten_.empty())
            retry_at = clock::now() + retry_pause_;
        lock.lock();
        is_writing_ = false;
        if (queue_.empty()) is_urgent_ = false;
        emptied_.notify_all();
        if (is_last) return;
        filled_.wait_for(lock, write_pause, [this] { return is_urgent_ || is_ending_; });
    }
}

void journal_files::rename(runtime_journal& journal, std::string name) {
    flush();
    std::unique_lock lock(mutex_);
    // The thread, which has the file's state, cannot begin a round meanwhile.
    emptied_.wait(lock, [this] { return !is_writing_; });
    journal_file& file = *journal.file();
    // Without a file, or where the disk refuses, it is written anew from memory.
    if (::rename(path_of(file.name).c_str(), path_of(name).c_str()) != 0) file.size.reset();
    file.name = std::move(name);
}

void journal_files::flush() {
    std::unique_lock lock(mutex_);
    if (!thread_.joinable() || (queue_.empty() && !is_writing_)) return;
    is_urgent_ = true;
    filled_.notify_one();
    emptied_.wait(lock, [this] { return queue_.empty() && !is_writing_; });
}

void journal_files::stop() {
    {
        const std::lock_guard lock(mutex_);
        is_ending_ = true;
        filled_.notify_one();
    }
    if (thread_.joinable()) thread_.join();
}

void journal_files::write(const std::shared_ptr<runtime_journal>& journal) {
    journal_file& file = *journal->file();
    if (journal->start_writing()) {
        ::unlink(path_of(file.name).c_str());
        unwritten_.erase(journal);
        return;
    }
    bool good = false;
    try {
        good = write_lines(*journal, file);
    } catch (const std::exception&) {
        errno = ENOMEM;
    }
    if (good) {
        unwritten_.erase(journal);
        return;
    }
    const int error = errno;
    if (unwritten_.insert(journal).second)
        log_warn(file.name, fmt::format("its journal cannot be kept in {}: {}", path_of(file.name),
                                        std::generic_category().message(error)));
}

/// Opens a file that nothing but a regular file may be, in a folder that may have been removed;
/// errno has the error.
unique_fd journal_files::open_for_writing(const std::string& path, int flags) const {
    const auto open = [&] {
        return open_regular(path.c_str(), O_CREAT | O_NOFOLLOW | flags, 0600);
    };
    auto opened = open();
    if (!opened && opened.error() == std::errc::no_such_file_or_directory &&
        ::mkdir(folder_.c_str(), 0700) == 0)
        opened = open();
    if (opened) return std::move(*opened);
    errno = opened.error().value();
    return {};
}

/// False with errno where the disk refuses.
bool journal_files::write_lines(runtime_journal& journal, journal_file& file) {
    const appended done = append(journal, file);
    return done == appended::unfit ? write_anew(journal, file) : done == appended::done;
}

journal_files::appended journal_files::append(runtime_journal& journal, journal_file& file) {
    const auto lines = journal.read(file.last_number, runtime_journal::line_limit);
    if (lines.empty()) return appended::done;
    if (lines.front().number != file.last_number + 1) return appended::unfit;
    const std::string text = text_of(lines);
    const unique_fd to = open_for_writing(path_of(file.name), O_RDWR | O_APPEND);
    if (!to) return appended::unfit;
    const std::size_t size = size_of(to.get());
    if (size + text.size() > file_limit || !is_as_left(to.get(), size, journal, file))
        return appended::unfit;
    if (!write_all(to.get(), text)) {
        const int error = errno;
        // Half a line would pass for one that ends there.
        if (::ftruncate(to.get(), static_cast<off_t>(size)) != 0) file.size = 0;
        errno = error;
        return appended::refused;
    }
    file.size = size + text.size();
    file.last_number = lines.back().number;
    return appended::done;
}

bool journal_files::write_anew(runtime_journal& journal, journal_file& file) {
    const auto lines = journal.read(0, runtime_journal::line_limit);
    if (lines.empty()) return true;
    const std::string text = text_of(lines);
    const std::string path = path_of(file.name);
    // No runtime's name begins with a dot.
    const std::string fresh = fmt::format("{}/.{}.log.new", folder_, file.name);
    const unique_fd to = open_for_writing(fresh, O_WRONLY | O_TRUNC);
    if (!to) return false;
    if (!write_all(to.get(), text) || ::rename(fresh.c_str(), path.c_str()) != 0) {
        const int error = errno;
        ::unlink(fresh.c_str());
        errno = error;
        return false;
    }
    file.size = text.size();
    file.last_number = lines.back().number;
    return true;
}

}  // namespace eddy::daemon
