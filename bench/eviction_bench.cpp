// Hit rates of a full cache by policy: the engine's, and models of rejected ones
// (docs/adr/0017-eviction-by-a-queue-and-a-clock.md). In the process, without sockets; run_hits.py
// compares whole servers.
//
//   eviction [keys] [room] [requests] [rounds]      default: 200000 20000 400000 6
//
// A key is requested, and stored when it is missing; the last three quarters of the requests count.
// The models have room for `room` keys. The engine has the memory that so many keys take without a
// policy: the number that it holds in the end, after its queue and tables, stands in brackets.
#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/random.hpp>
#include <eddy/wire/resp/request.hpp>

#include "cache/engine/engine.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace {

using eddy::random_generator;
using requests = std::vector<std::uint32_t>;

// --- The requests, as in run_hits.py -------------------------------------------------------------

class zipf {
public:
    zipf(std::uint32_t keys, double exponent) {
        double sum = 0;
        for (std::uint32_t rank = 1; rank <= keys; ++rank) {
            sum += std::pow(rank, -exponent);
            sums_.push_back(sum);
        }
    }
    std::uint32_t draw(random_generator& random) const {
        constexpr std::uint64_t parts = std::uint64_t{1} << 53;
        const double at =
            sums_.back() * static_cast<double>(random.below(parts)) / static_cast<double>(parts);
        return static_cast<std::uint32_t>(std::ranges::upper_bound(sums_, at) - sums_.begin());
    }

private:
    std::vector<double> sums_;
};

requests by_law(random_generator& random, std::uint32_t keys, std::size_t count, double exponent) {
    const zipf law(keys, exponent);
    requests made(count);
    for (std::uint32_t& each : made) each = law.draw(random);
    return made;
}

/// For a quarter of the time, in ten pieces, keys in order that are never requested again.
requests with_scans(random_generator& random, std::uint32_t keys, std::size_t count) {
    requests made = by_law(random, keys, count, 1.0);
    const std::size_t period = std::max<std::size_t>(count / 40, 1);
    std::uint32_t fresh = keys;
    for (std::size_t begin = 3 * period; begin < count; begin += 4 * period) {
        for (std::size_t i = begin; i < std::min(begin + period, count); ++i) made[i] = fresh++;
    }
    return made;
}

/// At each eighth of the requests other keys become the popular ones.
requests with_changes(random_generator& random, std::uint32_t keys, std::size_t count) {
    requests made = by_law(random, keys, count, 1.0);
    for (std::size_t i = 0; i < count; ++i) {
        const auto shift = static_cast<std::uint32_t>(i * 8 / count * (keys / 8));
        made[i] = (made[i] + shift) % keys;
    }
    return made;
}

struct load {
    const char* name;
    std::function<requests(random_generator&, std::uint32_t, std::size_t)> make;
};

const std::array<load, 5> loads{{
    {"Zipf 0.8", [](auto& r, auto keys, auto n) { return by_law(r, keys, n, 0.8); }},
    {"Zipf 1.0", [](auto& r, auto keys, auto n) { return by_law(r, keys, n, 1.0); }},
    {"Zipf 1.2", [](auto& r, auto keys, auto n) { return by_law(r, keys, n, 1.2); }},
    {"Zipf 1.0 and scans", with_scans},
    {"Zipf 1.0, changing", with_changes},
}};

// --- The caches ----------------------------------------------------------------------------------

class cache {
public:
    virtual ~cache() = default;
    /// Requests a key, which is stored when it is missing; true for a hit.
    virtual bool ask(std::uint32_t key) = 0;
    virtual std::size_t size() = 0;
};

/// Least recently used, exactly.
class lru final : public cache {
public:
    explicit lru(std::size_t room) : room_(room) {}
    bool ask(std::uint32_t key) override {
        const auto found = places_.find(key);
        if (found != places_.end()) {
            order_.splice(order_.begin(), order_, found->second);
            return true;
        }
        if (places_.size() == room_) {
            places_.erase(order_.back());
            order_.pop_back();
        }
        order_.push_front(key);
        places_.emplace(key, order_.begin());
        return false;
    }
    std::size_t size() override { return places_.size(); }

private:
    std::size_t room_;
    std::list<std::uint32_t> order_;  // the newest use first
    std::unordered_map<std::uint32_t, std::list<std::uint32_t>::iterator> places_;
};

/// SIEVE (NSDI 2024): in the order in which keys came, the newest first, with a bit for "was used".
/// A hand goes from the oldest to the newest, takes the bits that it finds, and removes the first
/// key without one.
class sieve final : public cache {
public:
    explicit sieve(std::size_t room) : room_(room) {}
    bool ask(std::uint32_t key) override {
        const auto found = places_.find(key);
        if (found != places_.end()) {
            found->second->used = true;
            return true;
        }
        if (places_.size() == room_) evict();
        order_.push_front({key, false});
        places_.emplace(key, order_.begin());
        return false;
    }
    std::size_t size() override { return places_.size(); }

private:
    struct node {
        std::uint32_t key;
        bool used;
    };
    void evict() {
        auto at = has_hand_ ? hand_ : std::prev(order_.end());
        while (at->used) {
            at->used = false;
            at = at == order_.begin() ? std::prev(order_.end()) : std::prev(at);
        }
        has_hand_ = at != order_.begin();
        if (has_hand_) hand_ = std::prev(at);
        places_.erase(at->key);
        order_.erase(at);
    }

