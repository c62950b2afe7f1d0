// Client table of event streams: sockets in a bank, and the backlogs of slow readers. A client that
// keeps up costs a few bytes here and no allocation.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/base/unique_fd.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "io/socket_bank/socket_bank.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

namespace eddy::handoff {

/// Reasons for the early end of a client's stream.
enum class loss : std::uint8_t {
    hung_up,       ///< it closed, or shut down its sending side
    write_failed,  ///< its connection failed
    too_slow,      ///< more bytes than the limit would wait for it
};
inline constexpr std::size_t loss_count = 3;
/// "client_hung_up", …: as metrics label them.
std::string_view to_string(loss why) noexcept;

/// One loop's thread.
class client_table final : socket_bank::observer, timer {
public:
    /// Owner of the streams, notified by the table. It must outlive the table.
    class observer {
    public:
        /// The client is gone; its number may be another client's from the next add() on.
        virtual void on_loss(std::uint32_t client, loss why) noexcept = 0;
        /// The client's backlog has been passed to the kernel: once after notify_when_idle().
        virtual void on_idle(std::uint32_t /*client*/) noexcept {}
        /// A client was closed after finish() with bytes left, since it took them too slowly.
        virtual void on_unsent() noexcept {}

    protected:
        ~observer() = default;
    };

    /// A table of at most `capacity` clients, with at most `max_backlog` bytes waiting for each. A
    /// client that has not taken all its bytes is closed `finish_time` to twice as long after its
    /// finish(). On the running loop; errors as socket_bank::open().
    static result<std::unique_ptr<client_table>> open(
        std::uint32_t capacity, std::size_t max_backlog, observer& owner,
        duration finish_time = std::chrono::seconds(60));
    /// Closes all clients, but a connection ends only where no other process has it.
    ~client_table();
    client_table(const client_table&) = delete;
    client_table& operator=(const client_table&) = delete;

    /// Takes a connected socket and sends `first` at once; bytes beyond the socket's room wait.
    /// Returns the client's number, below capacity. errc::limit_reached, and the kernel's errors;
    /// the socket is closed then. Throws std::bad_alloc.
    result<std::uint32_t> add(unique_fd socket, std::string_view first);
    /// The same on the simulator.
    result<std::uint32_t> add(stream connection, std::string_view first);

    /// Sends bytes that outlive the table, without a copy as long as the client keeps up. False
    /// when that ended the client's stream: on_loss() has been called. Throws std::bad_alloc.
    bool send(std::uint32_t client, std::string_view shared);
    /// The same for bytes that the table owns.
    bool send_owned(std::uint32_t client, std::string bytes);
    /// For a client to whom the connection's end is the content's end (RFC 9112 6.3): every end but
    /// finish()'s is a reset, so that the client does not take a part for the whole.
    void reset_unless_finished(std::uint32_t client) noexcept { at(client).is_unframed = true; }
    /// Closes the client once all has been sent, or after open()'s `finish_time`. The owner must
    /// not use its number from now on, and on_loss() is not called.
    void finish(std::uint32_t client);
    /// As finish(), for a stream that broke off.
    void break_off(std::uint32_t client);
    /// Closes the client now.
    void abandon(std::uint32_t client);
    /// Closes all clients now, including finished ones that are still open.
    void abandon_all();
    /// Passes the writes begun so far to the kernel.
    void flush();

    /// True while bytes for the client have not been passed to the kernel.
    bool is_writing(std::uint32_t client) noexcept { return at(client).now == phase::writing; }
    /// Requests on_idle() for when they have been. Only while is_writing().
    void notify_when_idle(std::uint32_t client) noexcept;

    /// Clients with an unfinished stream.
    std::uint32_t active() const noexcept { return active_; }
    /// Sockets of these, and of finished clients that are still open.
    std::uint32_t open_sockets() const noexcept { return bank_->size(); }
    /// Waits until there are none. Yields a result<>, whose only error is errc::cancelled. Must end
    /// before the table dies.
    task<result<>> all_closed();
    /// Clients with bytes that the kernel has not taken, or with an unfinished stream. Takes time
    /// in proportion to the largest number of clients so far.
    std::uint32_t unsent() const noexcept;
    /// Bytes passed to the kernel.
    std::uint64_t bytes_sent() const noexcept { return bytes_sent_; }

private:
    /// Bytes that a client has not taken.
    struct backlog {
        std::string under_way;
        std::string waiting;
    };
    enum class phase : std::uint8_t { free, idle, writing, closing };
    struct client_state {
        std::unique_ptr<backlog> late;
        phase now = phase::free;
        bool is_finishing = false;
        bool is_awaited = false;  // by notify_when_idle()
        bool is_late = false;     // finish() was before the last fire()
        bool is_unframed = false;
        bool is_broken = false;  // by break_off()
    };

    client_table(std::size_t max_backlog, observer& owner, duration finish_time);
    client_state& at(std::uint32_t client) noexcept;
    void begin(std::uint32_t client, std::string_view rest);
    bool enqueue(std::uint32_t client, std::string_view bytes);
    void lose(std::uint32_t client, loss why) noexcept;
    void end(std::uint32_t client);
    void close(std::uint32_t client, bool is_whole) noexcept;
    void on_written(std::uint32_t slot, int result) noexcept override;
    void on_hangup(std::uint32_t slot) noexcept override;
    void on_closed(std::uint32_t slot) noexcept override;
    /// Closes late clients, and marks the ones that are late the next time. Armed by finish(),
    /// since a list of the clients that finish would cost each of them memory.
    void fire() noexcept override;

    observer& owner_;
    std::size_t max_backlog_;
    duration finish_time_;
    std::uint32_t active_ = 0;
    std::uint64_t bytes_sent_ = 0;
    event closed_;                      // one more
    std::deque<client_state> clients_;  // as many as the largest number of clients so far
    // Last: it refers to the members above, and is destroyed before them.
    std::unique_ptr<socket_bank> bank_;
};

}  // namespace eddy::handoff
