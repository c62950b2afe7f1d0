// Handover of a cache's keys: an RDB file, as dumps are.
#include "runtime/cache/files/handover.hpp"

#include <eddy/io/loop.hpp>

#include "cache/persistence/engine_files.hpp"
#include "runtime/cache/files/dump_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <string>
#include <utility>

namespace eddy::runtime::cache {
namespace {

/// Users know the folder, and not the path that opens the file.
problem with_folder(problem of, const handover& where) {
    const std::string shown = "a temporary file in " + where.folder;
    for (std::size_t at = 0; (at = of.message.find(where.path, at)) != std::string::npos;
         at += shown.size())
        of.message.replace(at, where.path.size(), shown);
    return of;
}

}  // namespace

task<outcome<>> write_handover(const eddy::cache::server_settings& by,
                               eddy::cache::rdb::snapshot& data, const handover& to) {
    if (!to.file)
        co_return refuse(
            507, fmt::format("no temporary file can be made in {}: {}", to.folder, to.fault));
    outcome<std::uint64_t> written = refuse(503, "there is no memory");
    try {
        written = co_await write_snapshot(by, data, to.path);
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): said above
    }
    if (!written) co_return std::unexpected(with_folder(std::move(written.error()), to));
    co_return outcome<>();
}

task<outcome<>> load_handover(eddy::cache::engine& to, const eddy::cache::server_settings& by,
                              const handover& from, serving::journal& events) {
    const time_point began = loop::current().now();
    eddy::cache::rdb::load_options options;
    options.goes_on = true;
    const auto loaded = co_await load_dump(to, by, from.path, options, events);
    if (!loaded) co_return std::unexpected(with_folder(loaded.error(), from));
    if (!*loaded) co_return refuse(500, "the file with the keys of the instance before is missing");
    const eddy::cache::rdb::load_counts& counts = **loaded;
    eddy::cache::engine_files(to).note_taken_over(counts.keys, counts.expired);
    const std::chrono::duration<double> took = loop::current().now() - began;
    events.write(fmt::format("took over {} keys from the instance before in {:.3f} s", counts.keys,
                             took.count()));
    co_return outcome<>();
}

}  // namespace eddy::runtime::cache
