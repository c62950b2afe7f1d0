// Reading of extents, and the producer of slices.
#include "http/files/file_body.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/base/bytes.hpp>
#include <eddy/http/static_files.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
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

std::string_view extent_of(const std::string& content, const body_part& part) noexcept {
    EDDY_ASSERT(part.offset + part.size <= content.size());
    return std::string_view(content).substr(static_cast<std::size_t>(part.offset),
                                            static_cast<std::size_t>(part.size));
}

class memory_producer final : public body_producer {
public:
    memory_producer(std::shared_ptr<const std::string> from, std::vector<body_part> parts) noexcept
        : from_(std::move(from)), parts_(std::move(parts)) {}

    task<result<>> produce(body_writer& to) override {
        for (const body_part& part : parts_) {
            auto sent = co_await to.write(part.before);
            if (sent) sent = co_await to.write(extent_of(*from_, part));
            if (!sent) co_return sent;
        }
        co_return result<>();
    }

private:
    std::shared_ptr<const std::string> from_;
    std::vector<body_part> parts_;
};

class no_producer final : public body_producer {
public:
    task<result<>> produce(body_writer&) override { co_return fail(errc::truncated); }
};

}  // namespace

std::uint64_t size_of(const std::vector<body_part>& parts) noexcept {
    std::uint64_t size = 0;
    for (const body_part& part : parts) size += part.before.size() + part.size;
    return size;
}

task<result<std::string>> read_extent(file& from, std::uint64_t offset, std::size_t size) {
    std::string text(size, '\0');
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
    const std::uint64_t size = size_of(parts);
    return body(std::make_unique<file_producer>(std::move(from), std::move(parts)), size);
}

body memory_body(std::shared_ptr<const std::string> from, std::vector<body_part> parts) {
    const std::uint64_t size = size_of(parts);
    if (size > static_files::whole_limit)
        return body(std::make_unique<memory_producer>(std::move(from), std::move(parts)), size);
    std::string text;
    text.reserve(static_cast<std::size_t>(size));
    for (const body_part& part : parts) {
        text += part.before;
        text += extent_of(*from, part);
    }
    return body(std::move(text));
}

body unsent_body(std::uint64_t size) { return body(std::make_unique<no_producer>(), size); }

}  // namespace eddy::http
