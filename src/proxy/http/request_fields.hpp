// Fields of forwarded messages: what a backend gets of a request's, and a client of a response's.
#pragma once

#include <eddy/http/request.hpp>
#include <eddy/wire/http1.hpp>

#include "proxy/http/forwarder.hpp"

#include <cstdint>
#include <optional>
#include <string_view>

namespace eddy::proxy {

/// True for a field that rules and scripts may set: the proxy itself decides about the others, such
/// as Host, Via, framing and hop-by-hop fields.
bool is_settable_field(std::string_view name) noexcept;

/// Facts of a request for its forwarded fields. All of it must outlive the writing.
struct forwarded_request {
    const http1::request_head& head;
    const forwarding_rules& rules;
    std::string_view host;   ///< the client's
    std::string_view spare;  ///< Host of a request that has none
    const http::client_address& client;
    bool is_secure = false;  ///< it came over TLS
    bool upgrades = false;   ///< its Upgrade is forwarded
    /// In the place of its Max-Forwards; none: a field of that name is passed on.
    std::optional<std::uint32_t> max_forwards = std::nullopt;
    bool has_content = false;  ///< some of it was read: Expect is not passed on
};

/// Writes the fields of the request as a backend gets them, without framing: Host first,
/// then the end-to-end fields in their order, then the client, Via and Connection.
void write_request_fields(const forwarded_request& of, http1::head_writer& to);

/// Edits the fields of a response for its client.
void edit_response_fields(const forwarding_rules& rules, http1::header_list& fields);
/// Edits those of an interim response, to which the rules add none.
void edit_interim_fields(const forwarding_rules& rules, http1::header_list& fields);

/// The trailers of a request that a backend gets, and of a response that a client gets: without
/// fields that have a meaning in a head alone or that the rules name. Recipients may join
/// the others with the head.
http1::header_list request_trailers(const forwarding_rules& rules, const http1::header_list& of);
http1::header_list response_trailers(const forwarding_rules& rules, const http1::header_list& of);

}  // namespace eddy::proxy
