// JSON of a member: writing by the writer of `wire`, reading by nlohmann::json.
#include "cluster/member_codec.hpp"

#include <eddy/wire/json.hpp>

#include "base/text/terminal_text.hpp"
#include "base/text/text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

namespace eddy::cluster {
namespace {

using nlohmann::json;

/// Bytes of a faulty text that a message shows.
constexpr std::size_t shown_bytes = 64;

constexpr std::size_t max_fields = max_member_fields * (max_runtimes + 1);

bool is_printable(std::string_view text) noexcept {
    while (!text.empty()) {
        const text_unit unit = first_unit(text);
        if (!unit.is_printable) return false;
        text.remove_prefix(unit.size);
    }
    return true;
}

outcome<> check_text(std::string_view what, std::string_view text, std::size_t limit) {
    if (text.size() > limit)
        return refuse(400, fmt::format("it has a {} of {} bytes, at most {} may be", what,
                                       text.size(), limit));
    if (!is_printable(text))
        return refuse(400, fmt::format("it has the {} {}, which is not printable UTF-8", what,
                                       in_quotes(text, shown_bytes)));
    return {};
}

outcome<> check_name(std::string_view what, std::string_view name) {
    if (name.empty()) return refuse(400, fmt::format("it has an empty {}", what));
    if (auto valid = check_text(what, name, max_name); !valid) return valid;
    if (name.front() == '.' || name.find('/') != std::string_view::npos)
        return refuse(400, fmt::format("it has the {} {}: a name has no '/' and begins with no dot",
                                       what, in_quotes(name, shown_bytes)));
    return {};
}

outcome<> check_start_id(std::string_view id) {
    if (id.empty()) return refuse(400, "it has no id of its start");
    if (!is_start_id(id))
        return refuse(400, fmt::format("it has the id {}: use 1 to {} letters, digits, dashes and "
                                       "underscores",
                                       in_quotes(id, shown_bytes), max_start_id));
    return {};
}

/// The first refusal of several checks.
class first_refusal {
public:
    void add(outcome<> checked) {
        if (all_ && !checked) all_ = std::move(checked);
    }
    bool is_good() const noexcept { return all_.has_value(); }
    outcome<> take() { return std::move(all_); }

private:
    outcome<> all_;
};

outcome<> check_runtime(const runtime_info& runtime) {
    first_refusal all;
    all.add(check_name("name of a runtime", runtime.name));
    all.add(check_text("id of a runtime", runtime.id, max_name));
    all.add(check_text("type of a runtime", runtime.type, max_name));
    all.add(check_text("group of a runtime", runtime.group, max_name));
    all.add(check_text("state of a runtime", runtime.state, max_name));
    if (runtime.addresses.size() > max_addresses)
        all.add(refuse(400, fmt::format("its runtime {} has {} addresses, at most {} may be",
                                        in_quotes(runtime.name, shown_bytes),
                                        runtime.addresses.size(), max_addresses)));
    for (const std::string& each : runtime.addresses)
        all.add(check_text("address of a runtime", each, max_text));
    return all.take();
}

void write_text(json_writer& to, std::string_view name, std::string_view text) {
    if (!text.empty()) to.member(name, text);
}

void write_runtime(json_writer& to, const runtime_info& runtime) {
    to.begin_object().member("name", runtime.name);
    write_text(to, "id", runtime.id);
    write_text(to, "type", runtime.type);
    write_text(to, "group", runtime.group);
    write_text(to, "state", runtime.state);
    if (!runtime.addresses.empty()) {
        to.key("addresses").begin_array();
        for (const std::string& each : runtime.addresses) to.value(each);
        to.end_array();
    }
    if (runtime.connections != 0) to.member("connections", runtime.connections);
    to.end_object();
}

std::vector<const runtime_info*> by_name(const std::vector<runtime_info>& runtimes) {
    std::vector<const runtime_info*> sorted;
    sorted.reserve(runtimes.size());
    for (const runtime_info& each : runtimes) sorted.push_back(&each);
    std::ranges::sort(sorted, {},
                      [](const runtime_info* each) -> const std::string& { return each->name; });
    return sorted;
}

/// Values of a JSON object, read by name into variables, which keep their defaults where there is
/// none, or null. The first fault counts.
class object_reader {
public:
    /// `from` must outlive it. `where` names the object in messages: "" or " of a runtime".
    object_reader(const json& from, std::string_view where) : from_(from), where_(where) {}

