// Client that an instance of another type keeps for itself, such as a server with upstreams. The
// type `client` makes it.
#pragma once

#include <eddy/io/event.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "base/problem.hpp"
#include "serving/journal.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace eddy::runtime {

/// Receiver of a client's messages. It outlives the client, on whose loop it is called.
class message_receiver {
public:
    virtual void note_connected() = 0;
    /// `reason` is empty at a stop.
    virtual void note_disconnected(std::string_view reason) = 0;
    /// A message, without what ends it; a longer one is cut. The view ends with the call.
    virtual void note_received(std::string_view message) = 0;
    /// Set while more may come: without it nothing is read from the server.
    virtual event& ready() noexcept = 0;

protected:
    ~message_receiver() = default;
};

/// A connection to a server, made again when it ends. One loop's thread.
class kept_client {
public:
    virtual ~kept_client() = default;

    /// Does not wait for the connection.
    virtual task<outcome<>> start() = 0;
    /// Sends what is queued if there is a connection, for at most `drain`, then closes it.
    virtual task<void> stop(duration drain) = 0;
    /// Queues a message, also while there is no connection. Refuses what the transport cannot
    /// carry, and messages that do not fit the queue.
    virtual outcome<std::uint64_t> send_now(std::string message) = 0;
    /// Why there is no connection, after the first attempt has failed.
    virtual std::string fault() const = 0;
};

struct kept_client_options {
    std::string name;        ///< of the runtime that keeps it, for messages
    std::string target;      ///< as read_server_address() takes it
    bool is_raw = false;     ///< a stream has no lines
    std::size_t max_line{};  ///< bytes of a message at most
    serving::journal* events;
    message_receiver* to;
};
using kept_client_factory = std::unique_ptr<kept_client> (*)(const kept_client_options& by);

}  // namespace eddy::runtime
