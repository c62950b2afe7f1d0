// Rounds over a cluster's folder.
#include "cluster/folder/folder_reader.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/base/unique_fd.hpp>

#include "base/text/terminal_text.hpp"
#include "cluster/member_codec.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace eddy::cluster {
namespace {

/// Keys of reports that are about the folder, and no names of files.
const std::string whole_folder = "/";
const std::string too_many_entries = "/entries";
const std::string too_many_members = "/members";

struct close_folder {
    void operator()(DIR* folder) const noexcept { ::closedir(folder); }
};
using open_folder = std::unique_ptr<DIR, close_folder>;

/// A number for the folder that is open: inode numbers are used again, times of birth are not.
std::uint64_t place_of(int folder) noexcept {
    struct statx about{};
    if (::statx(folder, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &about) != 0) return 0;
    std::uint64_t mixed = about.stx_ino;
    for (const std::uint64_t each :
         {std::uint64_t{about.stx_dev_major}, std::uint64_t{about.stx_dev_minor},
          static_cast<std::uint64_t>(about.stx_btime.tv_sec),
          std::uint64_t{about.stx_btime.tv_nsec}})
        mixed = (mixed ^ each) * 0x9e3779b97f4a7c15U;
    return mixed;
}

}  // namespace

outcome<store_view> folder_reader::read() {
    const auto unusable = [this] {
        const int error = errno;
        return refuse(503, fmt::format("the folder {} cannot be read: {}", printable(path_),
                                       std::generic_category().message(error)));
    };
    unique_fd opened(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!opened) return unusable();
    struct stat about{};
    if (::fstat(opened.get(), &about) != 0) return unusable();
    const open_folder folder(::fdopendir(opened.get()));
    if (!folder) return unusable();
    const int fd = opened.release();

    store_view view;
    view.place = place_of(fd);
    if ((about.st_mode & S_IWOTH) != 0 && (about.st_mode & S_ISVTX) == 0)
        report(view, whole_folder,
               fmt::format("every user may write to the folder {}, and so remove members from the "
                           "cluster: take that right away (chmod o-w)",
                           printable(path_)));
    std::set<std::string> files;
    while (files.size() < limits_.entries) {
        errno = 0;
        const dirent* const each = ::readdir(folder.get());
        if (!each && errno != 0) return unusable();
        if (!each) break;
        if (each->d_name[0] != '.') files.emplace(each->d_name);
    }
    if (files.size() == limits_.entries)
        report(view, too_many_entries,
               fmt::format("the folder {} has {} files or more: some may be ignored",
                           printable(path_), limits_.entries));
    for (const std::string& each : files) sort_in(each, view);
    // A name that is not listed is tried, too: a listing may miss a file that is replaced
    // meanwhile.
    for (auto at = known_.begin(); at != known_.end();) {
        if (read_beat(fd, at->first, at->second, view)) {
            ++at;
        } else {
            bytes_ -= at->second.bytes;
            at = known_.erase(at);
        }
    }
    drop_reports(fd, files);
    // The files of a folder that was removed are absent for another reason.
    if (::fstat(fd, &about) == 0 && about.st_nlink == 0) {
        errno = ENOENT;
        return unusable();
    }
    return view;
}

/// Adds a member, or reports a file that is none's.
void folder_reader::sort_in(const std::string& file, store_view& view) {
    if (file.ends_with(member_suffix)) return;
    if (!file.ends_with(beat_suffix))
        return report(
            view, file,
            fmt::format("the file {} is ignored: it is none of a cluster's member", name_of(file)));
    const std::string name = file.substr(0, file.size() - beat_suffix.size());
    if (known_.contains(name)) return;
    if (auto valid = check_member_name(name); !valid)
        return report(
            view, file,
            fmt::format("the file {} is ignored: {}", name_of(file), valid.error().message));
    if (known_.size() >= limits_.members)
        return report(view, too_many_members,
                      fmt::format("the folder {} has more than {} members: the others are ignored",
                                  printable(path_), limits_.members));
    known_.try_emplace(name);
}

