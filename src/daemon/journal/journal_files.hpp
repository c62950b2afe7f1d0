// Files of journals: `<state>/journals/<name>.log`, so that `eddy logs` shows the lines from before
// a restart of the daemon.
//
// Journals with new lines are queued; a background thread writes them, so that no loop waits for
// the disk. A file holds at least the lines of the journal's memory. New lines are appended; at its
// limit, and where it is not as this daemon left it, it is written anew from memory. A refused
// write is tried again every retry_pause. Files are not fsynced: kill -9 loses the lines of the
// last write_pause, a power cut also the lines that the kernel had not written.
#pragma once

#include <eddy/base/unique_fd.hpp>

#include "daemon/journal/runtime_journal.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace eddy::daemon {

/// Writes journals to a folder. add() and flush() may be called by any thread. It must outlive the
/// journals' writers, or stop() must be called before.
class journal_files {
public:
    /// Bytes of a file at most. A journal's memory is less, so what is cut off is what it has
    /// dropped.
    static constexpr std::size_t file_limit = 512 * 1024;
    /// Between two rounds of writing: a runtime that writes without end costs the disk at most its
    /// memory in each.
    static constexpr std::chrono::milliseconds write_pause{200};
    /// Between two attempts to write what a full disk, for example, has refused.
    static constexpr std::chrono::milliseconds retry_pause{5000};

    /// The folder is made when it is missing, in one that must be there. The first failure of a
    /// journal goes to the log.
    explicit journal_files(std::string folder, std::chrono::milliseconds retry = retry_pause)
        : folder_(std::move(folder)), retry_pause_(retry) {}
    ~journal_files() { stop(); }
    journal_files(const journal_files&) = delete;
    journal_files& operator=(const journal_files&) = delete;

    std::string path_of(std::string_view name) const;

    /// The newest lines of that name's file, as many as a journal keeps; none where there is no
    /// file or it cannot be read. Of a file that is larger than any of ours the end counts. What is
    /// no line of a journal is left out. Waits for the disk.
    std::vector<journal_line> load(std::string_view name) const;

    /// Queues the journal for writing. Never waits.
    void add(std::shared_ptr<runtime_journal> journal);

    /// The journal's file has another name from now on. Waits for the disk.
    void rename(runtime_journal& journal, std::string name);

    /// Waits until all that was added is written, or refused.
    void flush();
    /// The same, tries once more what was refused, and ends the thread: nothing is written from
    /// then on.
    void stop();

private:
    /// Outcome of an attempt to append: `unfit` is a file that must be written anew.
    enum class appended { done, refused, unfit };

    void run();
    void write(const std::shared_ptr<runtime_journal>& journal);
    bool write_lines(runtime_journal& journal, journal_file& file);
    bool write_anew(runtime_journal& journal, journal_file& file);
    appended append(runtime_journal& journal, journal_file& file);
    unique_fd open_for_writing(const std::string& path, int flags) const;

    const std::string folder_;
    const std::chrono::milliseconds retry_pause_;
    std::mutex mutex_;
    std::condition_variable filled_;
    std::condition_variable emptied_;
    /// Each journal at most once.
    std::deque<std::shared_ptr<runtime_journal>> queue_;
    /// Journals whose last attempt was refused. The thread's.
    std::set<std::shared_ptr<runtime_journal>> unwritten_;
    std::thread thread_;
    bool is_writing_ = false;
    bool is_urgent_ = false;  // a flush() waits
    bool is_ending_ = false;
};

}  // namespace eddy::daemon
