// Settings: checks of the user's input against a type's table of options.
#include "runtime/options/settings.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/base/nearest.hpp>

#include "base/problem.hpp"
#include "base/text/terminal_text.hpp"
#include "base/text/text.hpp"
#include "runtime/options/option.hpp"
#include "runtime/options/units.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace eddy::runtime {
namespace {

using nlohmann::json;

/// The longest value of a text option, in bytes. Paths and URIs are shorter by far.
constexpr std::size_t max_text = 4096;
/// Items of a list at most.
constexpr std::size_t max_items = 256;
/// Longest part of a wrong value that a message repeats.
constexpr std::size_t max_quoted = 60;

std::string shown(const json& value) {
    if (value.is_string()) return in_quotes(value.get_ref<const std::string&>(), max_quoted);
    if (value.is_object()) return "an object";
    if (value.is_array()) return "a list";
    return value.dump();
}

std::string listed(std::span<const std::string_view> names, std::string_view prefix = "") {
    std::string all;
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (i > 0) all += i + 1 == names.size() ? " or " : ", ";
        all += prefix;
        all += names[i];
    }
    return all;
}

std::string unknown_option(std::span<const option> table, std::string_view written) {
    const std::string dashed = option_flag(written);
    std::vector<std::string_view> names;
    for (const option& o : table) names.push_back(o.name);
    const std::string_view meant = nearest_word(dashed, names);
    if (meant == dashed) {  // the right name with dashes, which is how JSON does not write it
        return fmt::format("unknown option {}: in JSON it is \"{}\"",
                           in_quotes(written, max_quoted), option_key(meant));
    }
    if (!meant.empty())
        return fmt::format("unknown option {}; did you mean --{}?", in_quotes(written, max_quoted),
                           meant);
    return fmt::format("unknown option {}; there are {}", in_quotes(written, max_quoted),
                       listed(names, "--"));
}

std::string written_number(const option& o, std::int64_t number) {
    if (o.kind == option_kind::size) return format_size(number);
    if (o.kind == option_kind::duration) return format_duration(number);
    return std::to_string(number);
}

std::string wrong_kind(const option& o, const json& given) {
    std::string_view right;
    switch (o.kind) {
        case option_kind::flag: right = "it takes no value, or true or false"; break;
        case option_kind::integer: right = "write a whole number, such as"; break;
        case option_kind::size:
            right = "write a number of bytes, such as 4096, 64k, 10M or 1GiB";
            break;
        case option_kind::duration:
            right = "write a time, such as 30 (seconds), 1.5s, 100ms or 5m";
            break;
        case option_kind::text: right = "write a text"; break;
        case option_kind::choice: break;
        case option_kind::list: right = "write a text, or a list of texts"; break;
    }
    if (o.kind == option_kind::choice) {
        std::string_view meant =
            given.is_string()
                ? nearest_word(given.get_ref<const std::string&>(), std::span(o.choices))
                : std::string_view();
        // Redis's word for a policy that removes nothing.
        if (given == "noeviction" && !o.choices.empty() && o.choices.front() == "none")
            meant = o.choices.front();
        if (!meant.empty()) {
            return fmt::format("--{} cannot be {}; did you mean {}? It may be {}", o.name,
                               shown(given), meant, listed(o.choices));
        }
        return fmt::format("--{} cannot be {}; it may be {}", o.name, shown(given),
                           listed(o.choices));
    }
    if (o.kind == option_kind::integer) {
        const std::string_view example = o.default_value.empty() ? "1000" : o.default_value;
        return fmt::format("--{} cannot be {}; {} {}", o.name, shown(given), right, example);
    }
    return fmt::format("--{} cannot be {}; {}", o.name, shown(given), right);
}

std::int64_t largest_of(const option& o) {
    return o.kind == option_kind::duration ? std::min(o.maximum, largest_duration) : o.maximum;
}

std::string out_of_range(const option& o, const json& given) {
    if (largest_of(o) == INT64_MAX) {
        return fmt::format("--{} cannot be {}; it must be at least {}", o.name, shown(given),
                           written_number(o, o.minimum));
    }
    return fmt::format("--{} cannot be {}; it must be from {} to {}", o.name, shown(given),
                       written_number(o, o.minimum), written_number(o, largest_of(o)));
}

