// The options of `eddy create server`, as a table and as the server's configuration.
#pragma once

#include <eddy/io/timer.hpp>
#include <eddy/net/queued_writer.hpp>

#include "base/problem.hpp"
#include "runtime/options/bound_options.hpp"
#include "runtime/options/option.hpp"
#include "runtime/options/settings.hpp"
#include "runtime/scripting/script_rows.hpp"
#include "runtime/serving/serving_config.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime::server {

/// Recipients of a client's messages.
enum class flow : std::uint8_t {
    inout,   ///< all the other clients
    in,      ///< the journal; clients get nothing
    out,     ///< none: only `eddy send` reaches the clients
    master,  ///< of the master's messages: all others; of the others': none, or the master
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

/// Bytes of the master's password at most, and the variable that has it where no option does.
inline constexpr std::size_t max_master_password = 1024;
inline constexpr const char* master_password_variable = "EDDY_MASTER_PASSWORD";

/// Bytes that a message is longer at the master: "[ID] ", of the longest ID.
inline constexpr std::size_t longest_forward_prefix = 18;

/// Servers of --upstream at most.
inline constexpr std::size_t max_upstreams = 100;

/// Memory of --http-cache, of each thread that serves clients.
inline constexpr std::size_t http_cache_bytes = std::size_t{64} << 20;

/// Checked and converted.
struct config : serving_config {
    flow mode = flow::inout;
    framing messages = framing::line;
    std::string master_password;       ///< as given; empty: another source
    std::string master_password_file;  ///< empty: none
    std::string secret;                ///< of --mode master: the password of its source
    bool forwards_to_master = false;
    std::vector<std::string> upstreams = {};  ///< servers whose messages it gets
    std::string cache;  ///< name of the runtime whose commands clients have; empty: none
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
    bool injects_client = false;            ///< HTML pages get the script of page_client.hpp
    bool caches_files = false;              ///< in http_cache_bytes of each thread
    std::string log_file;                   ///< empty: none
    bool log_traffic = false;
    script_config script = {};
};

/// Rows of the options, in the order of help.
const bound_options<config>& option_rows();
outcome<config> read_config(const settings& chosen);

/// Why `eddy send` reaches no client through the server `name`, if that is so.
outcome<> may_send(const config& chosen, std::string_view name, bool running);

}  // namespace eddy::runtime::server
