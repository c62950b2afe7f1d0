// Slices of a file on their way into a message: read at once where the kernel has them in memory.
#pragma once

#include <eddy/base/bytes.hpp>
#include <eddy/base/result.hpp>
#include <eddy/io/file.hpp>
#include <eddy/io/task.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace eddy::http {

/// Reads at most `into.size()` bytes, at once where the kernel has them. `from` and `into` must
/// live until then. Yields as file::read_at() does.
task<result<std::size_t>> read_some(file& from, std::uint64_t offset, mutable_bytes into);

/// Buffer of one slice, which grows to the largest that was asked for.
class file_slice {
public:
    /// Reads at most `size` bytes, more than 0. Yields a result<std::string_view>, valid until the
    /// next read: never empty, errc::truncated where the file has ended, and read_at()'s errors.
    task<result<std::string_view>> read(file& from, std::uint64_t offset, std::size_t size);

private:
    std::unique_ptr<char[]> bytes_;
    std::size_t room_ = 0;
};

}  // namespace eddy::http
