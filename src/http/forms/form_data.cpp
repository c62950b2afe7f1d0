// Forms with files, read whole: what stays in memory, and temporary files.
#include <eddy/base/bytes.hpp>
#include <eddy/base/log.hpp>
#include <eddy/http/multipart.hpp>

#include "http/session/request_body.hpp"

#include <fcntl.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

namespace eddy::http {
namespace {

/// Content of files is written in pieces of this size, or smaller ones where memory is short.
constexpr std::size_t write_size = 128 * 1024;

/// Opens a file without a name below `folder`. Yields a result<file>; errors are open(2)'s.
task<result<file>> open_unnamed(std::string folder) {
    auto opened = co_await file::open(folder, O_TMPFILE | O_RDWR, 0600);
    const bool has_none = !opened && (opened.error() == std::errc::operation_not_supported ||
                                      opened.error() == std::errc::is_a_directory);
    if (!has_none) co_return opened;
    // The file system has no unnamed files: its name is removed at once.
    const std::string path = folder + "/eddy-" + make_boundary();
    opened = co_await file::open(path, O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW, 0600);
    if (!opened) co_return opened;
    const auto removed = co_await file::remove(path);
    if (!removed) co_return fail(removed.error());
    co_return opened;
}

/// Reader of a form's parts into one form_data.
class form_data_reader {
public:
    form_data_reader(request& incoming, const form_data_limits& limits)
        : incoming_(incoming), limits_(limits), reader_(incoming, limits.parser) {}

    task<result<form_data>> read() {
        for (;;) {
            auto part = co_await reader_.next();
            if (!part && part.error() == errc::end_of_stream) co_return std::move(made_);
            if (!part) co_return fail(part.error());
            const auto added = co_await add(*part);
            if (!added) co_return fail(added.error());
        }
    }

private:
    task<result<>> add(multipart_part& from) {
        form_data_part& part = made_.parts.emplace_back();
        part.name = from.name();
        if (from.is_file()) part.filename = from.filename();
        part.content_type = from.content_type();
        const std::size_t names =
            part.name.size() + from.filename().size() + part.content_type.size();
        if (!count_field(names)) co_return fail(reader_.failure());
        if (part.filename) co_return co_await take_file(from, part);
        auto text = co_await from.whole(limits_.field);
        if (!text) co_return fail(text.error());
        if (!count_field(text->size())) co_return fail(reader_.failure());
        part.size = text->size();
        part.text = std::move(*text);
        co_return result<>();
    }

    bool count_field(std::size_t bytes) noexcept {
        if (bytes > limits_.fields - fields_) {
            reader_.refuse(413, "the fields of the form are too long");
            return false;
        }
        fields_ += bytes;
        return true;
    }

    task<result<>> take_file(multipart_part& from, form_data_part& part) {
        for (;;) {
            const auto piece = co_await from.read();
            if (!piece && piece.error() == errc::end_of_stream) break;
            if (!piece) co_return fail(piece.error());
            if (piece->size() > limits_.file - part.size)
                co_return fail(reader_.refuse(413, "a file of the form is too long"));
            part.size += piece->size();
            if (!part.stored && piece->size() > limits_.memory - memory_) {
                auto opened = co_await open_unnamed(limits_.folder);
                if (!opened) co_return fail(declare_failure(opened.error()));
                part.stored = std::move(*opened);
                memory_ -= part.text.size();
            }
            part.text += *piece;
            if (!part.stored) {
                memory_ += piece->size();
            } else if (part.text.size() >= std::min(write_size, limits_.memory - memory_)) {
                const auto written = co_await store(part);
                if (!written) co_return written;
            }
        }
        if (!part.stored) co_return result<>();
        const auto written = co_await store(part);
        std::string().swap(part.text);  // an assignment would keep the memory
        co_return written;
    }

    /// Appends the text that a part has in memory to its file.
    task<result<>> store(form_data_part& part) {
        const std::uint64_t at = part.size - part.text.size();
        const auto written = co_await part.stored->write_at(at, as_bytes(part.text));
        part.text.clear();
        if (!written) co_return fail(declare_failure(written.error()));
        co_return written;
    }

    /// The server's own fault.
    std::error_code declare_failure(std::error_code error) {
        if (error == errc::cancelled) return error;
        log_error("http", "a form's file cannot be stored below " + limits_.folder + ": " +
                              error.message());
        const bool is_full = error == std::errc::no_space_on_device;
        incoming_.set_fault({is_full ? 507 : 500, "a file of the form could not be stored"});
        return error;
    }

    request& incoming_;
    const form_data_limits& limits_;
    multipart_reader reader_;
    form_data made_;
    std::size_t fields_ = 0;  // bytes of fields, names and types so far
    std::size_t memory_ = 0;  // bytes of files that stay in memory so far
};

}  // namespace

std::string form_data_part::safe_filename() const {
    return http1::safe_file_name(filename ? std::string_view(*filename) : std::string_view());
}

task<result<>> form_data_part::copy_to(file& to) {
    if (!stored) co_return co_await to.write_at(0, as_bytes(text));
    const auto buffer = std::make_unique_for_overwrite<char[]>(write_size);
    for (std::uint64_t at = 0; at < size;) {
        const auto wanted =
            static_cast<std::size_t>(std::min<std::uint64_t>(write_size, size - at));
        const auto into = std::as_writable_bytes(std::span<char>(buffer.get(), wanted));
        const auto got = co_await stored->read_at(at, into);
        if (!got) co_return fail(got.error());
        if (*got == 0) co_return fail(errc::truncated);
        const auto written = co_await to.write_at(at, into.first(*got));
        if (!written) co_return written;
        at += *got;
    }
    co_return result<>();
}

form_data_part* form_data::find(std::string_view name) noexcept {
    const auto found = std::ranges::find(parts, name, &form_data_part::name);
    return found == parts.end() ? nullptr : &*found;
}

task<result<form_data>> read_form_data(request& incoming, form_data_limits limits) {
    if (limits.bytes) incoming.body().set_limit(*limits.bytes);
    form_data_reader reader(incoming, limits);
    co_return co_await reader.read();
}

task<result<form_data>> read_form_data(request& incoming) {
    return read_form_data(incoming, form_data_limits());
}

}  // namespace eddy::http
