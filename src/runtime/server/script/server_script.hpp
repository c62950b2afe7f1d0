// Script of a server on one loop: its clients as the script knows them, and the order of their
// callbacks.
//
// A client is a number in the script. Its callbacks run one after the other: on_auth and
// on_connect, then on_message for each message, then on_disconnect. One that ends at once runs
// within the code that reads from the client; while another one waits, the reader awaits it
// (idle()). A client that goes meanwhile has its on_disconnect after that.
//
// What goes to clients goes by a script_transport: that of streams (stream_transport.hpp), or that
// of datagrams.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/http/request.hpp>
#include <eddy/http/response.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/task.hpp>

#include "base/problem.hpp"
#include "runtime/host/host.hpp"
#include "runtime/metrics.hpp"
#include "runtime/scripting/script_metrics.hpp"
#include "runtime/scripting/script_rows.hpp"
#include "script/value.hpp"
#include "serving/journal.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime::server {

/// Keys of set_data() of a client at most, bytes of one key, and bytes of a text as its value.
inline constexpr std::size_t max_client_keys = 1000;
inline constexpr std::size_t max_client_key = 256;
inline constexpr std::size_t max_client_value = std::size_t{64} << 10;
/// Groups of a client at most, and bytes of a group's name.
inline constexpr std::size_t max_client_groups = 100;
inline constexpr std::size_t max_group_name = 256;
/// Datagrams of a client that wait for a callback of it, at most; further ones are dropped.
inline constexpr std::size_t max_waiting_messages = 64;

/// Decision of on_websocket about a request for a WebSocket.
struct websocket_verdict {
    int status = 0;             ///< of a refusal; 0: accepted
    std::string reason = {};    ///< in the refusal's text
    std::string protocol = {};  ///< the subprotocol; empty: none
};

class client_route;

/// A client as the script knows it. It lives until its on_disconnect has ended.
struct script_client {
    explicit script_client(std::uint64_t number) noexcept : id(number) { idle.set(); }

    const std::uint64_t id;
    void* peer = nullptr;      ///< the transport's; null once it has gone
    bool is_admitted = false;  ///< on_auth has ended, so it gets what is for all
    bool is_busy = false;      ///< a callback of it has not ended
    bool is_refused = false;
    bool is_dismissed = false;  ///< the script has disconnected it; of datagrams
    bool is_leaving = false;    ///< its on_disconnect has begun
    event idle;                 ///< set while it is not busy

    std::map<std::string, script::value, std::less<>> data;
    std::set<std::string, std::less<>> groups;
    std::shared_ptr<client_route> route = nullptr;  ///< its messages go there
    std::uint64_t pipe = 0;                         ///< or to that client
    std::vector<std::string> waiting;               ///< messages: see max_waiting_messages
    std::size_t overtaking = 0;                     ///< messages left: see max_overtaking
    /// Fields of the request that has made it a WebSocket; null for others.
    std::unique_ptr<const http1::header_list> web_fields;

    // The transport's: messages that go out together.
    byte_buffer unsent;
    std::uint32_t unsent_count = 0;
    bool is_dirty = false;
};

/// Messages of a client that are handled after one that was queued behind the calls of others,
/// before those others: as many as a read has. With one at a time the queue never becomes empty
/// under load, and each reply is a send of its own.
inline constexpr std::size_t max_overtaking = 512;

/// Receivers on other loops.
struct script_receivers {
    std::vector<std::uint64_t> ids = {};
    std::string group = {};    ///< the members, if there are no ids
    bool disconnects = false;  ///< they are closed, and get nothing
};

class upstreams;
struct upstream_event;

