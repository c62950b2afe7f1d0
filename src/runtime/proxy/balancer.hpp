// Balancer: the backends of a proxy, their counters, and the choice of one for a new client.
#pragma once

#include <eddy/io/endpoint.hpp>
#include <eddy/transport/transport.hpp>

#include "runtime/metrics.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace eddy::runtime::proxy {

/// Backends of a proxy at most. metrics.hpp counts up to max_label_sets of them apart.
inline constexpr std::size_t max_backends = 64;
static_assert(max_backends <= max_label_sets);

enum class strategy : std::uint8_t {
    round_robin,        ///< one after another
    least_connections,  ///< that with the fewest; among those with as many, one after another
};

/// Counters of one worker for a backend: its loop changes them, any thread reads them. A cache line
/// of their own, as workers on other threads count beside them.
struct alignas(64) backend_counters {
    serving::tally connections;  ///< made
    serving::tally failures;     ///< to connect
    serving::tally bytes_sent;   ///< to the backend
    serving::tally bytes_received;
};

/// A backend. Any thread.
class backend {
public:
    /// Counted by so many workers.
    backend(transport::address where, std::size_t workers);

    const transport::address& where() const noexcept { return where_; }
    /// Its URI.
    const std::string& name() const noexcept { return name_; }
    /// Its socket address, where that is known without a look-up: connecting is cheaper then.
    const std::optional<endpoint>& numeric() const noexcept { return numeric_; }

    /// Connections of all workers, including the ones that are being made.
    std::uint64_t open() const noexcept { return open_.load(std::memory_order_relaxed); }
    void enter() noexcept { open_.fetch_add(1, std::memory_order_relaxed); }
    void leave() noexcept { open_.fetch_sub(1, std::memory_order_relaxed); }

    /// Counters of a worker, by worker_place::index.
    backend_counters& counted_by(std::size_t worker) noexcept { return counted_.at(worker); }
    /// The sum of one of them.
    std::uint64_t sum(serving::tally backend_counters::* of) const noexcept;
    std::size_t workers() const noexcept { return counted_.size(); }

private:
    const transport::address where_;
    const std::string name_;
    std::optional<endpoint> numeric_;
    std::atomic<std::uint64_t> open_{0};
    std::vector<backend_counters> counted_;
};

using backend_list = std::vector<std::shared_ptr<backend>>;

/// The backends in force and their order for a client. Workers share it. Any thread.
class balancer {
public:
    /// 1 to max_backends.
    balancer(strategy chosen, backend_list all);

    /// Order of the backends for one client, each of them once. It must not outlive the balancer.
    class selection {
    public:
        explicit selection(balancer& from) noexcept;
        /// The next one to try; null after the last.
        std::shared_ptr<backend> next() noexcept;

    private:
        std::size_t next_in_ring() const noexcept;
        std::size_t next_by_count() const noexcept;
        bool is_tried(std::size_t index) const noexcept { return (tried_ >> index & 1) != 0; }

        balancer& from_;
        std::size_t start_;
        std::uint64_t tried_ = 0;  // a bit for each
        std::size_t tries_ = 0;
    };
    selection select() noexcept { return selection(*this); }

    const backend_list& all() const noexcept { return all_; }

private:
    const strategy chosen_;
    const backend_list all_;
    std::atomic<std::uint64_t> turns_{0};
};

/// The backends at these addresses: those of `known` where it has them, with their counts, else new
/// ones that are counted by so many workers.
backend_list update_backends(const backend_list& known,
                             const std::vector<transport::address>& wanted, std::size_t workers);

/// A connection to a backend counts as long as this lives. One loop's thread.
class backend_use {
public:
    backend_use() noexcept = default;
    explicit backend_use(std::shared_ptr<backend> of) noexcept : of_(std::move(of)) {
        of_->enter();
    }
    backend_use(backend_use&& other) noexcept = default;
    backend_use& operator=(backend_use&& other) noexcept {
        // The argument, which dies here, ends what this was.
        std::swap(of_, other.of_);
        return *this;
    }
    ~backend_use() {
        if (of_) of_->leave();
    }
    backend& operator*() const noexcept { return *of_; }
    backend* operator->() const noexcept { return of_.get(); }

private:
    std::shared_ptr<backend> of_;
};

}  // namespace eddy::runtime::proxy
