// The dump file: slices of work between turns of the loop, and requests to the disk.
#include "runtime/cache/files/dump_file.hpp"

#include <eddy/base/byte_buffer.hpp>
#include <eddy/io/file.hpp>
#include <eddy/io/loop.hpp>

#include "cache/persistence/engine_files.hpp"
#include "cache/replication/replication.hpp"
#include "runtime/cache/files/background_io.hpp"
#include "runtime/cache/files/yield.hpp"
#include "runtime/cache/replication/key_delay.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <new>
#include <string_view>
#include <system_error>
#include <vector>

namespace eddy::runtime::cache {
namespace {

using eddy::cache::rdb::load_counts;
using eddy::cache::rdb::loader;
using eddy::cache::rdb::reader;
using eddy::cache::rdb::snapshot;

/// Limit of one read from the disk.
constexpr std::size_t read_bytes = 512 * 1024;
/// Limit of one write.
constexpr std::size_t written_bytes = 64 * 1024;
/// Bytes between two requests to write them to the disk: at the end the kernel would write all of
/// them at once.
constexpr std::size_t synced_bytes = 4 * 1024 * 1024;
/// Bytes of a snapshot in one slice: some 100 us.
constexpr std::size_t written_slice = 48 * 1024;
/// Bytes of a file in one slice; making its keys takes longer.
constexpr std::size_t read_slice = 16 * 1024;
constexpr duration report_pause = std::chrono::seconds(2);

}  // namespace

std::unexpected<problem> disk_problem(std::string_view what, const std::string& path,
                                      std::error_code error) {
    if (error == std::errc::no_space_on_device)
        return refuse(507, fmt::format("could not {} {}: the disk is full", what, path));
    return refuse(500, fmt::format("could not {} {}: {}", what, path, error.message()));
}

std::unexpected<problem> stop_given_up() { return refuse(503, "the stop was given up"); }

task<outcome<std::uint64_t>> write_snapshot(const eddy::cache::server_settings& by, snapshot& data,
                                            std::string path) {
    result<file> opened = co_await file::open_regular(path, O_WRONLY | O_CREAT | O_TRUNC);
    if (!opened) co_return disk_problem("create", path, opened.error());
    background_writer writer(*opened);
    cancel_source* const source = co_await current_source();
    byte_buffer out;
    std::uint64_t offset = 0;
    std::uint64_t sent_up_to = 0;
    auto now = snapshot::status::writing;
    while (now == snapshot::status::writing) {
        const std::uint64_t begun = data.begun_keys();
        now = data.step(out, std::min(out.size() + written_slice, written_bytes));
        if (by.save_key_delay_us != 0) {
            co_await delay_keys(by, &eddy::cache::server_settings::save_key_delay_us,
                                data.begun_keys() - begun);
            if (source != nullptr && source->requested())
                co_return refuse(503, "the cache is stopping");
        }
        if (now == snapshot::status::failed) co_return refuse(500, data.fault());
        if (now == snapshot::status::writing && out.size() < written_bytes) {
            co_await yield();
            if (source != nullptr && source->requested())
                co_return refuse(503, "the cache is stopping");
            continue;
        }
        const result<> written = co_await writer.write_at(offset, out.bytes());
        if (!written) co_return disk_problem("write", path, written.error());
        offset += out.size();
        out.clear();
        if (offset - sent_up_to >= synced_bytes) {
            sent_up_to = offset;
            if (const result<> sent = co_await writer.sync_data(); !sent)
                co_return disk_problem("write", path, sent.error());
        }
    }
    const result<> synced = co_await writer.sync();
    if (!synced) co_return disk_problem("write", path, synced.error());
    co_return offset;
}

std::string temporary_of(const std::string& path) { return path + ".tmp"; }

task<outcome<std::uint64_t>> write_dump(const eddy::cache::server_settings& by, snapshot& data,
                                        std::string path) {
    const std::string temporary = temporary_of(path);
    outcome<std::uint64_t> written = refuse(500, "");
    try {
        written = co_await write_snapshot(by, data, temporary);
    } catch (const std::bad_alloc&) {
        written = refuse(500, fmt::format("could not write {}: there is no memory", path));
    }
    if (written) {
        const result<> renamed = co_await background_rename(temporary, path);
        if (!renamed) written = disk_problem("rename the new", path, renamed.error());
    }
    // An incomplete file is of no use.
    if (!written) static_cast<void>(co_await background_remove(temporary));
    co_return written;
}

static std::unexpected<problem> damaged(const std::string& path,
                                        const eddy::cache::rdb::read_fault& why) {
    if (why.is_unknown_format)
        return refuse(500, fmt::format("could not load {}: {}. The file was left as it is: put one "
                                       "of these in its place, or move it away to begin without it",
                                       path, why.what));
    return refuse(500, fmt::format("could not load {}: it is wrong at byte {}: {}. The file was "
                                   "left as it is: put a good copy in its place, or move it away "
                                   "to begin without keys",
                                   path, why.offset, why.what));
}

task<outcome<std::optional<load_counts>>> load_dump(eddy::cache::engine& to,
                                                    const eddy::cache::server_settings& by,
                                                    std::string path,
                                                    eddy::cache::rdb::load_options options,
                                                    serving::journal& events) {
    result<file> opened = co_await file::open_regular(path, O_RDONLY);
    if (!opened && opened.error() == std::errc::no_such_file_or_directory) co_return std::nullopt;
    if (!opened) co_return disk_problem("open", path, opened.error());
    const result<std::uint64_t> size = co_await opened->size();
    if (!size) co_return disk_problem("read", path, size.error());

    cancel_source* const source = co_await current_source();
    loop& here = loop::current();
    time_point reported = here.now();
    eddy::cache::engine_files files(to);
    files.begin_load(*size);
    loader into(to, options);
    std::vector<char> buffer(read_bytes);
    std::uint64_t offset = 0;
    while (into.now() == reader::status::reading) {
        const result<std::size_t> got =
            co_await opened->read_at(offset, std::as_writable_bytes(std::span(buffer)));
        if (!got) co_return disk_problem("read", path, got.error());
        if (*got == 0) {
            into.finish();
            break;
        }
        offset += *got;
        std::string_view rest(buffer.data(), *got);
        while (!rest.empty() && into.now() == reader::status::reading) {
            const std::uint64_t keys = into.counts().keys;
            try {
                files.set_loaded_bytes(files.loaded_bytes() +
                                       into.feed(rest.substr(0, read_slice)));
            } catch (const std::bad_alloc&) {
                co_return refuse(500, fmt::format("could not load {}: there is no memory for more "
                                                  "than {} keys of it",
                                                  path, into.counts().keys));
            }
            rest.remove_prefix(std::min(rest.size(), read_slice));
            if (by.load_key_delay_us != 0)
                co_await delay_keys(by, &eddy::cache::server_settings::load_key_delay_us,
                                    into.counts().keys - keys);
            co_await here.yield();
            if (source != nullptr && source->requested())
                co_return refuse(503, "the cache is stopping");
        }
        if (here.now() - reported >= report_pause) {
            reported = here.now();
            events.write(fmt::format("loading {}: {} of {} bytes, {} keys", path, offset, *size,
                                     into.counts().keys));
        }
    }
    const auto stands = into.position();
    if (options.goes_on && stands && into.now() == reader::status::done) {
        const bool follows = !by.replica.master_host.empty();
        eddy::cache::replication::of(to).restore(*stands, follows);
    }
    if (into.now() == reader::status::failed) co_return damaged(path, into.fault());
    co_return into.counts();
}

task<outcome<>> check_folder(std::string folder) {
    // The daemon's umask has it be this user's alone.
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error)
        co_return refuse(400, fmt::format("--dir {} cannot be made: {}. Choose another one", folder,
                                          error.message()));
    const std::string probe = folder + "/.eddy-probe";
    const result<file> made = co_await file::open_regular(probe, O_WRONLY | O_CREAT, 0600);
    if (!made) {
        co_return refuse(400,
                         fmt::format("--dir {} cannot be used: could not create {}: {}. Choose "
                                     "another one",
                                     folder, probe, made.error().message()));
    }
    static_cast<void>(co_await file::remove(probe));
    co_return outcome<>();
}

}  // namespace eddy::runtime::cache
