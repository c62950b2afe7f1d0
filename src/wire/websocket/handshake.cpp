// Both ends of the opening handshake.
#include <eddy/wire/websocket/handshake.hpp>

#include "base/sha1.hpp"
#include "base/text/base64.hpp"
#include "wire/http1/text.hpp"
#include "wire/websocket/extensions.hpp"

#include <algorithm>
#include <utility>

namespace eddy::websocket {
namespace {

constexpr std::string_view key_field = "Sec-WebSocket-Key";
constexpr std::string_view accept_field = "Sec-WebSocket-Accept";
constexpr std::string_view version_field = "Sec-WebSocket-Version";
constexpr std::string_view protocol_field = "Sec-WebSocket-Protocol";
constexpr std::string_view extensions_field = "Sec-WebSocket-Extensions";
constexpr std::string_view version = "13";
constexpr std::string_view accept_suffix = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
constexpr int switching_protocols = 101;
constexpr int bad_request = 400;
constexpr int upgrade_required = 426;

/// The value of a field that may stand once; empty if there are none or several.
std::string_view single_value(const http1::header_list& headers, std::string_view name) noexcept {
    std::string_view value;
    bool is_found = false;
    for (const http1::header each : headers) {
        if (!http1::equal_ignoring_case(each.name, name)) continue;
        if (is_found) return {};
        is_found = true;
        value = each.value;
    }
    return value;
}

/// True for 16 bytes in base64.
bool is_key(std::string_view text) noexcept {
    constexpr http1::byte_set digits("+/");
    return text.size() == 24 && text.ends_with("==") && digits.has_all(text.substr(0, 22));
}

std::unexpected<handshake_error> refuse(int status, std::string_view what) noexcept {
    return std::unexpected(handshake_error{status, what});
}

/// The subprotocols that a request offers; false if the fields are malformed.
bool read_protocols(const http1::header_list& headers, std::vector<std::string_view>& offered) {
    for (const http1::header each : headers) {
        if (!http1::equal_ignoring_case(each.name, protocol_field)) continue;
        std::string_view list = each.value;
        std::string_view item;
        while (http1::next_item(list, item)) {
            if (item.empty()) continue;
            if (!http1::is_token(item) || offered.size() == protocol_limit ||
                std::ranges::find(offered, item) != offered.end()) {
                return false;
            }
            offered.push_back(item);
        }
    }
    return true;
}

/// Chooses among the extensions that a request offers; false if the fields are malformed.
bool read_extensions(const http1::header_list& headers, const server_policy& policy,
                     agreement& agreed) {
    std::size_t count = 0;
    for (const http1::header each : headers) {
        if (!http1::equal_ignoring_case(each.name, extensions_field)) continue;
        extension_reader reader(each.value);
        for (;;) {
            const std::string_view name = reader.next_extension();
            if (name.empty()) break;
            if (++count > extension_limit) return false;
            // The parameters of other extensions are skipped by the same call.
            const deflate_parameters offer = read_deflate(reader);
            if (name == deflate_name && policy.deflate && !agreed.deflate)
                agreed.deflate = accept_deflate(offer, *policy.deflate, agreed.extensions);
        }
        if (reader.is_malformed()) return false;
    }
    return true;
}

bool has_upgrade_fields(const http1::message_head& head) noexcept {
    return head.upgrade && head.headers.contains_token("upgrade", "websocket");
}

}  // namespace

bool is_upgrade(const http1::request_head& request) noexcept { return has_upgrade_fields(request); }

std::expected<agreement, handshake_error> check_request(const http1::request_head& request,
                                                        const server_policy& policy) {
    if (!is_upgrade(request))
        return refuse(upgrade_required, "the request does not upgrade to WebSocket");
    if (request.method != "GET") return refuse(bad_request, "a WebSocket begins with GET");
    if (request.minor_version < 1) return refuse(bad_request, "a WebSocket needs HTTP/1.1");
    if (request.has_body()) return refuse(bad_request, "a request for a WebSocket has a body");
    if (single_value(request.headers, version_field) != version)
        return refuse(upgrade_required, "the version of WebSocket is not 13");
    const std::string_view key = single_value(request.headers, key_field);
    if (!is_key(key)) return refuse(bad_request, "Sec-WebSocket-Key is not 16 bytes in base64");

    agreement agreed;
    std::vector<std::string_view> offered;
    if (!read_protocols(request.headers, offered))
        return refuse(bad_request, "Sec-WebSocket-Protocol is malformed");
    const auto chosen = std::ranges::find_if(offered, [&policy](std::string_view each) {
        return std::ranges::find(policy.protocols, each) != policy.protocols.end();
    });
    if (chosen != offered.end()) agreed.protocol = *chosen;
    if (!read_extensions(request.headers, policy, agreed))
        return refuse(bad_request, "Sec-WebSocket-Extensions is malformed");
    agreed.accept = accept_of(key);
    return agreed;
}

result<> add_response_fields(http1::header_list& to, const agreement& agreed) {
    if (auto added = to.add("Upgrade", "websocket"); !added) return added;
    if (auto added = to.add("Connection", "Upgrade"); !added) return added;
    if (auto added = to.add(accept_field, agreed.accept); !added) return added;
    if (!agreed.protocol.empty()) {
        if (auto added = to.add(protocol_field, agreed.protocol); !added) return added;
    }
    if (agreed.extensions.empty()) return {};
    return to.add(extensions_field, agreed.extensions);
}

namespace {

/// Host and port without the scheme's own port.
std::string_view without_port(std::string_view authority, std::string_view port) noexcept {
    return authority.ends_with(port) ? authority.substr(0, authority.size() - port.size())
                                     : authority;
}

/// True if the origin has the host and port of the request. A proxy may have ended the TLS of a
/// plain connection, so an https origin is accepted there.
bool is_of_host(std::string_view origin, std::string_view host, bool is_secure) noexcept {
    if (host.empty()) return false;
    for (const auto& [scheme, port] :
         {std::pair<std::string_view, std::string_view>{"http://", ":80"}, {"https://", ":443"}}) {
        if (!http1::equal_ignoring_case(origin.substr(0, scheme.size()), scheme)) continue;
        if (is_secure && scheme == "http://") return false;
        return http1::equal_ignoring_case(without_port(origin.substr(scheme.size()), port),
                                          without_port(host, port));
    }
    return false;
}

}  // namespace

bool is_origin_allowed(const http1::request_head& request, std::span<const std::string> origins,
                       bool is_secure) noexcept {
    const std::string_view host = request.headers.find("Host").value_or("");
    for (const http1::header field : request.headers) {
        if (!http1::equal_ignoring_case(field.name, "Origin") ||
            is_of_host(field.value, host, is_secure))
            continue;
        const bool is_listed = std::ranges::any_of(origins, [&](std::string_view each) {
            return each == "*" || http1::equal_ignoring_case(each, field.value);
        });
        if (!is_listed) return false;
    }
    return true;
}

result<> add_error_fields(http1::header_list& to, const handshake_error& error) {
    if (error.status != upgrade_required) return {};
    if (auto added = to.add("Upgrade", "websocket"); !added) return added;
    if (auto added = to.add("Connection", "Upgrade"); !added) return added;
    return to.add(version_field, version);
}

std::string make_key(const std::array<std::uint8_t, 16>& random) {
    return base64({reinterpret_cast<const char*>(random.data()), random.size()});
}

std::string accept_of(std::string_view key) {
    std::string text(key);
    text += accept_suffix;
    const sha1_digest made = sha1(text);
    return base64({reinterpret_cast<const char*>(made.data()), made.size()});
}

result<> add_request_fields(http1::header_list& to, const client_offer& offer) {
    if (!is_key(offer.key)) return fail(errc::malformed);
    if (offer.protocols.size() > protocol_limit) return fail(errc::limit_reached);
    std::string protocols;
    for (auto each = offer.protocols.begin(); each != offer.protocols.end(); ++each) {
        if (!http1::is_token(*each) || std::find(offer.protocols.begin(), each, *each) != each)
            return fail(errc::malformed);
        protocols.append(protocols.empty() ? "" : ", ").append(*each);
    }
    if (auto added = to.add("Upgrade", "websocket"); !added) return added;
    if (auto added = to.add("Connection", "Upgrade"); !added) return added;
    if (auto added = to.add(version_field, version); !added) return added;
    if (auto added = to.add(key_field, offer.key); !added) return added;
    if (!protocols.empty()) {
        if (auto added = to.add(protocol_field, protocols); !added) return added;
    }
    if (!offer.deflate) return {};
    return to.add(extensions_field, offer_deflate(*offer.deflate));
}

std::expected<agreement, handshake_error> check_response(const http1::response_head& response,
                                                         const client_offer& offer) {
    const auto refused = [&response](std::string_view what) {
        return refuse(response.status, what);
    };
    if (response.status != switching_protocols)
        return refused("the server does not switch to WebSocket");
    if (!has_upgrade_fields(response)) return refused("the server switches to another protocol");
    agreement agreed;
    agreed.accept = accept_of(offer.key);
    if (single_value(response.headers, accept_field) != agreed.accept)
        return refused("Sec-WebSocket-Accept does not answer the key");

    if (response.headers.contains(protocol_field)) {
        agreed.protocol = single_value(response.headers, protocol_field);
        if (std::ranges::find(offer.protocols, agreed.protocol) == offer.protocols.end())
            return refused("the server chose a subprotocol that was not offered");
    }
    bool has_extension = false;
    for (const http1::header each : response.headers) {
        if (!http1::equal_ignoring_case(each.name, extensions_field)) continue;
        extension_reader reader(each.value);
        for (;;) {
            const std::string_view name = reader.next_extension();
            if (name.empty()) break;
            if (name != deflate_name || !offer.deflate || has_extension)
                return refused("the server chose an extension that was not offered");
            has_extension = true;
            agreed.deflate = confirm_deflate(read_deflate(reader), *offer.deflate);
            if (!agreed.deflate && !reader.is_malformed())
                return refused("the server's terms of permessage-deflate do not fit the offer");
            agreed.extensions = each.value;
        }
        if (reader.is_malformed()) return refused("Sec-WebSocket-Extensions is malformed");
    }
    return agreed;
}

}  // namespace eddy::websocket
