// Files of a cluster's folder: reading of files that other users may have made, and replacing of
// own ones. All of it may wait for a disk or a file server: not for a loop's thread.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/base/unique_fd.hpp>

#include "base/problem.hpp"
#include "cluster/member_table.hpp"

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cluster {

inline constexpr std::string_view member_suffix = ".member";
inline constexpr std::string_view beat_suffix = ".beat";
/// Bytes of a file with a beat, at most.
inline constexpr std::size_t max_beat_bytes = 256;

/// Users whose files are read.
class trusted_owners {
public:
    /// This process's effective user, root, and `others`.
    explicit trusted_owners(std::vector<uid_t> others);

    bool contains(uid_t owner) const noexcept;
    /// Trusts another one, such as the user that a file server makes of root.
    void add(uid_t owner);

private:
    std::vector<uid_t> all_;
};

/// Identity of a file's content: another one after each replacement, and after most writes.
struct file_stamp {
    std::uint64_t inode = 0;
    std::int64_t size = 0;
    std::int64_t modified = 0;  ///< nanoseconds
    std::uint32_t owner = 0;
    std::uint32_t mode = 0;

    friend bool operator==(const file_stamp&, const file_stamp&) = default;
};
file_stamp stamp_of(const struct stat& about) noexcept;

/// Reason why a file has no content for the reader.
struct unreadable {
    enum class cause : std::uint8_t {
        absent,
        replaced,  ///< while it was read: another attempt may succeed
        unfit,
    };
    cause why;
    std::string reason;  ///< such as "is a symbolic link"
};

/// Content of a file, at most `limit` bytes, and its stamp. Only a regular file with one name is
/// read, whose owner is trusted and which not every user may write: it is opened without following
/// a link, and without waiting as for a FIFO's other end. Nothing is read of a longer file.
struct file_content {
    std::string text;
    file_stamp stamp;
};
std::expected<file_content, unreadable> read_shared(int folder, const std::string& name,
                                                    std::size_t limit,
                                                    const trusted_owners& owners);

/// The stamp of what has this name; none where it is absent, or cannot be known.
std::optional<file_stamp> stamp_at(int folder, const std::string& name) noexcept;

/// Writes a new file and gives it the name, in place of what has it; `fresh` is its name until
/// then. Yields its stamp. Errors are those of open(2), write(2), close(2) and rename(2).
result<file_stamp> replace_file(int folder, const std::string& fresh, const std::string& name,
                                std::string_view text);

/// Causes an event of inotify's (IN_ATTRIB) for a file that has changed: renames have events, too,
/// but those of beats would wake each member many times a second.
void announce_change(int folder, const std::string& name) noexcept;

/// A beat as text, and the inverse, which refuses (400) any other form.
std::string format_beat(const beat& its);
outcome<beat> parse_beat(std::string_view text);

}  // namespace eddy::cluster
