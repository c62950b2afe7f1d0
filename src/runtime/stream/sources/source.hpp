// Source of a stream runtime: the source of what its clients are sent.
#pragma once

#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "base/problem.hpp"
#include "runtime/scripting/script_metrics.hpp"
#include "runtime/scripting/script_options.hpp"
#include "runtime/stream/stream_request.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace eddy::runtime::stream {

/// A backend's answer to the request of a stream.
struct backend_answer {
    std::string_view name;  ///< the backend's
    int status = 0;
    duration time{};  ///< from the request to the head of the response
};

/// Reason of a stream that had its time (--max-stream-time).
inline constexpr std::string_view overdue_reason = "stream_too_long";

/// One loop's thread. Its runtime owns the sessions, which outlive it. Streams have their sessions'
/// numbers.
class source {
public:
    /// Runtime of the streams; it outlives the source.
    class observer {
    public:
        /// The last bytes were passed on; the stream is finished, and its number free.
        virtual void on_end(std::uint32_t stream, duration since_begin) noexcept = 0;
        /// The same after a failure, by the reason that metrics show, a text that always lives. The
        /// client has got the reason, as far as it could be sent.
        virtual void on_fault(std::uint32_t stream, std::string_view reason) noexcept = 0;
        /// A response of the API or site that the source asks has begun.
        virtual void on_response(std::uint32_t /*stream*/, const backend_answer& /*by*/) noexcept {}
        /// A request goes to the next backend, since the one of this name has failed.
        virtual void on_fallback(std::string_view /*backend*/) noexcept {}
        /// A stream is about to be sent so many events, more than 0.
        virtual void on_events(std::uint32_t /*stream*/, std::uint32_t /*count*/) noexcept {}

    protected:
        ~observer() = default;
    };

    /// For notifications of streams that have no session.
    static constexpr std::uint32_t no_client = UINT32_MAX;

    virtual ~source() = default;

    /// Before the first stream; close() must follow where it fails.
    virtual task<outcome<>> start() { co_return outcome<>(); }
    /// Replaces its script by another version, for later streams; on failure the present one stays.
    virtual task<outcome<>> replace_script(script_file /*by*/) { co_return outcome<>(); }
    /// Counts of its script; null without one.
    virtual const script_tallies* script_counts() const noexcept { return nullptr; }
    /// False for a request that names a backend which it does not have.
    virtual bool has_backend(const stream_request& /*from*/) const { return true; }
    /// Head of the response to `from`, sent at once. Empty where it depends on what is to come.
    virtual std::string opening(const stream_request& from) const = 0;
    /// The first event, sent with it; empty where none is known yet.
    virtual std::string first_event(const stream_request& /*from*/) const { return {}; }
    /// Continues a stream whose client was sent both. Throws std::bad_alloc; nothing was begun
    /// then.
    virtual void begin(std::uint32_t stream, stream_request from) = 0;
    /// The stream's session has ended: ends the work for it.
    virtual void forget(std::uint32_t stream) noexcept = 0;
    /// Ends a stream before its end, as after a failure of overdue_reason: on_fault() or on_loss()
    /// is called, at once or later.
    virtual void end_overdue(std::uint32_t stream) noexcept = 0;
    /// A client that was waited for (sessions::notify_when_idle()) has caught up, or is gone.
    virtual void on_idle(std::uint32_t /*stream*/) noexcept {}
    /// Ends everything that is under way, without notifications.
    virtual task<void> close() { co_return; }

    /// Requests to backends whose response has not ended.
    virtual std::uint64_t requests_under_way() const noexcept { return 0; }
    /// Messages passed on so far.
    virtual std::uint64_t messages_sent() const noexcept = 0;
};

}  // namespace eddy::runtime::stream
