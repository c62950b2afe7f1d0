// Route of a server's client to another runtime of the daemon: self.route(). The client's messages
// go there as lines, over a connection of its own, and the lines that come back go to the client.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::runtime::server {

/// Bytes that wait for the other runtime; beyond it nothing more is read from the client.
inline constexpr std::size_t max_route_queue = std::size_t{256} << 10;
/// Routes and pipes of one loop at most.
inline constexpr std::size_t max_client_routes = 10'000;

/// Held by std::shared_ptr alone. One loop's thread.
class client_route {
public:
    client_route(std::string to, stream over) noexcept
        : to_(std::move(to)), over_(std::move(over)) {}

    const std::string& to() const noexcept { return to_; }
    /// Queues a message. False where room() must be awaited before the next one.
    bool send(std::string_view message);
    /// Awaits room in the queue, or the end.
    task<void> room();
    /// Ends it: run() returns soon.
    void close() noexcept;
    bool is_closed() const noexcept { return is_closed_; }

    /// Serves until one side ends it; `each` gets the lines that come back, at most `longest` bytes
    /// of each. Within a task that holds the pointer.
    task<void> run(std::size_t longest, std::function<void(std::string_view)> each);

private:
    task<void> write();

    const std::string to_;
    stream over_;
    byte_buffer unsent_;
    event filled_;
    event emptied_;
    bool is_closed_ = false;
};

}  // namespace eddy::runtime::server
