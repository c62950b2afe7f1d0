// Receiver of handoffs: the listening Unix socket on which web servers pass clients' sockets over,
// one connection and one message each, without a reply.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/base/unique_fd.hpp>
#include <eddy/io/endpoint.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>
#include <eddy/net/descriptors.hpp>

#include "io/posix/sockets.hpp"

#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::handoff {

/// Reasons for a handoff without a client.
enum class fault : std::uint8_t {
    peer_not_allowed,    ///< its user is not on the list
    no_descriptor,       ///< a message came without one
    lost_descriptor,     ///< this process had no room for it
    incomplete_message,  ///< the sender closed before it, or it took receiver_options::message_time
    too_many_senders,    ///< receiver::max_pending of them have not sent their message yet
    receive_failed,      ///< recvmsg(2) failed
    no_memory,           ///< its client was closed
};
inline constexpr std::size_t fault_count = 7;
/// "peer_not_allowed", …: as metrics label them.
std::string_view to_string(fault why) noexcept;

/// A handed-over socket and the message that came with it.
struct arrival {
    unique_fd client;
    /// Valid during the call. Empty without receiver_options::keeps_messages.
    std::string_view message;
    /// The message is larger than receiver_options::max_message; `message` is its beginning.
    bool is_too_large = false;
};

struct receiver_options {
    unix_socket::socket_type type = unix_socket::socket_type::seqpacket;
    int mode = 0660;  ///< permissions of the socket's file; an abstract name has none
    std::size_t max_message = 128 * 1024;  ///< bytes
    bool keeps_messages = true;            ///< false: they are received, and dropped
    /// Effective users that may hand over. Empty: all that may connect; for an abstract name, to
    /// which every user may connect, the own user and root.
    std::vector<uid_t> allowed_users = {};
    duration message_time = std::chrono::seconds(5);  ///< for a message, from accept(2) on
    std::optional<uid_t> owner = std::nullopt;        ///< of the socket's file; else this user's
    std::optional<gid_t> group = std::nullopt;        ///< the same
};

/// A listening handoff socket.
struct handoff_socket {
    opened_listener socket;
    endpoint local;
};

/// At most so many senders wait in the kernel's queue of a handoff socket; fewer where
/// net.core.somaxconn is less.
inline constexpr int sender_backlog = 4096;

/// Listens at `path` ("@name": abstract) with the options' type and mode. A stale socket file is
/// replaced. No loop is needed, and several processes may accept from one such socket. Errors are
/// bind(2)'s, give_socket()'s and errc::bad_address. Its file is the caller's:
/// remove_socket_file().
result<handoff_socket> listen_for_handoffs(std::string_view path, const receiver_options& options);

/// One loop's thread. close() must have ended before it dies, or end() and close_socket().
class receiver {
public:
    /// At most so many senders whose message has not arrived whole.
    static constexpr std::size_t max_pending = 1024;
    /// Descriptors left for other uses, or a quarter of the limit if that is less. A message that
    /// finds no room for its descriptor arrives without it, so accepting pauses before.
    static constexpr int most_reserved = 256;
    /// Handoffs accepted in a row before the loop does other work; at most half of the reserve,
    /// since room is checked once before them.
    static constexpr int burst = 64;
    /// Pause of accepting, and of receiving from senders that were accepted before, while there is
    /// no room for a descriptor.
    static constexpr duration crowded_pause = std::chrono::milliseconds(5);
    /// Pause of accepting while sink::prefers_others(): time for another process to accept.
    static constexpr duration yield_pause = std::chrono::milliseconds(1);

    /// Descriptors that a process with this limit of open files uses before accepting pauses.
    static constexpr std::uint64_t usable_descriptors(std::uint64_t limit) noexcept {
        return limit - std::min<std::uint64_t>(most_reserved, limit / 4);
    }

    /// Destination of what arrives. It must outlive the receiver's close().
    class sink {
    public:
        /// May throw std::bad_alloc; the client is closed then.
        virtual void arrive(arrival what) = 0;
        virtual void fail_handoff(fault why) noexcept = 0;
        /// After a group of arrivals: writes that they have begun may now be passed to the kernel.
        virtual void end_group() noexcept = 0;
        /// Called before a group: true if other processes with the same socket should accept it. It
        /// is accepted here if they have not done so within yield_pause.
        virtual bool prefers_others() const noexcept { return false; }

