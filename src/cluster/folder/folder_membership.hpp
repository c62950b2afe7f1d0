// Membership over a folder that all members can read and write: of one machine, or of a file server
// (NFS). No locks; inotify only makes changes on the same machine known earlier.
//
//     DIR/NAME.member    what a member shows of itself (member_codec.hpp), written when it changes
//     DIR/NAME.beat      id of its start, term, count of beats, sequence of the member's file
//     DIR/.ID.new        a file that is being written
//
// Each file is replaced by rename(2), so a reader sees the old or the new one. A beat comes every
// 500 ms. By the reader's own monotonic clock a member is gone 2 to 2.5 s after its last beat, and
// so within 3 s of kill -9; other machines' clocks, and steps of a wall clock, do not matter. A
// member that starts again after kill -9 waits until its old beat has been silent for that long. A
// clean end removes the files, which the others notice at their next two polls, 500 and 100 ms
// apart.
//
// The folder's renames also make NFS clients read its listing again, which they would otherwise
// keep for up to a minute. A folder whose file server does not answer keeps threads waiting: end()
// and the loop's end wait for it as well.
//
// Files of others are untrusted: read are only regular files with one name, of this user, of root,
// of folder_options::trusted, or of the user that the file server makes of this one, up to
// max_member_bytes. All others are ignored and reported once.
#pragma once

#include "cluster/beats/beat_membership.hpp"
#include "cluster/membership.hpp"

#include <sys/types.h>

#include <string>
#include <vector>

namespace eddy::cluster {

struct folder_options {
    std::vector<uid_t> trusted = {};  ///< other users whose daemons are members
    beat_rules rules = {};            ///< for tests
};

/// The engine. join() refuses (400) a path that is no folder or may not be written, or an entry
/// that is in the way of its own, and (503) a folder that does not exist: it may be mounted later.
/// One loop's thread.
class folder_membership final : public beat_membership {
public:
    /// `reports` must outlive it.
    folder_membership(std::string folder, observer& reports, folder_options options = {});
};

}  // namespace eddy::cluster
