// Reading of extents, and the producers of large bodies.
#include "http/files/file_body.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/base/bytes.hpp>
#include <eddy/http/static_files.hpp>

#include "http/file_slices.hpp"

#include <cstddef>
#include <span>
#include <utility>

namespace eddy::http {
namespace {

class file_producer final : public body_producer {
public:
    file_producer(file from, std::vector<body_part> parts, bool by_pages) noexcept
        : from_(std::move(from)), parts_(std::move(parts)), by_pages_(by_pages) {}

    task<result<>> produce(body_writer& to) override {
        for (const body_part& part : parts_) {
            auto sent = co_await to.write(part.before);
            if (sent) sent = co_await write_extent(to, part);
            if (!sent) co_return sent;
        }
        co_return result<>();
    }

    bool begins_at_once() const noexcept override { return true; }

private:
    task<result<>> write_extent(body_writer& to, const body_part& part) {
        if (by_pages_) return to.write_file(from_, part.offset, part.size);
        return to.body_writer::write_file(from_, part.offset, part.size);
    }

    file from_;
    std::vector<body_part> parts_;
    bool by_pages_;
};

std::string_view extent_of(std::string_view content, const body_part& part) noexcept {
    EDDY_ASSERT(part.offset + part.size <= content.size());
    return content.substr(static_cast<std::size_t>(part.offset),
                          static_cast<std::size_t>(part.size));
}

class memory_producer final : public body_producer {
public:
    memory_producer(std::shared_ptr<const file_content> from, std::vector<body_part> parts) noexcept
        : from_(std::move(from)), parts_(std::move(parts)) {}

    task<result<>> produce(body_writer& to) override {
        for (const body_part& part : parts_) {
            auto sent = co_await to.write(part.before);
            if (sent) sent = co_await write_extent(to, part);
            if (!sent) co_return sent;
        }
        co_return result<>();
    }

    bool begins_at_once() const noexcept override { return true; }

private:
    task<result<>> write_extent(body_writer& to, const body_part& part) {
        const std::string_view extent = extent_of(from_->text(), part);
        if (from_->descriptor() < 0) return to.write(extent);
        return to.write_mapped(extent, from_->descriptor(), part.offset);
    }

    std::shared_ptr<const file_content> from_;
    std::vector<body_part> parts_;
};

/// Fills `into` from `offset` on; errc::truncated when the file ends before.
task<result<>> read_whole(file& from, std::uint64_t offset, mutable_bytes into) {
    while (!into.empty()) {
        const auto got = co_await read_some(from, offset, into);
        if (!got) co_return fail(got.error());
        if (*got == 0) co_return fail(errc::truncated);
        offset += *got;
        into = into.subspan(*got);
    }
    co_return result<>();
}

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
    const auto filled =
        co_await read_whole(from, offset, std::as_writable_bytes(std::span<char>(text)));
    if (!filled) co_return fail(filled.error());
    co_return text;
}

task<result<std::shared_ptr<const file_content>>> read_content(file& from, std::size_t size,
                                                               bool with_descriptor) {
    auto memory = with_descriptor ? file_content::with_descriptor(size)
                                  : result<file_content>(fail(errc::unsupported));
    if (memory) {
        const auto filled = co_await read_whole(from, 0, memory->room());
        if (!filled) co_return fail(filled.error());
        if (memory->seal()) co_return std::make_shared<const file_content>(std::move(*memory));
    }
    auto text = co_await read_extent(from, 0, size);
    if (!text) co_return fail(text.error());
    co_return std::make_shared<const file_content>(std::move(*text));
}

body file_body(file from, std::vector<body_part> parts, bool by_pages) {
    const std::uint64_t size = size_of(parts);
    return body(std::make_unique<file_producer>(std::move(from), std::move(parts), by_pages), size);
}

body memory_body(std::shared_ptr<const file_content> from, std::vector<body_part> parts) {
    const std::uint64_t size = size_of(parts);
    if (size > static_files::whole_limit)
        return body(std::make_unique<memory_producer>(std::move(from), std::move(parts)), size);
    std::string text;
    text.reserve(static_cast<std::size_t>(size));
    for (const body_part& part : parts) {
        text += part.before;
        text += extent_of(from->text(), part);
    }
    return body(std::move(text));
}

body unsent_body(std::uint64_t size) { return body(std::make_unique<no_producer>(), size); }

}  // namespace eddy::http
