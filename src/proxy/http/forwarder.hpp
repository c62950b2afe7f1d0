// Forwarder: the handler of HTTP requests that passes each on to a backend, over kept connections,
// and its response back.
//
// Bodies are streamed both ways: of each at most one piece, as it was received, is in memory,
// unless the rules have them buffered (buffering.hpp). The fields of one connection (RFC
// 9110, 7.6.1) are dropped both ways; those about the client are set anew, and what a client says
// about them counts only if it is trusted.
//
// A request is repeated, at another backend where there is one, only as long as no byte of its body
// was read, or all of it is buffered, and no byte of a response has come: one that was never sent
// always, one that was sent if its method is idempotent (RFC 9110, 9.2.2). Repeated requests are at
// most a fifth of all.
#pragma once

#include <eddy/http/client.hpp>
#include <eddy/http/request.hpp>
#include <eddy/http/response.hpp>
#include <eddy/http/session.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "http/client/connection_pool.hpp"
#include "net/network.hpp"
#include "proxy/backend.hpp"
#include "proxy/balancer.hpp"
#include "proxy/http/buffering.hpp"
#include "proxy/http/error_pages.hpp"
#include "proxy/routes.hpp"
#include "proxy/tunnel.hpp"
#include "serving/counters.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::proxy {

/// Fields about the client that a backend gets.
enum class client_fields : std::uint8_t { none, x_forwarded, forwarded, both };

/// Key of strategy::hash.
struct hash_source {
    enum class kind : std::uint8_t { client, path, field, cookie };
    kind of = kind::client;
    std::string name = {};  ///< of the field or cookie

    friend bool operator==(const hash_source&, const hash_source&) = default;
};

/// A field to set: it takes the place of all of its name.
struct field_setting {
    std::string name;
    std::string value;  ///< empty: the field is removed

    friend bool operator==(const field_setting&, const field_setting&) = default;
};

/// Rules of forwarding.
struct forwarding_rules {
    client_fields says = client_fields::both;
    std::vector<network> trusted = {};  ///< clients whose fields about their clients count
    std::string via = "eddy";           ///< name in the field Via; empty: none
    std::string host = {};              ///< in the place of the client's Host; empty: that
    std::vector<field_setting> request_fields = {};
    std::vector<field_setting> response_fields = {};

    duration connect_timeout = std::chrono::seconds(5);
    std::chrono::seconds keepalive{};  ///< of backends, by the kernel
    /// Limits on responses, and the times of a backend: response_time is until the head,
    /// read_time between pieces, write_time for a piece of the request, keep_time of idle
    /// connections.
    http::client_limits limits = {};
    std::size_t backend_connections = 1000;  ///< to each, of one loop
    std::size_t queue = 1000;                ///< requests of a loop that wait for one
    duration queue_time = std::chrono::seconds(5);
    unsigned tries = 3;  ///< backends that a request is sent to, at most
    duration tunnel_idle_time = std::chrono::minutes(10);
    /// From a request's head to the end of its response, with all tries; a tunnel is not limited.
    duration total_time = duration::max();
    /// Content of a request of at most so many bytes is read before a backend is chosen; 0: none.
    std::size_t buffered_request = 0;
    /// Bytes of a response's content that are taken from a backend ahead of its client; 0: none.
    std::size_t buffered_response = 0;

    /// CONNECT is passed on. A server that answers it without a tunnel reads the bytes behind it as
    /// requests, which no route and no rule sees.
    bool connects = false;
    /// URL that requests without TLS are redirected to, see route::redirect; empty: none are.
    std::string https = {};
    hash_source hashed_by = {};
    std::string sticky_cookie = {};  ///< name; empty: none
};

/// Observer of a forwarder, for its log. Called on its loop's thread.
class forwarding_observer {
public:
    /// A request has failed at a backend, and another one may have it.
    virtual void note_failed_backend(const backend& which, std::string_view why) noexcept = 0;
    /// A request got `status` from the proxy itself.
    virtual void note_unanswered(int status, std::string_view why) noexcept = 0;
    /// A backend gets no clients for a while, or takes them again.
    virtual void note_ejected(const backend& which) noexcept = 0;
    virtual void note_returned(const backend& which) noexcept = 0;
    /// A backend gets no clients for a while, as its responses were slower than the others'.
    virtual void note_slow(const slow_backend& which) noexcept = 0;
    virtual void note_no_memory() noexcept = 0;

protected:
    ~forwarding_observer() = default;
};

/// Where a request goes, if not by the routes.
struct route_choice {
    std::string name = {};      ///< of named_routes
    int status = 0;             ///< 200 to 599: the proxy's own answer; 0: none
    std::string_view why = {};  ///< that answer's reason, in static storage
};

/// Changes of a message on its way, or an answer in its place.
struct message_edit {
    int status = 0;             ///< 200 to 599: of the proxy's own answer; 0: none
    std::string_view why = {};  ///< that answer's reason, in static storage
    int new_status = 0;         ///< of a response, in the place of the backend's; 0: that one
    std::vector<field_setting> fields = {};  ///< each is_settable_field()
};

