// One client of a cache.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/intrusive_list.hpp>
#include <eddy/io/event.hpp>
#include <eddy/wire/resp/request.hpp>

#include "cache/engine/engine.hpp"
#include "cache/memory/large_argument.hpp"
#include "runtime/cache/clients/byte_queue.hpp"
#include "runtime/cache/clients/cache_connection.hpp"
#include "serving/connection_slot.hpp"
#include "serving/connections.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace eddy::runtime::cache {

class cache_worker;

/// Lives in the coroutine that serves it, on its worker's loop.
class client final : public cache_connection {
public:
    /// Makes the session, too. One on a loop that does not accept has a slot.
    client(serving::connections& all, stream accepted, cancel_source& parent, cache_worker& at,
           serving::connection_slot slot);
    ~client();

    /// Ends the session, which gets nothing more; the connection stays. Yields what others have
    /// sent it when the cache is being stopped, or before it was killed; the worker's mark says by
    /// when the disk has that.
    byte_buffer leave();

    /// Notifications of the engine for the loop that serves the client.
    enum notification : std::uint8_t { woken = 1, to_close = 2, fed = 4 };

    /// A copy of the session's state: the session itself is the engine's, and commands of other
    /// clients change it.
    struct view {
        bool authenticated = true;
        bool closing = false;
        bool blocked = false;
        bool waits_for_others = false;
        bool is_replica = false;
        bool runs_script = false;
    };

    /// The engine's side, and how the engine reaches this one. The engine calls it in its own turns
    /// or with its loop locked by another thread.
    struct own_session final : eddy::cache::client_session, list_link<client> {
        own_session(client& of, std::string_view address, std::string_view local_address);
        ~own_session() override = default;

        void wake() noexcept override { notify(woken); }
        void close_now() noexcept override { notify(to_close); }
        void feed_grew() noexcept override { notify(fed); }
        buffers held() const noexcept override {
            return {input.load(std::memory_order_relaxed), unsent.load(std::memory_order_relaxed)};
        }

        /// Bytes that the connection holds, as far as the engine's accounts go: an idle client has
        /// a kibibyte, and these lie where the engine's side would be padded.
        std::atomic<std::uint32_t> input{0};
        std::atomic<std::uint32_t> unsent{0};
        std::uint8_t pending = 0;  // notifications on their way to another loop
        view seen;                 // the worker's
        /// The worker's: output of other clients' commands came that was not taken. Outside of push
        /// mode it begins that, at once where the client waits for bytes.
        bool has_output = false;

        client& of;

    private:
        void notify(notification what) noexcept;
    };
    /// There from when the client is made until it leaves.
    std::optional<own_session> session;

    /// Acts on notifications. The worker's loop.
    void take_notifications(std::uint8_t what) noexcept {
        if ((what & to_close) != 0) close();
        if ((what & woken) != 0) {
            session->has_output = true;
            if (push_mode)
                push_mode->something.set();
            else if (is_reading())
                interrupt();
        }
        if ((what & fed) != 0 && push_mode) push_mode->feed.set();
    }

    /// Received bytes that are left over, when they ended within a command or when replies must be
    /// sent before the rest is executed. Nearly all clients have none nearly all the time.
    struct leftover {
        byte_buffer bytes;
        /// State of parsing the command at their start; without it that is parsed anew.
        std::unique_ptr<resp::request_parser> parser;
        /// Bytes that this command lacks at least.
        std::size_t wanted = 1;
        /// Its arguments that are not among the bytes.
        std::vector<eddy::cache::large_argument> large;

        /// Bytes of memory, about.
        std::size_t held_bytes() const noexcept;
        /// Puts the large arguments among the bytes, which are to be parsed anew.
        void join();
    };
    std::unique_ptr<leftover> rest;

    /// Separate tasks for reading, executing and writing: for a client that gets output of other
    /// clients' commands or waits for them, until its end; for any other one while its replies
    /// wait.
    struct push_state {
        event something;      ///< input came, output came or went, or a wait has ended
        event room;           ///< the reader may continue
        event feed;           ///< there is more for a replica
        byte_queue received;  ///< commands behind those in `rest`: the query buffer
        byte_queue unsent;    ///< replies that the connection has not taken
        bool feeds = false;
        bool is_writing = false;       ///< a task writes what is unsent
        bool is_broken = false;        ///< nothing more can be written
        bool awaits_disk = false;      ///< replies that are not among the unsent ones
        bool execution_waits = false;  ///< for others, for the disk, or for replies to be taken
        bool at_end = false;           ///< nothing more will come
    };
    std::unique_ptr<push_state> push_mode;

    /// True while it waits for bytes, if it is not in push mode.
    bool is_reading() const noexcept {
        return doing() == serving::activity::resting || doing() == serving::activity::reading;
    }

    /// State of the session when the loop was unlocked last.
    const view& seen() const noexcept { return session->seen; }

    cache_worker& at;
};

/// For own_session's counts of bytes.
inline std::uint32_t counted_bytes(std::size_t bytes) noexcept {
    constexpr std::size_t most = std::numeric_limits<std::uint32_t>::max();
    return static_cast<std::uint32_t>(bytes < most ? bytes : most);
}

}  // namespace eddy::runtime::cache
