// Relay source: streams that come from elsewhere, such as from a model's API, with a task for
// each.
//
// A stream lives for minutes and mostly waits for its source's next piece: what it holds then is
// its memory. So the request ends before the first piece, heartbeats are one list for all, and
// nothing is copied that the connection holds.
#pragma once

#include <eddy/base/intrusive_list.hpp>
#include <eddy/http/client_pool.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/operation.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/timer.hpp>

#include "runtime/stream/failure_log.hpp"
#include "runtime/stream/options.hpp"
#include "runtime/stream/sessions.hpp"
#include "runtime/stream/sources/completion_reader.hpp"
#include "runtime/stream/sources/provider_text.hpp"
#include "runtime/stream/sources/source.hpp"
#include "serving/journal.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime::stream {

/// One loop's thread. close() must have ended before it dies.
class relay_source : public source, timer {
public:
    void begin(std::uint32_t client, stream_request from) final;
    void forget(std::uint32_t client) noexcept final;
    void on_idle(std::uint32_t client) noexcept final;
    task<void> close() final;
    std::uint64_t messages_sent() const noexcept final { return messages_sent_; }

protected:
    /// All that it is given outlives it. The log of failures has `interval`.
    relay_source(sessions& in, observer& owner, const config& chosen, serving::journal& lines,
                 duration interval = failure_log_interval);
    ~relay_source() override;

    /// Mark by which a client knows that its stream is whole, beside the connection's end.
    enum class stream_end : std::uint8_t {
        none,   ///< the content has a length, or there is none yet
        event,  ///< done_event; a stream that failed ends with the reason
        chunk,  ///< last_chunk; a stream that failed ends with broken_chunk
        close,  ///< an orderly end of the connection
    };
    /// A client's stream while its task runs. It is in a list while heartbeats are due.
    struct relay : list_link<relay_source> {
        explicit relay(std::uint32_t number) noexcept : client(number) {}

        std::uint32_t client;
        time_point begun = loop::current().now();
        bool is_gone = false;
        bool has_head = false;  // of the response
        stream_end ends_by = stream_end::none;
        cancel_source source;
        event has_caught_up;
        time_point last_sent = begun;
    };
    /// Produces one stream until it ends, the client has gone, or the task is cancelled. It should
    /// free the request once that is sent. Yields the reason of a failure, a text that always
    /// lives; empty for a stream that is whole.
    virtual task<std::string_view> run(relay& to, std::unique_ptr<stream_request> from) = 0;

    /// Passes bytes on, and waits until the client has taken them, for at most --source-timeout.
    /// False once the client has gone.
    task<bool> send(relay& to, std::string bytes);
    /// State of bytes that were passed on.
    enum class sent : std::uint8_t {
        all,    ///< the kernel has them
        waits,  ///< the client reads more slowly
        gone,   ///< and so is the client
    };
    /// The parts of send(): without a wait, and the wait of a client that is behind.
    sent try_send(relay& to, std::string bytes);
    task<bool> await_client(relay& to);
    /// Marks the content as one that ends by the close, since no field says its length: where it
    /// breaks off, the client gets an error.
    void end_by_close(relay& to);
    /// A request to --source-url with `path` behind it.
    http::pool_request upstream(std::string_view path) const;
    /// Counts a response.
    void note_response(const http::pool_response& of) noexcept { owner_.on_response(of.status); }
    // Reasons of failures, which they write to the log, unless the client has gone.
    /// `why` may be the source's text: secrets and control characters are taken out.
    std::string_view note_failure(const relay& of, std::string_view reason, std::string_view why);
    /// Reason for a request that got no response.
    std::string_view note_no_response(const relay& of, std::error_code error);
    /// Reason for content that broke off.
    std::string_view note_broken(const relay& of, std::error_code error);
    /// Reason for a response whose status is none of success; with the text that it has.
    task<std::string_view> note_status(const relay& of, http::pool_response& answer);
    /// Reason for a response whose content is none that was asked for; with the text that it has,
    /// which begins with `content`.
    task<std::string_view> note_content(const relay& of, http::pool_response& answer,
                                        std::string why, std::string content);
    /// Sends the client a 502 with the reason, as the whole response.
    void refuse(relay& to, const stream_request& from, std::string_view reason);
    /// Adds a field whose value is known to be one.
    static void add_field(http::pool_request& to, std::string_view name, std::string_view value);
    http::client_pool& web() noexcept { return web_; }
    const config& options() const noexcept { return config_; }
    failure_log& failures() noexcept { return failures_; }

private:
    /// True when its clients get heartbeats.
    virtual bool sends_heartbeats() const noexcept { return false; }
    /// Relays that one call of fire() takes, at most.
    static constexpr unsigned burst = 64;
    /// Bytes of a failed response's content that are read for the log, at most, and the time for
    /// it.
    static constexpr std::size_t max_failure_text = 8 * 1024;
    static constexpr std::chrono::seconds failure_text_time{2};

    task<std::string> read_failure(http::pool_response& of, std::string content = {},
                                   bool* is_error = nullptr);
    static std::string_view reason_of(std::error_code error) noexcept;
    bool pass_on(relay& to, std::string bytes);
    void note_sent(relay& to) noexcept;
    void fire() noexcept override;
    void beat(relay& to);
    task<void> serve(std::uint32_t client, std::unique_ptr<stream_request> from);
    void end(relay& to, std::string_view fault);
    void leave(relay& gone) noexcept;

    sessions& sessions_;
    observer& owner_;
    const config config_;
    http::client_pool web_;
    std::vector<relay*> relays_;                 // by the client's number
    intrusive_list<relay, relay_source> quiet_;  // by last_sent, if there are heartbeats
    std::uint64_t messages_sent_ = 0;
    const secret_texts secrets_;
    failure_log failures_;
    scope tasks_;
};

/// Chat completions of an API as OpenAI's: each piece of the answer is an event.
class openai_source final : public relay_source {
public:
    openai_source(sessions& in, observer& owner, const config& chosen, serving::journal& lines)
        : relay_source(in, owner, chosen, lines) {}
    std::string opening(const stream_request& from) const override;

private:
    bool sends_heartbeats() const noexcept override { return true; }
    task<result<http::pool_response>> ask(std::unique_ptr<stream_request>& from);
    std::optional<std::string_view> end_of(relay& to, completion_reader& reader,
                                           completion_reader::step what);
    std::string_view end_of_content(relay& to, const completion_reader& reader);
    task<bool> send_all(relay& to, std::vector<std::string> events);
    task<std::string_view> run(relay& to, std::unique_ptr<stream_request> from) override;
};

/// Any URL's response, passed through as it comes.
class proxy_source final : public relay_source {
public:
    proxy_source(sessions& in, observer& owner, const config& chosen, serving::journal& lines)
        : relay_source(in, owner, chosen, lines) {}
    std::string opening(const stream_request&) const override { return {}; }

private:
    task<result<http::pool_response>> ask(stream_request& from);
    task<std::string_view> run(relay& to, std::unique_ptr<stream_request> from) override;
};

}  // namespace eddy::runtime::stream
