// First lines of HTTP clients, for tests of a server that must not forward them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime::server {

/// First lines of HTTP clients: right ones, and others that no parser of HTTP/1.1 accepts.
inline const std::vector<std::string> request_lines{
    "GET / HTTP/1.1\r\n",
    "GET / HTTP/1.0\r\n",
    "GET / HTTP/0.9\r\n",
    "GET / HTTP/1.2\r\n",
    "GET / HTTP/2\r\n",
    "GET / HTTP/2.0\r\n",
    "GET /\r\n",
    "GET / HTTP/1.1\n",
    "GET / HTTP/1.1 \r\n",
    "GET / http/1.1\r\n",
    "GET / HTTP/1.1 more\r\n",
    "GET  / HTTP/1.1\r\n",
    "GET\t/ HTTP/1.1\r\n",
    "GET /  HTTP/1.1\r\n",
    "GET /a b c HTTP/1.1\r\n",
    "GET  HTTP/1.1\r\n",
    "GET x HTTP/1.1\r\n",
    "GET ?q=1\r\n",
    "GET HTTP://x/ HTTP/1.1\r\n",
    "\r\nGET / HTTP/1.1\r\n",
    "\nGET / HTTP/1.1\r\n",
    "\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\n",
    " GET / HTTP/1.1\r\n",
    "get / HTTP/1.1\r\n",
    "Get /\r\n",
    "post http://x/ HTTP/1.1\r\n",
    "POST /x HTTP/1.0\r\n",
    "PRI * HTTP/2.0\r\n",
    "OPTIONS * HTTP/1.1\r\n",
    "options * HTTP/1.1\r\n",
    "CONNECT x:443 HTTP/1.1\r\n",
    "M-SEARCH * HTTP/1.1\r\n",
    "VERSION-CONTROL /x HTTP/1.1\r\n",
    "PROPFIND / HTTP/1.1\r\n",
    "propfind /\r\n",
    "FOO-BAR / HTTP/1.1\r\n",
    "FOO_BAR /x HTTP/3\r\n",
    "FOO / HTTP/1.1\rCookie: secret\r\r\n",
};

/// First bytes of a protocol that a server refuses, and a part of what the journal says of them.
struct foreign_start {
    std::string bytes;
    std::string_view name;
    bool is_tls = false;
    /// Each of its beginnings waits for the rest.
    bool waits = true;
};

inline std::vector<foreign_start> foreign_starts() {
    using namespace std::string_literals;
    const std::string header = "\x21\x12\xa4\x42" + std::string(12, 'i');
    const std::string name = "\0\x06\0\x08secret\n\n"s;
    const std::string client_hello = "\x01\0\0\x28\x03\x03"s + std::string(38, 'r');
    return {
        // Binding (ICE) and Allocate (TURN), and both behind their length.
        {"\0\x01\0\x0c"s + header + name, "STUN"},
        {"\0\x03\0\0"s + header, "STUN"},
        {"\0\x20\0\x01\0\x0c"s + header + name, "STUN"},
        {"\0\x14\0\x03\0\0"s + header, "STUN"},
        {"\x01\x0a\0\x01\0\xf6"s + header + name, "STUN", false, false},
        {"PROXY TCP4 127.0.0.1 127.0.0.1 5 6\r\nGET /secret HTTP/1.1\r\n\r\n", "PROXY"},
        {"PROXY UNKNOWN\r\nGET /secret HTTP/1.1\r\n\r\n", "PROXY"},
        {"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0GET /secret HTTP/1.1\r\n\r\n"s, "PROXY"},
        {"\x16\x03\x01\0\x2c"s + client_hello, "TLS", true},
        {"\x16\x03\x03\0\x0a"s + client_hello, "TLS", true},
        {"\x80\x46\x01\x03\x01\0\x2d\0\0\0\x10\0\0\x0a"s, "TLS", true, false},
    };
}

/// True for the beginning of a method that is not registered: such bytes are messages, where
/// messages are no lines.
inline bool is_of_unknown_method(std::string_view bytes) {
    constexpr std::string_view name = "FOO";
    return bytes.substr(0, name.size()) == name.substr(0, bytes.size()) && !bytes.empty() &&
           !bytes.contains(' ');
}

}  // namespace eddy::runtime::server
