// Folder of state, which outlives the daemon: one JSON file a runtime,
// `<state>/runtimes/<name>.json`. Beside them are the files of journals (journal_files.hpp).
//
// A file is replaced atomically (written beside, fsynced, renamed, the folder fsynced), so that
// kill -9 or a power cut leaves the old or the new one. A file whose content cannot be understood
// is moved to `<state>/damaged/` and reported; it never keeps the rest from being loaded.
#pragma once

#include "daemon/json.hpp"
#include "daemon/problem.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::daemon {

/// The version that is written. A file with a higher one is set aside unchanged: a newer Eddy wrote
/// it, and may have it back.
inline constexpr int state_version = 1;

/// What is known of a runtime while it does not run.
struct runtime_record {
    std::string id;
    std::string name;
    std::string type;
    std::string owner;  ///< the runtime that this one belongs to, or empty
    std::string group;  ///< or empty
    std::chrono::system_clock::time_point created;
    bool running = false;  ///< whether it is to run, as far as the user said
    json options = json::object();

    friend bool operator==(const runtime_record&, const runtime_record&) = default;
};

/// The record as the file has it.
json to_json(const runtime_record& record);
/// Checks every member; the message says which one is wrong.
outcome<runtime_record> record_from_json(const json& value);

/// The folder of state. Members block on the disk: call them where that is allowed. They share
/// nothing, but two calls about one name at the same time are the caller's mistake.
class state_store {
public:
    /// Below the folder: see journal_files.
    static constexpr std::string_view journal_folder = "journals";

    explicit state_store(std::string directory) : directory_(std::move(directory)) {}

    const std::string& directory() const noexcept { return directory_; }

    /// Makes the folders (0700) where they are missing and sees that files can be written.
    outcome<> prepare() const;

    /// Writes a record; on failure the old file is still there.
    outcome<> save(const runtime_record& record) const;

    /// Removes a record; one that is not there is no error.
    outcome<> erase(std::string_view name) const;

    /// Whether there is a file of that name, damaged or not.
    bool contains(std::string_view name) const;

    struct loaded {
        std::vector<runtime_record> records;  ///< in the order of creation
        std::vector<std::string> complaints;  ///< a sentence for each file that was set aside
    };
    /// Files that a save has begun. They are left by a daemon that was killed, or a save is under
    /// way.
    enum class unfinished : std::uint8_t { kept, removed };
    /// Reads every record and sets damaged files aside. A file that cannot be read, for lack of
    /// descriptors or permission or by a fault of the disk, may be whole: it stays where it is, and
    /// all is refused (500), so that no runtime of its name takes its place.
    outcome<loaded> load(unfinished what = unfinished::removed) const;

private:
    std::string path_of(std::string_view name) const;
    outcome<runtime_record> load_file(const std::string& path, std::string_view name) const;
    std::string set_aside(const std::string& path, const std::string& file,
                          const std::string& reason) const;

    std::string directory_;
};

}  // namespace eddy::daemon
