// Balancer: the choice of a backend for a new client, or for a request.
#pragma once

#include <eddy/base/random.hpp>
#include <eddy/io/timer.hpp>

#include "proxy/backend.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::proxy {

/// Strategies of choosing. All of them leave out backends that take no clients, and the ones that
/// have been tried for the same client.
enum class strategy : std::uint8_t {
    round_robin,        ///< one after another, by weight, spread evenly
    random,             ///< by weight
    least_connections,  ///< the fewest open ones a weight; among equal ones, one after another
    two_choices,        ///< the one with fewer open ones of two random ones
    hash,               ///< the same key has the same backend, see selection_key
};

/// Backend of a balancer.
struct balanced_backend {
    std::shared_ptr<backend> its;
    std::uint32_t weight = 1;  ///< 1 to max_weight
    bool is_backup = false;    ///< chosen only while no other takes clients
    /// Clients that it has stay when it is wanted no more.
    bool keeps_clients = true;
};
inline constexpr std::uint32_t max_weight = 100;

using backend_list = std::vector<balanced_backend>;

/// Facts of a client by which a backend is chosen.
struct selection_key {
    std::uint64_t hash = 0;        ///< of strategy::hash
    std::string_view sticky = {};  ///< id of the backend that it had before; empty: none
};

/// Rules of a balancer.
struct balancing {
    strategy chosen = strategy::round_robin;
    ejection_rules ejection = {};
    /// A backend that takes clients again gets a growing share of them for so long; 0: all at once.
    duration slow_start{};
};

/// Backend that was ejected for its response times.
struct slow_backend {
    std::shared_ptr<backend> its;
    duration median;  ///< of its response times
    duration others;  ///< the median of the other backends'
};

/// The backends in force and their order for a client. Workers share it. Any thread.
class balancer {
public:
    /// 0 to max_backends.
    balancer(const balancing& rules, backend_list all);

    /// Order of the backends for one client, each of them once. It must not outlive the balancer.
    class selection {
    public:
        selection(balancer& from, const selection_key& key) noexcept;
        /// The next one to try, which counts the client from now on; none after the last, and when
        /// no other takes clients.
        backend_use next(time_point now) noexcept;
        /// True if the last one is the one that the client had before.
        bool is_sticky() const noexcept { return is_sticky_; }
        /// Backends that it has yielded.
        std::size_t tries() const noexcept { return tries_; }

    private:
        balancer& from_;
        const selection_key key_;
        std::uint64_t tried_ = 0;  // a bit for each
        std::size_t start_ = 0;    // in the schedule
        std::size_t tries_ = 0;
        bool is_sticky_ = false;
    };
    selection select(const selection_key& key = {}) noexcept { return selection(*this, key); }

    const backend_list& all() const noexcept { return all_; }
    const balancing& rules() const noexcept { return rules_; }
    /// True if it uses selection_key::hash.
    bool hashes() const noexcept { return rules_.chosen == strategy::hash; }
    /// Counts a failed client of a backend, which may eject it while other backends take clients.
    /// True if it has.
    bool note_failure(backend& of, time_point now) noexcept;
    /// The same of a response that has broken off.
    bool note_cut(backend& of, time_point now) noexcept;
    /// Records the time to a response of a backend, where rules compare them. At the end of a
    /// window that may eject the slowest one, which is yielded then: while another takes clients,
    /// and at most half of all are ejected (of three one), whatever for.
    std::optional<slow_backend> note_response_time(backend& of, duration took, time_point now);
    /// Counts a served client. True if that ends an ejection.
    static bool note_success(backend& of, time_point now) noexcept { return of.note_success(now); }
    /// True if any backend takes clients.
    bool has_available(time_point now) const noexcept;

private:
    bool has_other(const backend& of, time_point now) const noexcept;
    bool may_eject_slow(const backend& of, time_point now) const noexcept;
    std::optional<slow_backend> find_slow(std::int64_t window) const noexcept;
    std::uint64_t available(std::uint64_t tried, time_point now) const noexcept;
    std::size_t choose(std::uint64_t among, const selection_key& key, std::size_t start) noexcept;
    std::size_t next_scheduled(std::uint64_t among, std::size_t start) noexcept;
    std::size_t by_count(std::uint64_t among, std::size_t start) const noexcept;
    std::size_t by_random(std::uint64_t among) noexcept;
    std::size_t by_hash(std::uint64_t among, std::uint64_t hash) const noexcept;
    std::uint64_t without_slow(std::uint64_t among, time_point now) noexcept;
    double load(std::size_t index) const noexcept;
    std::uint64_t draw(std::uint64_t bound) noexcept;

    struct ring_point {
        std::uint64_t at;
        std::uint8_t index;
    };

    const balancing rules_;
    const backend_list all_;
    std::vector<std::uint8_t> schedule_;      // indices, as often as their weight
    std::vector<ring_point> ring_;            // in the order of `at`; for strategy::hash
    std::atomic<std::int64_t> compared_{-1};  // the last window
    std::atomic<std::uint64_t> turns_{0};
    std::atomic<std::uint64_t> spilled_{0};  // clients whose scheduled backend took none
    std::mutex random_guard_;
    random_generator random_;
};

/// Id of a backend in a cookie: 16 hexadecimal digits, which do not show its address.
std::string sticky_id(std::string_view name);

/// Hash of the bytes of a key, the same in every process.
std::uint64_t hash_key(std::string_view bytes) noexcept;

/// Backend that is wanted.
struct wanted_backend {
    transport::address where;
    std::string name = {};  ///< empty: the URI
    std::uint32_t weight = 1;
    bool is_backup = false;
    bool is_drained = false;
    std::optional<endpoint> at = {};  ///< its address, if it is followed in DNS
    bool keeps_clients = true;        ///< see balanced_backend

    friend bool operator==(const wanted_backend&, const wanted_backend&) = default;
};

/// The wanted backends: those of `known` of the same addresses and name, with their counts and
/// state, else new ones that are counted by so many workers.
backend_list update_backends(const backend_list& known, std::span<const wanted_backend> wanted,
                             std::size_t workers);

}  // namespace eddy::proxy
