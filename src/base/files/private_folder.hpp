// Places of the control socket: root's, and private folders of a user in /tmp, where any user may
// have made one of that name before.
#pragma once

#include <string>
#include <string_view>

namespace eddy {

/// The default control socket of root's daemon.
inline constexpr std::string_view control_socket_of_root = "/run/eddy/eddy.sock";

/// "/tmp/eddy-UID" of this process's effective user: where sockets are if the system gives that
/// user no folder of its own.
std::string own_folder_in_tmp();

/// The reason why the folder `path` may not be only this user's, as a text that follows "it": it is
/// no folder but, for example, a link to one, has another owner, or others may use it. Empty when
/// it can, or when nothing is there.
std::string private_folder_fault(const std::string& path);

}  // namespace eddy
