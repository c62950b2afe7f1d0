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
};

/// Whether these bytes are the beginning of a method that is not registered: messages, where
/// messages are no lines.
inline bool is_of_unknown_method(std::string_view bytes) {
    constexpr std::string_view name = "FOO";
    return bytes.substr(0, name.size()) == name.substr(0, bytes.size()) && !bytes.empty() &&
           !bytes.contains(' ');
}

}  // namespace eddy::runtime::server
