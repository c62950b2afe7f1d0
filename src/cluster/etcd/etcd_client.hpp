// Client of etcd by its v3 JSON gateway: keys, leases and watches over a pool of HTTP connections,
// at the first endpoint that answers.
#pragma once

#include <eddy/http/client_pool.hpp>
#include <eddy/io/operation.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "base/text/line_splitter.hpp"
#include "cluster/etcd/etcd_address.hpp"
#include "cluster/etcd/etcd_messages.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace eddy::cluster {

class observer;

/// Bytes of an answer, and of a line of a watch, at most.
inline constexpr std::size_t max_etcd_response = 16UZ * 1024 * 1024;
/// Connections to an endpoint, at most.
inline constexpr std::size_t max_etcd_connections = 8;

/// Kinds of failure that callers treat differently.
enum class etcd_fault : std::uint8_t {
    unreachable,  ///< no endpoint answers; a later attempt may succeed
    refused,      ///< etcd answers with an error, such as that it has no space left
    denied,       ///< user, password or rights
    compacted,    ///< the revision is gone, or has not come yet
    missing,      ///< no such lease
    too_large,    ///< the request or the answer is above a limit
    cancelled,    ///< the caller was
};

/// Failure with a sentence for people, which names the endpoint.
struct etcd_problem {
    etcd_fault kind = etcd_fault::unreachable;
    std::string message;
};

template <class T = void>
using etcd_result = std::expected<T, etcd_problem>;

/// Time that a call takes at most.
struct etcd_patience {
    duration attempt;  ///< at an endpoint, from connecting to the end of the answer
    /// No further endpoint is tried once a call has taken so long.
    duration round;
};

class etcd_watch;

/// Requests to the endpoints of an address. Each is made at the endpoint that answered last; one
/// that fails is passed over, and its watches end. A call returns after one round over all of them,
/// and pauses between rounds are the caller's. All requests may be made twice: an answer may be
/// lost. Several at a time. It must outlive its calls and watches. One loop's thread.
///
/// Endpoints that belong to another cluster than the one that answered first are passed over, and
/// noted once. When most of the endpoints are of one, that is the cluster from then on: etcd was
/// set up anew.
class etcd_client {
public:
    /// Longest time until a connection is there.
    static constexpr duration connect_time = std::chrono::seconds(2);
    /// Shorter than any usual answer's way, so that a machine that vanished ends its watches.
    static constexpr std::chrono::seconds keepalive_time{2};

    /// `notes` must outlive it. It connects with the first call.
    etcd_client(etcd_address where, observer& notes);
    ~etcd_client();
    etcd_client(const etcd_client&) = delete;
    etcd_client& operator=(const etcd_client&) = delete;

    // Each yields an etcd_result.

    /// The keys of a range. too_large for an answer above the limit: ask for fewer keys.
    task<etcd_result<etcd_range_reply>> range(etcd_range keys, etcd_patience patience);
    /// Writes a key if the conditions hold.
    task<etcd_result<etcd_write_reply>> write(std::string key, std::string value,
                                              std::int64_t lease, etcd_condition on,
                                              etcd_patience patience);
    /// A new lease, of etcd's choice of number.
    task<etcd_result<etcd_lease_reply>> grant(std::chrono::seconds time, etcd_patience patience);
    /// Renews a lease. A time to live of 0: there is no such lease.
    task<etcd_result<etcd_lease_reply>> keep_alive(std::int64_t lease, etcd_patience patience);
    /// The same without renewing it.
    task<etcd_result<etcd_lease_reply>> time_to_live(std::int64_t lease, etcd_patience patience);
    /// Ends a lease, and removes its keys. missing for one that is unknown.
    task<etcd_result<etcd_plain_reply>> revoke(std::int64_t lease, etcd_patience patience);
    /// A watch of keys from their revision on. It is made by the time that this returns.
    task<etcd_result<std::unique_ptr<etcd_watch>>> watch(etcd_range keys, etcd_patience patience);

