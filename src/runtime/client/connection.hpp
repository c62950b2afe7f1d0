// Connection of a client to its server, whatever carries it: messages both ways.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "runtime/client/options.hpp"

#include <cstddef>
#include <memory>
#include <string_view>
#include <system_error>

namespace eddy::runtime::client {

/// Receiver of what a connection yields. It outlives the connection.
class connection_events {
public:
    /// Bytes have arrived, of messages that may follow.
    virtual void note_bytes(std::size_t received) = 0;
    /// A message, without what ends it; with `is_cut` its first bytes, of a longer one. The view
    /// ends with the call.
    virtual void note_message(std::string_view message, bool is_cut) = 0;
    /// An error that does not end the connection, such as that of one datagram.
    virtual void note_error(std::error_code error) = 0;
    /// Set while more may come: without it no read begins.
    virtual event& ready() noexcept = 0;
    /// Bytes of a message at most; a longer one is cut.
    virtual std::size_t longest_message() const = 0;

protected:
    ~connection_events() = default;
};

/// An open connection. One loop's thread. One receive() and one send() at a time.
class connection {
public:
    virtual ~connection() = default;

    /// Receives until the connection ends or the task is cancelled; yields the reason.
    virtual task<std::error_code> receive(connection_events& to) = 0;
    /// Sends a message, framed already, which must live until completion: once the kernel has it.
    /// After an error the connection is of no use, and the server may have got a part of it.
    virtual task<result<>> send(std::string_view message) = 0;
    /// Ends the connection; without it the destructor does. After a message that broke off the
    /// server sees a reset, where the transport has one.
    virtual void abort() noexcept {}
};

/// Connects within connect_timeout. The errors are those of the transport, and errc::timed_out.
task<result<std::unique_ptr<connection>>> open_connection(config chosen);

/// Bytes of the largest message to a WebSocket.
inline constexpr std::size_t max_websocket_message = std::size_t{1} << 20;

// One for each kind of transport; open_connection() chooses.
task<result<std::unique_ptr<connection>>> open_stream(config chosen);
task<result<std::unique_ptr<connection>>> open_datagrams(config chosen);
task<result<std::unique_ptr<connection>>> open_websocket(config chosen);

/// The keepalive of TCP that --ping means, in whole seconds, rounded up.
std::chrono::seconds keepalive_of(const config& chosen) noexcept;

}  // namespace eddy::runtime::client
