// Load on one server: connections spread over threads, batches of requests in a closed or an open
// loop, latencies, errors by kind. The protocol is a conversation's.
//
// Closed loop: each connection sends its pipeline, awaits the replies, and sends the next one. A
// latency is the time from the send. A server that stalls is asked less meanwhile, so the closed
// loop hides what the stall would have cost others (coordinated omission).
//
// Open loop (--rate): requests are planned at fixed times, spread evenly over the connections. A
// latency is the time from the plan, so a request that could not be sent in time because earlier
// ones had no reply counts with its wait. Connections times pipeline bound what is under way.
#pragma once

#include <eddy/base/histogram.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/transport/transport.hpp>

#include "cli/bench/measure.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace eddy::cli::bench {

/// Kinds of errors.
enum class fault : unsigned char {
    connect,    ///< no connection, or the WebSocket was refused
    timeout,    ///< no byte for --timeout
    closed,     ///< the connection ended before the reply did
    malformed,  ///< against the protocol
    status,     ///< not the expected status: 4xx and 5xx, unless --expect-status allows it
    content,    ///< a reply that differs from the first one
};
inline constexpr std::array<std::string_view, 6> fault_names = {"connect",   "timeout", "closed",
                                                                "malformed", "status",  "content"};

/// Counters of a load. One thread.
struct tally {
    std::uint64_t replies = 0;     ///< whole ones, wrong ones included
    std::uint64_t bytes = 0;       ///< received, decrypted
    std::uint64_t reconnects = 0;  ///< after the server had closed in good order
    std::uint64_t unsent = 0;      ///< planned by the open loop, and not sent before the end
    std::array<std::uint64_t, 6> statuses{};  ///< by the status's first digit
    std::array<std::uint64_t, fault_names.size()> faults{};
    std::string first_fault;
    histogram latency;  ///< ns

    /// `what` is kept of the first one.
    void count(fault kind, std::string_view what, std::uint64_t times = 1);
    /// Errors of all kinds.
    std::uint64_t errors() const noexcept;
    void merge_faults(const tally& other);
    void merge(const tally& other);
};

/// Outcome of a scan of received bytes.
struct scan_result {
    enum class state : unsigned char {
        open,    ///< the connection stays open
        closes,  ///< the server closes it behind the last of these replies
        broken,  ///< the connection is unusable; the fault has been counted
    };
    std::size_t replies = 0;
    state then = state::open;
};

/// One connection's side of a protocol, without I/O. One thread.
class conversation {
public:
    virtual ~conversation() = default;
    /// A new connection: forgets the last one. Yields the bytes to send before the first request;
    /// is_open() follows their answer. Empty if there are none.
    virtual std::string_view open() = 0;
    virtual bool is_open() const noexcept = 0;
    /// `count` requests, at most the pipeline. Valid as long as the conversation.
    virtual std::string_view requests(std::size_t count) = 0;
    /// Scans all of `received`, in which up to `awaited` replies may come.
    virtual scan_result scan(std::string_view received, std::size_t awaited, tally& into) = 0;
    /// The server has ended its bytes, which may complete a reply.
    virtual scan_result finish(tally&) { return {}; }
    /// Bytes to send before the next requests, taken: pongs.
    virtual std::string take_answers() { return {}; }
};

/// Makes conversations; what the first pass has learned is shared by all that come after it.
class protocol {
public:
    virtual ~protocol() = default;
    /// Conversation of the first pass: its first reply is the reference for all others.
    virtual std::unique_ptr<conversation> make_first() = 0;
    /// After the first pass. Any thread, and the protocol must outlive it.
    virtual std::unique_ptr<conversation> make() const = 0;
};

struct load_options {
    transport::address server;
    std::size_t connections = 50;
    std::size_t threads = 1;
    std::size_t pipeline = 1;
    double rate = 0;             ///< requests a second of all connections; 0: closed loop
    std::uint64_t requests = 0;  ///< to send once warm; 0: as many as fit in `seconds`
    double seconds = 10;
    double warm_up = 1;  ///< seconds
    int timeout_s = 10;
    bool closes = false;  ///< a connection for each batch
    int server_pid = 0;
    io_backend_kind io_backend = io_backend_kind::automatic;
};

struct load_result {
    tally counts;
    double seconds = 0;        ///< from the end of the warm-up to the last reply
    double generator_cpu = 0;  ///< cores
    double server_cpu = 0;     ///< cores; 0 without a server_pid
};

/// Runs the first pass, which checks two replies and a pipeline of them, and then the load. Gives
/// up when there is a fault in the first pass.
load_result run_load(const load_options& wanted, protocol& speaks, progress_line& progress);

}  // namespace eddy::cli::bench
