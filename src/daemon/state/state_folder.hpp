// State folder: a state store of one JSON file a runtime, in `<state>/runtimes/<name>.json`.
//
// A file is replaced atomically (written beside, fsynced, renamed, the folder fsynced), so that
// kill -9 or a power cut leaves the old or the new one. A file whose content cannot be understood
// is moved to `<state>/damaged/` and reported; it never keeps the rest from being loaded. Beside
// them are the files of journals (journal_files.hpp).
#pragma once

#include "daemon/state/state_store.hpp"

#include <string>
#include <string_view>
#include <utility>

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
    bool contains(std::string_view name) const override;
    /// A file that cannot be read, for lack of descriptors or permission or by a fault of the disk,
    /// may be whole: it stays where it is.
    outcome<loaded_state> load(unfinished what = unfinished::removed) const override;

private:
    std::string path_of(std::string_view name) const;
    outcome<runtime_record> load_file(const std::string& path, std::string_view name) const;
    std::string set_aside(const std::string& path, const std::string& file,
                          const std::string& reason) const;

    std::string directory_;
};

}  // namespace eddy::daemon
