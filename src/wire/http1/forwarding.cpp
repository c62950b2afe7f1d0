// Selection of end-to-end fields.
#include "wire/http1/forwarding.hpp"

#include "wire/http1/text.hpp"

namespace eddy::http1 {
namespace {

constexpr std::string_view connection = "connection";
constexpr std::string_view trailers = "trailers";

/// Calls `visit` with each item of a list; false once that returns false.
template <class Visit>
bool each_item(std::string_view list, Visit&& visit) noexcept {
    std::string_view item;
    while (next_item(list, item))
        if (!visit(item)) return false;
    return true;
}

/// The item "trailers" of a TE field, a view of it; empty for none.
std::string_view trailers_item(std::string_view te) noexcept {
    std::string_view found;
    each_item(te, [&found](std::string_view item) {
        if (is_lower_case_of(item, trailers)) found = item;
        return found.empty();
    });
    return found;
}

}  // namespace

bool is_idempotent(std::string_view method) noexcept {
    return method == "GET" || method == "HEAD" || method == "OPTIONS" || method == "TRACE" ||
           method == "PUT" || method == "DELETE";
}

bool is_hop_by_hop(std::string_view name) noexcept {
    const auto is = [name](std::string_view word) { return is_lower_case_of(name, word); };
    switch (name.size()) {
        case 2: return is("te");
        case 7: return is("trailer") || is("upgrade");
        case 10: return is(connection) || is("keep-alive");
        case 16: return is("proxy-connection");
        case 17: return is("transfer-encoding");
        case 18: return is("proxy-authenticate");
        case 19: return is("proxy-authorization");
        case 25: return is("proxy-authentication-info");
        default: return false;
    }
}

bool is_for_all_recipients(std::string_view name) noexcept {
    const auto is = [name](std::string_view word) { return is_lower_case_of(name, word); };
    switch (name.size()) {
        case 4: return is("host") || is("date");
        case 12: return is("content-type");
        case 13: return is("cache-control") || is("content-range");
        case 14: return is("content-length");
        case 16: return is("content-encoding");
        default: return false;
    }
}

end_to_end_fields::end_to_end_fields(const header_list& of) noexcept : all_(of) {
    for (const header each : all_) {
        if (!is_lower_case_of(each.name, connection)) continue;
        names_fields_ |= !each_item(each.value, [](std::string_view item) {
            return item.empty() || is_lower_case_of(item, "close") ||
                   is_lower_case_of(item, "keep-alive");
        });
    }
}

bool end_to_end_fields::is_named(std::string_view name) const noexcept {
    for (const header each : all_) {
        if (!is_lower_case_of(each.name, connection)) continue;
        const bool is_other = each_item(
            each.value, [name](std::string_view item) { return !equal_ignoring_case(item, name); });
        if (!is_other) return true;
    }
    return false;
}

std::optional<header> end_to_end_fields::forwarded(header field) const noexcept {
    if (is_lower_case_of(field.name, "te")) {
        const std::string_view item = trailers_item(field.value);
        if (item.empty()) return std::nullopt;
        return header{field.name, item};
    }
    if (is_hop_by_hop(field.name)) return std::nullopt;
    if (names_fields_ && !is_for_all_recipients(field.name) && is_named(field.name))
        return std::nullopt;
    return field;
}

void remove_hop_by_hop(header_list& from) noexcept {
    const auto name_of = [&from](const header_list::entry& of) {
        return std::string_view(from.text_.data() + of.name_at, of.name_size);
    };
    const end_to_end_fields kept(from);
    // The fields are marked by an empty name while Connection is still needed, which goes last.
    bool is_changed = false;
    for (std::size_t i = 0; i < from.size(); ++i) {
        header_list::entry& each = from.entries_[i];
        const header field = from[i];
        const std::optional<header> as = kept.forwarded(field);
        if (as && as->value.size() == field.value.size()) continue;
        is_changed = true;
        if (as) {
            each.value_at += static_cast<std::uint32_t>(as->value.data() - field.value.data());
            each.value_size = static_cast<std::uint32_t>(as->value.size());
        } else if (!is_lower_case_of(field.name, connection)) {
            each.name_size = 0;
        }
    }
    if (!is_changed) return;
    std::erase_if(from.entries_, [&name_of](const header_list::entry& each) {
        return each.name_size == 0 || is_lower_case_of(name_of(each), connection);
    });
    from.compact();
}

}  // namespace eddy::http1
