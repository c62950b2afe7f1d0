// inotify watch of a cluster's folder: a notification that a member's file was announced
// (announce_change() in folder_files.hpp) or removed on this machine. Changes by other machines go
// unnoticed: polling finds them.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/base/unique_fd.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/task.hpp>

#include <string>

namespace eddy::cluster {

class folder_watch {
public:
    /// Changes of `own_file` are no news.
    explicit folder_watch(std::string own_file) : own_file_(std::move(own_file)) {}

    /// Begins to watch the folder. It may wait for a file server. Errors are inotify_init1(2)'s and
    /// inotify_add_watch(2)'s.
    result<> open(const std::string& path);
    /// Sets `changed` at each notification, until the folder has gone from its place, or the
    /// caller is cancelled. The loop's thread.
    task<void> follow(event& changed);

private:
    enum class news : std::uint8_t { none, changed, lost };
    news read_events();

    const std::string own_file_;
    unique_fd inotify_;
};

}  // namespace eddy::cluster
