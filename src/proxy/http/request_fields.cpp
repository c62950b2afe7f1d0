// Writing of forwarded fields.
#include "proxy/http/request_fields.hpp"

#include "net/network.hpp"
#include "wire/http1/forwarding.hpp"
#include "wire/http1/text.hpp"

#include <algorithm>
#include <optional>
#include <string>

namespace eddy::proxy {
namespace {

using http1::equal_ignoring_case;
using http1::header;
using http1::is_lower_case_of;

/// Fields that the proxy writes itself.
enum class own_field : std::uint8_t {
    none,
    host,
    framing,
    te,
    forwarded,
    forwarded_for,
    forwarded_proto,
    forwarded_host,
};

/// Servers that make variables of fields, as CGI does, read '_' as '-', so it is the same here.
bool is_read_as(std::string_view name, std::string_view word) noexcept {
    return std::ranges::equal(name, word, [](char a, char b) {
        return (a >= 'A' && a <= 'Z' ? static_cast<char>(a + 32) : a == '_' ? '-' : a) == b;
    });
}

own_field own_field_of(std::string_view name) noexcept {
    const auto is = [name](std::string_view word) { return is_read_as(name, word); };
    switch (name.size()) {
        case 2: return is("te") ? own_field::te : own_field::none;
        case 4: return is("host") ? own_field::host : own_field::none;
        case 9: return is("forwarded") ? own_field::forwarded : own_field::none;
        case 14: return is("content-length") ? own_field::framing : own_field::none;
        case 15: return is("x-forwarded-for") ? own_field::forwarded_for : own_field::none;
        case 16: return is("x-forwarded-host") ? own_field::forwarded_host : own_field::none;
        case 17: return is("x-forwarded-proto") ? own_field::forwarded_proto : own_field::none;
        default: return own_field::none;
    }
}

/// True for a field that has a meaning in a head alone: it frames, routes, modifies or
/// authenticates the message, or describes its way or its content (RFC 9110, 6.5.1).
bool is_for_head(std::string_view name) noexcept {
    const auto is = [name](std::string_view word) { return is_lower_case_of(name, word); };
    if (own_field_of(name) != own_field::none || http1::is_hop_by_hop(name) ||
        http1::is_for_all_recipients(name) || is_lower_case_of(name.substr(0, 3), "if-"))
        return true;
    switch (name.size()) {
        case 3: return is("via");
        case 5: return is("range");
        case 6: return is("cookie") || is("expect");
        case 8: return is("location");
        case 10: return is("set-cookie");
        case 12: return is("max-forwards");
        case 13: return is("authorization");
        case 16: return is("www-authenticate");
        default: return false;
    }
}

/// Appends to the values of one field, joined as one list.
void join(std::string& list, std::string_view more) {
    if (more.empty()) return;
    if (!list.empty()) list += ", ";
    list += more;
}

/// As an item of Forwarded (RFC 7239). The host has no quotes and backslashes: the parser refuses
/// them.
std::string forwarded_item(const forwarded_request& of) {
    const std::string& address = of.client.host;
    std::string made = "for=";
    if (address.empty())
        made += "unknown";
    else if (address.find(':') != std::string::npos)
        made.append("\"[").append(address).append("]\"");
    else
        made += address;
    if (!of.host.empty()) made.append(";host=\"").append(of.host).append("\"");
    made.append(of.is_secure ? ";proto=https" : ";proto=http");
    return made;
}

bool is_set(const std::vector<field_setting>& settings, std::string_view name) noexcept {
    return std::ranges::any_of(settings, [name](const field_setting& each) {
        return equal_ignoring_case(each.name, name);
    });
}

http1::header_list trailers_of(const http1::header_list& of,
                               const std::vector<field_setting>& settings) {
    http1::header_list kept;
    for (const header each : of)
        if (!is_for_head(each.name) && !is_set(settings, each.name))
            static_cast<void>(kept.add(each.name, each.value));  // it was parsed
    return kept;
}

/// Facts of a client that a backend gets in fields of their own.
struct client_facts {
    std::string chain;      // X-Forwarded-For
    std::string forwarded;  // Forwarded
    std::string_view proto;
    std::string_view host;
    bool takes_trailers = false;
};

bool says_x(const forwarding_rules& rules) noexcept {
    return rules.says == client_fields::both || rules.says == client_fields::x_forwarded;
}

bool says_forwarded(const forwarding_rules& rules) noexcept {
    return rules.says == client_fields::both || rules.says == client_fields::forwarded;
}

/// Takes a field that the proxy writes itself, or drops; false for one that is passed on.
bool take_field(header field, const forwarding_rules& rules, bool is_trusted, client_facts& into) {
    const own_field kind = own_field_of(field.name);
    switch (kind) {
        case own_field::none: return false;
        case own_field::host:
        case own_field::framing: return true;
        case own_field::te: into.takes_trailers = true; return true;
        case own_field::forwarded:
        case own_field::forwarded_for:
        case own_field::forwarded_proto:
        case own_field::forwarded_host: break;
    }
    // One with '_' may be a client's that a proxy has passed on.
    if (!is_trusted || field.name.find('_') != std::string_view::npos) return true;
    if (kind == own_field::forwarded) {
        join(into.forwarded, field.value);
        return says_forwarded(rules);
    }
    if (kind == own_field::forwarded_for)
        join(into.chain, field.value);
    else if (!field.value.empty())
        (kind == own_field::forwarded_host ? into.host : into.proto) = field.value;
    return says_x(rules);
}

/// Writes the proxy's own fields, behind the ones that are passed on.
void write_own_fields(const forwarded_request& of, client_facts& facts, http1::head_writer& to) {
    const forwarding_rules& rules = of.rules;
    // A rule takes the place of a field.
    const auto write = [&](std::string_view name, std::string_view value) {
        if (!value.empty() && !is_set(rules.request_fields, name)) to.field(name, value);
    };
    if (says_x(rules)) {
        join(facts.chain, of.client.host);
        write("X-Forwarded-For", facts.chain);
        write("X-Forwarded-Host", facts.host);
        write("X-Forwarded-Proto", facts.proto);
    }
    if (says_forwarded(rules)) {
        join(facts.forwarded, forwarded_item(of));
        write("Forwarded", facts.forwarded);
    }
    if (!rules.via.empty()) {
        std::string via = of.head.minor_version == 0 ? "1.0 " : "1.1 ";
        to.field("Via", via += rules.via);
    }
    if (of.max_forwards) to.field("Max-Forwards", std::to_string(*of.max_forwards));
    for (const field_setting& each : rules.request_fields)
        if (!each.value.empty()) to.field(each.name, each.value);
    if (facts.takes_trailers) to.field("TE", "trailers");
    if (of.upgrades) to.field("Upgrade", *of.head.headers.find("Upgrade"));
    if (facts.takes_trailers && of.upgrades)
        to.field("Connection", "TE, upgrade");
    else if (facts.takes_trailers)
        to.field("Connection", "TE");
    else if (of.upgrades)
        to.field("Connection", "upgrade");
}

}  // namespace

bool is_settable_field(std::string_view name) noexcept {
    if (!http1::is_token(name) || http1::is_hop_by_hop(name)) return false;
    for (const std::string_view each : {"Host", "Content-Length", "Via"})
        if (equal_ignoring_case(each, name)) return false;
    return true;
}

void write_request_fields(const forwarded_request& of, http1::head_writer& to) {
    const forwarding_rules& rules = of.rules;
    if (!rules.host.empty())
        to.field("Host", rules.host);
    else
        to.field("Host", of.host.empty() ? of.spare : of.host);
    const bool is_trusted = !rules.trusted.empty() && contains(rules.trusted, of.client.at);
    client_facts facts;
    facts.proto = of.is_secure ? "https" : "http";
    facts.host = of.host;
    const http1::end_to_end_fields kept(of.head.headers);
    for (const header each : of.head.headers) {
        const std::optional<header> field = kept.forwarded(each);
        if (!field || take_field(*field, rules, is_trusted, facts)) continue;
        if (of.has_content && is_lower_case_of(field->name, "expect")) continue;
        if (of.max_forwards && is_lower_case_of(field->name, "max-forwards")) continue;
        if (!rules.request_fields.empty() && is_set(rules.request_fields, field->name)) continue;
        to.parsed_field(*field);
    }
    write_own_fields(of, facts, to);
}

void edit_interim_fields(const forwarding_rules& rules, http1::header_list& fields) {
    http1::remove_hop_by_hop(fields);
    for (const field_setting& each : rules.response_fields) fields.remove(each.name);
}

void edit_response_fields(const forwarding_rules& rules, http1::header_list& fields) {
    http1::remove_hop_by_hop(fields);
    for (const field_setting& each : rules.response_fields) {
        if (each.value.empty())
            fields.remove(each.name);
        else
            static_cast<void>(fields.set(each.name, each.value));  // checked with the rules
    }
    if (!rules.via.empty()) {
        std::string via = "1.1 ";
        static_cast<void>(fields.add("Via", via += rules.via));
    }
}

http1::header_list request_trailers(const forwarding_rules& rules, const http1::header_list& of) {
    return trailers_of(of, rules.request_fields);
}

http1::header_list response_trailers(const forwarding_rules& rules, const http1::header_list& of) {
    return trailers_of(of, rules.response_fields);
}

}  // namespace eddy::proxy
