// Counters and gauges of a script's own: named numbers that outlive a version of the script.
#pragma once

#include "runtime/metrics.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::runtime {

/// Counters and gauges of one state, together, at most, and bytes of a name.
inline constexpr std::size_t max_script_meters = 100;
inline constexpr std::size_t max_meter_name = 64;

inline constexpr metric script_counter_total{.name = "script_counter_total",
                                             .kind = metric_kind::counter,
                                             .help = "Counters of the script's own, by name.",
                                             .labels = {"name"}};
inline constexpr metric script_gauge{.name = "script_gauge",
                                     .kind = metric_kind::gauge,
                                     .help = "Gauges of the script's own, by name.",
                                     .labels = {"name"}};

/// One loop's thread changes them, any may read.
class script_meters {
public:
    enum class kind : std::uint8_t { counter, gauge };
    /// Its value. One loop's thread changes it.
    class meter {
    public:
        explicit meter(kind of) noexcept : is_(of) {}
        kind is() const noexcept { return is_; }
        double value() const noexcept { return value_.load(std::memory_order_relaxed); }
        void set(double to) noexcept { value_.store(to, std::memory_order_relaxed); }

    private:
        const kind is_;
        std::atomic<double> value_{0};
    };

    script_meters() = default;
    script_meters(const script_meters& other) { add(other); }
    script_meters& operator=(const script_meters&) = delete;

    /// Valid as long as this object, but for forget_gauges(). Null at max_script_meters, or where
    /// there is one of the other kind.
    meter* at(std::string_view name, kind of) {
        const std::lock_guard lock(mutex_);
        auto found = all_.find(name);
        if (found == all_.end()) {
            if (all_.size() >= max_script_meters) return nullptr;
            found = all_.try_emplace(std::string(name), of).first;
        }
        return found->second.is() == of ? &found->second : nullptr;
    }
    /// Kind of the one of that name, if there is one.
    bool has(std::string_view name) const {
        const std::lock_guard lock(mutex_);
        return all_.contains(name);
    }
    /// Adds the values of another loop's.
    void add(const script_meters& part) {
        const std::scoped_lock lock(mutex_, part.mutex_);
        for (const auto& [name, of] : part.all_) {
            meter& sum = all_.try_emplace(name, of.is()).first->second;
            if (sum.is() == of.is()) sum.set(sum.value() + of.value());
        }
    }
    /// For the sum of loops that have ended.
    void forget_gauges() noexcept {
        const std::lock_guard lock(mutex_);
        std::erase_if(all_, [](const auto& each) { return each.second.is() == kind::gauge; });
    }
    void add_samples_to(metrics& to) const {
        const std::lock_guard lock(mutex_);
        for (const auto& [name, of] : all_)
            to.samples.push_back({of.is() == kind::counter ? &script_counter_total : &script_gauge,
                                  {name},
                                  of.value()});
    }

private:
    mutable std::mutex mutex_;
    std::map<std::string, meter, std::less<>> all_;
};

}  // namespace eddy::runtime
