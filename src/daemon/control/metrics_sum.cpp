// Sum of metrics pages.
#include "daemon/control/metrics_sum.hpp"

#include "daemon/control/metrics.hpp"

#include <fmt/format.h>

#include <charconv>
#include <iterator>
#include <optional>
#include <utility>

namespace eddy::daemon {
namespace {

/// Takes the text up to the next `end` off `from`, and the `end`.
std::string_view take_until(std::string_view& from, char end) {
    const std::size_t at = from.find(end);
    const std::string_view taken = from.substr(0, at);
    from.remove_prefix(at == std::string_view::npos ? from.size() : at + 1);
    return taken;
}

std::optional<double> number_of(std::string_view text) {
    double read = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read);
    if (error != std::errc{} || end != text.data() + text.size()) return {};
    return read;
}

}  // namespace

metrics_sum::family& metrics_sum::family_of(std::string_view name) {
    const auto found = by_name_.find(name);
    if (found != by_name_.end()) return families_[found->second];
    by_name_.emplace(name, families_.size());
    families_.push_back({std::string(name), {}, {}, {}, {}});
    return families_.back();
}

double& metrics_sum::value_of(family& of, std::string_view name) {
    const auto found = of.by_name.find(name);
    if (found != of.by_name.end()) return of.samples[found->second].value;
    of.by_name.emplace(name, of.samples.size());
    of.samples.push_back({std::string(name), 0});
    return of.samples.back().value;
}

double& metrics_sum::sample_of(std::string_view sample, std::string_view kind,
                               std::string_view help) {
    family& its = family_of(sample.substr(0, sample.find('{')));
    if (its.kind.empty()) {
        its.kind = kind;
        its.help = help;
    }
    return value_of(its, sample);
}

void metrics_sum::add_sample(std::string_view sample, std::string_view kind, std::string_view help,
                             double value) {
    sample_of(sample, kind, help) += value;
}

void metrics_sum::set_sample(std::string_view sample, std::string_view kind, std::string_view help,
                             double value) {
    sample_of(sample, kind, help) = value;
}

void metrics_sum::add(std::string_view page, bool only_what_stays) {
    // The lines behind a head belong to its family, whose name is the beginning of theirs.
    std::string family_name;
    while (!page.empty()) {
        std::string_view line = take_until(page, '\n');
        if (line.starts_with("# ")) {
            line.remove_prefix(2);
            const std::string_view what = take_until(line, ' ');
            const std::string_view name = take_until(line, ' ');
            if (name.empty()) continue;
            family_name = name;
            family& its = family_of(name);
            if (what == "HELP") its.help = line;
            if (what == "TYPE") its.kind = line;
            continue;
        }
        const std::size_t space = line.rfind(' ');
        if (space == std::string_view::npos || family_name.empty()) continue;
        const auto value = number_of(line.substr(space + 1));
        if (!value || !line.starts_with(family_name)) continue;
        family& its = family_of(family_name);
        if (only_what_stays && its.kind == "gauge") continue;
        value_of(its, line.substr(0, space)) += *value;
    }
}

std::string metrics_sum::render() const {
    std::string page;
    for (const family& each : families_) {
        if (each.samples.empty()) continue;
        write_family_head(page, each.name, each.kind, each.help);
        for (const sample& one : each.samples)
            fmt::format_to(std::back_inserter(page), "{} {}\n", one.name, one.value);
    }
    return page;
}

}  // namespace eddy::daemon
