// Answers of a stream runtime to the clients that are handed over.
#include "runtime/stream/answer.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/wire/json.hpp>

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>

namespace eddy::runtime::stream {
namespace {

std::string_view phrase(int status) noexcept {
    switch (status) {
        case 400: return "Bad Request";
        case 413: return "Content Too Large";
        case 503: return "Service Unavailable";
        default: EDDY_ASSERT(false);
    }
}

int option_of(int socket, int name) noexcept {
    int value = 0;
    socklen_t size = sizeof(value);
    return ::getsockopt(socket, SOL_SOCKET, name, &value, &size) < 0 ? -1 : value;
}

}  // namespace

std::string response_head(std::span<const response_header> extra) {
    std::string head =
        "HTTP/1.1 200 OK\r\n"
        "Content-Type: text/event-stream\r\n"
        "Cache-Control: no-cache\r\n"
        "Connection: close\r\n"
        "X-Accel-Buffering: no\r\n";
    for (const response_header& each : extra)
        head.append(each.name).append(": ").append(each.value).append("\r\n");
    return head += "\r\n";
}

std::string content_event(std::string_view content) {
    json_writer out;
    out.begin_object().member("content", content).end_object();
    return fmt::format("data: {}\n\n", out.take());
}

std::string refusal(int status, std::string_view reason) {
    json_writer out;
    out.begin_object().member("error", reason).end_object();
    const std::string body = out.take() + "\n";
    return fmt::format(
        "HTTP/1.1 {} {}\r\n"
        "Content-Type: application/json\r\n"
        "Content-Length: {}\r\n"
        "{}"
        "Connection: close\r\n\r\n{}",
        status, phrase(status), body.size(), status == 503 ? "Retry-After: 1\r\n" : "", body);
}

std::string_view find_fault(int client) noexcept {
    const int type = option_of(client, SO_TYPE);
    if (type < 0) return "not_a_socket";
    if (type != SOCK_STREAM) return "not_a_stream_socket";
    if (option_of(client, SO_ACCEPTCONN) != 0) return "listening_socket";
    sockaddr_storage peer{};
    socklen_t size = sizeof(peer);
    if (::getpeername(client, reinterpret_cast<sockaddr*>(&peer), &size) < 0)
        return "not_connected";
    return {};
}

void refuse_client(unique_fd client, std::string_view response) noexcept {
    // A refusal fits into the socket's buffer, unless its peer has never read: then it has no use.
    static_cast<void>(
        ::send(client.get(), response.data(), response.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
    ::shutdown(client.get(), SHUT_WR);
    char unread[4096];
    for (int i = 0; i < 16; ++i)
        if (::recv(client.get(), unread, sizeof(unread), MSG_DONTWAIT) <= 0) break;
}

}  // namespace eddy::runtime::stream
