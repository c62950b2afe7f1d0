// Watch of files for `eddy up --watch`: of their folders, so that files which are replaced, vanish
// or come are noticed, too, and of the folders of what links lead to.
#pragma once

#include <eddy/base/unique_fd.hpp>

#include <expected>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace eddy::cli {

class file_watch {
public:
    /// Follows these files, and what matches these patterns, in place of those before. The error
    /// says why not.
    std::expected<void, std::string> follow(const std::vector<std::string>& files,
                                            const std::vector<std::string>& patterns);

    /// Blocks until one of them was written, replaced, removed or made, and no further event came
    /// for a moment. Yields the files.
    std::expected<std::set<std::string>, std::string> wait();

private:
    /// State of a file, by which one is noticed whose link, or a folder's, was replaced.
    struct fingerprint {
        unsigned long long device = 0;
        unsigned long long number = 0;
        long long size = -1;
        long long changed = 0;
        friend bool operator==(const fingerprint&, const fingerprint&) = default;
    };

    static fingerprint fingerprint_of(const std::string& path);
    bool is_followed(const std::string& path) const;
    void add_replaced(std::set<std::string>& changed);
    std::expected<void, std::string> follow_folder(const std::string& path);
    std::expected<void, std::string> follow_lost(std::set<std::string>& changed);
    std::expected<void, std::string> read_events(std::set<std::string>& changed);

    unique_fd inotify_;
    std::map<int, std::string> folders_;  // by inotify's descriptor
    std::set<std::string> lost_;          // folders that are not there, or were replaced
    std::set<std::string> files_;
    std::map<std::string, fingerprint> seen_;  // of files_
    std::vector<std::string> patterns_;
};

}  // namespace eddy::cli
