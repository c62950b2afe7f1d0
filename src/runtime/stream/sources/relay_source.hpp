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

#include "runtime/logs/failure_log.hpp"
#include "runtime/stream/options.hpp"
#include "runtime/stream/sessions.hpp"
#include "runtime/stream/sources/backends.hpp"
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
    bool has_backend(const stream_request& from) const final;
    void begin(std::uint32_t client, stream_request from) final;
    void forget(std::uint32_t client) noexcept final;
    void end_overdue(std::uint32_t client) noexcept final;
    void on_idle(std::uint32_t client) noexcept final;
    task<void> close() override;
    std::uint64_t messages_sent() const noexcept final { return messages_sent_; }
    std::uint64_t requests_under_way() const noexcept final { return under_way_; }

protected:
    /// All that it is given outlives it.
    relay_source(sessions& in, observer& owner, const config& chosen, serving::journal& lines);
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
        std::uint32_t asked_us = 0;  // of the last request, since it has begun
        time_point begun = loop::current().now();
        bool is_gone = false;
        bool is_overdue = false;  // its time has passed: the task is cancelled
        bool has_head = false;    // of the response
        stream_end ends_by = stream_end::none;
        std::uint8_t asked = 0;  // the last backend that was, counted from 1; 0: none
        cancel_source source;
        event has_caught_up;
        time_point last_sent = begun;
        std::unique_ptr<const std::string> key;  // the handoff's own; null: the backend's
    };
    /// Produces one stream until it ends, the client has gone, or the task is cancelled. It should
    /// free the request once that is sent. Yields the reason of a failure, a text that always
    /// lives; empty for a stream that is whole.
    virtual task<std::string_view> run(relay& to, std::unique_ptr<stream_request> from) = 0;

    /// Passes bytes on, which are so many events, and waits until the client has taken them, for at
    /// most --source-timeout. False once the client has gone.
    task<bool> send(relay& to, std::string bytes, std::uint32_t events = 1);
    /// State of bytes that were passed on.
    enum class sent : std::uint8_t {
        all,    ///< the kernel has them
        waits,  ///< the client reads more slowly
        gone,   ///< and so is the client
    };
    /// The parts of send(): without a wait, and the wait of a client that is behind.
    sent try_send(relay& to, std::string bytes, std::uint32_t events = 1);
    task<bool> await_client(relay& to);
    /// Marks the content as one that ends by the close, since no field says its length: where it
    /// breaks off, the client gets an error.
    void end_by_close(relay& to);
    /// The request of a handoff to a backend. After the `is_last` one the handoff's texts are not
    /// needed for another. Called by ask() alone.
    virtual http::pool_request request_to(const backend& at, const relay& to, stream_request& from,
                                          bool is_last) const;
    /// A request to a backend with `path` behind its URL's.
    http::pool_request upstream(const backend& at, std::string_view path, const relay& to) const;
    /// Requests the handoff's backends, one after the other until a response is none of a failure.
    /// Yields the last response or error. `from` must live until then, unless has_one_backend(). It
    /// is no coroutine: what it makes is the task's that it returns, and goes with that.
    task<result<http::pool_response>> ask(relay& to, stream_request& from);
    bool has_one_backend() const noexcept { return backends_.only() != nullptr; }
    /// Counts a response to the last request.
    void note_response(const relay& to, const http::pool_response& of) noexcept;
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

private:
    /// True when its clients get heartbeats.
    virtual bool sends_heartbeats() const noexcept { return false; }
    /// Relays that one call of fire() takes, at most.
    static constexpr unsigned burst = 64;
    /// Bytes of a failed response's content that are read for the log, at most, and the time for
    /// it.
    static constexpr std::size_t max_failure_text = 8 * 1024;
    static constexpr std::chrono::seconds failure_text_time{2};

    task<result<http::pool_response>> send_to(const backend& at, relay& to, stream_request& from,
                                              bool is_last);
    task<result<http::pool_response>> ask_in_order(relay& to, stream_request& from);
    void note_fallback(const relay& of, const backend& failed,
                       const result<http::pool_response>& answer);
    std::string without_secrets(const relay& of, std::string_view text,
                                bool is_cut_off = false) const;
    task<std::string> read_failure(const relay& of, http::pool_response& answer,
                                   std::string content = {}, bool* is_error = nullptr);
    static std::string_view reason_of(std::error_code error) noexcept;
    bool pass_on(relay& to, std::string bytes, std::uint32_t events);
    void note_sent(relay& to) noexcept;
    void fire() noexcept override;
    void beat(relay& to);
    task<void> serve(std::uint32_t client, std::unique_ptr<stream_request> from);
    void end(relay& to, std::string_view fault);
    void leave(relay& gone) noexcept;

    sessions& sessions_;
    observer& owner_;
    const config config_;
    const backend_list backends_;
    http::client_pool web_;
    std::vector<relay*> relays_;                 // by the client's number
    intrusive_list<relay, relay_source> quiet_;  // by last_sent, if there are heartbeats
    std::uint64_t messages_sent_ = 0;
    std::uint64_t under_way_ = 0;
    const secret_texts secrets_;
    failure_log failures_;
    failure_log fallbacks_;
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
    http::pool_request request_to(const backend& at, const relay& to, stream_request& from,
                                  bool is_last) const override;
    task<result<http::pool_response>> ask_and_free(relay& to,
                                                   std::unique_ptr<stream_request>& from);
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
    http::pool_request request_to(const backend& at, const relay& to, stream_request& from,
                                  bool is_last) const override;
    task<std::string_view> run(relay& to, std::unique_ptr<stream_request> from) override;
};

}  // namespace eddy::runtime::stream
