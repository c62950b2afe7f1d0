// Addresses of etcd as a URI: endpoints, prefix of keys, user, and files of TLS.
//
//     etcd://10.0.0.1:2379,10.0.0.2:2379/eddy    etcd://db.example (port 2379, prefix "eddy")
//     etcds://db.example:2379?ca=/etc/ca.pem&cert=/etc/me.pem&key=/etc/me.key        (over TLS)
//     etcd://db.example/shop?user=eddy&password-file=/etc/eddy/etcd.password
#pragma once

#include <eddy/transport/transport.hpp>

#include "base/problem.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cluster {

/// Endpoints of an address, at most.
inline constexpr std::size_t max_etcd_endpoints = 16;
/// Bytes of such a URI, of a prefix, and of a password.
inline constexpr std::size_t max_etcd_uri = 4096;
inline constexpr std::size_t max_etcd_prefix = 253;
inline constexpr std::size_t max_etcd_password = 1024;

inline constexpr std::uint16_t default_etcd_port = 2379;
inline constexpr std::string_view default_etcd_prefix = "eddy";

/// A parsed URI.
struct etcd_address {
    /// tcp, or tls with the files of the URI. At least one.
    std::vector<transport::address> endpoints;
    /// First part of all keys, without '/' at its ends.
    std::string prefix{default_etcd_prefix};
    std::string user;           ///< empty: none
    std::string password_file;  ///< read for each authentication; its first line is the password

    friend bool operator==(const etcd_address&, const etcd_address&) = default;
};

/// True for what parse_etcd_address() takes: the scheme is etcd or etcds.
bool is_etcd_address(std::string_view uri) noexcept;
/// Reads a URI; refuses (400) what is none, with the part that is wrong. Values of parameters are
/// taken literally.
outcome<etcd_address> parse_etcd_address(std::string_view uri);
/// An endpoint as messages name it: "etcd://10.0.0.1:2379".
std::string etcd_endpoint_name(const transport::address& of);

}  // namespace eddy::cluster
