// Parameters of queries.
#include "daemon/control/parameters.hpp"

#include <eddy/http/sse.hpp>

#include "daemon/journal/runtime_journal.hpp"
#include "runtime/options/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace eddy::daemon {
namespace {

template <class Number>
std::optional<Number> whole_number(std::string_view text) {
    Number number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size()) return {};
    return number;
}

/// The values of all parameters of that name, which commas may separate.
std::vector<std::string> listed(const http::request& request, std::string_view name) {
    std::vector<std::string> all;
    for (const auto& each : request.query()) {
        if (each.name != name) continue;
        for (std::string_view rest = each.value; !rest.empty();) {
            const std::string_view one = rest.substr(0, rest.find(','));
            if (!one.empty()) all.emplace_back(one);
            rest.remove_prefix(std::min(one.size() + 1, rest.size()));
        }
    }
    return all;
}

}  // namespace

outcome<bool> flag_parameter(const http::request& request, std::string_view name, bool otherwise) {
    const auto given = request.query(name);
    if (!given) return otherwise;
    if (*given == "false" || *given == "0") return false;
    if (*given == "true" || *given == "1" || given->empty()) return true;
    return refuse(400, fmt::format("{} must be true or false, not \"{}\"", name, *given));
}

outcome<restart_data> restart_data_parameter(const http::request& request) {
    const auto discards = flag_parameter(request, "discard_keys");
    if (!discards) return std::unexpected(discards.error());
    return *discards ? restart_data::discarded : restart_data::kept;
}

outcome<std::size_t> count_parameter(const http::request& request, std::string_view name,
                                     std::size_t otherwise) {
    const auto given = request.query(name);
    if (!given) return otherwise;
    const auto number = whole_number<std::size_t>(*given);
    if (number) return *number;
    return refuse(400, fmt::format("{} must be a whole number, not \"{}\"", name, *given));
}

outcome<std::optional<std::chrono::system_clock::time_point>> time_parameter(
    const http::request& request, std::string_view name) {
    const auto given = request.query(name);
    if (!given) return std::nullopt;
    if (const auto when = parse_journal_time(*given)) return when;
    const auto ago = runtime::parse_duration(*given);
    if (!ago || *ago > runtime::largest_duration)
        return refuse(400, fmt::format("{} cannot be \"{}\"; write how long ago, such as 10m, "
                                       "or a time of UTC, such as 2026-11-21T21:22:04",
                                       name, *given));
    return std::chrono::system_clock::now() - std::chrono::nanoseconds(*ago);
}

outcome<event_query> event_parameters(const http::request& request) {
    event_query made;
    const auto follows = flag_parameter(request, "follow", true);
    if (!follows) return std::unexpected(follows.error());
    made.follows = *follows;
    for (auto [name, to] :
         {std::pair("since", &made.filter.since), std::pair("until", &made.filter.until)}) {
        auto when = time_parameter(request, name);
        if (!when) return std::unexpected(when.error());
        *to = *when;
    }
    for (const auto& each : request.query())
        if (each.name == "match") made.filter.matches.push_back(each.value);
    made.filter.types = listed(request, "type");
    made.filter.owners = listed(request, "owner");
    made.filter.groups = listed(request, "group");
    for (const std::string& name : listed(request, "event")) {
        const auto kind = parse_event_kind(name);
        if (!kind)
            return refuse(400, fmt::format("there is no event \"{}\"; there are {}", name,
                                           fmt::join(event_kind_names(), ", ")));
        made.filter.kinds.push_back(*kind);
    }
    const std::string_view last = http::last_event_id(request);
    const auto after = request.query("after");
    if (after || !last.empty()) {
        made.after = whole_number<std::uint64_t>(after.value_or(last));
        if (!made.after)
            return refuse(400, fmt::format("after must be an event's number, not \"{}\"",
                                           after.value_or(last)));
    }
    return made;
}

}  // namespace eddy::daemon
