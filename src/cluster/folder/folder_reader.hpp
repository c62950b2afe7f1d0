// Reader's side of a cluster's folder: rounds over all of its files, which keep what has not
// changed. It may wait for a disk or a file server.
#pragma once

#include <eddy/base/result.hpp>

#include "base/problem.hpp"
#include "cluster/beats/beat_store.hpp"
#include "cluster/folder/folder_files.hpp"
#include "cluster/member_table.hpp"
#include "cluster/membership.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::cluster {

/// Bounds of what is read of a folder; what exceeds them is ignored, and reported once.
struct folder_limits {
    std::size_t members = max_members;
    std::size_t entries = 8 * max_members;    ///< of the folder; of more the first in its order
    std::size_t bytes = 256UZ * 1024 * 1024;  ///< of all members' files together
    std::size_t reports = 256;                ///< files that stay reported; no more are
    std::size_t reports_a_round = 16;         ///< files that are reported in one round
};

/// One thread at a time.
class folder_reader {
public:
    /// `owners` must outlive it.
    folder_reader(std::string path, const trusted_owners& owners, const folder_limits& limits = {})
        : path_(std::move(path)), owners_(owners), limits_(limits) {}

    /// A round. Refuses (503) while the folder cannot be read.
    outcome<store_view> read();

private:
    struct known_member {
        std::shared_ptr<const sighting> last;  // null: no beat could be read yet
        bool is_current = false;               // the info is of that beat's sequence
        std::optional<file_stamp> unfit;       // of a member's file that could not be read
        std::size_t bytes = 0;                 // of its file
    };
    using known_members = std::map<std::string, known_member, std::less<>>;

    void sort_in(const std::string& file, store_view& view);
    bool read_beat(int folder, const std::string& name, known_member& its, store_view& view);
    void update(int folder, const std::string& name, known_member& its, const beat& now,
                store_view& view);
    std::shared_ptr<const member_info> read_member(int folder, const std::string& name,
                                                   known_member& its, const beat& now,
                                                   store_view& view);

    void report(store_view& view, const std::string& file, std::string reason);
    void note_good(store_view& view, const std::string& file);
    void drop_reports(int folder, const std::set<std::string>& files);
    std::string name_of(std::string_view file) const;

    const std::string path_;
    const trusted_owners& owners_;
    const folder_limits limits_;
    known_members known_;
    std::size_t bytes_ = 0;                                     // of all known members' files
    std::map<std::string, std::string, std::less<>> reported_;  // reasons, by file
};

}  // namespace eddy::cluster
