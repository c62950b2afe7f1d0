// JSON of the control plane.
#include "daemon/control/json.hpp"

#include <eddy/wire/json.hpp>

#include <fmt/format.h>

#include <ctime>

namespace eddy::daemon {

outcome<json> parse_json(std::string_view text, std::string_view what) {
    if (nests_deeper(text, json_depth_limit))
        return refuse(400, fmt::format("{} nests deeper than {} levels", what, json_depth_limit));
    json value = json::parse(text, nullptr, false);
    if (value.is_discarded()) return refuse(400, fmt::format("{} is not valid JSON", what));
    return value;
}

std::string dump_json(const json& value, int indent) {
    return value.dump(indent, ' ', false, json::error_handler_t::replace);
}

outcome<std::string> text_member(const json& object, std::string_view name) {
    const auto found = object.find(name);
    if (found == object.end() || found->is_null()) return std::string();
    if (!found->is_string())
        return refuse(400,
                      fmt::format("\"{}\" must be a string, not {}", name, found->type_name()));
    return found->get<std::string>();
}

outcome<bool> flag_member(const json& object, std::string_view name, bool otherwise) {
    const auto found = object.find(name);
    if (found == object.end() || found->is_null()) return otherwise;
    if (!found->is_boolean())
        return refuse(
            400, fmt::format("\"{}\" must be true or false, not {}", name, found->type_name()));
    return found->get<bool>();
}

std::string format_time(std::chrono::system_clock::time_point when) {
    // strftime() takes ten times as long, which a list of thousands would show.
    const auto day = std::chrono::floor<std::chrono::days>(when);
    const std::chrono::year_month_day date(day);
    const std::chrono::hh_mm_ss time(std::chrono::floor<std::chrono::seconds>(when - day));
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                       static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                       time.hours().count(), time.minutes().count(), time.seconds().count());
}

outcome<std::chrono::system_clock::time_point> parse_time(const std::string& text) {
    std::tm parts{};
    const char* end = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts);
    if (!end || *end != '\0')
        return refuse(400, fmt::format("\"{}\" is not a time like 2026-11-21T21:22:04Z", text));
    return std::chrono::system_clock::from_time_t(timegm(&parts));
}

}  // namespace eddy::daemon
