// Acceptor: the accept loops of a server's listeners. Accepts within the limit of connections, and
// pauses while it is crowded: while the handshake budget is spent, or there is no memory.
#pragma once

#include <eddy/io/scope.hpp>
#include <eddy/io/task.hpp>

#include "serving/loop_pool.hpp"
#include "serving/served_listener.hpp"

#include <chrono>
#include <string_view>

namespace eddy::serving {

/// A server's own treatment of accepted connections, such as a check of the peer's address.
class admission {
public:
    /// Passes the connection on to loop_pool::assign(), or does with it what else is right. May
    /// throw std::bad_alloc; the connection is closed then.
    virtual void admit(stream accepted, served_listener& from) = 0;

protected:
    ~admission() = default;
};

/// The thread of the loop that accepts. close() must have ended before it dies.
class acceptor {
public:
    /// The pause in which connections wait in the kernel's backlog while it is crowded. A time, not
    /// an event: handshakes end on all loops, memory comes back without a notification, and a flood
    /// of connections is to be slowed down.
    static constexpr duration crowded_pause = std::chrono::milliseconds(5);

    /// `checked`, unless null, gets each connection in place of the pool. Both outlive it.
    explicit acceptor(loop_pool& to, admission* checked = nullptr) noexcept
        : pool_(to), admission_(checked) {}

    /// Accepts from `from`, which outlives its connections, until close(). A connection beyond the
    /// limit gets `refusal`, which must outlive this object. With `is_secure`, or without a
    /// refusal, it is reset: others would wait for its handshake. The pool has workers.
    void open(served_listener& from, std::string_view refusal, bool is_secure);
    /// True if nothing is accepted any more, such as a moment after all listeners were paused.
    bool is_idle() const noexcept { return tasks_.children() == 0; }
    /// Ends accepting. The listeners stay open.
    task<void> close();

    /// For tasks that belong to accepting: they are cancelled by close(), which awaits them.
    scope& tasks() noexcept { return tasks_; }

private:
    task<void> accept_all(served_listener& from, std::string_view refusal);

    loop_pool& pool_;
    admission* admission_;
    scope tasks_;
    scope rejected_;  // connections beyond the limit, which linger
};

}  // namespace eddy::serving
