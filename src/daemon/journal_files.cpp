// Files of journals: the thread that writes them, and reading at the start.
#include "daemon/journal_files.hpp"

#include <eddy/base/log.hpp>
#include <eddy/base/unique_fd.hpp>

#include "base/regular_file.hpp"
#include "daemon/write_all.hpp"
#include "io/posix/signals.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <optional>
#include <system_error>
#include <utility>

namespace eddy::daemon {
namespace {

/// A file may have been made longer by hand.
constexpr std::size_t read_limit = 4 * journal_files::file_limit;

std::string text_of(const std::vector<journal_line>& lines) {
    std::string text;
    for (const journal_line& each : lines) text += format_journal_line(each);
    return text;
}

/// Opens a file that nothing but a regular file may be; errno has the error.
unique_fd open_for_writing(const std::string& path, int flags) {
    auto opened = open_regular(path.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | flags, 0600);
    if (opened) return std::move(*opened);
    errno = opened.error().value();
    return {};
}

}  // namespace

std::string journal_files::path_of(std::string_view name) const {
    return fmt::format("{}/{}.log", folder_, name);
}

std::vector<journal_line> journal_files::load(std::string_view name) const {
    std::vector<journal_line> lines;
    const auto text = read_regular(path_of(name), read_limit);
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
        // No thread is to be had. The next one that is added tries again.
    }
}

void journal_files::run() {
    std::unique_lock lock(mutex_);
    for (;;) {
        filled_.wait(lock, [this] { return !queue_.empty() || is_ending_; });
        if (queue_.empty()) return;
        is_writing_ = true;
        auto round = std::exchange(queue_, {});
        lock.unlock();
        while (!round.empty()) {
            write(*round.front());
            round.pop_front();
        }
        lock.lock();
        is_writing_ = false;
        if (queue_.empty()) {
            is_urgent_ = false;
            emptied_.notify_all();
        }
        filled_.wait_for(lock, write_pause, [this] { return is_urgent_ || is_ending_; });
    }
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

void journal_files::write(runtime_journal& journal) {
    journal_file& file = *journal.file();
    if (journal.start_writing()) {
        ::unlink(path_of(file.name).c_str());
        return;
    }
    bool good = false;
    try {
        good = append(journal, file) || write_anew(journal, file);
    } catch (const std::exception&) {
        errno = ENOMEM;
    }
    if (!good && !std::exchange(file.has_failed, true))
        log_warn(file.name, fmt::format("its journal cannot be kept in {}: {}", path_of(file.name),
                                        std::generic_category().message(errno)));
    if (good) file.has_failed = false;
}

/// False where the whole file must be written: it lacks lines, is at its limit, or is not known to
/// be whole.
bool journal_files::append(runtime_journal& journal, journal_file& file) {
    if (!file.is_whole) return false;
    const auto lines = journal.read(file.last_number, runtime_journal::line_limit);
    if (lines.empty()) return true;
    if (lines.front().number != file.last_number + 1) return false;
    const std::string text = text_of(lines);
    if (file.size + text.size() > file_limit) return false;
    file.is_whole = false;
    const unique_fd to = open_for_writing(path_of(file.name), O_APPEND);
    if (!to || !write_all(to.get(), text)) return false;
    file.is_whole = true;
    file.size += text.size();
    file.last_number = lines.back().number;
    return true;
}

bool journal_files::write_anew(runtime_journal& journal, journal_file& file) {
    const auto lines = journal.read(0, runtime_journal::line_limit);
    if (lines.empty()) return true;
    const std::string text = text_of(lines);
    const std::string path = path_of(file.name);
    // No runtime's name begins with a dot.
    const std::string fresh = fmt::format("{}/.{}.log.new", folder_, file.name);
    const unique_fd to = open_for_writing(fresh, O_TRUNC);
    if (!to) return false;
    if (!write_all(to.get(), text) || ::rename(fresh.c_str(), path.c_str()) != 0) {
        const int error = errno;
        ::unlink(fresh.c_str());
        errno = error;
        return false;
    }
    file.is_whole = true;
    file.size = text.size();
    file.last_number = lines.back().number;
    return true;
}

}  // namespace eddy::daemon
