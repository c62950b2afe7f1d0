// Lists and events of members' keys.
#include "cluster/etcd/etcd_members.hpp"

#include "base/text/terminal_text.hpp"
#include "cluster/etcd/etcd_value.hpp"
#include "cluster/member_codec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace eddy::cluster {

std::string_view etcd_members::name_of(std::string_view key) const noexcept {
    return key.substr(std::min(folder_.size(), key.size()));
}

/// False for a key that is none of a member, which is reported once.
bool etcd_members::is_member_key(const etcd_entry& entry) {
    if (entry.key.starts_with(folder_) && check_member_name(name_of(entry.key))) return true;
    const bool is_noted = std::ranges::find(foreign_, entry.key) != foreign_.end();
    if (!is_noted && foreign_.size() < max_foreign_keys) {
        foreign_.push_back(entry.key);
        notes_.note_trouble(
            fmt::format("the key {} of etcd is no member's and is ignored: delete "
                        "it, or choose another prefix",
                        in_quotes(entry.key, max_name)));
    }
    return false;
}

void etcd_members::read(const std::string& name, known& its, const etcd_entry& entry) {
    auto value = read_etcd_value(name, entry.value);
    if (!value) {
        notes_.note_trouble(fmt::format("the key {} of etcd is ignored: {}",
                                        in_quotes(entry.key, max_name), value.error().message));
        return;
    }
    // An equal member keeps its object.
    if (!its.info || *its.info != *value)
        its.info = std::make_shared<const member_info>(std::move(*value));
}

void etcd_members::note_overflow() {
    has_overflowed_ = true;
    if (!std::exchange(is_over_full_, true))
        notes_.note_trouble(
            fmt::format("etcd has more than {} members; the others are ignored", max_members));
}

void etcd_members::put(const etcd_entry& entry) {
    if (!is_member_key(entry)) return;
    const auto place = known_.find(name_of(entry.key));
    const bool is_known = place != known_.end();
    if (listed_ >= max_members && !(is_known && place->second.is_listed)) return note_overflow();
    const auto found =
        is_known ? place : known_.emplace(std::string(name_of(entry.key)), known()).first;
    known& its = found->second;
    if (!std::exchange(its.is_listed, true)) ++listed_;
    if (std::exchange(its.is_missing, false)) --missing_;
    if (its.mod_revision == entry.mod_revision && its.lease == entry.lease) return;
    its.mod_revision = entry.mod_revision;
    its.lease = entry.lease;
    read(found->first, its, entry);
}

void etcd_members::erase(table::iterator which) noexcept {
    if (which->second.is_missing) --missing_;
    if (which->second.is_listed) --listed_;
    known_.erase(which);
}

void etcd_members::remove(std::string_view key) {
    std::erase(foreign_, key);
    const auto found = known_.find(name_of(key));
    if (found != known_.end()) erase(found);
}

void etcd_members::begin_list() noexcept {
    for (auto& [name, its] : known_) its.is_listed = false;
    has_overflowed_ = false;
    listed_ = 0;
}

void etcd_members::end_list(bool is_return, time_point until) {
    for (auto each = known_.begin(); each != known_.end();) {
        const auto its = each++;
        if (its->second.is_listed) continue;
        if (is_return && its->second.info) {
            if (!std::exchange(its->second.is_missing, true)) ++missing_;
            its->second.mod_revision = 0;
        } else {
            erase(its);
        }
    }
    missing_until_ = until;
    is_over_full_ = has_overflowed_;
}

bool etcd_members::drop_missing(time_point now) {
    if (missing_ == 0 || now < missing_until_) return false;
    for (auto each = known_.begin(); each != known_.end();) {
        const auto its = each++;
        if (its->second.is_missing) erase(its);
    }
    return true;
}

time_point etcd_members::next_drop() const noexcept {
    return missing_ == 0 ? time_point::max() : missing_until_;
}

void etcd_members::distrust_revisions() noexcept {
    for (auto& [name, its] : known_) its.mod_revision = 0;
}

std::vector<std::shared_ptr<const member_info>> etcd_members::all() const {
    std::vector<std::shared_ptr<const member_info>> made;
    made.reserve(known_.size() + 1);
    for (const auto& [name, its] : known_)
        if (its.info) made.push_back(its.info);
    return made;
}

}  // namespace eddy::cluster