/// A JSON number for a duration counts seconds.
result<std::int64_t> seconds_to_nanoseconds(double seconds) {
    const double nanoseconds = seconds * 1e9;
    if (!(nanoseconds >= 0)) return fail(errc::malformed);
    if (nanoseconds > static_cast<double>(largest_duration)) return fail(errc::limit_reached);
    return static_cast<std::int64_t>(std::llround(nanoseconds));
}

result<std::int64_t> parse_number(const option& o, const json& given) {
    if (given.is_string()) {
        const auto& text = given.get_ref<const std::string&>();
        if (o.kind == option_kind::size) return parse_size(text);
        if (o.kind == option_kind::duration) return parse_duration(text);
        return parse_integer(text);
    }
    if (given.is_number_unsigned() && given.get<std::uint64_t>() > INT64_MAX)
        return fail(errc::limit_reached);
    if (o.kind == option_kind::duration && given.is_number())
        return seconds_to_nanoseconds(given.get<double>());
    if (!given.is_number_integer()) return fail(errc::malformed);
    return given.get<std::int64_t>();
}

/// True, false, and the words for them.
result<bool> parse_flag(const json& given) {
    if (given.is_boolean()) return given.get<bool>();
    if (given.is_string()) {
        const auto& text = given.get_ref<const std::string&>();
        if (text == "true" || text == "yes" || text == "on" || text == "1") return true;
        if (text == "false" || text == "no" || text == "off" || text == "0") return false;
    }
    return fail(errc::malformed);
}

outcome<std::int64_t> read_number(const option& of, const json& written) {
    const result<std::int64_t> number = parse_number(of, written);
    if (!number && number.error() == errc::limit_reached)
        return refuse(400, out_of_range(of, written));
    if (!number) return refuse(400, wrong_kind(of, written));
    if (*number < of.minimum || *number > largest_of(of))
        return refuse(400, out_of_range(of, written));
    return *number;
}

outcome<std::string> read_text(const option& of, const json& written) {
    if (!written.is_string()) return refuse(400, wrong_kind(of, written));
    auto text = written.get<std::string>();
    if (text.size() > max_text)
        return refuse(400, fmt::format("--{} is too long: it has {} bytes, and may have at most {}",
                                       of.name, text.size(), max_text));
    const bool control = std::any_of(text.begin(), text.end(), [](char c) {
        return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    });
    if (control)
        return refuse(400, fmt::format("--{} cannot be {}: leave out its control characters",
                                       of.name, in_quotes(text, max_quoted)));
    return text;
}

/// The items that are not empty; one text is a list of one.
outcome<std::vector<std::string>> read_list(const option& of, const json& written) {
    const json all = written.is_array() ? written : json::array({written});
    if (all.size() > max_items)
        return refuse(400, fmt::format("--{} is given {} times, and may be given at most {} times",
                                       of.name, all.size(), max_items));
    std::vector<std::string> items;
    for (const json& each : all) {
        outcome<std::string> text = read_text(of, each);
        if (!text) return std::unexpected(std::move(text.error()));
        if (!text->empty()) items.push_back(std::move(*text));
    }
    return items;
}

outcome<std::string> read_choice(const option& of, const json& written) {
    const bool known =
        written.is_string() && std::find(of.choices.begin(), of.choices.end(),
                                         written.get_ref<const std::string&>()) != of.choices.end();
    if (!known) return refuse(400, wrong_kind(of, written));
    return written.get<std::string>();
}

}  // namespace

void use_current_names(std::span<const option> table, json& given) {
    if (!given.is_object()) return;
    for (const option& each : table) {
        if (each.former_name.empty()) continue;
        const auto found = given.find(option_key(each.former_name));
        if (found == given.end() || given.contains(option_key(each.name))) continue;
        given[option_key(each.name)] = std::move(*found);
        given.erase(option_key(each.former_name));
    }
}

