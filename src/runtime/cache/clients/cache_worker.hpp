// A worker: one loop's clients of a cache.
//
// A read's commands are parsed where they were received and executed as one batch; their replies go
// out by one write. Only the part of a command at a read's end is copied. The batch and the reply
// buffer are shared by all clients of the worker, which are served in turn; a client has memory of
// its own only while a command is incomplete or it does not take its replies. While it does not,
// its commands are still received, and executed as long as few replies wait (duplex.cpp): most
// clients write a pipeline whole before they read.
//
// A cache has a worker on its home loop, and with --threads others on loops of their own, to which
// the clients are assigned. Those receive, parse and send without regard to each other; for what
// their clients' commands do they lock the home loop, once a batch.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/histogram.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/wire/resp/request.hpp>

#include "cache/engine/lane.hpp"
#include "runtime/cache/cache_context.hpp"
#include "runtime/cache/clients/client.hpp"
#include "runtime/cache/files/append_file.hpp"
#include "serving/connections.hpp"
#include "serving/loop_worker.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace eddy::runtime::cache {

/// One loop's thread, but for what says otherwise.
class cache_worker final : public serving::loop_worker {
public:
    /// Reply to clients that connect when there are too many.
    static constexpr std::string_view refusal = "-ERR max number of clients reached\r\n";

    using limits = worker_limits;

    /// A reply buffer that grew beyond this is given back.
    static constexpr std::size_t kept_reply_capacity = 256 * 1024;
    static constexpr std::size_t most_spare_buffers = 64;
    /// Clients that commands of others wake in a turn. The rest are woken in the turns that follow,
    /// so many in each: other clients are served between, and the reply to the publisher of a
    /// message for thousands of subscribers goes out before most of those are sent it.
    static constexpr std::size_t most_woken_a_turn = 64;
    /// Bytes of replies that wait for one client before the execution of its commands pauses; one
    /// batch's replies come on top. --max-queue may make it less. So many OK of a pipeline that is
    /// written whole before the first is read: 1.6 million.
    static constexpr std::size_t most_unsent_replies = 8U << 20;
    /// Commands of a client that are read ahead of a busy execution, in bytes; while it waits
    /// client-query-buffer-limit holds.
    static constexpr std::size_t most_read_ahead = 1U << 20;
    /// A client whose query buffer is full is closed when it has taken none of its replies for so
    /// long: nothing will change by itself, as most clients write all before they read.
    static constexpr duration longest_stall = std::chrono::seconds(5);

    /// On its loop. `of` outlives it.
    cache_worker(const serving::worker_place& place, cache_context& of, const limits& chosen);
    cache_worker(const cache_worker&) = delete;
    cache_worker& operator=(const cache_worker&) = delete;
    ~cache_worker() override;

    void take(stream accepted, serving::connection_slot slot) override;
    task<void> drain(duration limit) override;
    task<std::vector<serving::passed_client>> move_clients() override;
    void take_moved(serving::passed_client from, serving::connection_slot slot) override;

    cache_context& context() noexcept { return context_; }

    /// They hold for the next command; also while one is executed.
    void set_limits(const limits& chosen) noexcept;
    /// Applies a cache's limits of now to all its workers. The home loop's thread.
    static void apply_limits(cache_context& of);
    /// Applies them to the worker that accepts, and has keep_limits() apply them to the others. The
    /// home loop's thread, or with the loop locked.
    static void limits_changed(cache_context& of) noexcept;
    /// Calls apply_limits() after each limits_changed(), until it is cancelled. The home loop's
    /// thread.
    static task<void> keep_limits(cache_context& of);

    /// Gives memory back that is not in use.
    void trim() noexcept { spare_buffers_.clear(); }
    /// The same from any thread.
    void trim_later() noexcept {
        if (trim_is_posted_.exchange(true)) return;
        if (!here_.post(trimmer_)) trim_is_posted_ = false;
    }

    /// With the loop locked.
    const histogram& latency() const noexcept { return *latency_; }

private:
    friend class client;
    bool rejects(const endpoint& peer);
    enum class next : std::uint8_t {
        read,   ///< for more bytes
        wait,   ///< until the session is no longer blocked
        again,  ///< send the replies, then continue with the same input
        close,  ///< send the replies, then close
    };

    /// Notifications on their way to this loop.
    struct wakeup final : posted_work {
        explicit wakeup(cache_worker& to) noexcept : owner(to) {}
        void run() noexcept override { owner.deliver(); }
        cache_worker& owner;
    };