    std::size_t room_;
    std::list<node> order_;
    std::list<node>::iterator hand_;
    bool has_hand_ = false;
    std::unordered_map<std::uint32_t, std::list<node>::iterator> places_;
};

/// The engine itself: requests by GET, stores by SET.
class engine final : public cache {
public:
    explicit engine(eddy::cache::engine_options options) : home_(options), client_(home_) {}

    bool ask(std::uint32_t key) override {
        char name[17];
        std::snprintf(name, sizeof name, "key:%012u", key);
        if (run({"GET", name})[1] != '-') return true;
        set(name);
        return false;
    }
    std::size_t size() override { return std::strtoull(run({"DBSIZE"}).data() + 1, nullptr, 10); }

    /// Memory that `room` keys take without a policy.
    static std::size_t memory_of(std::size_t room) {
        engine filled{eddy::cache::engine_options{}};
        for (std::size_t i = 0; i < room; ++i) filled.ask(static_cast<std::uint32_t>(i));
        return filled.home_.stats().used_memory;
    }

private:
    void set(const char* name) {
        static const std::string value(32, 'v');
        run({"SET", name, value});
    }
    std::string_view run(std::initializer_list<std::string_view> words) {
        const eddy::resp::command one{words.begin(), words.size()};
        out_.clear();
        home_.execute(client_, {&one, 1}, out_);
        return out_.text();
    }

    eddy::cache::engine home_;
    eddy::cache::client_session client_;
    eddy::byte_buffer out_;
};

struct policy {
    const char* name;
    std::function<std::unique_ptr<cache>(std::size_t room, std::size_t memory)> make;
    bool has_room =
        false;  // it gets as much memory as it needs for as many keys as the models have
};

policy of_engine(const char* name, eddy::cache::eviction chosen, bool has_room = false) {
    return {name,
            [chosen](std::size_t, std::size_t memory) {
                eddy::cache::engine_options options;
                options.max_memory = memory;
                options.policy = chosen;
                return std::make_unique<engine>(options);
            },
            has_room};
}

struct outcome {
    double hit_rate;  // in percent
    std::size_t keys;
};

outcome run(cache& with, const requests& asked) {
    std::size_t hits = 0;
    const std::size_t warm = asked.size() / 4;
    for (std::size_t i = 0; i < asked.size(); ++i) hits += with.ask(asked[i]) && i >= warm ? 1 : 0;
    return {100.0 * static_cast<double>(hits) / static_cast<double>(asked.size() - warm),
            with.size()};
}

}  // namespace

int main(int argc, char** argv) {
    const auto number = [&](int at, std::size_t usual) {
        return argc > at ? std::strtoull(argv[at], nullptr, 10) : usual;
    };
    const auto keys = static_cast<std::uint32_t>(number(1, 200'000));
    const std::size_t room = number(2, 20'000);
    const std::size_t count = number(3, 400'000);
    const std::size_t rounds = number(4, 6);
    const std::size_t memory = engine::memory_of(room);
    // Two pointers a key keep an order in which any key may be removed.
    const std::size_t with_links = room * memory / (memory + 2 * sizeof(void*) * room);

    using eddy::cache::eviction;
    const std::array<policy, 7> policies{{
        {"LRU", [](std::size_t n, std::size_t) { return std::make_unique<lru>(n); }},
        {"SIEVE", [](std::size_t n, std::size_t) { return std::make_unique<sieve>(n); }},
        {"SIEVE, same memory",
         [&](std::size_t, std::size_t) { return std::make_unique<sieve>(with_links); }},
        of_engine("allkeys-lru, same keys", eviction::allkeys_lru, true),
        of_engine("allkeys-lru", eviction::allkeys_lru),
        of_engine("allkeys-lfu", eviction::allkeys_lfu),
        of_engine("allkeys-s3fifo", eviction::allkeys_s3fifo),
    }};
    std::printf(
        "%u keys, room for %zu (%zu B, with two pointers a key %zu), %zu requests, %zu rounds: "
        "median (least-greatest) [keys in the end]\n",
        keys, room, memory, with_links, count, rounds);
    for (const load& each : loads) {
        std::printf("%s\n", each.name);
        for (const policy& chosen : policies) {
            std::vector<double> rates;
            std::size_t held = 0;
            std::size_t given = memory;
            for (std::size_t round = 0; round < rounds; ++round) {
                // Each policy has the same requests.
                random_generator random(round + 1);
                const requests asked = each.make(random, keys, count);
                for (int trial = 0; trial < 4 && round == 0 && chosen.has_room; ++trial)
                    given = given * room / run(*chosen.make(room, given), asked).keys;
                const outcome its = run(*chosen.make(room, given), asked);
                rates.push_back(its.hit_rate);
                held = its.keys;
            }
            std::ranges::sort(rates);
            std::printf("  %-24s %5.1f %% (%.1f-%.1f) [%zu]\n", chosen.name,
                        (rates[(rates.size() - 1) / 2] + rates[rates.size() / 2]) / 2,
                        rates.front(), rates.back(), held);
            std::fflush(stdout);
        }
    }
    return 0;
}
