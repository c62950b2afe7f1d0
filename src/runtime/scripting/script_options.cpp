// Files of scripts.
#include "runtime/scripting/script_options.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/blocking.hpp>
#include <eddy/io/loop.hpp>

#include "base/files/regular_file.hpp"
#include "runtime/scripting/script_rows.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace eddy::runtime {
namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20;

/// Readers of all runtimes: a disk that hangs blocks one thread, and other files are still read.
blocking_pool& readers() {
    static blocking_pool all({.max_threads = 4, .max_queue = 100});
    return all;
}

}  // namespace

outcome<script_file> read_script(std::string option, std::string path, std::size_t most) {
    EDDY_ASSERT(most > 0 && most % mebibyte == 0);
    auto text = read_regular(path, most);
    if (!text && text.error() == errc::limit_reached)
        return refuse(400,
                      fmt::format("{}: {} is larger than {} MiB", option, path, most / mebibyte));
    if (!text)
        return refuse(
            400, fmt::format("{}: {} cannot be read: {}", option, path, text.error().message()));
    script_file read;
    read.text = std::move(*text);
    read.name = path.substr(path.rfind('/') + 1);
    return read;
}

std::unexpected<problem> has_no_script(const std::string& name) {
    return refuse(409,
                  fmt::format("{0} runs no script; `eddy edit {0} --lua FILE` gives it one", name));
}

outcome<> read_script_file(const settings& chosen, script_config& into, bool takes_requests) {
    if (!into) {
        std::vector<const char*> names = {"lua-path",       "lua-unsafe",      "lua-memory",
                                          "lua-slice",      "lua-time",        "lua-admin",
                                          "lua-max-timers", "lua-max-sockets", "lua-max-queue"};
        if (takes_requests) names.push_back("lua-body");
        for (const char* const name : names)
            if (chosen.given(name))
                return refuse(400,
                              fmt::format("--{0} has no effect without --lua; leave it out, or "
                                          "take it back with --unset {0}",
                                          name));
        return {};
    }
    auto read = read_script("--lua", into.path, max_script_file);
    if (!read) return std::unexpected(read.error());
    into.file = std::move(*read);
    return {};
}

task<outcome<script_file>> read_script_in_background(std::string option, std::string path,
                                                     std::size_t most) {
    // A simulated loop has no other threads.
    if (loop::current().kind() == io_backend_kind::sim) co_return read_script(option, path, most);
    auto read = co_await run_blocking(readers(), [&] { return read_script(option, path, most); });
    if (!read)
        co_return refuse(
            503, fmt::format("{}: {} cannot be read: {}", option, path, read.error().message()));
    co_return std::move(*read);
}

}  // namespace eddy::runtime
