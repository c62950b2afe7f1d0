// The table of a site's options, and which of them contradict each other.
#include "runtime/http/options.hpp"

#include "http/alpn.hpp"
#include "runtime/listening.hpp"
#include "runtime/options/option_tables.hpp"
#include "runtime/serving/accept_options.hpp"
#include "runtime/serving/shm_options.hpp"
#include "runtime/serving/threads.hpp"
#include "runtime/serving/tls_options.hpp"

#include <fmt/format.h>

#include <limits>
#include <utility>

namespace eddy::runtime::http {
namespace {

using transport::scheme;

/// A time that an option gives, of which 0 is none.
duration time_of(const settings& chosen, std::string_view name) {
    const std::int64_t given = chosen.number(name);
    return given == 0 ? duration::max() : duration(given);
}

eddy::http::session_limits read_limits(const settings& chosen) {
    eddy::http::session_limits read;
    read.parser.header_bytes = static_cast<std::size_t>(chosen.number("max-header"));
    read.parser.start_line = static_cast<std::size_t>(chosen.number("max-header"));
    read.request_time = time_of(chosen, "request-timeout");
    read.read_time = read.request_time;
    read.idle_time = time_of(chosen, "idle-timeout");
    read.write_time = time_of(chosen, "write-timeout");
    return read;
}

/// Where it listens, without TLS.
std::vector<option> listening_options() {
    return {
        port_option(),
        bind_option(),
        unix_option(),
        allow_users_option(),
        listen_option("serve on a URI instead: tcp://HOST:PORT, unix:///PATH or handoff:///PATH"),
    };
}

/// Which files it serves, and how.
std::vector<option> file_options() {
    return {
        {.name = "root",
         .value_name = "DIR",
         .help = "folder whose files are served, and nothing outside of it",
         .is_path = true},
        {.name = "index",
         .value_name = "FILE",
         .default_value = "index.html",
         .help = "file that is served for its folder"},
        {.name = "listing",
         .kind = option_kind::flag,
         .help = "list the files of a folder without an index"},
        {.name = "spa",
         .value_name = "FILE",
         .help = "file below --root that is served for paths without a file, such as index.html of "
                 "a single-page application"},
        {.name = "cache",
         .kind = option_kind::size,
         .value_name = "SIZE",
         .default_value = "0",
         .help = "memory of each thread to cache files, such as 64M; a changed file is noticed "
                 "within a second; 0 is none",
         .maximum = std::int64_t{1} << 40},
        {.name = "sendfile",
         .kind = option_kind::flag,
         .help = "send uncached files of more than 64 KiB by sendfile(2), without a copy. Only for "
                 "files that are replaced by a rename: changing one in place changes responses "
                 "under way. No effect with TLS"},
        {.name = "compress",
         .kind = option_kind::flag,
         .help = "compress texts, scripts and other compressible content, by zstd, br, gzip or "
                 "deflate as the client accepts; precompressed files are preferred; small results "
                 "are cached in a further eighth of --cache",
         .live = true},
        {.name = "cache-control",
         .value_name = "TEXT",
         .help = "field Cache-Control of files, for browsers, such as max-age=3600"},
        {.name = "hidden",
         .kind = option_kind::flag,
         .help = "also serve files and folders whose names begin with a dot"},
    };
}

/// Threads and limits of clients.
std::vector<option> client_options() {
    return {
        threads_option("threads that serve clients. One has the highest throughput a core"),
        max_connections_option(),
        {.name = "max-header",
         .kind = option_kind::size,
         .value_name = "SIZE",
         .default_value = "16KiB",
         .help = "largest first line (414 beyond it), and largest header (431) of a request",
         .minimum = 256,
         .maximum = 1 << 20},
        {.name = "request-timeout",
         .kind = option_kind::duration,
         .value_name = "TIME",
         .default_value = "15s",
         .help = "time for a client to send a request, from its first byte; 408 beyond it; 0 is no "
                 "limit"},
        {.name = "idle-timeout",
         .kind = option_kind::duration,
         .value_name = "TIME",
         .default_value = "60s",
         .help = "close a connection after this time without a request; 0 is never"},
        {.name = "write-timeout",
         .kind = option_kind::duration,
         .value_name = "TIME",
         .default_value = "15s",
         .help = "close a connection whose client takes less than 256 KiB of a response in this "
                 "time; 0 is never"},
        tcp_keepalive_option(),
    };
}

/// The access log.
std::vector<option> log_options() {
    return {
        {.name = "access-log",
         .value_name = "FILE",
         .help = "append a line for each request to this file",
         .is_path = true},
        {.name = "access-format",
         .kind = option_kind::choice,
         .value_name = "FORMAT",
         .default_value = "common",
         .help = "lines of the access log: common or combined, as other servers write them, or "
                 "json",
         .choices = {"common", "combined", "json"}},
    };
}

}  // namespace

std::vector<option> option_table() {
    return joined({listening_options(), tls_options(), shm_options(), file_options(),
                   client_options(), log_options()});
}

outcome<config> read_config(const settings& chosen) {
    config read;
    auto serving = read_serving_config(chosen, scheme::tcp,
                                       "HTTP needs a stream; write --listen tcp://HOST:PORT", read);
    if (!serving) return std::unexpected(serving.error());
    eddy::http::accept_by_alpn(read.where);
    read.root = chosen.text("root");
    if (read.root.empty())
        return refuse(400, "an http runtime serves a folder; say which by --root DIR");
    for (const std::string_view name : {"root", "access-log"}) {
        const std::string& path = chosen.text(name);
        if (!path.empty() && !path.starts_with('/'))
            return refuse(400, fmt::format("--{} cannot be \"{}\": write the whole path, from /",
                                           name, path));
    }
    if (chosen.given("access-format") && !chosen.has("access-log"))
        return refuse(400, "--access-format has no effect without --access-log FILE");
    read.files.index = chosen.text("index");
    read.files.fallback = chosen.text("spa");
    read.files.listing = chosen.flag("listing");
    read.files.cache_bytes = static_cast<std::size_t>(chosen.number("cache"));
    read.files.cache_control = chosen.text("cache-control");
    if (!http1::is_field_value(read.files.cache_control))
        return refuse(
            400,
            "--cache-control has a byte that a header field may not have: write text such as "
            "max-age=3600");
    read.files.sendfile = chosen.flag("sendfile");
    read.compress = chosen.flag("compress");
    read.files.hidden = chosen.flag("hidden");
    read.limits = read_limits(chosen);
    read.max_connections = static_cast<std::uint64_t>(chosen.number("max-connections"));
    read.access_log = chosen.text("access-log");
    if (chosen.text("access-format") == "combined") read.format = access_format::combined;
    if (chosen.text("access-format") == "json") read.format = access_format::json;
    return read;
}

}  // namespace eddy::runtime::http
