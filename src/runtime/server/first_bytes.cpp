// Request lines and heads, as far as they have come.
#include "runtime/server/first_bytes.hpp"

#include <eddy/wire/http1.hpp>
#include <eddy/wire/websocket.hpp>

#include <algorithm>

namespace eddy::runtime::server {
namespace {

constexpr std::size_t longest_method = 16;

bool is_method_byte(char byte) noexcept { return byte >= 'A' && byte <= 'Z'; }

/// Whether the bytes behind a method may still become a target: a path, "*" or a URL of http
/// (RFC 9112, 3.2).
bool may_begin_target(std::string_view bytes) noexcept {
    constexpr std::string_view url = "http";
    if (bytes.empty() || bytes.front() == '/' || bytes.front() == '*') return true;
    const std::string_view begun = bytes.substr(0, url.size());
    return std::ranges::equal(begun, url.substr(0, begun.size()),
                              [](char a, char b) { return (a | 0x20) == b; });
}

/// Whether the bytes may still become a request line: "METHOD " and a target.
bool may_begin_request(std::string_view bytes, bool takes_requests) noexcept {
    constexpr std::string_view get = "GET ";
    if (!takes_requests && !get.starts_with(bytes.substr(0, get.size()))) return false;
    const auto end = std::ranges::find_if_not(bytes, is_method_byte);
    const auto size = static_cast<std::size_t>(end - bytes.begin());
    if (size > longest_method) return false;
    if (end == bytes.end()) return true;
    if (size == 0 || *end != ' ') return false;
    // The target of CONNECT is a host and a port.
    return bytes.substr(0, size) == "CONNECT" || may_begin_target(bytes.substr(size + 1));
}

}  // namespace

bool begins_request(std::string_view bytes, bool takes_requests) {
    const auto end =
        static_cast<std::size_t>(std::ranges::find_if_not(bytes, is_method_byte) - bytes.begin());
    return bytes.size() > end + 1 && may_begin_request(bytes, takes_requests) &&
           judge_first_bytes(bytes, takes_requests) != speech::raw;
}

namespace {

bool is_request_line(std::string_view line) noexcept {
    return line.ends_with(" HTTP/1.1\r") || line.ends_with(" HTTP/1.0\r");
}

}  // namespace

speech judge_first_bytes(std::string_view bytes, bool takes_requests) {
    if (!may_begin_request(bytes, takes_requests)) return speech::raw;
    const std::size_t line_end = bytes.find('\n');
    const auto wait = [&] {
        return bytes.size() > longest_first_head ? speech::raw : speech::undecided;
    };
    if (line_end == std::string_view::npos) return wait();
    if (!is_request_line(bytes.substr(0, line_end))) return speech::raw;
    if (takes_requests) return speech::http;
    const std::size_t end = bytes.find("\r\n\r\n");
    if (end == std::string_view::npos) return wait();
    http1::request_parser parser;
    const http1::step read = parser.parse(bytes.substr(0, end + 4));
    const bool asks = read.what == http1::event::head && eddy::websocket::is_upgrade(parser.head());
    return asks ? speech::http : speech::raw;
}

}  // namespace eddy::runtime::server