    /// Closes idle connections. Later calls fail; those under way are the caller's to cancel.
    void close() noexcept;

    /// The cluster that answers; 0 before the first answer.
    std::uint64_t cluster_id() const noexcept { return cluster_id_; }
    /// Failures of endpoints so far, for tests.
    std::uint64_t failures() const noexcept { return failures_; }

private:
    friend class etcd_watch;
    struct answer {
        int status = 0;
        std::string text;
    };
    struct endpoint_state {
        std::uint64_t foreign_id = 0;  // of the other cluster that it belongs to; 0: none
        bool is_noted = false;
    };
    template <class Reply>
    using reader = std::optional<Reply> (*)(std::string_view text);
    using watch_result = etcd_result<std::unique_ptr<etcd_watch>>;

    template <class Reply>
    task<etcd_result<Reply>> call(std::string path, std::string body, reader<Reply> read,
                                  etcd_patience patience);
    template <class Reply>
    task<etcd_result<Reply>> ask(std::size_t at, std::string path, std::string body,
                                 reader<Reply> read, time_point deadline);
    task<etcd_result<std::string>> ask_text(std::size_t at, std::string path, std::string body,
                                            time_point deadline);
    task<watch_result> open_watch(std::size_t at, std::string body, time_point deadline);
    task<watch_result> begin_watch(std::size_t at, http::pool_response from, time_point deadline);
    task<result<answer>> exchange(http::pool_request request);
    task<etcd_result<>> log_in(std::size_t at, time_point deadline);
    task<etcd_result<>> ensure_token(std::size_t at, time_point deadline);
    bool drops_token(const answer& refusal, const std::optional<std::string>& used) noexcept;

    http::pool_request make_request(std::size_t at, std::string_view path, std::string body,
                                    std::string_view token) const;
    etcd_result<> note_cluster(std::size_t at, std::uint64_t id);
    void note_failure(std::size_t at) noexcept;
    std::string name_of(std::size_t at) const;
    etcd_problem failed(std::size_t at, std::error_code error) const;
    etcd_problem refused(std::size_t at, const answer& refusal) const;
    etcd_problem refused(std::size_t at, const etcd_failure& by) const;

    etcd_address where_;
    observer& notes_;
    http::client_pool pool_;
    std::vector<endpoint_state> endpoints_;
    std::vector<etcd_watch*> watches_;
    std::size_t current_ = 0;
    std::uint64_t cluster_id_ = 0;
    std::uint64_t failures_ = 0;
    /// The user's; empty where etcd's authentication is off. None where it must be asked for.
    std::optional<std::string> token_;
};

/// Changes of keys, as etcd streams them. It ends with the first failure: unreachable when its
/// endpoint fails, here or in another call. One loop's thread.
class etcd_watch {
public:
    ~etcd_watch();
    etcd_watch(const etcd_watch&) = delete;
    etcd_watch& operator=(const etcd_watch&) = delete;

    /// State of etcd when it was made.
    const etcd_header& created() const noexcept { return created_; }
    /// Awaits the next line, one caller at a time. Yields an etcd_result: compacted for a watch
    /// that etcd has cancelled.
    task<etcd_result<etcd_watch_line>> next();

private:
    friend class etcd_client;
    etcd_watch(etcd_client& of, std::size_t at, http::pool_response from);

    task<etcd_result<std::string>> next_line();
    etcd_result<> take(std::string_view piece);
    void cut() noexcept;

    etcd_client& client_;
    std::size_t at_;  // the endpoint
    http::pool_response from_;
    line_splitter splitter_;
    std::deque<std::string> lines_;  // those of one piece, at most
    etcd_header created_;
    cancel_source* wait_ = nullptr;  // of the read under way
    bool is_cut_ = false;            // its endpoint has failed in another call
};

}  // namespace eddy::cluster
