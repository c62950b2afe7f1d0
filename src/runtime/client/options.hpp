// Options of `eddy create client`, as a table and as what the client works with.
#pragma once

#include <eddy/io/timer.hpp>

#include "base/problem.hpp"
#include "runtime/client/outbox.hpp"
#include "runtime/options/bound_options.hpp"
#include "runtime/options/option.hpp"
#include "runtime/options/settings.hpp"
#include "runtime/scripting/script_rows.hpp"
#include "runtime/server_address.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace eddy::runtime::client {

/// Directions in which messages go.
enum class flow : std::uint8_t {
    inout,  ///< both
    in,     ///< from the server alone
    out,    ///< to the server alone; what it sends is read and discarded
};

/// Messages of a stream of bytes.
enum class framing : std::uint8_t {
    line,  ///< a message ends with a newline
    raw,   ///< a message is what arrived at once, or what one send had
};

/// Checked and converted.
struct config {
    server_address target;
    flow mode = flow::inout;
    framing messages = framing::line;
    std::size_t max_line = 0;
    std::optional<std::uint64_t> reconnect;  ///< attempts in a row; none: for ever
    duration connect_timeout{};
    outbox_limits queue;
    duration ping{};          ///< silence of the server before it is probed; 0: never
    bool has_journal = true;  ///< received messages go to the journal
    script_config script;
};

/// Rows of the options, in the order of help.
const bound_options<config>& option_rows();
outcome<config> read_config(const settings& chosen);
/// Checks that the files which a server of TLS needs can be read now. The refusal names the file.
outcome<> check_files(const config& of);

}  // namespace eddy::runtime::client
