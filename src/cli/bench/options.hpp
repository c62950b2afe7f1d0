// Command lines of `eddy bench http` and `eddy bench ws`: the URL and the flags that both have.
#pragma once

#include <eddy/wire/http1.hpp>

#include "cli/bench/load.hpp"
#include "cli/bench/measure.hpp"
#include "cli/program.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cli::bench {

/// A URL, taken apart.
struct target {
    std::string url;
    std::string host;       ///< without brackets; may end in a zone (%eth0)
    std::string authority;  ///< as it stands in the URL, without a zone: the value of Host
    std::uint16_t port = 0;
    bool is_tls = false;
    std::string path;  ///< with the query
};

/// Reads a URL of the scheme `plain` ("http" or "ws") or of the same with an s. Nothing, after a
/// complaint, when it is none.
std::optional<target> read_url(std::string_view url, std::string_view plain);

/// Connections, threads, loop, length, TLS, headers, output.
std::vector<flag> load_flags();

/// Reads these flags. False after a complaint.
bool read_load_options(const arguments& given, const target& to, load_options& into);

/// Reads the -H flags, and adds Host if none of them is. False after a complaint.
bool read_headers(const arguments& given, const target& to, http1::header_list& into);

/// The most bytes of a prepared pipeline.
inline constexpr std::size_t prepared_limit = std::size_t{256} << 20;

/// True when a pipeline of `whats` ("requests") of that size stays within prepared_limit. False
/// after a complaint.
bool can_be_prepared(const load_options& wanted, std::size_t size, std::string_view whats);

/// Makes a command's protocol of its own flags, and may change the load; null after a complaint.
using protocol_maker = std::unique_ptr<protocol> (*)(const arguments& given, const target& to,
                                                     load_options& wanted);

/// Runs the command for URLs of the scheme `plain`, and of the same with an s: reads the URL and
/// the flags, puts the server under load and prints the report. The command's exit status.
int run_bench(const context& with, const arguments& given, std::string_view plain,
              protocol_maker make);

}  // namespace eddy::cli::bench
