// Events of inotify(7).
#include "cluster/folder/folder_watch.hpp"

#include <eddy/io/loop.hpp>

#include "cluster/folder/folder_files.hpp"

#include <sys/inotify.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <utility>

namespace eddy::cluster {
namespace {

/// Between two wake-ups by events.
constexpr duration event_pause = std::chrono::milliseconds(50);

constexpr std::uint32_t followed_events =
    IN_ATTRIB | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR;

}  // namespace

result<> folder_watch::open(const std::string& path) {
    inotify_.reset(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    if (!inotify_) return fail_errno();
    if (::inotify_add_watch(inotify_.get(), path.c_str(), followed_events) < 0) return fail_errno();
    return {};
}

task<void> folder_watch::follow(event& changed) {
    loop& here = loop::current();
    for (;;) {
        const result<> ready = co_await here.wait_readable(inotify_.get());
        if (!ready) co_return;
        const news got = read_events();
        if (got != news::none) changed.set();
        if (got == news::lost) co_return;
        const result<> slept = co_await here.sleep_for(event_pause);
        if (!slept) co_return;
    }
}

/// All events that are there.
folder_watch::news folder_watch::read_events() {
    news found = news::none;
    alignas(inotify_event) char buffer[16 * 1024];
    for (;;) {
        const ssize_t got = ::read(inotify_.get(), buffer, sizeof buffer);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EAGAIN) return found;
        if (got <= 0) return news::lost;
        for (std::size_t at = 0; at < static_cast<std::size_t>(got);) {
            inotify_event about;
            std::memcpy(&about, buffer + at, sizeof about);
            const std::string_view name(about.len > 0 ? buffer + at + sizeof about : "");
            at += sizeof about + about.len;
            if ((about.mask & (IN_IGNORED | IN_MOVE_SELF | IN_DELETE_SELF | IN_UNMOUNT)) != 0)
                return news::lost;
            const bool is_member = name.ends_with(member_suffix) && name != own_file_;
            if (is_member || (about.mask & IN_Q_OVERFLOW) != 0) found = news::changed;
        }
    }
}

}  // namespace eddy::cluster
