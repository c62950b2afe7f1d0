// A user's own folder in /tmp, where any user may have made one of its name before.
#pragma once

#include <string>

namespace eddy {

/// "/tmp/eddy-UID" of this process's effective user: where sockets are if the system gives that
/// user no folder of its own.
std::string own_folder_in_tmp();

/// Why the folder `path` cannot be relied on to be this user's alone, as what follows "it": it is
/// no folder but, for example, a link to one, has another owner, or others may use it. Empty when
/// it can, or when nothing is there.
std::string private_folder_fault(const std::string& path);

}  // namespace eddy
