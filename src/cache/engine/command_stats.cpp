// Counting of calls. It never throws: the command has run already.
#include "cache/engine/command_stats.hpp"

#include "cache/engine/options.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace eddy::cache {
command_stats::command_stats() { reset(); }

void command_stats::reset() {
    cells_ = std::vector<cell>(all_commands().size());
    for (const command_spec& each : all_commands())
        cells_[index_of(each)].has_forms = (each.flags & command_flag::has_forms) != 0;
    forms_.clear();
    errors_.clear();
}

void command_stats::configure(const latency_options& options) noexcept {
    keeps_latency_ = options.tracking;
}

command_stats::counts* command_stats::of(const command_spec& what, arguments args) noexcept {
    cell& its = cells_[index_of(what)];
    if (!its.has_forms || args.size() < 2) return &its.all;
    const command_spec* const form = find_form(what, args[1]);
    if (form == nullptr) return nullptr;
    try {
        return &forms_[form];
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

void command_stats::timed(const command_spec& what, arguments args,
                          std::uint64_t took_ns) noexcept {
    counts* const its = of(what, args);
    if (its == nullptr) return;
    if (cells_[index_of(what)].has_forms) ++its->calls;
    // The command itself may have reset the counters.
    if (its->calls == its->accounted) return;
    constexpr std::uint64_t bounded = command_flag::fast | command_flag::brief;
    const bool is_sample = (its->calls - 1) % timed_share == 0;
    const std::uint64_t stands_for = is_sample ? its->calls - its->accounted : 1;
    its->spent_ns += took_ns * stands_for;
    its->accounted += stands_for;
    // Commands timed for their many arguments would be overrepresented among the samples.
    if (!is_sample && (what.flags & bounded) != 0) return;
    keep_latency(*its, took_ns);
}

void command_stats::add_sample(const command_spec& what, std::uint64_t took_ns) noexcept {
    counts& its = cells_[index_of(what)].all;
    its.spent_ns += took_ns * (its.calls - its.accounted);
    its.accounted = its.calls;
    keep_latency(its, took_ns);
}

void command_stats::keep_latency(counts& of, std::uint64_t took_ns) const noexcept {
    if (!keeps_latency_) return;
    if (of.latency == nullptr) of.latency.reset(new (std::nothrow) histogram);
    if (of.latency != nullptr) of.latency->record(took_ns);
}

void command_stats::failed(const command_spec* what, arguments args) noexcept {
    if (what == nullptr) return;
    if (counts* const its = of(*what, args); its != nullptr) ++its->errors;
}

void command_stats::failed(std::string_view full_name) noexcept {
    const std::size_t end = full_name.find('|');
    const command_spec* const spec = find_command(fold_command_name(full_name.substr(0, end)));
    if (spec == nullptr) return;
    if (end == std::string_view::npos) {
        ++cells_[index_of(*spec)].all.errors;
        return;
    }
    const command_spec* const form = find_form(*spec, full_name.substr(end + 1));
    if (form == nullptr) return;
    try {
        ++forms_[form].errors;
    } catch (const std::bad_alloc&) {
        return;  // the reply has priority
    }
}

void command_stats::rejected(const command_spec* what, arguments args) noexcept {
    if (what == nullptr) return;
    if (counts* const its = of(*what, args); its != nullptr) ++its->rejected;
}

void command_stats::count_error(std::string_view text) noexcept {
    const std::size_t space = text.substr(0, max_error_code_bytes).find(' ');
    const std::string_view code = space == std::string_view::npos ? "ERR" : text.substr(0, space);
    try {
        auto found = errors_.find(code);
        if (found == errors_.end()) {
            const bool is_full = errors_.size() + 1 >= max_error_codes;
            found = errors_.try_emplace(std::string(is_full ? other_errors : code), 0).first;
        }
        ++found->second;
    } catch (const std::bad_alloc&) {
        return;  // the reply has priority
    }
}

void command_stats::for_each(const visitor& what) const {
    const auto is_known = [](const counts& of) { return of.calls != 0 || of.rejected != 0; };
    for (const command_spec& each : all_commands()) {
        const counts& all = cells_[index_of(each)].all;
        if (is_known(all)) what(each.name, all);
    }
    for (const auto& [form, counted] : forms_)
        if (is_known(counted)) what(form->name, counted);
}

void rate_meter::note(std::int64_t now_ms, const totals& until_now) noexcept {
    const std::int64_t passed_ms = next_ms_ == INT64_MIN ? 0 : now_ms - last_ms_;
    next_ms_ = now_ms + tenth_ms;
    last_ms_ = now_ms;
    const totals before = std::exchange(last_, until_now);
    if (passed_ms <= 0) return;
    totals rates{};
    for (std::size_t i = 0; i < flows; ++i) {
        // A counter can have been set to zero.
        const std::uint64_t more = until_now[i] - std::min(before[i], until_now[i]);
        rates[i] = more * 1000 / static_cast<std::uint64_t>(passed_ms);
    }
    const auto tenths = static_cast<std::size_t>(
        std::clamp<std::int64_t>(passed_ms / tenth_ms, 1, static_cast<std::int64_t>(kept)));
    for (std::size_t i = 0; i < tenths; ++i) samples_[at_++ % kept] = rates;
}

std::uint64_t rate_meter::a_second(flow what) const noexcept {
    std::uint64_t sum = 0;
    for (const totals& each : samples_) sum += each[static_cast<std::size_t>(what)];
    return sum / kept;
}

}  // namespace eddy::cache
