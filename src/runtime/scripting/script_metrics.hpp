// Metrics of scripts, the same for every type.
#pragma once

#include "runtime/metrics.hpp"
#include "runtime/scripting/script_limits.hpp"
#include "runtime/scripting/script_meters.hpp"
#include "script/failure_reasons.hpp"
#include "serving/counters.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace eddy::runtime {

inline constexpr metric script_calls_total{.name = "script_calls_total",
                                           .kind = metric_kind::counter,
                                           .help = "Calls of the script's callbacks that ended."};
inline constexpr metric script_errors_total{.name = "script_errors_total",
                                            .kind = metric_kind::counter,
                                            .help = "Calls of the script that failed, by reason.",
                                            .labels = {"reason"}};
inline constexpr metric script_calls{.name = "script_calls",
                                     .kind = metric_kind::gauge,
                                     .help = "Calls of the script that are under way."};
inline constexpr metric script_memory_bytes{.name = "script_memory_bytes",
                                            .kind = metric_kind::gauge,
                                            .help = "Memory of the script's values."};
inline constexpr metric script_reloads_total{
    .name = "script_reloads_total",
    .kind = metric_kind::counter,
    .help = "Times that the script was loaded again, on each thread."};

inline constexpr metric script_published_total{.name = "script_published_total",
                                               .kind = metric_kind::counter,
                                               .help = "Messages that the script has published."};
inline constexpr metric script_received_total{
    .name = "script_received_total",
    .kind = metric_kind::counter,
    .help = "Messages that the script's subscriptions have got."};
inline constexpr metric script_missed_total{
    .name = "script_missed_total",
    .kind = metric_kind::counter,
    .help = "Messages that found the queue of a subscription of the script full."};

/// Counts of one loop: its thread changes them, any may read.
struct script_tallies {
    static constexpr std::array<std::string_view, 4> reasons = {
        script::script_failed, script::script_too_long, script::script_killed, script::no_memory};

    serving::tally calls;
    std::array<serving::tally, reasons.size()> errors;
    serving::tally under_way;
    serving::tally memory;
    serving::tally reloads;
    serving::tally published;
    serving::tally received;
    serving::tally missed;
    serving::tally errors_in_a_row;  ///< since a call has returned, or the script was loaded
    script_meters own;

    void note_error(std::string_view reason) noexcept {
        ++errors_in_a_row;
        for (std::size_t i = 0; i < reasons.size(); ++i)
            if (reasons[i] == reason) ++errors[i];
    }
    void add(const script_tallies& part) noexcept {
        calls += part.calls;
        for (std::size_t i = 0; i < reasons.size(); ++i) errors[i] += part.errors[i];
        under_way += part.under_way;
        memory += part.memory;
        reloads += part.reloads;
        errors_in_a_row = std::max(errors_in_a_row.value(), part.errors_in_a_row.value());
        published += part.published;
        received += part.received;
        missed += part.missed;
        own.add(part.own);
    }
    /// Lack of a runtime whose script only fails, see instance::fault(); else empty.
    std::string fault(std::string_view runtime) const {
        if (errors_in_a_row < script_errors_until_degraded) return {};
        return "the last " + std::to_string(script_errors_until_degraded) +
               " calls of its script failed, or more: `eddy logs " + std::string(runtime) +
               "` has the errors";
    }
    /// For the sum of loops that have ended.
    void forget_gauges() noexcept {
        under_way = 0;
        memory = 0;
        errors_in_a_row = 0;
        own.forget_gauges();
    }
    void add_samples_to(metrics& to) const {
        to.add_sample(script_calls_total, static_cast<double>(calls.value()));
        to.add_sample(script_calls, static_cast<double>(under_way.value()));
        to.add_sample(script_memory_bytes, static_cast<double>(memory.value()));
        to.add_sample(script_reloads_total, static_cast<double>(reloads.value()));
        to.add_sample(script_published_total, static_cast<double>(published.value()));
        to.add_sample(script_received_total, static_cast<double>(received.value()));
        to.add_sample(script_missed_total, static_cast<double>(missed.value()));
        own.add_samples_to(to);
        for (std::size_t i = 0; i < reasons.size(); ++i)
            to.samples.push_back({&script_errors_total,
                                  {std::string(reasons[i])},
                                  static_cast<double>(errors[i].value())});
    }
};

}  // namespace eddy::runtime
