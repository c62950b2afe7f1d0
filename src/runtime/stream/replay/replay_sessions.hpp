// Sessions with replay: streams that outlive their clients, and clients that come again.
#pragma once

#include <eddy/io/timer.hpp>

#include "handoff/client_table.hpp"
#include "runtime/stream/replay/replay_logs.hpp"
#include "runtime/stream/sessions.hpp"
#include "runtime/stream/stream_request.hpp"

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime::stream {

/// One loop's thread. Its functions are those of `sessions`.
class replay_sessions final : timer {
public:
    /// Logs that are removed or left in a row before others on the loop have their turn.
    static constexpr unsigned burst = 256;

    /// Both outlive it, but for the clients' closing.
    replay_sessions(const session_options& options, handoff::client_table& clients,
                    sessions::observer& owner);
    ~replay_sessions();

    bool continues_stream(const stream_request& from);
    bool has_whole(const stream_request& from);
    /// True while the events that the client has missed are kept, of a stream that may have ended.
    bool has_missed(const stream_request& from);
    result<sessions::beginning> begin(unique_fd client, const stream_request& from,
                                      std::string head, std::string_view first);
    bool send(std::uint32_t stream, std::string_view event);
    bool send_comment(std::uint32_t stream, std::string_view comment);
    bool finish(std::uint32_t stream, std::string last);
    void abandon(std::uint32_t stream);
    bool cut(std::uint32_t stream);
    bool is_writing(std::uint32_t stream);
    void notify_when_idle(std::uint32_t stream);
    void on_loss(std::uint32_t client, handoff::loss why) noexcept;
    void on_idle(std::uint32_t client);

    /// Streams without a client.
    std::uint32_t detached() const noexcept {
        return static_cast<std::uint32_t>(logs_.count(log_stage::awaited));
    }
    std::size_t used_bytes() const noexcept { return logs_.used_bytes(); }

private:
    static constexpr std::uint32_t none = UINT32_MAX;

    struct session {
        replay_log* log = nullptr;
        std::uint32_t client = none;
        bool is_used = false;
        bool is_over = false;  // it replays a stream that has ended
    };

    session& at(std::uint32_t stream) noexcept;
    std::uint32_t take();
    void release(std::uint32_t stream) noexcept;
    void attach(std::uint32_t stream, std::uint32_t client) noexcept;
    void detach(std::uint32_t stream, std::string_view why);
    void leave_log(std::uint32_t stream) noexcept;
    void end_log(replay_log& log) noexcept;
    void end_session(std::uint32_t stream) noexcept;
    void replace(replay_log& log);
    result<sessions::beginning> resume(unique_fd client, replay_log& log, std::uint64_t behind,
                                       std::string head);
    void finish_replay(std::uint32_t stream);
    void fire() noexcept override;
    void arm() noexcept;
    std::uint32_t clock_ms() const noexcept;

    sessions::observer& owner_;
    handoff::client_table& clients_;
    replay_logs logs_;
    std::uint32_t kept_ms_;
    std::uint32_t finish_ms_;
    time_point start_;
    std::deque<session> sessions_;
    std::vector<std::uint32_t> free_;
    std::vector<std::uint32_t> by_client_;
};

}  // namespace eddy::runtime::stream
