// Options of `eddy create stream`, as a table and as what the runtime works with.
#pragma once

#include <eddy/io/timer.hpp>
#include <eddy/net/descriptors.hpp>

#include "base/problem.hpp"
#include "handoff/receiver.hpp"
#include "runtime/options/bound_options.hpp"
#include "runtime/options/option.hpp"
#include "runtime/options/settings.hpp"
#include "runtime/scripting/script_rows.hpp"
#include "runtime/stream/sources/backends.hpp"
#include "runtime/stream/stream_request.hpp"

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

namespace eddy::runtime {
class host;
}

namespace eddy::runtime::stream {

/// Streams of one runtime at most.
inline constexpr std::uint32_t max_streams = 1'000'000;

/// Fields of --source-header at most.
inline constexpr std::size_t max_source_fields = 32;

/// Sources of events.
enum class source_type : std::uint8_t {
    mock,    ///< texts of its own
    openai,  ///< chat completions of an API as OpenAI's
    lua,     ///< a script
    proxy,   ///< the response of a URL
    exec,    ///< a program for each client
};

/// Events of a chat completion that clients get.
enum class completion_events : std::uint8_t {
    pieces,   ///< an event for each piece: content, calls of tools, reasoning and so on
    content,  ///< an event for each piece of the content, and nothing else
    chunks,   ///< the API's chunks as they come
};

/// Checked and converted.
struct config {
    std::string path;  ///< of the handoff socket; "@NAME" is abstract
    unix_socket::socket_type type = unix_socket::socket_type::seqpacket;
    int mode = 0660;
    std::optional<uid_t> owner{};  ///< of its file; else this user's
    std::optional<gid_t> group{};  ///< the same
    /// Empty: all that may open the socket's file; of an abstract one, the own user and root.
    std::vector<uid_t> allowed_users = {};
    std::size_t max_message = 0;  ///< bytes
    std::uint32_t max_connections = 0;
    duration max_stream_time{};              ///< duration::max(): none
    std::uint32_t max_streams_per_user = 0;  ///< 0: no limit
    std::uint32_t events_per_minute = 0;     ///< of one user; 0: no limit
    std::size_t max_queue = 0;               ///< bytes that may wait for one client
    std::chrono::seconds keepalive{};        ///< of clients; 0: as it was
    source_type source = source_type::mock;
    duration delay{};  ///< between messages of the mock source
    std::uint32_t messages = 0;
    std::string source_url = {};
    std::string source_socket = {};  ///< path of a Unix socket to connect to in place of its host
    std::string key = {};            ///< of that URL; empty: none
    std::string key_field = {};      ///< field with it; empty: Authorization, as a bearer's token
    bool takes_keys = false;         ///< a handoff may have one in place of it
    std::vector<backend> backends = {};            ///< beside that URL
    std::vector<response_header> source_fields{};  ///< of requests to all of them
    std::string source_ca = {};                    ///< authorities of their certificates
    std::string command = {};                      ///< of exec, for sh(1)
    script_config script = {};                     ///< of lua
    std::string model = {};                        ///< where a request names none
    completion_events events = completion_events::pieces;
    duration source_timeout{};  ///< until the head of a response, and between pieces of its body
    std::size_t replay_memory = 0;  ///< bytes of the events that are kept; 0: none are
    duration replay_time{};         ///< for which they are, and streams without a client run
    std::string access_log = {};    ///< path; empty: none
    duration heartbeat{};           ///< between signs of life while nothing else is sent
};

/// Rows of the options, in the order of help.
const bound_options<config>& option_rows();
/// The socket of that configuration.
handoff::receiver_options receiving_of(const config& chosen);
/// Why it cannot listen there, for users.
problem explain_receiver_failure(const config& chosen, std::error_code why, const host* daemon);
outcome<config> read_config(const settings& chosen);

/// About how many streams a process can have where each client is an open file, under a limit of
/// `files` of them.
std::uint64_t streams_within(const config& chosen, std::uint64_t files) noexcept;

}  // namespace eddy::runtime::stream
