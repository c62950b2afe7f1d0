// Answers of a stream runtime to the clients that are handed over.
#include "runtime/stream/answer.hpp"

#include <eddy/wire/http1/headers.hpp>
#include <eddy/wire/json.hpp>

#include <fmt/format.h>
#include <sys/socket.h>

namespace eddy::runtime::stream {
namespace {

/// A JSON object of one text.
std::string member(std::string_view name, std::string_view text) {
    json_writer out;
    out.begin_object().member(name, text).end_object();
    return out.take();
}

}  // namespace

std::string response_head(std::span<const response_header> extra, int status,
                          std::string_view content_type) {
    std::string head = fmt::format(
        "HTTP/1.1 {} {}\r\n"
        "Content-Type: {}\r\n"
        "Cache-Control: no-cache\r\n"
        "Connection: close\r\n"
        "X-Accel-Buffering: no\r\n",
        status, http1::reason_phrase(status), content_type);
    for (const response_header& each : extra)
        head.append(each.name).append(": ").append(each.value).append("\r\n");
    return head += "\r\n";
}

std::string content_event(std::string_view content) {
    return fmt::format("data: {}\n\n", member("content", content));
}

std::string error_event(std::string_view reason) {
    return fmt::format("data: {}\n\n", member("error", reason));
}

std::string refusal(int status, std::string_view reason) {
    const std::string body = member("error", reason) + "\n";
    return fmt::format(
        "HTTP/1.1 {} {}\r\n"
        "Content-Type: application/json\r\n"
        "Content-Length: {}\r\n"
        "{}"
        "Connection: close\r\n\r\n{}",
        status, http1::reason_phrase(status), body.size(),
        status == 503 ? "Retry-After: 1\r\n" : "", body);
}

void send_and_close(unique_fd client, std::string_view response) noexcept {
    // The response fits into the socket's buffer, unless its peer has never read: then it has no
    // use.
    static_cast<void>(
        ::send(client.get(), response.data(), response.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
    ::shutdown(client.get(), SHUT_WR);
    char unread[4096];
    for (int i = 0; i < 16; ++i)
        if (::recv(client.get(), unread, sizeof(unread), MSG_DONTWAIT) <= 0) break;
}

}  // namespace eddy::runtime::stream
