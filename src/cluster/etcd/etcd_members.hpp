// Members as etcd's keys show them: lists and events in, members by name out. Entries are
// untrusted, and there is no I/O.
#pragma once

#include <eddy/io/timer.hpp>

#include "cluster/etcd/etcd_messages.hpp"
#include "cluster/membership.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::cluster {

/// The members that are known, apart from the own one. Damaged and foreign entries are ignored and
/// reported once until they change; a member whose value is damaged stays as it was, as long as its
/// key is there. One thread.
class etcd_members {
public:
    /// Foreign keys that are reported, at most.
    static constexpr std::size_t max_foreign_keys = 64;

    /// `notes` must outlive it. `folder` is what all keys of members begin with.
    etcd_members(std::string folder, observer& notes) : folder_(std::move(folder)), notes_(notes) {}

    const std::string& folder() const noexcept { return folder_; }
    std::string key_of(std::string_view member) const { return folder_ + std::string(member); }
    /// The part of a key behind the folder.
    std::string_view name_of(std::string_view key) const noexcept;

    /// An entry that was written, or that is listed.
    void put(const etcd_entry& entry);
    /// A key that was removed.
    void remove(std::string_view key);

    /// Begins a list: the entries that are put until end_list() are all there are. A list that does
    /// not end changes what it has, and removes nothing.
    void begin_list() noexcept;
    /// Removes the members that were not listed; with `is_return`, after an outage, at `until`
    /// unless they are put before: their leases may have ended meanwhile, and they make new ones.
    void end_list(bool is_return, time_point until);
    /// Removes the members that are kept only until `now`. False if there is none.
    bool drop_missing(time_point now);
    /// Members that are shown though they were not listed.
    std::size_t missing() const noexcept { return missing_; }
    /// When drop_missing() has to be called; time_point::max() for never.
    time_point next_drop() const noexcept;

    /// Reads all values again, also those with a known revision: the next list is of another key
    /// space.
    void distrust_revisions() noexcept;
    /// True if there are more members than max_members, and some are ignored.
    bool is_over_full() const noexcept { return is_over_full_; }

    /// The members that can be read, by name.
    std::vector<std::shared_ptr<const member_info>> all() const;

private:
    struct known {
        std::shared_ptr<const member_info> info;  // null: never read
        std::int64_t mod_revision = 0;
        std::int64_t lease = 0;
        bool is_listed = false;  // by the list under way or the last one, or changed since
        bool is_missing = false;
    };
    using table = std::map<std::string, known, std::less<>>;

    bool is_member_key(const etcd_entry& entry);
    void read(const std::string& name, known& its, const etcd_entry& entry);
    void note_overflow();
    void erase(table::iterator which) noexcept;

    std::string folder_;
    observer& notes_;
    table known_;
    std::vector<std::string> foreign_;  // keys that were reported
    std::size_t listed_ = 0;            // at most max_members
    std::size_t missing_ = 0;
    time_point missing_until_{};
    bool is_over_full_ = false;
    bool has_overflowed_ = false;  // in this list, or since
};

}  // namespace eddy::cluster
