// Reading of slices, and a file's way through any writer.
#include "http/file_slices.hpp"

#include <eddy/http/body.hpp>

#include <algorithm>
#include <span>
#include <system_error>

namespace eddy::http {

task<result<std::size_t>> read_some(file& from, std::uint64_t offset, mutable_bytes into) {
    const auto at_once = from.try_read_at(offset, into);
    if (at_once || at_once.error() != std::errc::resource_unavailable_try_again) co_return at_once;
    co_return co_await from.read_at(offset, into);
}

task<result<std::string_view>> file_slice::read(file& from, std::uint64_t offset,
                                                std::size_t size) {
    if (room_ < size) {
        bytes_ = std::make_unique_for_overwrite<char[]>(size);
        room_ = size;
    }
    const auto got = co_await read_some(
        from, offset, std::as_writable_bytes(std::span<char>(bytes_.get(), size)));
    if (!got) co_return fail(got.error());
    // The file has shrunk: the rest of the declared size is not made up.
    if (*got == 0) co_return fail(errc::truncated);
    co_return std::string_view(bytes_.get(), *got);
}

task<result<>> body_writer::write_file(file& from, std::uint64_t offset, std::uint64_t size) {
    file_slice slice;
    while (size > 0) {
        const auto wanted =
            static_cast<std::size_t>(std::min<std::uint64_t>(size, file_slice_bytes));
        const auto got = co_await slice.read(from, offset, wanted);
        if (!got) co_return fail(got.error());
        const auto sent = co_await write(*got);
        if (!sent) co_return sent;
        offset += got->size();
        size -= got->size();
    }
    co_return result<>();
}

}  // namespace eddy::http
