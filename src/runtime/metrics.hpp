// Metrics of a runtime: what it counts while it serves, and the typed samples that /metrics and
// `eddy stats` show.
//
// Counting is a plain store to a tally (or a histogram) that the code holds a reference to; a label
// set is looked up once, when its backend, route or peer appears, never for a message. Samples are
// made from these when the daemon asks for them, on the runtime's loop.
#pragma once

#include <eddy/base/histogram.hpp>

#include "serving/counters.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace eddy::runtime {

/// A counter only grows while the instance lives, a gauge goes up and down, a histogram counts
/// values in buckets.
enum class metric_kind : std::uint8_t { counter, gauge, histogram };
std::string_view to_string(metric_kind kind) noexcept;

/// Labels that a metric has at most, beside the runtime's own.
inline constexpr std::size_t max_labels = 3;
/// Label sets of one metric that a runtime counts apart. Further ones count together, as one whose
/// values are `other_label`.
inline constexpr std::size_t max_label_sets = 100;
inline constexpr std::string_view other_label = "other";

/// Description of a metric: a constant that lives as long as the program.
struct metric {
    /// In lower case with underscores, without the prefix "eddy_TYPE_" and with the unit: a counter
    /// ends in "_total", a histogram in "_seconds" (its values are nanoseconds) or "_bytes".
    std::string_view name;
    metric_kind kind;
    std::string_view help;  ///< a sentence
    /// Names of its labels; none of "runtime", "type" and "le". Empty ones come last.
    std::array<std::string_view, max_labels> labels = {};

    std::size_t label_count() const noexcept;
    /// True when it keeps to all of this. Other metrics fail an assertion where they are first
    /// used.
    bool is_valid() const noexcept;
};

/// A metric's value for one label set.
struct metric_sample {
    const metric* of;
    std::vector<std::string> labels;  ///< values, in the order of metric::labels
    std::variant<double, std::shared_ptr<const histogram>> value;
};

/// One tally or histogram for each label set of a metric. The thread of its runtime alone.
template <class T>
class labelled {
    static_assert(std::is_same_v<T, serving::tally> || std::is_same_v<T, histogram>);

public:
    explicit labelled(const metric& of) noexcept : of_(&of) {}

    /// The counter of the label set, made if need be: for keeping, since it takes a look-up. Valid
    /// until erase(). At max_label_sets a new set gets the counter of `other_label`.
    T& at(std::vector<std::string> values) {
        if (const auto found = sets_.find(values); found != sets_.end()) return found->second;
        if (sets_.size() >= max_label_sets) values.assign(values.size(), std::string(other_label));
        return sets_.try_emplace(std::move(values)).first->second;
    }
    /// Drops a set whose subject is gone, such as a backend that was removed.
    void erase(const std::vector<std::string>& values) { sets_.erase(values); }

    const metric& description() const noexcept { return *of_; }
    const std::map<std::vector<std::string>, T>& sets() const noexcept { return sets_; }

private:
    const metric* of_;
    std::map<std::vector<std::string>, T> sets_;
};

/// Metrics of one runtime at one moment.
struct metrics : serving::counters {
    metrics() = default;
    explicit metrics(const serving::counters& counted) : counters(counted) {}

    /// Time from a message's arrival to its answer, in nanoseconds, where the type measures it.
    std::shared_ptr<const histogram> latency;
    /// Samples of the type's own metrics.
    std::vector<metric_sample> samples;

    /// Adds a sample without labels.
    void add_sample(const metric& of, double value);
    void add_sample(const metric& of, std::shared_ptr<const histogram> values);
    /// Adds a sample for each label set; histograms are copied.
    void add_samples(const labelled<serving::tally>& of);
    void add_samples(const labelled<histogram>& of);
};

/// One of `counters` as a metric; its prefix is "eddy_runtime_".
struct common_metric {
    metric of;
    serving::tally serving::counters::* value;
};

inline constexpr std::array<common_metric, 10> common_metrics = {{
    {{"connections", metric_kind::gauge, "Open connections."}, &serving::counters::connections_now},
    {{"connections_total", metric_kind::counter, "Connections accepted."},
     &serving::counters::connections_total},
    {{"connections_refused_total", metric_kind::counter, "Connections refused by a limit."},
     &serving::counters::connections_refused},
    {{"handshakes", metric_kind::gauge,
      "Connections whose handshake is under way; they count for the limit."},
     &serving::counters::handshakes_now},
    {{"messages_in_total", metric_kind::counter, "Lines, datagrams or commands received."},
     &serving::counters::messages_in},
    {{"messages_out_total", metric_kind::counter, "Lines, datagrams or answers sent."},
     &serving::counters::messages_out},
    {{"bytes_in_total", metric_kind::counter, "Bytes received."}, &serving::counters::bytes_in},
    {{"bytes_out_total", metric_kind::counter, "Bytes sent."}, &serving::counters::bytes_out},
    {{"errors_total", metric_kind::counter, "Errors, as the type counts them."},
     &serving::counters::errors},
    {{"dropped_total", metric_kind::counter, "Messages dropped by a limit or a slow reader."},
     &serving::counters::dropped},
}};
/// metrics::latency; the same prefix.
inline constexpr metric latency_metric = {"latency_seconds", metric_kind::histogram,
                                          "Time from a message's arrival to its answer."};

}  // namespace eddy::runtime
