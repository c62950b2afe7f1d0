// Sessions of a stream runtime: between its source, which produces streams, and the table of its
// clients. A stream's session is its client, as long as nothing is to be replayed.
//
// With replay a session outlives its client: the stream continues for a while, and its events are
// kept for a client that comes again. Without, a stream's number is its client's, and a session
// takes no memory.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/base/unique_fd.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "handoff/client_table.hpp"
#include "runtime/stream/stream_request.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime::stream {

class replay_sessions;

struct session_options {
    std::uint32_t capacity = 0;     ///< clients at most
    std::size_t max_queue = 0;      ///< bytes that may wait for one client
    duration finish_time{};         ///< of a client whose stream has ended; see client_table
    std::size_t replay_memory = 0;  ///< bytes of all logs; 0: nothing is replayed
    duration replay_time{};         ///< of a stream without a client, and of a log after its end
    bool counts_bytes = false;      ///< of each stream, for sent()
};

/// Bytes that a stream was passed, and the time of the first ones behind its head, or the epoch
/// before these.
struct sent_count {
    std::uint64_t bytes = 0;
    time_point first{};
};

/// One loop's thread.
class sessions final : handoff::client_table::observer {
public:
    /// Owner of the streams. It must outlive the sessions.
    class observer {
    public:
        /// The client is gone, and so is its stream's session.
        virtual void on_loss(std::uint32_t stream, handoff::loss why) noexcept = 0;
        /// The client is gone; the stream continues without one, and has nothing to wait for.
        virtual void on_detach(std::uint32_t stream, std::string_view why) noexcept = 0;
        /// The session has ended before its stream: no client came again. Also for a client that
        /// came after its stream's end, once it has been passed what it missed, or is replaced.
        virtual void on_expiry(std::uint32_t stream) noexcept = 0;
        /// A client was closed before it had taken the rest of a stream that has ended.
        virtual void on_unsent() noexcept = 0;
        /// A client that was waited for has caught up.
        virtual void on_idle(std::uint32_t stream) noexcept = 0;

    protected:
        ~observer() = default;
    };

    /// Outcome of begin().
    struct beginning {
        std::uint32_t stream = 0;
        bool is_new = true;     ///< the stream is to begin; else it continues, or has ended
        bool is_reset = false;  ///< the client was sent reset_event: what it had is void
    };

    /// On the running loop; errors as client_table::open().
    static result<std::unique_ptr<sessions>> open(session_options options, observer& owner);
    /// Closes all clients, as client_table does.
    ~sessions();
    sessions(const sessions&) = delete;
    sessions& operator=(const sessions&) = delete;

    bool has_replay() const noexcept { return replay_ != nullptr; }
    /// True when the request asks to continue a stream that exists.
    bool continues_stream(const stream_request& from) const;
    /// True when the client has the whole of a stream that has ended, its end included.
    bool has_whole(const stream_request& from) const;
    /// True while the events that the client has missed are kept, of a stream that may have ended.
    bool has_missed(const stream_request& from) const;
    /// Begins a stream for a client, or continues one. `head` is the response's, `first` the first
    /// event, or empty. Errors as client_table::add(); throws std::bad_alloc, and nothing was begun
    /// then.
    result<beginning> begin(unique_fd client, const stream_request& from, std::string head,
                            std::string_view first);

    /// Sends one event, which outlives the sessions, or which it keeps. False when the stream was
    /// lost over it: on_loss() has been called. Throws std::bad_alloc.
    bool send(std::uint32_t stream, std::string_view shared) {
        count(stream, shared.size());
        if (replay_ == nullptr) [[likely]]
            return clients_->send(stream, shared);
        return send_logged(stream, shared);
    }
    bool send_owned(std::uint32_t stream, std::string event) {
        count(stream, event.size());
        if (replay_ == nullptr) [[likely]]
            return clients_->send_owned(stream, std::move(event));
        return send_logged(stream, event);
    }
    /// Sends a comment, which lives for ever, unless the client has not taken what it was sent
    /// last: that one is not waiting for a sign of life. False as send().
    bool send_comment(std::uint32_t stream, std::string_view comment);
    /// Sends the last bytes, a last event or none, and ends the stream: its number is free. False
    /// as send().
    bool finish(std::uint32_t stream, std::string last = {});
    /// As client_table::reset_unless_finished() and break_off(). Without replay alone, whose
    /// streams are events with an end of their own.
    void reset_unless_finished(std::uint32_t stream) noexcept;
    void break_off(std::uint32_t stream);
    /// Ends the stream, and closes its client now.
    void abandon(std::uint32_t stream);
    /// Closes the client now, as one that is too slow. False when the stream was ended with it, and
    /// on_loss() is not called; else on_detach() is.
    bool cut(std::uint32_t stream);
    /// Ends all streams without notifications, and closes their clients, also those whose
    /// connection another process has. After it nothing begins.
    task<void> close();
    /// Passes what was begun to the kernel.
    void flush() { clients_->flush(); }

    /// True while a client has not been passed all that it was sent.
    bool is_writing(std::uint32_t stream) noexcept;
    /// Requests on_idle() when it has been, or on_detach(). While is_writing().
    void notify_when_idle(std::uint32_t stream) noexcept;

    /// Streams that have not ended.
    std::uint32_t active() const noexcept;
    /// Active streams without a client.
    std::uint32_t detached() const noexcept;
    /// Clients' sockets that are open.
    std::uint32_t open_sockets() const noexcept { return clients_->open_sockets(); }
    /// As client_table::all_closed().
    task<result<>> all_closed() { return clients_->all_closed(); }
    /// As client_table::unsent().
    std::uint32_t unsent() const noexcept { return clients_->unsent(); }
    std::uint64_t bytes_sent() const noexcept { return clients_->bytes_sent(); }
    /// Bytes of the events that are kept.
    std::size_t replay_bytes() const noexcept;
    /// With session_options::counts_bytes those of a stream, which may have ended if none has begun
    /// since; else none.
    std::optional<sent_count> sent(std::uint32_t stream) const noexcept;

private:
    explicit sessions(observer& owner) noexcept;
    void count(std::uint32_t stream, std::size_t bytes) noexcept {
        if (!counts_.empty()) [[unlikely]]
            note_sent(stream, bytes);
    }
    void note_sent(std::uint32_t stream, std::size_t bytes) noexcept;
    result<beginning> begin_uncounted(unique_fd client, const stream_request& from,
                                      std::string head, std::string_view first);
    bool send_logged(std::uint32_t stream, std::string_view event);
    void on_loss(std::uint32_t client, handoff::loss why) noexcept override;
    void on_idle(std::uint32_t client) noexcept override;
    void on_unsent() noexcept override { owner_.on_unsent(); }

    observer& owner_;
    std::unique_ptr<replay_sessions> replay_;  // null without replay
    std::unique_ptr<handoff::client_table> clients_;
    std::vector<sent_count> counts_;  // by stream; never empty where bytes are counted
};

}  // namespace eddy::runtime::stream
