// Datagram sessions: the clients of a proxy over UDP. Each address that sends has a socket of its
// own to one backend; what comes back on it goes to that address, from the one it has sent to.
//
// UDP has no end, and a sender's address may be forged. So a session ends after a time without a
// datagram in either direction, and their number is limited: datagrams of new clients are dropped
// beyond it. A client that has the address of a backend, or of the proxy itself, would circulate
// datagrams without end, and gets no session.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/intrusive_list.hpp>
#include <eddy/io/datagram.hpp>
#include <eddy/io/endpoint.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "proxy/balancer.hpp"
#include "serving/counters.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>

namespace eddy::proxy {

/// Bytes of datagrams, of all sessions together, that wait for the look-up of a backend's name, at
/// most; further ones are dropped.
inline constexpr std::size_t max_waiting_bytes = std::size_t{1} << 20;
/// A backend that has refused no datagram of a session for this long serves it, also without an
/// answer.
inline constexpr duration unrefused_time = std::chrono::seconds(1);

/// Limits of sessions.
struct datagram_limits {
    std::size_t sessions = 10'000;  ///< at a time
    duration idle = std::chrono::seconds(30);
    duration connect_timeout = std::chrono::seconds(5);  ///< for the look-up of a backend's name
};

/// Observer of sessions, for a log. Called on their loop's thread.
class datagram_observer {
public:
    /// A backend has refused a datagram, or no socket to it can be made.
    virtual void note_failed_backend(const backend& which, std::error_code why) noexcept = 0;
    /// A datagram was dropped.
    virtual void note_dropped(std::string_view why) noexcept = 0;

protected:
    ~datagram_observer() = default;
};

/// end() must have ended before the destructor. One loop's thread.
class datagram_sessions final : private timer {
public:
    /// Answers leave by `front`, which receives the clients' datagrams. All three must outlive it.
    /// Backends count it as worker 0.
    datagram_sessions(datagram& front, serving::counters& counted,
                      datagram_observer& observer) noexcept;
    ~datagram_sessions();
    datagram_sessions(const datagram_sessions&) = delete;
    datagram_sessions& operator=(const datagram_sessions&) = delete;

    /// Sessions that exist keep their backends. Before the first take().
    void set(const datagram_limits& limits, std::shared_ptr<balancer> backends);
    /// Passes on what `front` has received. Throws std::bad_alloc; the datagram is lost then.
    void take(const datagram_message& received);
    std::size_t count() const noexcept { return sessions_.size(); }
    /// Ends all sessions. There are no more take().
    task<void> end();

private:
    struct session;
    using session_pointer = std::shared_ptr<session>;
    struct endpoint_hash {
        std::size_t operator()(const endpoint& where) const noexcept;
    };

    session_pointer find(const datagram_message& received);
    bool may_begin(const endpoint& client);
    bool is_own(const endpoint& client) const;
    bool is_backend(const endpoint& client) const;
    void send(const session_pointer& by, const_bytes bytes);
    bool open(const session_pointer& by);
    void begin(const session_pointer& by, datagram socket);
    result<> begin_at_next(const session_pointer& by);
    void wait(session& by, const_bytes bytes);
    backend_use next_for(const session& by, balancer::selection& order) const;
    void refuse(const session_pointer& by, std::error_code why);
    void fail(session& by, std::error_code why) noexcept;
    task<void> look_up(session_pointer by);
    task<void> receive_all(session_pointer by, std::uint64_t socket_number);
    void answer(session& by, const datagram_message& received);
    void prove(session& by) noexcept;
    void touch(session& used) noexcept;
    void forget(session& gone) noexcept;
    void watch() noexcept;
    void fire() noexcept override;
    void drop(std::string_view why) noexcept;

    datagram& front_;
    serving::counters& counted_;
    datagram_observer& observer_;
    datagram_limits limits_;
    std::shared_ptr<balancer> backends_;
    std::unordered_map<endpoint, session_pointer, endpoint_hash> sessions_;
    intrusive_list<session> by_use_;  // the one that was silent longest first
    std::map<std::string, endpoint>
        last_used_;  // of backends with several addresses, by their name
    std::size_t waiting_bytes_ = 0;
    scope tasks_;
};

}  // namespace eddy::proxy