outcome<> settings::read_value(const option& o, const json& written, value& v) {
    switch (o.kind) {
        case option_kind::flag: {
            const result<bool> on = parse_flag(written);
            if (!on) return refuse(400, wrong_kind(o, written));
            v.number = *on ? 1 : 0;
            v.text = *on ? "true" : "false";
            break;
        }
        case option_kind::integer:
        case option_kind::size:
        case option_kind::duration: {
            const outcome<std::int64_t> number = read_number(o, written);
            if (!number) return std::unexpected(number.error());
            v.number = *number;
            v.text = written.is_string() ? written.get<std::string>() : written_number(o, *number);
            break;
        }
        case option_kind::text: {
            outcome<std::string> text = read_text(o, written);
            if (!text) return std::unexpected(text.error());
            v.text = std::move(*text);
            // `--log ""` takes the option back, as null does in JSON.
            if (v.text.empty()) v.given = false;
            break;
        }
        case option_kind::choice: {
            outcome<std::string> chosen = read_choice(o, written);
            if (!chosen) return std::unexpected(chosen.error());
            v.text = std::move(*chosen);
            break;
        }
        case option_kind::list: {
            outcome<std::vector<std::string>> items = read_list(o, written);
            if (!items) return std::unexpected(items.error());
            v.items = std::move(*items);
            v.text = fmt::format("{}", fmt::join(v.items, ", "));
            if (v.items.empty()) v.given = false;
            break;
        }
    }
    return {};
}

outcome<settings> settings::parse(std::span<const option> table, const json& given) {
    if (!given.is_object() && !given.is_null())
        return refuse(400, "options must be a JSON object such as {\"port\": 9000}");
    json named = given;
    use_current_names(table, named);
    for (const auto& [name, ignored] : named.items()) {
        const bool known = std::any_of(table.begin(), table.end(),
                                       [&](const option& o) { return option_key(o.name) == name; });
        if (!known) return refuse(400, unknown_option(table, name));
    }

    settings checked;
    checked.values_.reserve(table.size());
    for (const option& o : table) {
        json written;
        if (!named.is_null()) {
            const auto found = named.find(option_key(o.name));
            if (found != named.end()) written = *found;
        }
        // null means "not given", so that a caller can take an option back.
        const bool is_given = !written.is_null();
        if (!is_given && !o.default_value.empty()) written = std::string(o.default_value);

        value v{o.name, o.kind, is_given, 0, {}, {}};
        if (written.is_null()) {
            checked.values_.push_back(std::move(v));
            continue;
        }
        if (auto read = read_value(o, written, v); !read) return std::unexpected(read.error());
        checked.values_.push_back(std::move(v));
    }
    return checked;
}

json settings::to_json() const {
    json all = json::object();
    for (const value& v : values_) {
        if (!v.given) continue;
        json& written = all[option_key(v.name)];
        if (v.kind == option_kind::flag)
            written = v.number != 0;
        else if (v.kind == option_kind::integer)
            written = v.number;
        else if (v.kind == option_kind::list)
            written = v.items;
        else
            written = v.text;
    }
    return all;
}

const settings::value& settings::find(std::string_view name) const {
    const auto found = std::find_if(values_.begin(), values_.end(),
                                    [&](const value& v) { return v.name == name; });
    // A name outside the table is our own mistake, never the user's.
    EDDY_ASSERT(found != values_.end());
    return *found;
}

bool settings::has(std::string_view name) const { return !find(name).text.empty(); }

bool settings::given(std::string_view name) const { return find(name).given; }

bool settings::has_same(std::string_view name, const settings& as) const {
    const value& own = find(name);
    const value& other = as.find(name);
    switch (own.kind) {
        case option_kind::flag: return own.number == other.number;
        case option_kind::integer:
        case option_kind::size:
        case option_kind::duration:
            return own.text.empty() == other.text.empty() && own.number == other.number;
        case option_kind::list: return own.items == other.items;
        case option_kind::text:
        case option_kind::choice: break;
    }
    return own.text == other.text;
}

bool settings::flag(std::string_view name) const {
    const value& v = find(name);
    EDDY_ASSERT(v.kind == option_kind::flag);
    return v.number != 0;
}

std::int64_t settings::number(std::string_view name) const { return find(name).number; }

const std::vector<std::string>& settings::list(std::string_view name) const {
    const value& v = find(name);
    EDDY_ASSERT(v.kind == option_kind::list);
    return v.items;
}

const std::string& settings::text(std::string_view name) const { return find(name).text; }

}  // namespace eddy::runtime
