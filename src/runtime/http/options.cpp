// The table of a site's options, and their contradictions.
#include "runtime/http/options.hpp"

#include "http/alpn.hpp"
#include "runtime/listening.hpp"
#include "runtime/options/bound_options.hpp"
#include "runtime/serving/accept_options.hpp"
#include "runtime/serving/request_rows.hpp"
#include "runtime/serving/serving_rows.hpp"
#include "runtime/serving/shm_options.hpp"
#include "runtime/serving/threads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::runtime::http {
namespace {

using eddy::http::session_limits;
using eddy::http::static_options;
using transport::scheme;

using row = bound_option<config>;

/// Makes the name of a file below --root of one that begins with a slash, or with --root itself.
outcome<> make_relative(std::string_view flag, std::string_view root, std::string& name) {
    if (name.empty()) return {};
    while (root.ends_with('/')) root.remove_suffix(1);
    std::string_view left = name;
    if (left.starts_with(root) && left.substr(root.size()).starts_with('/'))
        left.remove_prefix(root.size());
    left.remove_prefix(std::min(left.find_first_not_of('/'), left.size()));
    for (std::string_view rest = left;;) {
        const std::string_view segment = rest.substr(0, rest.find('/'));
        if (segment.empty() || segment == "." || segment == "..")
            return refuse(400, fmt::format("--{} {} names no file below --root: write a name such "
                                           "as index.html",
                                           flag, name));
        if (segment.size() == rest.size()) break;
        rest.remove_prefix(segment.size() + 1);
    }
    name = std::string(left);
    return {};
}

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
        row::bound(
            nested(&config::limits, nested(&session_limits::parser, &http1::limits::header_count)),
            max_fields_option("largest number of header fields of a request; 431 beyond it")),
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
        accept_proxy_row<config>(),
    };
}

/// The access log.
bound_options<config> log_rows() {
    return {
        row::whole_path(&config::access_log, {.name = "access-log",
                                              .value_name = "FILE",
                                              .help = "append a line for each request to this file",
                                              .is_path = true}),
        access_format_row<config>(),
    };
}

}  // namespace

const bound_options<config>& option_rows() {
    static const bound_options<config> rows = joined(
        {listening_rows<config>(
             "serve on a URI instead: tcp://HOST:PORT, unix:///PATH, shm:///PATH, shm://:PORT "
             "or handoff:///PATH"),
         secure_rows<config>(),
         file_rows(),
         client_rows(),
         log_rows(),
         script_rows<config>(),
         {script_body_row<config>()}});
    return rows;
}

outcome<config> read_config(const settings& chosen) {
    config read;
    auto serving = read_serving_config(chosen, scheme::tcp,
                                       "HTTP needs a stream; write --listen tcp://HOST:PORT", read);
    if (!serving) return std::unexpected(serving.error());
    eddy::http::accept_by_alpn(read.where);
    if (!chosen.has("root") && !chosen.has("lua"))
        return refuse(
            400,
            "an http runtime serves a folder, or answers by a script; say which by --root "
            "DIR or --lua FILE");
    if (auto bound = read_bound(option_rows(), chosen, read); !bound)
        return std::unexpected(bound.error());
    if (auto fine = read_script_file(chosen, read.script, true); !fine)
        return std::unexpected(std::move(fine.error()));
    if (auto fine = make_relative("index", read.root, read.files.index); !fine)
        return std::unexpected(std::move(fine.error()));
    if (auto fine = make_relative("spa", read.root, read.files.fallback); !fine)
        return std::unexpected(std::move(fine.error()));
    read.limits.parser.start_line = read.limits.parser.header_bytes;
    read.limits.read_time = read.limits.request_time;
    if (auto fine = check_access_format(chosen, read.access_log); !fine)
        return std::unexpected(std::move(fine.error()));
    if (!http1::is_field_value(read.files.cache_control))
        return refuse(
            400,
            "--cache-control has a byte that a header field may not have: write text such as "
            "max-age=3600");
    return read;
}

}  // namespace eddy::runtime::http