/// Choice for each request, such as that of a script. One loop's thread.
class route_chooser {
public:
    /// False while it leaves all requests to the routes.
    virtual bool chooses() const noexcept = 0;
    /// `host` is in lower case and has no port; `client` is its address, empty for Unix sockets. It
    /// fails if it is cancelled.
    virtual task<result<route_choice>> choose(const http::request& incoming, std::string_view host,
                                              std::string_view client, bool is_secure) = 0;

    /// False while requests are forwarded as they are.
    virtual bool edits_requests() const noexcept = 0;
    /// Changes of a request that a backend is to get. Arguments and failures are those of choose().
    virtual task<result<message_edit>> edit_request(const http::request& incoming,
                                                    std::string_view host, std::string_view client,
                                                    bool is_secure) = 0;
    /// The same of the responses of backends.
    virtual bool edits_responses() const noexcept = 0;
    virtual task<result<message_edit>> edit_response(const http::request& incoming,
                                                     const http::response& answer) = 0;

protected:
    ~route_chooser() = default;
};

/// Part of repeated requests: each request adds a fifth of one, at most `most` are saved.
class retry_budget {
public:
    static constexpr unsigned requests_a_retry = 5;
    static constexpr unsigned most = 20;

    void note_request() noexcept {
        if (saved_ < most * requests_a_retry) ++saved_;
    }
    /// False when there is none left.
    bool take() noexcept {
        if (saved_ < requests_a_retry) return false;
        saved_ -= requests_a_retry;
        return true;
    }

private:
    unsigned saved_ = most * requests_a_retry;
};

/// Its routes and rules may be replaced at any time, for requests that come then. close() before
/// the end of its loop. One loop's thread.
class forwarder final : public http::request_handler {
public:
    /// `worker` is the index of its counters in backends. `counted` counts bytes of tunnels. It and
    /// the observer must outlive it. `budget` is shared with other forwarders; null: one of its
    /// own.
    forwarder(std::size_t worker, serving::counters& counted, forwarding_observer& observer,
              std::shared_ptr<buffer_budget> budget = nullptr);
    ~forwarder();

    /// `named` is for a chooser; null for none.
    void set_rules(std::shared_ptr<const forwarding_rules> rules,
                   std::shared_ptr<const route_table> routes,
                   std::shared_ptr<const named_routes> named = nullptr);
    /// Chooses for requests from now on; null for none. It outlives all requests.
    void set_chooser(route_chooser* by) noexcept { chooser_ = by; }
    /// Content of its own answers from now on; null: each has a line of text.
    void set_error_pages(std::shared_ptr<const error_pages> pages) noexcept {
        pages_ = std::move(pages);
    }
    /// Closes idle connections for good.
    void close() noexcept;

    task<http::response> handle(http::request& incoming) override;
    http::response reject(int status, std::string_view what) override;
    bool forwards() const noexcept override { return true; }

private:
    /// Rules in force; requests keep theirs.
    struct rule_set {
        std::shared_ptr<const forwarding_rules> rules;
        std::shared_ptr<const route_table> routes;
        std::shared_ptr<const named_routes> named;
        std::shared_ptr<const http::client_limits> limits;  // of `rules`
    };
    struct attempt;
    class upload;
    class relayed_body;
    class upgraded;

    static void note_client(attempt& at);
    task<std::optional<http::response>> consult(attempt& at);
    std::optional<http::response> answer_itself(attempt& at);
    task<std::optional<http::response>> edit_request(attempt& at);
    task<http::response> forward_edited(attempt& at);
    std::optional<http::response> answer_unedited(attempt& at, std::error_code why);
    task<http::response> forward(attempt& at);
    task<bool> buffer(attempt& at);
    void next_backend(attempt& at, balancer::selection& order, std::vector<backend_use>& full);
    task<bool> await_connection(attempt& at, std::vector<backend_use>& full);
    task<std::optional<http::response>> try_backend(attempt& at);
    task<bool> connect(attempt& at, http::pool_connection& through);
    task<bool> exchange(attempt& at, const std::shared_ptr<http::client_connection>& over);
    result<> begin(const attempt& at, http::client_connection& over) const;
    http::response relay(attempt& at, http::connection_lease lease,
                         const std::shared_ptr<http::client_connection>& over);
    http::response switch_protocols(attempt& at, http::connection_lease lease,
                                    http::client_connection& over);
    http::response own_answer(int status, std::string_view what);
    http::response refuse(attempt& at);
    http::response redirect(std::string to, int status, const attempt& at);
    void note_failure(attempt& at, backend& of, int status, std::string why);
    selection_key key_of(const rule_set& by, const http::request& incoming);

    const std::size_t worker_;
    serving::counters& counted_;
    forwarding_observer& observer_;
    route_chooser* chooser_ = nullptr;
    std::shared_ptr<const rule_set> in_force_;
    std::shared_ptr<const error_pages> pages_;  // null for none
    std::shared_ptr<http::connection_pool> pool_;
    const std::shared_ptr<buffer_budget> budget_;
    retry_budget retries_;
    std::uint64_t unkeyed_ = 0;  // requests without what strategy::hash uses
    tunnel_buffers buffers_;
};

}  // namespace eddy::proxy