    protected:
        ~sink() = default;
    };

    explicit receiver(sink& to) noexcept : sink_(to) { resume(); }
    ~receiver();
    receiver(const receiver&) = delete;
    receiver& operator=(const receiver&) = delete;

    /// Listens at `path` ("@name": abstract), and accepts until close(). A stale socket file is
    /// replaced. Errors are bind(2)'s and errc::bad_address. errc::unsupported on the simulator,
    /// which has no descriptors.
    result<> open(std::string_view path, const receiver_options& options);
    /// The same with a socket that listens already, of the options' type. close() removes its file
    /// if the socket has one; other processes with the same socket are not affected.
    result<> open(handoff_socket from, const receiver_options& options);
    /// The same with a socket that another receiver of this process has released.
    result<> take(handoff_socket from, const receiver_options& options);
    /// Ends accepting, and yields the socket for another receiver. Messages of senders that were
    /// accepted may still arrive, until close(). After open().
    task<handoff_socket> release();
    /// Senders that were accepted and whose message has not arrived whole.
    std::size_t pending() const noexcept { return tasks_ ? tasks_->children() : 0; }
    /// Accepts from the socket of release() again.
    void take_back(handoff_socket from);
    /// Removes the socket's file, refuses senders, accepts the senders in the kernel's queue, as
    /// far as there is room, and ends accepting and receiving. Senders whose message has not
    /// arrived are closed.
    task<void> close();

    // The same in steps.

    /// Listens: senders wait in the kernel's backlog. Errors as open()'s.
    result<> listen(std::string_view path, const receiver_options& options);
    /// The same with a socket that listens already, of the options' type.
    result<> listen(handoff_socket from, const receiver_options& options) {
        return adopt(std::move(from), options);
    }
    /// Accepts until end(). After listen(). Throws std::bad_alloc.
    void begin();
    /// Ends accepting and receiving. Senders whose message has not arrived are closed. begin() may
    /// follow.
    task<void> end();
    /// Removes the socket's file, and refuses senders from then on.
    void refuse_senders() noexcept;
    /// refuse_senders(), and closes the socket. After end(), or without begin().
    void close_socket() noexcept;

    /// Accepts no further senders until resume(). The messages of senders accepted before may still
    /// arrive. Also within a call of the sink.
    void pause() noexcept { not_paused_.reset(); }
    void resume() noexcept { not_paused_.set(); }

    /// The file at the socket's path is this one's, to be removed by refuse_senders().
    void own_file() noexcept {
        listening_.file = file_of(local_);
        is_shared_ = false;
    }
    /// Another process has the socket, and its file.
    void disown_file() noexcept {
        listening_.file = {};
        is_shared_ = true;
    }

    const endpoint& local() const noexcept { return local_; }
    /// The listening socket; -1 when it is closed.
    int native_handle() const noexcept { return listening_.socket.get(); }

private:
    /// Message that arrives in parts.
    struct partial_message;

    result<> adopt(handoff_socket from, const receiver_options& options);
    task<void> accept_all();
    task<void> accept_waiting();
    int accept_group();
    /// False once no connection waits.
    bool accept_one();
    int reserve() const noexcept;
    bool has_room() const noexcept;
    static bool has_descriptor(int open) noexcept;
    bool is_allowed(int sender) const noexcept;
    void receive(unique_fd sender);
    task<void> receive_rest(unique_fd sender, partial_message part);
    /// Adds what has arrived; true when the message is whole, or will never be.
    bool take(int sender, partial_message& part);
    void pass_on(partial_message& part);

    sink& sink_;
    event not_paused_;
    receiver_options options_;
    endpoint local_;
    opened_listener listening_;
    std::vector<std::byte> buffer_;
    int most_descriptors_ = 0;
    bool is_crowded_ = false;
    bool is_shared_ = false;  // other processes accept from the socket, too
    bool has_user_check_ = false;
    std::optional<scope> accepting_;  // from begin() to end() or release()
    std::optional<scope> tasks_;      // from begin() to end()
};

}  // namespace eddy::handoff
