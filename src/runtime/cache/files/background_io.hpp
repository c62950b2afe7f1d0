// Background file I/O on low-priority threads, so that it does not compete with the loops. The
// kernel's own threads for a ring's requests would take the core like any other, and keep the loop
// from it for milliseconds.
#pragma once

#include <eddy/base/bytes.hpp>
#include <eddy/base/result.hpp>
#include <eddy/io/file.hpp>
#include <eddy/io/task.hpp>

#include <cstdint>
#include <string>

namespace eddy::runtime::cache {

/// Writes a file, which must stay open as long as this is used. The bytes must stay until the end.
class background_writer {
public:
    explicit background_writer(const file& to) : fd_(to.native_handle()) {}

    task<result<>> write_at(std::uint64_t offset, const_bytes bytes);
    task<result<>> sync_data();
    task<result<>> sync();

private:
    int fd_;
};

/// As file::rename() and file::remove(), for large files: to free what the last name's end leaves,
/// of its blocks on the disk and in memory, takes the kernel tens of milliseconds.
task<result<>> background_rename(std::string from, std::string to);
task<result<>> background_remove(std::string path);

}  // namespace eddy::runtime::cache