    void read(const char* name, std::string& to) {
        const json* const its = find(name);
        if (its && !its->is_string()) return fault(name, "a string", *its);
        if (its) to = its->get_ref<const std::string&>();
    }
    void read(const char* name, bool& to) {
        const json* const its = find(name);
        if (its && !its->is_boolean()) return fault(name, "true or false", *its);
        if (its) to = its->get<bool>();
    }
    void read(const char* name, std::uint64_t& to) {
        const json* const its = find(name);
        if (its && !its->is_number_unsigned()) return fault(name, "a number from 0", *its);
        if (its) to = its->get<std::uint64_t>();
    }
    void read(const char* name, std::int64_t& to) {
        const json* const its = find(name);
        if (!its) return;
        const bool is_small = its->is_number_unsigned()
                                  ? its->get<std::uint64_t>() <=
                                        std::uint64_t{std::numeric_limits<std::int64_t>::max()}
                                  : its->is_number_integer();
        if (!is_small) return fault(name, "an integer of 64 bits", *its);
        to = its->get<std::int64_t>();
    }
    /// The array of that name; null where there is none.
    const json* array(const char* name, std::size_t limit) {
        const json* const its = find(name);
        if (its && !its->is_array()) {
            fault(name, "an array", *its);
            return nullptr;
        }
        if (its && its->size() > limit) {
            all_.add(refuse(400, fmt::format("its \"{}\"{} has {} values, at most {} may be", name,
                                             where_, its->size(), limit)));
            return nullptr;
        }
        return its;
    }
    /// An array of strings.
    void read(const char* name, std::vector<std::string>& to, std::size_t limit) {
        const json* const values = array(name, limit);
        if (!values) return;
        to.reserve(values->size());
        for (const json& each : *values) {
            if (!each.is_string()) return fault(name, "an array of strings", each);
            to.push_back(each.get_ref<const std::string&>());
        }
    }
    outcome<> end() { return all_.take(); }

private:
    const json* find(const char* name) const {
        const auto found = from_.find(name);
        return found == from_.end() || found->is_null() ? nullptr : &*found;
    }
    void fault(const char* name, std::string_view wanted, const json& its) {
        all_.add(refuse(400, fmt::format("its \"{}\"{} must be {}, not {}", name, where_, wanted,
                                         its.type_name())));
    }

