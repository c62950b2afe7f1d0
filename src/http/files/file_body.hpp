// Bodies of responses from files: texts of small ones, producers of larger ones.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/http/body.hpp>
#include <eddy/io/file.hpp>
#include <eddy/io/task.hpp>

#include "http/files/file_content.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace eddy::http {

/// Part of a body: bytes that are sent as they are, then an extent of a file.
struct body_part {
    std::string before;
    std::uint64_t offset = 0;  ///< in bytes
    std::uint64_t size = 0;
};

/// Bytes of all parts.
std::uint64_t size_of(const std::vector<body_part>& parts) noexcept;

/// Reads `size` bytes from `offset` on, at once where the kernel has them in memory. `from` must
/// live until then. Yields a result<std::string>; errc::truncated when the file ends before, and
/// read_at()'s errors.
task<result<std::string>> read_extent(file& from, std::uint64_t offset, std::size_t size);

/// The same for the content of a whole file in memory, with a descriptor where that is wanted and
/// can be had.
task<result<std::shared_ptr<const file_content>>> read_content(file& from, std::size_t size,
                                                               bool with_descriptor);

/// Body of `parts` of a file, which it owns: read in slices while it is sent, or, with `by_pages`,
/// sent by body_writer::write_file(). A file that has become too short cuts the connection
/// (errc::truncated). One loop's thread.
body file_body(file from, std::vector<body_part> parts, bool by_pages);

/// The same from memory: at most static_files::whole_limit bytes are copied into a text, more are
/// sent from where they are.
body memory_body(std::shared_ptr<const file_content> from, std::vector<body_part> parts);

/// Body of so many bytes that is never sent, in answer to HEAD.
body unsent_body(std::uint64_t size);

}  // namespace eddy::http
