// State folder: a state store of one JSON file a runtime, in `<state>/runtimes/<name>.json`.
//
// A file is replaced atomically (written beside, fsynced, renamed, the folder fsynced), so that
// kill -9 or a power cut leaves the old or the new one. A file whose content cannot be understood
// is moved to `<state>/damaged/` and reported; it never keeps the rest from being loaded. Beside
// them are the files of journals (journal_files.hpp).
//
// A change of several records is one file, `<state>/change.json`, from the instant of its rename
// until each record's own file is written. load() finishes a change that was cut off.
#pragma once

#include "daemon/state/state_store.hpp"

#include <atomic>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::daemon {

class state_folder final : public state_store {
public:
    explicit state_folder(std::string directory) : directory_(std::move(directory)) {}

    const std::string& directory() const noexcept { return directory_; }
    /// For journal_files; below the folder.
    std::string journal_folder() const { return directory_ + "/journals"; }

    /// Makes the folders (0700) where they are missing and checks that files can be written.
    outcome<> prepare() const;

    outcome<> save(const runtime_record& record) const override;
    outcome<> erase(std::string_view name) const override;
    outcome<> stage(const state_change& change) const override;
    outcome<> commit(const state_change& change) const override;
    void discard(const state_change& change) const override;
    bool contains(std::string_view name) const override;
    /// A file that cannot be read, for lack of descriptors or permission or by a fault of the disk,
    /// may be whole: it stays where it is.
    outcome<loaded_state> load(unfinished what = unfinished::removed) const override;

private:
    std::string path_of(std::string_view name) const;
    std::string fresh_path_of(std::string_view name) const;
    std::string change_path() const { return directory_ + "/change.json"; }
    std::string fresh_change_path() const { return directory_ + "/change.new"; }
    outcome<> write_fresh(const runtime_record& record) const;
    outcome<> replace(std::string_view name) const;
    void remove_fresh(const state_change& change) const;
    bool flush_records(const state_change& change) const;
    outcome<> finish(const state_change& change) const;
    outcome<> finish_pending(std::vector<std::string>& complaints) const;
    outcome<runtime_record> load_file(const std::string& path, std::string_view name) const;
    std::string set_aside(const std::string& path, const std::string& file,
                          const std::string& reason) const;

    std::string directory_;
    mutable std::shared_mutex changes_;       ///< exclusive for what touches several records
    mutable std::atomic<bool> is_pending_{};  ///< change.json is there, and is to be finished first
};

}  // namespace eddy::daemon
