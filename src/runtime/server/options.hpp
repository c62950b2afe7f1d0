// The options of `eddy create server`, as a table and as the server's configuration.
#pragma once

#include <eddy/io/timer.hpp>
#include <eddy/net/queued_writer.hpp>

#include "base/problem.hpp"
#include "runtime/options/bound_options.hpp"
#include "runtime/options/option.hpp"
#include "runtime/options/settings.hpp"
#include "runtime/serving/serving_config.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime::server {

/// Recipients of a client's messages.
enum class flow : std::uint8_t {
    inout,  ///< all the other clients
    in,     ///< the journal; clients get nothing
    out,    ///< none: only `eddy send` reaches the clients
};

/// --rate-limit of a UDP peer, unless it is given: servers that have become each other's peers, by
/// datagrams with forged addresses, would otherwise forward without end.
inline constexpr std::uint64_t default_datagram_rate = 1000;
/// Time for clients of a replaced server to end by themselves: they and the clients of the next one
/// do not get each other's messages.
inline constexpr duration replaced_grace = std::chrono::seconds(1);

enum class framing : std::uint8_t {
    line,  ///< a message ends with a newline
    raw,   ///< a message is what arrived at once
};

/// Checked and converted.
struct config : serving_config {
    flow mode = flow::inout;
    framing messages = framing::line;
    std::uint64_t max_connections = 0;
    std::uint64_t rate_limit = 0;         ///< messages a second and connection; 0: none
    std::uint64_t global_rate_limit = 0;  ///< messages a second
    duration idle_timeout{};              ///< 0: none
    std::size_t max_line = 0;
    slow_reader_policy slow_reader = slow_reader_policy::disconnect;
    std::size_t max_queue = 0;
    bool takes_raw_http = false;            ///< requests are messages; WebSocket is not recognised
    std::vector<std::string> origins = {};  ///< of pages that may open a WebSocket; "*": all
    std::string http_root;                  ///< folder of files for HTTP on the port; empty: none
    std::string log_file;                   ///< empty: none
    bool log_traffic = false;
};

/// Rows of the options, in the order of help.
const bound_options<config>& option_rows();
outcome<config> read_config(const settings& chosen);

/// Why `eddy send` reaches no client through the server `name`, if that is so.
outcome<> may_send(const config& chosen, std::string_view name, bool running);

}  // namespace eddy::runtime::server
