// Connections of a pool: those in use, those that are idle, and the requests that wait for one.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/http/client.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include <cstddef>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

namespace eddy::http {

namespace detail {
struct client_plan;
}

/// What connections that are as good share; there is one as long as there is such a connection.
struct pool_route {
    std::size_t count = 0;                            ///< of connections, busy and idle
    std::shared_ptr<const detail::client_plan> plan;  ///< null until the first request
};

/// A connection, or the place for one.
struct pool_connection {
    /// The key, and what those of the same key share.
    std::pair<const std::string, pool_route>* route;
    std::unique_ptr<client> through;  ///< null until the first request
    time_point idle_since{};
    std::list<pool_connection>::iterator self{};
};

/// Bounded set of connections. It must outlive all that it gives out. One loop's thread.
class pool_connections final : private timer {
public:
    struct limits {
        std::size_t of_key;
        std::size_t of_all;
        std::size_t waiting;
        duration waiting_time;
        duration idle_time;
    };
    explicit pool_connections(const limits& bounds) noexcept : limits_(bounds) {}
    ~pool_connections();
    pool_connections(const pool_connections&) = delete;
    pool_connections& operator=(const pool_connections&) = delete;

    /// Awaits a connection, the one that was used last if there is an idle one. Yields a
    /// result<pool_connection*>, to be given back. errc::limit_reached, errc::timed_out,
    /// errc::closed, errc::cancelled.
    task<result<pool_connection*>> take(std::string key);
    /// Keeps a connection that can be used again, and frees the place of another.
    void give_back(pool_connection& used) noexcept;
    /// Closes the idle ones for good; requests that wait fail.
    void close() noexcept;

    std::size_t size() const noexcept { return busy_.size() + idle_.size(); }
    std::size_t idle() const noexcept { return idle_.size(); }
    std::size_t waiting() const noexcept { return waiting_.size(); }

private:
    struct waiter {
        const std::string& key;
        event ready;
        pool_connection* given = nullptr;
    };
    using place = std::list<pool_connection>::iterator;

    pool_connection* try_take(const std::string& key);
    void drop_idle(place which) noexcept;
    void forget(const pool_connection& ended) noexcept;
    void serve_waiting();
    void fire() noexcept override;
    void arm_timer() noexcept;

    limits limits_;
    std::list<pool_connection> busy_;
    std::list<pool_connection> idle_;  // the one that has idled for longest first
    std::unordered_map<std::string, pool_route> routes_;  // by key
    std::list<waiter*> waiting_;                          // in their order
    bool is_closed_ = false;
};

}  // namespace eddy::http
