// Source of a stream runtime: the source of what its clients are sent.
#pragma once

#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "runtime/stream/stream_request.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace eddy::runtime::stream {

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
        virtual void on_response(int /*status*/) noexcept {}

    protected:
        ~observer() = default;
    };

    /// For notifications of streams that have no session.
    static constexpr std::uint32_t no_client = UINT32_MAX;

    virtual ~source() = default;

    /// Head of the response to `from`, sent at once. Empty where it depends on what is to come.
    virtual std::string opening(const stream_request& from) const = 0;
    /// The first event, sent with it; empty where none is known yet.
    virtual std::string first_event(const stream_request& /*from*/) const { return {}; }
    /// Continues a stream whose client was sent both. Throws std::bad_alloc; nothing was begun
    /// then.
    virtual void begin(std::uint32_t stream, stream_request from) = 0;
    /// The stream's session has ended: ends the work for it.
    virtual void forget(std::uint32_t stream) noexcept = 0;
    /// A client that was waited for (sessions::notify_when_idle()) has caught up, or is gone.
    virtual void on_idle(std::uint32_t /*stream*/) noexcept {}
    /// Ends everything that is under way, without notifications.
    virtual task<void> close() { co_return; }

    /// Messages passed on so far.
    virtual std::uint64_t messages_sent() const noexcept = 0;
};

}  // namespace eddy::runtime::stream
