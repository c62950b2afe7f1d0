// Reading of extents, and the producer of slices.
#include "http/files/file_body.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/base/bytes.hpp>
#include <eddy/http/static_files.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

namespace eddy::http {
namespace {

/// Reads at most `into.size()` bytes, at once where the kernel has them.
task<result<std::size_t>> read_some(file& from, std::uint64_t offset, mutable_bytes into) {
    const auto at_once = from.try_read_at(offset, into);
    if (at_once || at_once.error() != std::errc::resource_unavailable_try_again) co_return at_once;
    co_return co_await from.read_at(offset, into);
}

class file_producer final : public body_producer {
public:
    file_producer(file from, std::vector<body_part> parts) noexcept
        : from_(std::move(from)), parts_(std::move(parts)) {}

    task<result<>> produce(body_writer& to) override {
        std::uint64_t largest = 0;
        for (const body_part& part : parts_) largest = std::max(largest, part.size);
        const auto room =
            static_cast<std::size_t>(std::min<std::uint64_t>(largest, static_files::slice_bytes));
        const auto buffer = std::make_unique_for_overwrite<char[]>(room);
        for (const body_part& part : parts_) {
            auto sent = co_await to.write(part.before);
            if (!sent) co_return sent;
            sent = co_await send_extent(to, part, {buffer.get(), room});
            if (!sent) co_return sent;
        }
        co_return result<>();
    }

private:
    task<result<>> send_extent(body_writer& to, const body_part& part, std::span<char> buffer) {
        std::uint64_t offset = part.offset;
        std::uint64_t left = part.size;
        while (left > 0) {
            const auto wanted =
                static_cast<std::size_t>(std::min<std::uint64_t>(left, buffer.size()));
            const auto got =
                co_await read_some(from_, offset, std::as_writable_bytes(buffer.first(wanted)));
            if (!got) co_return fail(got.error());
            // The file has shrunk: the rest of the declared size is not made up.
            if (*got == 0) co_return fail(errc::truncated);
            const auto sent = co_await to.write({buffer.data(), *got});
            if (!sent) co_return sent;
            offset += *got;
            left -= *got;
        }
        co_return result<>();
    }

    file from_;
    std::vector<body_part> parts_;
};

}  // namespace

task<result<std::string>> read_extent(file& from, std::uint64_t offset, std::uint64_t size) {
    EDDY_ASSERT(size <= static_files::whole_limit);
    std::string text(static_cast<std::size_t>(size), '\0');
    std::size_t done = 0;
    while (done < text.size()) {
        const auto rest = std::as_writable_bytes(std::span<char>(text).subspan(done));
        const auto got = co_await read_some(from, offset + done, rest);
        if (!got) co_return fail(got.error());
        if (*got == 0) co_return fail(errc::truncated);
        done += *got;
    }
    co_return text;
}

body file_body(file from, std::vector<body_part> parts) {
    std::uint64_t size = 0;
    for (const body_part& part : parts) size += part.before.size() + part.size;
    return body(std::make_unique<file_producer>(std::move(from), std::move(parts)), size);
}

}  // namespace eddy::http
