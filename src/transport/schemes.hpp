// Table of schemes: the one place to add a protocol.
#pragma once

#include <eddy/transport/transport.hpp>

#include <expected>
#include <span>
#include <string>
#include <string_view>

namespace eddy::transport {

/// Syntax and functions of one scheme. A null function: the scheme has no such operation, or this
/// build lacks it; `unsupported` names it for the user.
struct scheme_entry {
    std::string_view name;
    scheme kind;
    bool has_path;  // else a host and a port
    result<listener> (*listen)(const address& where, const listen_options& options);
    task<result<stream>> (*connect)(address where, tcp::connect_options options);
    result<datagram> (*bind_datagram)(const address& where, const datagram_options& options);
    /// Conversion of each connection of a listener in parts, whose `below` stays closed here;
    /// listen_below opens that. Null where listen() yields plain streams.
    result<listener_parts> (*make_parts)(const address& where);
    result<listener> (*listen_below)(const address& where, const listen_options& options);
    std::string_view unsupported;
};

std::span<const scheme_entry> schemes() noexcept;

/// Fault of a URI, as the end of a sentence.
struct fault {
    std::string what;
};

std::expected<address, fault> parse_or_explain(std::string_view uri);

// handoff_scheme.cpp, or in builds without the layer handoff, no_handoff_scheme.cpp.

extern const scheme_entry handoff_entry;

// shm_scheme.cpp, or in builds without the layer shm, no_shm_scheme.cpp.

extern const scheme_entry shm_entry;

// tls_scheme.cpp, or in builds without the layer tls, no_tls_scheme.cpp.

extern const scheme_entry tls_entry;

/// transport::renew() of a tls address.
result<> renew_tls(listener& of, const address& where);

/// Reason why the certificates of a tls address cannot be used, as a sentence; empty when they can.
std::string explain_certificates(const address& where);

}  // namespace eddy::transport
