// Metrics of a stream runtime that the supervisor of several knows, too.
#pragma once

#include "runtime/metrics.hpp"

namespace eddy::runtime::stream {

inline constexpr metric peak_streams_metric{.name = "peak_streams",
                                            .kind = metric_kind::gauge,
                                            .help = "Most streams at a time since the start."};
inline constexpr metric stream_errors_total{
    .name = "stream_errors_total",
    .kind = metric_kind::counter,
    .help = "Streams that ended before their end, by reason.",
    .labels = {"reason"}};

}  // namespace eddy::runtime::stream