    struct trimmer final : posted_work {
        explicit trimmer(cache_worker& of) noexcept : owner(of) {}
        void run() noexcept override {
            owner.trim_is_posted_ = false;
            owner.trim();
        }
        cache_worker& owner;
    };

    void begin(std::unique_ptr<client> c);
    task<void> serve_after(std::shared_ptr<event> all_there, std::unique_ptr<client> c);
    task<void> serve(std::unique_ptr<client> c);
    bool may_move(client& c);
    bool is_to_move(client& c);
    task<bool> move(client& c);
    bool has_clients_to_move();
    next receive(client& c, std::string_view received);
    next execute_rest(client& c);
    next execute(client& c, std::string_view input, std::size_t& used);
    std::size_t execute_batch(client& c, std::span<const resp::command> commands);
    std::size_t execute_exclusive(client& c, time_point now,
                                  std::span<const resp::command> commands);
    void note_view(client& c) noexcept;
    void keep(client& c, std::string_view bytes);
    static void note_input(client& c) noexcept;
    void note_grown(client& c, std::size_t bytes);
    void reset_shared() noexcept;
    task<void> wait_for_turn_end();
    byte_buffer set_replies_aside() noexcept;
    void take_up(byte_buffer replies);
    void keep_spare(byte_buffer sent);
    task<bool> wait_for_disk(append_file::mark until);
    bool write_appended(append_file::mark until);
    bool fits_queue(client& c);
    bool send_now(client& c);
    void set_unsent(client& c, std::size_t bytes);
    static bool begins_large_argument(const client& c) noexcept;
    task<bool> receive_large_argument(client& c);
    task<bool> send_output(client& c);
    task<next> serve_in_push_mode(client& c, next then);
    task<void> part_with(client& c);
    void retire(client& c) noexcept;
    task<void> await_script_end(client& c);
    task<void> await_script_end_there(client& c);
    task<next> run_push_mode(client& c, scope& tasks, next then);
    next execute_next(client& c);
    task<bool> hold_replies(client& c);
    static serving::activity activity_in_wait(const client& c) noexcept;
    void close_answered_replica(client& c);
    std::size_t most_unsent() const noexcept;
    bool send_or_queue(client& c, scope& tasks);
    task<void> write_out(client& c);
    task<bool> all_sent(client& c);
    task<void> read_ahead(client& c);
    bool is_overrun(client& c, time_point& until);
    void end_wait(client& c);
    time_point take_output(client& c, bool wanted);
    task<result<>> wait_for_something(client& c, time_point until);
    void notify(client::own_session& to, std::uint8_t what) noexcept;
    void deliver() noexcept;
    task<void> await_last_wakeup();
    task<bool> await_all_woken();
    /// Resets the state of one client's service, before its next input.
    void begin_service() noexcept {
        held_by_disk_.reset();
        has_deferred_ = false;
    }
    void forget(client::own_session& gone) noexcept;

    cache_context& context_;
    bool remote_;
    std::unique_ptr<eddy::cache::lane> lane_;  // null at home
    executor here_ = executor::current();
    std::unique_ptr<histogram> latency_ = std::make_unique<histogram>();

    // Shared by all clients, which use them within one turn.
    resp::request_batch batch_;
    resp::request_parser parser_;
    byte_buffer replies_;
    std::vector<byte_buffer> spare_buffers_;
    std::size_t waiting_bytes_ = 0;
    std::uint32_t batches_ = 0;
    std::size_t max_query_buffer_ = 0;

    /// For the client that is being served: what the append-only file, or the disk, must have
    /// before its replies go out. `given_up` is from the first of its locked sections, the position
    /// from the last.
    std::optional<append_file::mark> held_by_disk_;
    std::uint64_t written_to_file_ = 0;  // so far it was, at the last poll

    // The engine's, as the sessions in it.
    intrusive_list<client::own_session, client> to_notify_;
    bool wakeup_is_posted_ = false;

    // For the home loop's clients.
    time_point woken_in_{};          // the turn
    std::size_t woken_at_once_ = 0;  // in it, and not in a share of what was deferred
    /// The client that is being served has caused more wake-ups than go into a turn: it continues
    /// once all are done, so that at most one batch of each publisher waits.
    bool has_deferred_ = false;
    event all_woken_;

    wakeup wakeup_{*this};
    std::optional<std::vector<serving::passed_client>> moved_;  // while move_clients() runs

    trimmer trimmer_{*this};
    std::atomic<bool> trim_is_posted_{false};
    struct delivery {
        client::own_session* to = nullptr;
        std::uint8_t what = 0;
    };
    std::array<delivery, most_woken_a_turn> deliveries_;  // under way
};

}  // namespace eddy::runtime::cache