    const json& from_;
    std::string_view where_;
    first_refusal all_;
};

outcome<runtime_info> read_runtime(const json& from) {
    if (!from.is_object()) return refuse(400, "one of its runtimes is no JSON object");
    runtime_info made;
    object_reader reader(from, " of a runtime");
    reader.read("name", made.name);
    reader.read("id", made.id);
    reader.read("type", made.type);
    reader.read("group", made.group);
    reader.read("state", made.state);
    reader.read("addresses", made.addresses, max_addresses);
    reader.read("connections", made.connections);
    if (auto read = reader.end(); !read) return std::unexpected(std::move(read.error()));
    return made;
}

/// Refuses a text by its bytes alone, since a parser would build a value of any shape first.
outcome<> check_shape(std::string_view text) {
    if (text.size() > max_member_bytes)
        return refuse(
            400, fmt::format("it has {} bytes, at most {} may be", text.size(), max_member_bytes));
    switch (excess_of(text, {.depth = max_member_depth, .members = max_fields})) {
        case json_excess::none: return {};
        case json_excess::depth:
            return refuse(400, fmt::format("it nests deeper than {} levels", max_member_depth));
        case json_excess::members:
            return refuse(400, fmt::format("it has more than {} fields", max_fields));
    }
    return {};
}

outcome<> check_format(const json& value) {
    if (!value.is_object()) return refuse(400, "it is no JSON object");
    const auto format = value.find("format");
    if (format == value.end() || !format->is_number_integer())
        return refuse(400, "it has no \"format\"");
    if (*format < 1 || *format > member_format)
        return refuse(400, fmt::format("its format is {}, and this Eddy knows none above {}: "
                                       "upgrade this one",
                                       format->dump(), member_format));
    return {};
}

}  // namespace

outcome<> check_member_name(std::string_view name) { return check_name("name", name); }

bool is_start_id(std::string_view text) noexcept {
    return !text.empty() && text.size() <= max_start_id && std::ranges::all_of(text, [](char c) {
        return is_digit(c) || is_letter(c) || c == '-' || c == '_';
    });
}

outcome<> check_member(const member_info& member) {
    first_refusal all;
    all.add(check_name("name", member.name));
    all.add(check_start_id(member.id));
    all.add(check_text("host", member.host, max_text));
    all.add(check_text("address of its control API", member.control, max_text));
    all.add(check_text("version", member.version, max_name));
    all.add(check_text("label", member.label, max_name));
    if (member.runtimes.size() > max_runtimes)
        all.add(refuse(400, fmt::format("it has {} runtimes, at most {} may be",
                                        member.runtimes.size(), max_runtimes)));
    if (!all.is_good()) return all.take();
    for (const runtime_info& each : member.runtimes) all.add(check_runtime(each));
    const auto sorted = by_name(member.runtimes);
    const auto twice = std::ranges::adjacent_find(
        sorted, [](const auto* a, const auto* b) { return a->name == b->name; });
    if (twice != sorted.end())
        all.add(refuse(400, fmt::format("it has two runtimes with the name {}",
                                        in_quotes((*twice)->name, shown_bytes))));
    return all.take();
}

outcome<std::string> encode_member(const member_info& member) {
    if (auto valid = check_member(member); !valid) return std::unexpected(std::move(valid.error()));
    json_writer out;
    out.begin_object().member("format", member_format);
    out.member("name", member.name).member("id", member.id);
    write_text(out, "host", member.host);
    write_text(out, "control", member.control);
    write_text(out, "version", member.version);
    write_text(out, "label", member.label);
    if (member.started != 0) out.member("started", member.started);
    if (member.is_leaving) out.member("leaving", true);
    out.key("runtimes").begin_array();
    for (const runtime_info* const each : by_name(member.runtimes)) write_runtime(out, *each);
    out.end_array().end_object();
    std::string text = out.take();
    if (text.size() > max_member_bytes)
        return refuse(400, fmt::format("it takes {} bytes, at most {} may be: give it fewer "
                                       "runtimes, or shorter names",
                                       text.size(), max_member_bytes));
    return text;
}

outcome<member_info> decode_member(std::string_view text) {
    if (auto fits = check_shape(text); !fits) return std::unexpected(std::move(fits.error()));
    const json value = json::parse(text, nullptr, false);
    if (value.is_discarded()) return refuse(400, "it is not valid JSON");
    if (auto known = check_format(value); !known) return std::unexpected(std::move(known.error()));
    member_info made;
    object_reader reader(value, "");
    reader.read("name", made.name);
    reader.read("id", made.id);
    reader.read("host", made.host);
    reader.read("control", made.control);
    reader.read("version", made.version);
    reader.read("label", made.label);
    reader.read("started", made.started);
    reader.read("leaving", made.is_leaving);
    const json* const runtimes = reader.array("runtimes", max_runtimes);
    if (auto read = reader.end(); !read) return std::unexpected(std::move(read.error()));
    if (runtimes) {
        made.runtimes.reserve(runtimes->size());
        for (const json& each : *runtimes) {
            auto runtime = read_runtime(each);
            if (!runtime) return std::unexpected(std::move(runtime.error()));
            made.runtimes.push_back(std::move(*runtime));
        }
    }
    if (auto valid = check_member(made); !valid) return std::unexpected(std::move(valid.error()));
    sort_runtimes(made);
    return made;
}

void sort_runtimes(member_info& member) {
    std::ranges::sort(member.runtimes, {}, &runtime_info::name);
}

}  // namespace eddy::cluster
