// Pool of connections to servers. Bounded: connections in use, idle connections, and requests that
// wait for one.
#pragma once

#include <eddy/base/intrusive_list.hpp>
#include <eddy/base/result.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>
#include <eddy/transport/transport.hpp>

#include "http/client/connection.hpp"
#include "http/client/plan.hpp"

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace eddy::http {

/// Key of a backend: connections of equal keys are interchangeable. It views its texts, so a lookup
/// builds none.
struct connection_key {
    /// Proxy that connections go through.
    enum class proxy : std::uint8_t { none, http, https };

    transport::scheme kind = transport::scheme::tcp;  ///< of the first hop
    proxy through = proxy::none;
    bool is_secure = false;         ///< TLS to the server, over the first hop
    std::uint16_t port = 0;         ///< of the first hop
    std::uint16_t server_port = 0;  ///< with a server
    std::string_view place;         ///< host or path of the first hop
    std::string_view server;        ///< host of TLS, or behind a proxy's tunnel; empty for none
    std::string_view proxy_user;    ///< "name:password"; empty for none
    std::string_view variant;       ///< anything else by which connections differ

    /// The same in every part.
    friend bool operator==(const connection_key&, const connection_key&) = default;
};

/// State shared by the connections of one key; it exists as long as one of them does.
struct pool_upstream {
    /// For the key's texts, which are copied.
    explicit pool_upstream(const connection_key& of);
    pool_upstream(const pool_upstream&) = delete;
    pool_upstream& operator=(const pool_upstream&) = delete;

    const std::string texts;
    const connection_key key;  ///< views of `texts`
    std::size_t count = 0;     ///< of connections, busy and idle
    /// Options of connecting; for the users of the pool, null until one sets it.
    std::shared_ptr<const detail::client_plan> plan;
    intrusive_list<struct pool_connection, pool_upstream> idle;  ///< the one used last at the end
};

/// A connection, or the place for one.
struct pool_connection : list_link<pool_upstream>, list_link<class connection_pool> {
    explicit pool_connection(pool_upstream& server) noexcept : of(server) {}

    pool_upstream& of;
    /// Null until its first user has connected; null again where it was lost.
    std::shared_ptr<client_connection> through;
    time_point idle_since{};
    bool shows_input = false;  ///< it is idle, and may_have_input() will say whether its end came
    std::list<pool_connection>::iterator self{};
};

/// Bounded set of connections. Idle ones that the server has closed are dropped within a second,
/// but for those over TLS and shared memory, where that shows only when they are used. It must
/// outlive all that it gives out, see connection_lease. Taking
/// and giving back allocate nothing while no connection comes and none goes. One loop's thread.
class connection_pool final : private timer {
public:
    struct limits {
        std::size_t of_upstream;  ///< connections
        std::size_t of_all;       ///< connections; at the limit an idle one of another is closed
        std::size_t waiting;      ///< requests that wait; one more is errc::limit_reached
        duration waiting_time;    ///< of each; errc::timed_out
        duration idle_time;       ///< an idle connection is closed after it
    };
    explicit connection_pool(const limits& bounds) noexcept : limits_(bounds) {}
    ~connection_pool();
    connection_pool(const connection_pool&) = delete;
    connection_pool& operator=(const connection_pool&) = delete;

    /// For what is taken and given back from now on. Requests that wait keep their time, and no
    /// connection in use is closed.
    void set_limits(const limits& bounds);
    /// A connection without a wait: the one of this key that was used last if there is an idle one.
    /// To be given back. Null at a limit, and after close().
    pool_connection* try_take(const connection_key& key);
    /// The same, awaiting it at a limit, in the order of the calls. Yields a
    /// result<pool_connection*>: errc::limit_reached, errc::timed_out, errc::closed,
    /// errc::cancelled. The key's texts must live until then.
    task<result<pool_connection*>> take(connection_key key);
    /// The same of whichever key is first; the keys must live until then. The connection's
    /// pool_upstream says of which it is.
    task<result<pool_connection*>> take_any(std::span<const connection_key> keys);
    /// Keeps a connection that can be used again, and frees the place of another.
    void give_back(pool_connection& used) noexcept;
    /// Closes the idle ones for good; requests that wait fail.
    void close() noexcept;

    /// Connections, busy and idle.
    std::size_t size() const noexcept { return all_.size(); }
    /// Idle connections.
    std::size_t idle() const noexcept { return idle_count_; }
    /// Requests that wait for one.
    std::size_t waiting() const noexcept { return waiting_.size(); }

private:
    struct waiter {
        const std::span<const connection_key> keys;
        event ready;
        pool_connection* given = nullptr;
    };
    struct hash {
        std::size_t operator()(const connection_key& of) const noexcept;
    };

    pool_connection* try_any(std::span<const connection_key> keys);
    pool_connection* take_idle(pool_upstream& from) noexcept;
    pool_connection& add(pool_upstream* to, const connection_key& key);
    void leave_idle(pool_connection& which) noexcept;
    void drop_idle(pool_connection& which) noexcept;
    void remove(pool_connection& which) noexcept;
    void serve_waiting();
    void fire() noexcept override;
    void arm_timer() noexcept;

    limits limits_;
    // By key, which views the backend's own texts.
    std::unordered_map<connection_key, std::unique_ptr<pool_upstream>, hash> backends_;
    std::list<pool_connection> all_;
    intrusive_list<pool_connection, connection_pool> idle_;  // the one idle for longest first
    std::size_t idle_count_ = 0;
    std::list<waiter*> waiting_;  // in their order
    bool is_closed_ = false;
};

/// A connection in use, given back at the end. It keeps the pool.
class connection_lease {
public:
    connection_lease(std::shared_ptr<connection_pool> from, pool_connection& what) noexcept
        : from_(std::move(from)), what_(&what) {}
    connection_lease(connection_lease&& other) noexcept
        : from_(std::move(other.from_)), what_(std::exchange(other.what_, nullptr)) {}
    connection_lease& operator=(connection_lease&&) = delete;
    ~connection_lease() {
        if (what_ != nullptr) from_->give_back(*what_);
    }
    pool_connection& operator*() const noexcept { return *what_; }
    pool_connection* operator->() const noexcept { return what_; }

private:
    std::shared_ptr<connection_pool> from_;
    pool_connection* what_;
};

}  // namespace eddy::http
