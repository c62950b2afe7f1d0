// The page /metrics in Prometheus's text format.
#pragma once

#include <eddy/base/histogram.hpp>
#include <eddy/io/timer.hpp>

#include "daemon/runtimes/runtime_registry.hpp"
#include "runtime/metrics.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace eddy::daemon {

inline constexpr std::string_view metrics_content_type = "text/plain; version=0.0.4; charset=utf-8";

/// Counters of the daemon itself.
struct daemon_counters {
    /// Answers of the control API by the first digit of their status.
    std::array<std::uint64_t, 6> answers{};
    histogram answer_time;  ///< nanoseconds
    std::uint64_t connections = 0;
    std::uint64_t connections_refused = 0;
};

/// Facts about the daemon. Constant while it runs, but for `ready`.
struct daemon_facts {
    std::string name;
    std::string version;
    std::string socket;
    std::string state;
    std::string io_backend;
    std::size_t loops = 0;
    time_point started_at{};
    bool ready = false;  ///< all that ran before has started or failed
};

/// Use of this process since its start.
double cpu_seconds();
std::uint64_t resident_bytes();

/// Writes the page. Call runtime_lifecycle::refresh() before.
std::string render_metrics(const runtime_registry& runtimes, const daemon_facts& facts,
                           const daemon_counters& counted);

/// Writes the page of a program that runs one stream runtime alone, with the names that such
/// programs use: "daemon_" and a name without labels of ours.
std::string render_stream_metrics(const runtime::metrics& counted);

/// The name of a metric on that page.
std::string stream_metric_name(const runtime::metric& of);

/// The value of a label with what the format reserves escaped.
std::string escape_label(std::string_view value);

/// Appends the head of a family, whose samples follow; `help` is escaped.
void write_family_head(std::string& to, std::string_view name, std::string_view kind,
                       std::string_view help);

}  // namespace eddy::daemon
