// Conversions of fields of HTTP.
#include "script/http_fields.hpp"

#include <eddy/base/assert.hpp>

#include "base/text/text.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace eddy::script {
namespace {

/// Bytes of a name in an error's text.
constexpr std::size_t longest_name = 100;

void push_lower(lua::stack in, std::string_view text) {
    constexpr std::size_t usual = 64;
    char small[usual];
    // Behind the name, where the collector frees it; no destructor would run.
    char* const room =
        text.size() <= usual ? small : static_cast<char*>(in.newuserdata(text.size()));
    for (std::size_t i = 0; i < text.size(); ++i) room[i] = to_lower(text[i]);
    in.pushstring(std::string_view(room, text.size()));
    if (room != small) in.remove(-2);
}

bool add_field(std::string_view name, const value& of, http1::header_list& to) {
    std::string kept;
    const std::string* const text = text_of(of, kept);
    return text != nullptr && to.add(name, *text).has_value();
}

}  // namespace

table fields_of(const http1::header_list& from) {
    table made;
    made.fields.reserve(from.size());
    for (const auto each : from) {
        std::string name = lower(each.name);
        const auto same =
            std::ranges::find(made.fields, name, &std::pair<std::string, value>::first);
        if (same == made.fields.end()) {
            made.fields.emplace_back(std::move(name), value(each.value));
            continue;
        }
        std::string joined = *same->second.text();
        EDDY_ASSERT(!name.empty() && name.size() == each.name.size());
        joined.append(name == "cookie" ? "; " : ", ").append(each.value);
        same->second = value(std::move(joined));
    }
    return made;
}

void push_fields(lua::stack in, const http1::header_list& from) {
    in.checkstack(8, "too many values");
    in.createtable(0, static_cast<int>(from.size()));
    const int made = in.gettop();
    for (const auto each : from) {
        push_lower(in, each.name);
        in.pushvalue(-1);
        in.rawget(made);
        if (in.isnil(-1)) {
            in.pop();
            in.pushstring(each.value);
        } else {
            in.pushstring(each.name.size() == 6 && equal_in_any_case(each.name, "cookie") ? "; "
                                                                                          : ", ");
            in.pushstring(each.value);
            in.concat(3);
        }
        in.rawset(made);
    }
    EDDY_ASSERT(in.gettop() == made);
}

const std::string* text_of(const value& of, std::string& kept) {
    if (const double* const number = of.number()) {
        constexpr double exact = 9007199254740992.0;  // 2^53
        const bool is_whole = std::abs(*number) <= exact && std::trunc(*number) == *number;
        kept = is_whole ? std::to_string(static_cast<long long>(*number)) : std::to_string(*number);
        return &kept;
    }
    return of.text();
}

std::expected<void, std::string> add_fields(const value& from, http1::header_list& to) {
    if (from.is_nil()) return {};
    if (from.fields() == nullptr || !from.fields()->elements.empty())
        return std::unexpected(std::string("headers is no table of texts by name"));
    for (const auto& [name, each] : from.fields()->fields) {
        bool is_added = true;
        const table* const list = each.fields();
        if (list == nullptr) {
            is_added = add_field(name, each, to);
        } else {
            is_added = list->fields.empty();
            for (const value& one : list->elements) is_added = is_added && add_field(name, one, to);
        }
        if (!is_added)
            return std::unexpected("the header " + name.substr(0, longest_name) +
                                   " cannot be sent: its value is no text of one line");
    }
    return {};
}

}  // namespace eddy::script
