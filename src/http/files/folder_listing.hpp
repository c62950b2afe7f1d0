// Page that lists the entries of a folder.
#pragma once

#include <eddy/io/file.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace eddy::http {

/// HTML of a list of `entries`, folders first, each in the order of their bytes, with sizes in
/// bytes and times in UTC. Links are relative to the folder. `path` is the folder's, decoded and
/// without slashes at its ends; empty for the root, which has no link upwards. `is_cut`: there are
/// more entries, which the page says. Any thread.
std::string list_folder(std::string_view path, std::vector<folder_entry> entries, bool is_cut);

}  // namespace eddy::http
