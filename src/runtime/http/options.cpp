// The table of a site's options, and their contradictions.
#include "runtime/http/options.hpp"

#include "http/alpn.hpp"
#include "runtime/listening.hpp"
#include "runtime/options/bound_options.hpp"
#include "runtime/serving/accept_options.hpp"
#include "runtime/serving/serving_rows.hpp"
#include "runtime/serving/shm_options.hpp"
#include "runtime/serving/threads.hpp"

#include <fmt/format.h>

#include <utility>

namespace eddy::runtime::http {
namespace {

using eddy::http::session_limits;
using eddy::http::static_options;
using transport::scheme;

using row = bound_option<config>;

/// Served files, and the way they are served.
bound_options<config> file_rows() {
    return {
        row::whole_path(&config::root,
                        {.name = "root",
                         .value_name = "DIR",
                         .help = "folder whose files are served, and nothing outside of it",
                         .is_path = true}),
        row::bound(nested(&config::files, &static_options::index),
                   {.name = "index",
                    .value_name = "FILE",
                    .default_value = "index.html",
                    .help = "file that is served for its folder"}),
        row::bound(nested(&config::files, &static_options::listing),
                   {.name = "listing",
                    .kind = option_kind::flag,
                    .help = "list the files of a folder without an index"}),
        row::bound(nested(&config::files, &static_options::fallback),
                   {.name = "spa",
                    .value_name = "FILE",
                    .help = "file below --root that is served for paths without a file, such as "
                            "index.html of a single-page application"}),
        row::bound(nested(&config::files, &static_options::cache_bytes),
                   {.name = "cache",
                    .kind = option_kind::size,
                    .value_name = "SIZE",
                    .default_value = "0",
                    .help = "memory of each thread to cache files, such as 64M; a changed file is "
                            "noticed within a second; 0 is none",
                    .maximum = std::int64_t{1} << 40}),
        row::bound(nested(&config::files, &static_options::sendfile),
                   {.name = "sendfile",
                    .kind = option_kind::flag,
                    .help = "send uncached files of more than 64 KiB by sendfile(2), without a "
                            "copy. Only for files that are replaced by a rename: changing one in "
                            "place changes responses under way. No effect with TLS"}),
        row::bound(&config::compress,
                   {.name = "compress",
                    .kind = option_kind::flag,
                    .help = "compress texts, scripts and other compressible content, by zstd, br, "
                            "gzip or deflate as the client accepts; precompressed files are "
                            "preferred; small results are cached in a further eighth of --cache",
                    .live = true}),
        row::bound(nested(&config::files, &static_options::cache_control),
                   {.name = "cache-control",
                    .value_name = "TEXT",
                    .help = "field Cache-Control of files, for browsers, such as max-age=3600"}),
        row::bound(nested(&config::files, &static_options::hidden),
                   {.name = "hidden",
                    .kind = option_kind::flag,
                    .help = "also serve files and folders whose names begin with a dot"}),
    };
}

/// Threads and limits of clients.
bound_options<config> client_rows() {
    return {
        row::unbound(
            threads_option("threads that serve clients. One has the highest throughput a core")),
        row::bound(&config::max_connections, max_connections_option()),
        row::bound(
            nested(&config::limits, nested(&session_limits::parser, &http1::limits::header_bytes)),
            {.name = "max-header",
             .kind = option_kind::size,
             .value_name = "SIZE",
             .default_value = "16KiB",
             .help = "largest first line (414 beyond it), and largest header (431) of a request",
             .minimum = 256,
             .maximum = 1 << 20}),
        row::none_at_zero(nested(&config::limits, &session_limits::request_time),
                          {.name = "request-timeout",
                           .kind = option_kind::duration,
                           .value_name = "TIME",
                           .default_value = "15s",
                           .help = "time for a client to send a request, from its first byte; 408 "
                                   "beyond it; 0 is no limit"}),
        row::none_at_zero(
            nested(&config::limits, &session_limits::idle_time),
            {.name = "idle-timeout",
             .kind = option_kind::duration,
             .value_name = "TIME",
             .default_value = "60s",
             .help = "close a connection after this time without a request; 0 is never"}),
        row::none_at_zero(nested(&config::limits, &session_limits::write_time),
                          {.name = "write-timeout",
                           .kind = option_kind::duration,
                           .value_name = "TIME",
                           .default_value = "15s",
                           .help = "close a connection whose client takes less than 256 KiB of a "
                                   "response in this time; 0 is never"}),
        keepalive_row<config>(),
    };
}

/// The access log.
bound_options<config> log_rows() {
    return {
        row::whole_path(&config::access_log, {.name = "access-log",
                                              .value_name = "FILE",
                                              .help = "append a line for each request to this file",
                                              .is_path = true}),
        row::choice(&config::format,
                    {.name = "access-format",
                     .kind = option_kind::choice,
                     .value_name = "FORMAT",
                     .default_value = "common",
                     .help = "lines of the access log: common or combined, as other servers write "
                             "them, or json"},
                    {{"common", access_format::common},
                     {"combined", access_format::combined},
                     {"json", access_format::json}}),
    };
}

}  // namespace

const bound_options<config>& option_rows() {
    static const bound_options<config> rows =
        joined({listening_rows<config>(
                    "serve on a URI instead: tcp://HOST:PORT, unix:///PATH or handoff:///PATH"),
                secure_rows<config>(), file_rows(), client_rows(), log_rows()});
    return rows;
}

outcome<config> read_config(const settings& chosen) {
    config read;
    auto serving = read_serving_config(chosen, scheme::tcp,
                                       "HTTP needs a stream; write --listen tcp://HOST:PORT", read);
    if (!serving) return std::unexpected(serving.error());
    eddy::http::accept_by_alpn(read.where);
    if (!chosen.has("root"))
        return refuse(400, "an http runtime serves a folder; say which by --root DIR");
    if (auto bound = read_bound(option_rows(), chosen, read); !bound)
        return std::unexpected(bound.error());
    read.limits.parser.start_line = read.limits.parser.header_bytes;
    read.limits.read_time = read.limits.request_time;
    if (chosen.given("access-format") && read.access_log.empty())
        return refuse(400, "--access-format has no effect without --access-log FILE");
    if (!http1::is_field_value(read.files.cache_control))
        return refuse(
            400,
            "--cache-control has a byte that a header field may not have: write text such as "
            "max-age=3600");
    return read;
}

}  // namespace eddy::runtime::http
