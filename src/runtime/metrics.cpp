// Metrics: descriptions are checked where samples are made of them.
#include "runtime/metrics.hpp"

#include <eddy/base/assert.hpp>

#include <algorithm>

namespace eddy::runtime {
namespace {

bool is_metric_word(std::string_view word) noexcept {
    const auto is_lower = [](char c) { return c >= 'a' && c <= 'z'; };
    if (word.empty() || !is_lower(word.front())) return false;
    return std::all_of(word.begin(), word.end(),
                       [&](char c) { return is_lower(c) || (c >= '0' && c <= '9') || c == '_'; });
}

}  // namespace

std::string_view to_string(metric_kind kind) noexcept {
    switch (kind) {
        case metric_kind::counter: return "counter";
        case metric_kind::gauge: return "gauge";
        case metric_kind::histogram: return "histogram";
    }
    return "untyped";
}

std::size_t metric::label_count() const noexcept {
    return static_cast<std::size_t>(std::find(labels.begin(), labels.end(), std::string_view()) -
                                    labels.begin());
}

bool metric::is_valid() const noexcept {
    if (!is_metric_word(name) || help.empty()) return false;
    if (name.ends_with("_total") != (kind == metric_kind::counter)) return false;
    if (kind == metric_kind::histogram && !name.ends_with("_seconds") && !name.ends_with("_bytes"))
        return false;
    for (std::size_t i = 0; i < labels.size(); ++i) {
        const std::string_view each = labels[i];
        if (i >= label_count() && !each.empty()) return false;
        if (i < label_count() && !is_metric_word(each)) return false;
        if (each == "runtime" || each == "type" || each == "le") return false;
        if (i < label_count() && std::count(labels.begin(), labels.end(), each) > 1) return false;
    }
    return true;
}

void metrics::add_sample(const metric& of, double value) {
    EDDY_ASSERT(of.is_valid() && of.kind != metric_kind::histogram && of.label_count() == 0);
    samples.push_back({&of, {}, value});
}

void metrics::add_sample(const metric& of, std::shared_ptr<const histogram> values) {
    EDDY_ASSERT(of.is_valid() && of.kind == metric_kind::histogram && of.label_count() == 0);
    samples.push_back({&of, {}, std::move(values)});
}

void metrics::add_samples(const labelled<serving::tally>& of) {
    const metric& what = of.description();
    EDDY_ASSERT(what.is_valid() && what.kind != metric_kind::histogram);
    for (const auto& [labels, value] : of.sets()) {
        EDDY_ASSERT(labels.size() == what.label_count());
        samples.push_back({&what, labels, static_cast<double>(value.value())});
    }
}

void metrics::add_samples(const labelled<histogram>& of) {
    const metric& what = of.description();
    EDDY_ASSERT(what.is_valid() && what.kind == metric_kind::histogram);
    for (const auto& [labels, values] : of.sets()) {
        EDDY_ASSERT(labels.size() == what.label_count());
        samples.push_back({&what, labels, std::make_shared<const histogram>(values)});
    }
}

}  // namespace eddy::runtime