/// Reads a member's beat, and what follows from it. False: it has none.
bool folder_reader::read_beat(int folder, const std::string& name, known_member& its,
                              store_view& view) {
    const std::string file = name + std::string(beat_suffix);
    const auto content = read_shared(folder, file, max_beat_bytes, owners_);
    if (content) {
        const auto now = parse_beat(content->text);
        if (now) note_good(view, file);
        if (now)
            update(folder, name, its, *now, view);
        else
            report(view, file,
                   fmt::format("the file {} is ignored: {}", name_of(file), now.error().message));
    } else if (content.error().why == unreadable::cause::absent) {
        return false;
    } else if (content.error().why == unreadable::cause::unfit) {
        report(view, file,
               fmt::format("the file {} is ignored: it {}", name_of(file), content.error().reason));
    }
    // An earlier beat stands, and grows old.
    if (its.last) view.seen.push_back(its.last);
    return true;
}

/// Takes a beat that was read; what the member shows is read when that has changed.
void folder_reader::update(int folder, const std::string& name, known_member& its, const beat& now,
                           store_view& view) {
    const bool has_last = its.last != nullptr && its.last->its.id == now.id;
    const bool is_same = has_last && its.last->its.sequence == now.sequence;
    std::shared_ptr<const member_info> info = has_last ? its.last->info : nullptr;
    its.is_current = its.is_current && is_same;
    if (!its.is_current) {
        const auto stamp = stamp_at(folder, name + std::string(member_suffix));
        if (!is_same || !stamp || stamp != its.unfit) {
            its.unfit = stamp;
            if (auto read = read_member(folder, name, its, now, view)) {
                info = std::move(read);
                its.is_current = true;
                its.unfit.reset();
            }
        }
    }
    if (its.last && its.last->its == now && its.last->info == info) return;
    auto next = std::make_shared<sighting>();
    next->name = name;
    next->its = now;
    next->info = std::move(info);
    its.last = std::move(next);
}

/// Null for a file that is not of this beat's start, or is not fit to be read.
std::shared_ptr<const member_info> folder_reader::read_member(int folder, const std::string& name,
                                                              known_member& its, const beat& now,
                                                              store_view& view) {
    const std::string file = name + std::string(member_suffix);
    const auto refused = [&](std::string_view reason) {
        report(view, file, fmt::format("the file {} is ignored: {}", name_of(file), reason));
        return nullptr;
    };
    const auto content = read_shared(folder, file, max_member_bytes, owners_);
    if (!content) {
        // Absent, or replaced: the next round finds another one.
        its.unfit.reset();
        if (content.error().why != unreadable::cause::unfit) return nullptr;
        its.unfit = stamp_at(folder, file);
        return refused("it " + content.error().reason);
    }
    its.unfit = content->stamp;
    const std::size_t bytes = content->text.size();
    EDDY_ASSERT(bytes_ >= its.bytes);
    if (bytes_ - its.bytes + bytes > limits_.bytes)
        return refused(
            fmt::format("the members of this folder take more than {} bytes", limits_.bytes));
    auto read = decode_member(content->text);
    if (!read) return refused(read.error().message);
    if (read->name != name)
        return refused(
            fmt::format("it is of a member with the name {}", in_quotes(read->name, max_name)));
    if (read->id != now.id) {
        // A member that starts has replaced it since the beat was read.
        its.unfit.reset();
        return nullptr;
    }
    note_good(view, file);
    bytes_ += bytes - its.bytes;
    its.bytes = bytes;
    return std::make_shared<const member_info>(std::move(*read));
}

/// Reports a file, unless it was for this reason.
void folder_reader::report(store_view& view, const std::string& file, std::string reason) {
    const auto known = reported_.find(file);
    if (known != reported_.end() && known->second == reason) return;
    if (known == reported_.end() && reported_.size() >= limits_.reports) return;
    if (view.troubles.size() >= limits_.reports_a_round) return;
    view.troubles.push_back(reason);
    reported_.insert_or_assign(file, std::move(reason));
}

void folder_reader::note_good(store_view& view, const std::string& file) {
    if (reported_.empty() || reported_.erase(file) == 0) return;
    view.recoveries.push_back(fmt::format("the file {} can be read again", name_of(file)));
}

/// Forgets the reports of files that are gone.
void folder_reader::drop_reports(int folder, const std::set<std::string>& files) {
    std::erase_if(reported_, [&](const auto& each) {
        const std::string& file = each.first;
        return !file.starts_with('/') && !files.contains(file) && !stamp_at(folder, file);
    });
}

std::string folder_reader::name_of(std::string_view file) const {
    return printable(fmt::format("{}/{}", path_, file));
}

}  // namespace eddy::cluster