/// Way to the clients of one loop, and to other loops. One loop's thread.
class script_transport {
public:
    /// Queues a message; what is queued goes out at the end of the loop's turn at the latest. False
    /// when the client has gone, or reads too slowly.
    virtual bool send(script_client& to, std::string_view text) = 0;
    /// To all clients of all loops. False when other loops are too far behind.
    virtual bool send_to_all(std::string_view text) = 0;
    /// To some clients of this loop: it is encoded once. Returns how many took it.
    virtual std::size_t send_to_each(const std::vector<script_client*>& to,
                                     std::string_view text) = 0;
    /// To clients of other loops, if there are any. False as send_to_all().
    virtual bool send_elsewhere(script_receivers to, std::string_view text) = 0;
    virtual bool has_other_loops() const noexcept = 0;
    /// True if another loop of this server gives its clients such numbers.
    virtual bool is_elsewhere(std::uint64_t /*id*/) const noexcept { return false; }
    /// Flushes what was sent to the client, and closes it.
    virtual void disconnect(script_client& of) = 0;
    /// on_auth or on_connect has refused the client: closes it, with the reason if there is one.
    virtual void refuse(script_client& of, std::string_view reason) = 0;
    /// on_master_auth has decided about a claim of the client's.
    virtual void decide_claim(script_client& of, bool is_granted) = 0;
    virtual std::string ip_of(const script_client& of) const = 0;
    /// Clients of all loops.
    virtual std::uint64_t connections() const = 0;
    virtual std::size_t max_message() const = 0;
    /// Null without servers of --upstream.
    virtual upstreams* upstream_links() const noexcept { return nullptr; }

protected:
    ~script_transport() = default;
};

/// Names of a server for its script.
struct script_identity {
    std::string name;
    std::uint16_t port = 0;
    std::string_view protocol = "tcp";
    std::shared_ptr<host> daemon = nullptr;
};

/// One loop's thread, but for what says otherwise.
class server_script {
public:
    /// Fails in a program without scripts. `lines` and `to` outlive it.
    static outcome<std::unique_ptr<server_script>> make(const script_config& from,
                                                        script_identity identity,
                                                        serving::journal& lines,
                                                        script_transport& to);
    virtual ~server_script() = default;

    /// Loads the script, and runs on_start(); their failure is the start's.
    virtual task<outcome<>> start() = 0;
    virtual task<outcome<>> replace(script_file by) = 0;
    /// The same in two steps: see loop_script.
    virtual task<outcome<>> prepare(script_file by) = 0;
    virtual void adopt() = 0;
    virtual void discard() = 0;
    /// on_stop(), for at most `limit`.
    virtual task<void> stop(duration limit) = 0;
    /// After all clients have left: the end of their callbacks, within `limit`.
    virtual task<void> end(duration limit) = 0;

    /// True if the script decides about the client's messages, or has routed them.
    virtual bool takes_messages_of(const script_client& of) const noexcept = 0;
    /// A client has come. It lives until leave().
    virtual script_client& enter(std::uint64_t id, void* peer) = 0;
    /// Runs on_auth and on_connect.
    virtual void connect(script_client& of) = 0;
    /// A message; the client is not busy. True when its callbacks have ended.
    virtual bool message(script_client& of, std::string_view text) = 0;
    /// The same, also where it is busy: the message waits then. False when too many do.
    virtual bool message_later(script_client& of, std::string_view text) = 0;
    /// The client has gone.
    virtual void leave(script_client& of) noexcept = 0;

    /// Runs the callback for an event of --upstream to its end. False without one.
    virtual task<bool> upstream(upstream_event what) = 0;
    /// True if the script decides about claims of the master.
    virtual bool judges_claims() const noexcept = 0;
    /// A claim with that password; the client is not busy. True when it has been decided.
    virtual bool claim(script_client& of, std::string_view password) = 0;

    /// True if the script decides about texts of `eddy send`.
    virtual bool takes_sends() const noexcept = 0;
    /// See ask_on_send().
    virtual task<outcome<std::optional<std::string>>> send(std::string text) = 0;

    /// True if the script decides about requests for a WebSocket.
    virtual bool judges_websockets() const noexcept = 0;
    /// Runs on_websocket for a client, which may leave meanwhile.
    virtual task<websocket_verdict> judge(script_client& of,
                                          const eddy::http::request& incoming) = 0;

    /// True if the script answers requests of HTTP.
    virtual bool takes_requests() const noexcept = 0;
    /// See answer_by().
    virtual task<std::optional<eddy::http::response>> answer(eddy::http::request& incoming) = 0;

    /// See coroutine_host::is_round_over().
    virtual bool is_round_over() const noexcept = 0;

    /// The clients here that the script of another loop has named.
    virtual std::vector<script_client*> find(const script_receivers& which) = 0;

    /// Any thread.
    virtual const script_tallies& counted() const noexcept = 0;
};

/// Loads the script as a trial, with the same errors.
outcome<> try_server_script(const script_config& from);
/// The same in slices, between which other work of the loop runs.
task<outcome<>> try_server_script_in_slices(script_config from);
/// Fields of the table `self` of scripts; none in a build without them.
std::vector<std::string> server_functions();

}  // namespace eddy::runtime::server
