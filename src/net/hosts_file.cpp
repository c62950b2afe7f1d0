// Reader of the hosts file.
#include "net/hosts_file.hpp"

#include "base/files/regular_file.hpp"
#include "base/text/text.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace eddy {
namespace {

constexpr std::string_view blanks = " \t\r\f\v";

/// Takes the next word off the front of `line`; empty when there is none.
std::string_view next_word(std::string_view& line) {
    line.remove_prefix(std::min(line.find_first_not_of(blanks), line.size()));
    const std::string_view word = line.substr(0, line.find_first_of(blanks));
    line.remove_prefix(word.size());
    return word;
}

}  // namespace

std::vector<endpoint> hosts_file::find(std::string_view name) {
    refresh();
    const auto found = names_.find(lower(name));
    return found == names_.end() ? std::vector<endpoint>() : found->second;
}

void hosts_file::refresh() {
    if (path_.empty()) return;
    struct stat info;
    if (::stat(path_.c_str(), &info) < 0 || !S_ISREG(info.st_mode)) {
        names_.clear();
        read_ = {};
        return;
    }
    const version current{info.st_mtim.tv_sec, info.st_mtim.tv_nsec, info.st_ino, info.st_size};
    if (current == read_) return;
    read_ = current;
    names_.clear();

    const result<unique_fd> file = open_regular(path_.c_str(), O_RDONLY);
    if (!file) return;
    std::string text(std::min(static_cast<std::size_t>(info.st_size), max_size_), '\0');
    std::size_t size = 0;
    while (size < text.size()) {
        const ssize_t got = ::read(file->get(), text.data() + size, text.size() - size);
        if (got <= 0) break;
        size += static_cast<std::size_t>(got);
    }
    text.resize(size);
    parse(text);
}

void hosts_file::parse(std::string_view text) {
    while (!text.empty()) {
        std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        line = line.substr(0, line.find('#'));
        const std::string_view word = next_word(line);
        if (word.empty()) continue;
        const auto address = endpoint::ip(word, 0);
        if (!address) continue;
        while (true) {
            const std::string_view name = next_word(line);
            if (name.empty()) break;
            names_[lower(name)].push_back(*address);
        }
    }
}

}  // namespace eddy
