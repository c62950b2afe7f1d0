// State files: reading and writing.
#include "daemon/state/state_folder.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/base/log.hpp>
#include <eddy/base/unique_fd.hpp>

#include "base/files/regular_file.hpp"
#include "daemon/control/json.hpp"
#include "daemon/journal/write_all.hpp"
#include "daemon/state/runtime_name.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <tuple>
#include <utility>

namespace eddy::daemon {
namespace {

namespace fs = std::filesystem;

/// A state file is far smaller; more is damage.
constexpr std::size_t file_limit = 1024 * 1024;

/// A change has at most some thousand records; more is damage.
constexpr std::size_t change_limit = std::size_t{256} * 1024 * 1024;

/// Records of a change that are flushed one by one; more are flushed with the whole file system.
constexpr std::size_t most_single_flushes = 32;

/// Status for a file that was removed after the folder had been read.
constexpr int status_gone = 404;

constexpr std::string_view suffix = ".json";

std::string errno_text() { return std::generic_category().message(errno); }

std::unexpected<problem> disk_problem(std::string_view what, const std::string& path,
                                      std::error_code error = errno_code(errno)) {
    if (error == errno_code(ENOSPC) || error == errno_code(EDQUOT))
        return refuse(507, fmt::format("could not {} {}: the disk is full. Free some space and "
                                       "try again",
                                       what, path));
    return refuse(500, fmt::format("could not {} {}: {}", what, path, error.message()));
}

/// A file that may be whole, though errno says why it cannot be read.
std::unexpected<problem> unreadable(const std::string& path) {
    return refuse(500,
                  fmt::format("could not read the state file {}: {}. Nothing was changed: mend "
                              "that, or move the file elsewhere, and try again",
                              path, errno_text()));
}

bool sync_folder(const std::string& path) {
    const unique_fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return folder && ::fsync(folder.get()) == 0;
}

enum class flushed : bool { no, yes };

/// Writes a new file for this user alone; on failure it is gone.
outcome<> write_file(const std::string& path, std::string_view text, flushed is_flushed) {
    auto opened = open_regular(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
    if (!opened) return disk_problem("write", path, opened.error());
    const unique_fd file = std::move(*opened);
    if (write_all(file.get(), text) && (is_flushed == flushed::no || ::fsync(file.get()) == 0))
        return {};
    auto failed = disk_problem("write", path);
    ::unlink(path.c_str());
    return failed;
}

json to_json(const state_change& change) {
    json saved = json::array();
    for (const runtime_record& each : change.saved) saved.push_back(daemon::to_json(each));
    return {{"version", state_version}, {"saved", std::move(saved)}, {"erased", change.erased}};
}

outcome<state_change> change_from_json(const json& value) {
    if (!value.is_object() || !value.contains("saved") || !value["saved"].is_array() ||
        !value.contains("erased") || !value["erased"].is_array())
        return refuse(400, "it is no change of records");
    state_change change;
    for (const json& each : value["saved"]) {
        auto record = record_from_json(each);
        if (!record) return std::unexpected(std::move(record.error()));
        change.saved.push_back(std::move(*record));
    }
    for (const json& each : value["erased"]) {
        if (!each.is_string()) return refuse(400, "it erases what has no name");
        auto name = each.get<std::string>();
        if (auto valid = check_runtime_name(name); !valid)
            return std::unexpected(std::move(valid.error()));
        change.erased.push_back(std::move(name));
    }
    return change;
}

outcome<> make_folder(const std::string& path) {
    std::error_code error;
    fs::create_directories(path, error);
    if (!error && !fs::is_directory(path, error) && !error)
        error = std::make_error_code(std::errc::not_a_directory);
    if (error)
        return refuse(500, fmt::format("could not make the folder {}: {}. Choose another one with "
                                       "--state or EDDY_STATE_DIR",
                                       path, error.message()));
    return {};
}

}  // namespace

std::string state_folder::path_of(std::string_view name) const {
    return fmt::format("{}/runtimes/{}{}", directory_, name, suffix);
}

outcome<> state_folder::prepare() const {
    const bool fresh = ::access(directory_.c_str(), F_OK) != 0;
    if (auto made = make_folder(directory_); !made) return made;
    // Options may hold passwords. A folder that was there keeps its owner's choice.
    if (fresh && ::chmod(directory_.c_str(), 0700) != 0)
        return disk_problem("set the permissions of", directory_);
    for (const std::string& path :
         {directory_ + "/runtimes", directory_ + "/damaged", journal_folder()}) {
        const bool missing = ::access(path.c_str(), F_OK) != 0;
        if (auto made = make_folder(path); !made) return made;
        if (missing && ::chmod(path.c_str(), 0700) != 0)
            return disk_problem("set the permissions of", path);
        if (::access(path.c_str(), R_OK | W_OK | X_OK) != 0)
            return refuse(500, fmt::format("the folder {} cannot be used: {}. Choose another one "
                                           "with --state or EDDY_STATE_DIR",
                                           path, errno_text()));
    }
    return {};
}

std::string state_folder::fresh_path_of(std::string_view name) const {
    // No runtime's name begins with a dot, so this is no runtime's file.
    return fmt::format("{}/runtimes/.{}{}.new", directory_, name, suffix);
}

/// Writes a record beside its file. The data may still be in the kernel's memory.
outcome<> state_folder::write_fresh(const runtime_record& record) const {
    return write_file(fresh_path_of(record.name), dump_json(to_json(record), 2) + "\n",
                      flushed::no);
}

/// The record that write_fresh() has written takes its place.
outcome<> state_folder::replace(std::string_view name) const {
    const std::string path = path_of(name);
    const std::string fresh = fresh_path_of(name);
    if (::rename(fresh.c_str(), path.c_str()) == 0) return {};
    auto failed = disk_problem("replace", path);
    ::unlink(fresh.c_str());
    return failed;
}

outcome<> state_folder::save(const runtime_record& record) const {
    if (is_pending_) {
        std::vector<std::string> complaints;
        if (auto done = finish_pending(complaints); !done) return done;
    }
    const std::shared_lock lock(changes_);
    auto written =
        write_file(fresh_path_of(record.name), dump_json(to_json(record), 2) + "\n", flushed::yes);
    if (!written) return written;
    if (auto replaced = replace(record.name); !replaced) return replaced;
    if (!sync_folder(directory_ + "/runtimes"))
        return disk_problem("sync the folder of", path_of(record.name));
    return {};
}

outcome<> state_folder::erase(std::string_view name) const {
    if (is_pending_) {
        std::vector<std::string> complaints;
        if (auto done = finish_pending(complaints); !done) return done;
    }
    const std::shared_lock lock(changes_);
    const std::string path = path_of(name);
    if (::unlink(path.c_str()) != 0) {
        if (errno == ENOENT) return {};
        return disk_problem("remove", path);
    }
    if (!sync_folder(directory_ + "/runtimes")) return disk_problem("sync the folder of", path);
    return {};
}

// --- Changes of several records ---------------------------------------------------------------

outcome<> state_folder::stage(const state_change& change) const {
    std::vector<std::string> complaints;
    if (is_pending_)
        if (auto done = finish_pending(complaints); !done) return done;
    const std::unique_lock lock(changes_);
    outcome<> staged;
    // They need the room on the disk now: after the commit a full one is no hindrance.
    for (const runtime_record& each : change.saved)
        if (staged) staged = write_fresh(each);
    if (staged) staged = write_file(fresh_change_path(), dump_json(to_json(change)), flushed::yes);
    if (!staged) remove_fresh(change);
    return staged;
}

outcome<> state_folder::commit(const state_change& change) const {
    const std::unique_lock lock(changes_);
    EDDY_ASSERT(!is_pending_);
    if (::rename(fresh_change_path().c_str(), change_path().c_str()) != 0) {
        auto failed = disk_problem("write", change_path());
        remove_fresh(change);
        return failed;
    }
    is_pending_ = true;
    if (!sync_folder(directory_))
        log_error("state",
                  fmt::format("could not sync the folder {}: {}", directory_, errno_text()));
    outcome<> done;
    for (const runtime_record& each : change.saved)
        if (auto replaced = replace(each.name); !replaced) done = std::move(replaced);
    if (done) done = finish(change);
    if (!done)
        log_error("state", fmt::format("{}. The change is in {}, and is finished with the next one",
                                       done.error().message, change_path()));
    return {};
}

void state_folder::discard(const state_change& change) const {
    const std::unique_lock lock(changes_);
    remove_fresh(change);
}

void state_folder::remove_fresh(const state_change& change) const {
    ::unlink(fresh_change_path().c_str());
    for (const runtime_record& each : change.saved) ::unlink(fresh_path_of(each.name).c_str());
}

/// False with errno. Few files are flushed one by one: what other programs have written to the disk
/// meanwhile is no concern of theirs.
bool state_folder::flush_records(const state_change& change) const {
    const std::string folder = directory_ + "/runtimes";
    if (change.saved.size() > most_single_flushes) {
        const unique_fd opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        return opened && ::syncfs(opened.get()) == 0;
    }
    for (const runtime_record& each : change.saved) {
        auto opened = open_regular(path_of(each.name).c_str(), O_RDONLY | O_NOFOLLOW);
        if (!opened) errno = opened.error().value();
        if (!opened || ::fsync(opened->get()) != 0) return false;
    }
    return sync_folder(folder);
}

/// Last part of a change: what it erases goes, all is flushed, and change.json goes.
outcome<> state_folder::finish(const state_change& change) const {
    for (const std::string& name : change.erased)
        if (::unlink(path_of(name).c_str()) != 0 && errno != ENOENT)
            return disk_problem("remove", path_of(name));
    const std::string folder = directory_ + "/runtimes";
    if (!flush_records(change)) return disk_problem("flush", folder);
    if (::unlink(change_path().c_str()) != 0 && errno != ENOENT)
        return disk_problem("remove", change_path());
    is_pending_ = false;
    if (!sync_folder(directory_)) return disk_problem("sync the folder", directory_);
    return {};
}

/// Finishes a change that a kill, or a fault of the disk, has cut off.
outcome<> state_folder::finish_pending(std::vector<std::string>& complaints) const {
    const std::unique_lock lock(changes_);
    const std::string path = change_path();
    struct stat info{};
    if (::lstat(path.c_str(), &info) != 0) {
        is_pending_ = false;
        return {};
    }
    auto text = read_regular(path, change_limit);
    if (!text && text.error() != errc::limit_reached && S_ISREG(info.st_mode))
        return disk_problem("read", path, text.error());
    outcome<state_change> change = refuse(400, text ? "" : text.error().message());
    if (text) {
        auto value = parse_json(*text, "it");
        change = value ? change_from_json(*value) : std::unexpected(std::move(value.error()));
    }
    if (!change) {
        complaints.push_back(set_aside(path, "change.json", change.error().message));
        is_pending_ = false;
        return {};
    }
    for (const runtime_record& each : change->saved) {
        if (auto written = write_fresh(each); !written) return written;
        if (auto replaced = replace(each.name); !replaced) return replaced;
    }
    return finish(*change);
}

bool state_folder::contains(std::string_view name) const {
    return ::access(path_of(name).c_str(), F_OK) == 0;
}

outcome<runtime_record> state_folder::load_file(const std::string& path,
                                                std::string_view name) const {
    const unique_fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (!file) {
        const int error = errno;
        struct stat entry{};
        if (::lstat(path.c_str(), &entry) != 0 && errno == ENOENT)
            return refuse(status_gone, "it was removed meanwhile");
        if (error == ENXIO) return refuse(400, "it is not a regular file");
        errno = error;
        return unreadable(path);
    }
    struct stat info{};
    if (::fstat(file.get(), &info) != 0) return unreadable(path);
    if (!S_ISREG(info.st_mode)) return refuse(400, "it is not a regular file");
    if (info.st_size > static_cast<off_t>(file_limit))
        return refuse(
            400, fmt::format("it has {} bytes, over the limit of {}", info.st_size, file_limit));
    std::string text;
    char chunk[16 * 1024];
    for (;;) {
        const ssize_t got = ::read(file.get(), chunk, sizeof chunk);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return unreadable(path);
        if (got == 0) break;
        text.append(chunk, static_cast<std::size_t>(got));
        if (text.size() > file_limit) return refuse(400, "it grows while it is read");
    }
    auto value = parse_json(text, "it");
    if (!value) return std::unexpected(value.error());
    auto record = record_from_json(*value);
    if (record && record->name != name)
        return refuse(400, fmt::format("it says that its name is \"{}\"", record->name));
    return record;
}

std::string state_folder::set_aside(const std::string& path, const std::string& file,
                                    const std::string& reason) const {
    // An earlier damaged file of that name stays: a number goes behind the new one.
    std::string target = fmt::format("{}/damaged/{}", directory_, file);
    for (int n = 2; ::access(target.c_str(), F_OK) == 0 && n < 1000; ++n)
        target = fmt::format("{}/damaged/{}.{}", directory_, file, n);
    if (::rename(path.c_str(), target.c_str()) != 0)
        return fmt::format("the state file {} is damaged ({}) and could not be moved away: {}",
                           path, reason, errno_text());
    return fmt::format(
        "the state file {} is damaged ({}); it is now {}. Mend it, move it back and "
        "send SIGHUP, or create the runtime again",
        path, reason, target);
}

outcome<loaded_state> state_folder::load(unfinished what) const {
    loaded_state all;
    if (auto done = finish_pending(all.complaints); !done)
        return std::unexpected(std::move(done.error()));
    const std::unique_lock lock(changes_);
    if (what == unfinished::removed) ::unlink(fresh_change_path().c_str());
    std::error_code error;
    const std::string folder = directory_ + "/runtimes";
    std::vector<std::string> files;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
        files.push_back(at->path().filename().string());
    if (error)
        return refuse(500,
                      fmt::format("could not read the folder {}: {}", folder, error.message()));
    std::sort(files.begin(), files.end());
    std::vector<std::pair<std::string, std::string>> damaged;  // files and reasons
    for (const std::string& file : files) {
        const std::string path = fmt::format("{}/{}", folder, file);
        if (file.starts_with('.')) {
            // Unfinished save of a daemon that was killed; the old file is still valid.
            if (what == unfinished::removed && file.ends_with(".new")) ::unlink(path.c_str());
            continue;
        }
        if (!file.ends_with(suffix)) continue;
        const std::string name = file.substr(0, file.size() - suffix.size());
        auto record = load_file(path, name);
        if (record)
            all.records.push_back(std::move(*record));
        else if (record.error().status == status_gone)
            continue;
        else if (record.error().status / 100 == 5)
            return std::unexpected(std::move(record.error()));
        else
            damaged.emplace_back(file, std::move(record.error().message));
    }
    // Only once all could be read: nothing has changed where that fails.
    for (const auto& [file, reason] : damaged)
        all.complaints.push_back(set_aside(fmt::format("{}/{}", folder, file), file, reason));
    std::sort(all.records.begin(), all.records.end(), [](const auto& a, const auto& b) {
        return std::tie(a.created, a.name) < std::tie(b.created, b.name);
    });
    return all;
}

}  // namespace eddy::daemon
