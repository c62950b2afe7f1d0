// Options of `eddy create stream`, as a table and as what the runtime works with.
#pragma once

#include <eddy/io/timer.hpp>
#include <eddy/net/descriptors.hpp>

#include "runtime/option.hpp"
#include "runtime/problem.hpp"
#include "runtime/settings.hpp"

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace eddy::runtime::stream {

/// Streams of one runtime at most.
inline constexpr std::uint32_t max_streams = 1'000'000;

/// Checked and converted.
struct config {
    std::string path;  ///< of the handoff socket; "@NAME" is abstract
    unix_socket::socket_type type = unix_socket::socket_type::seqpacket;
    int mode = 0660;
    std::vector<uid_t> allowed_users = {};  ///< empty: all that may open the socket
    std::size_t max_message = 0;            ///< bytes
    std::uint32_t max_connections = 0;
    std::size_t max_queue = 0;  ///< bytes that may wait for one client
    duration delay{};           ///< between messages of the mock backend
    std::uint32_t messages = 0;
};

std::vector<option> option_table();
outcome<config> read_config(const settings& chosen);

}  // namespace eddy::runtime::stream
