// Hosts file, hosts(5): names with fixed addresses.
#pragma once

#include <eddy/io/endpoint.hpp>

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace eddy {

/// A hosts file, read again whenever it has changed. A file that is missing or cannot be read holds
/// no names; lines that make no sense are passed over.
class hosts_file {
public:
    /// `max_size` is how many bytes of the file are read.
    hosts_file(std::string path, std::size_t max_size)
        : path_(std::move(path)), max_size_(max_size) {}

    /// The addresses of `name`, in the file's order; empty when it does not name it. Letters'
    /// case does not matter.
    std::vector<endpoint> find(std::string_view name);

private:
    void refresh();
    void parse(std::string_view text);

    std::string path_;
    std::size_t max_size_;
    /// Result of stat(2) for the file that was read.
    struct version {
        std::int64_t seconds = -1;
        std::int64_t nanoseconds = 0;
        std::uint64_t inode = 0;
        std::int64_t size = 0;
        bool operator==(const version&) const = default;
    };
    version read_;
    std::unordered_map<std::string, std::vector<endpoint>> names_;
};

}  // namespace eddy
