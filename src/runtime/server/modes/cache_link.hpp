// Cache link: one loop's connections to the cache runtime of --cache, for commands of clients.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/result.hpp>
#include <eddy/io/semaphore.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "base/problem.hpp"
#include "runtime/host/host.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace eddy::runtime::server {

/// Connections to the cache that one loop has at a time; clients beyond them wait for their turn.
inline constexpr std::size_t max_cache_connections = 16;
/// Commands of one client that are sent before the first reply is read; their replies are kept
/// until the client takes them.
inline constexpr std::size_t max_cache_batch = 16;
/// Limit of a connect and of the replies to a batch, and life of a connection that is not used: a
/// cache that was restarted meanwhile would be noticed by an error only.
inline constexpr duration cache_patience = std::chrono::seconds(5);
inline constexpr duration unused_cache_time = std::chrono::seconds(1);

/// One loop's thread. It must outlive its run().
class cache_link {
public:
    /// `daemon` finds the cache and outlives this object. A reply has at most `most_reply` bytes.
    /// `self` is the server's own name.
    cache_link(host& daemon, std::string self, std::size_t most_reply) noexcept
        : daemon_(daemon), self_(std::move(self)), most_reply_(most_reply) {}

    /// The cache by its name or id. Commands under way end at the one before.
    void set_cache(const std::string& name);

    /// Runs the lines of at most max_cache_batch commands, without their `cache `, one after the
    /// other, and appends a reply for each to `out`, as lines: an error, too, is a reply. Fails
    /// with errc::cancelled alone. Throws std::bad_alloc.
    task<result<>> run(std::vector<std::string> commands, byte_buffer& out);

    /// Commands so far, and those of them that no cache has answered. Any thread.
    std::uint64_t commands() const noexcept { return commands_.load(std::memory_order_relaxed); }
    std::uint64_t failures() const noexcept { return failures_.load(std::memory_order_relaxed); }

private:
    struct connection {
        stream socket;
        byte_buffer received;
        time_point used_at;
        std::uint64_t generation = 0;
    };
    struct batch {
        byte_buffer requests;
        std::vector<std::string> refusals;  // of each command; empty: it is among the requests
        std::size_t answered = 0;           // commands with a reply in the client's output
        std::size_t unanswered_requests = 0;
    };

    batch encode(const std::vector<std::string>& commands) const;
    task<result<>> exchange(std::unique_ptr<connection> over, batch& what, byte_buffer& out);
    task<result<std::unique_ptr<connection>>> connect(std::string& fault);
    std::unique_ptr<connection> take_unused();
    void keep(std::unique_ptr<connection> unused);
    outcome<transport::address> find() const;
    void answer_refusals(batch& what, byte_buffer& out) const;

    host& daemon_;
    const std::string self_;
    const std::size_t most_reply_;
    std::string name_;
    std::uint64_t generation_ = 0;  // of the name
    semaphore places_{max_cache_connections};
    std::vector<std::unique_ptr<connection>> unused_;  // the last used one last
    std::atomic<std::uint64_t> commands_{0};
    std::atomic<std::uint64_t> failures_{0};
};

}  // namespace eddy::runtime::server
