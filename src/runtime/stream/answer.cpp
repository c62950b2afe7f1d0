// Answers of a stream runtime to the clients that are handed over.
#include "runtime/stream/answer.hpp"

#include <eddy/wire/http1/headers.hpp>
#include <eddy/wire/json.hpp>

#include "base/text.hpp"
#include "http/http_date.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>

namespace eddy::runtime::stream {
namespace {

/// A JSON object of one text.
std::string member(std::string_view name, std::string_view text) {
    json_writer out;
    out.begin_object().member(name, text).end_object();
    return out.take();
}

bool has_field(std::span<const response_header> in, std::string_view name) noexcept {
    return std::ranges::any_of(
        in, [&](const response_header& each) { return equal_in_any_case(each.name, name); });
}

/// Appends fields to a head, and a Date where they have none, up to `limit` bytes of fields.
void append_fields(std::string& head, std::span<const response_header> fields, std::size_t limit) {
    if (!has_field(fields, "Date")) head.append("Date: ").append(date_now()).append("\r\n");
    for (const response_header& each : fields) {
        const std::size_t size = each.name.size() + each.value.size() + 4;
        if (size > limit) return;
        limit -= size;
        head.append(each.name).append(": ").append(each.value).append("\r\n");
    }
}

}  // namespace

std::string_view date_now() noexcept {
    thread_local http::http_date_writer dates;
    return dates.write(http::wall_clock_seconds());
}

std::string response_head(std::span<const response_header> extra, int status,
                          std::string_view content_type) {
    std::string head = fmt::format(
        "HTTP/1.1 {} {}\r\n"
        "Content-Type: {}\r\n"
        "Cache-Control: no-cache\r\n"
        "Connection: close\r\n"
        "X-Accel-Buffering: no\r\n",
        status, http1::reason_phrase(status), content_type);
    append_fields(head, extra, SIZE_MAX);
    return head += "\r\n";
}

std::string content_event(std::string_view content, std::uint32_t choice) {
    json_writer out;
    out.begin_object().member("content", content);
    if (choice > 0) out.member("index", choice);
    return fmt::format("data: {}\n\n", out.end_object().take());
}

std::string error_event(std::string_view reason) {
    return fmt::format("data: {}\n\n", member("error", reason));
}

std::string refusal(int status, std::string_view reason, const request& to) {
    const std::string body = member("error", reason) + "\n";
    std::string made = fmt::format(
        "HTTP/1.1 {} {}\r\n"
        "Content-Type: application/json\r\n"
        "Content-Length: {}\r\n"
        "Connection: close\r\n",
        status, http1::reason_phrase(status), body.size());
    if (status == 503 && !has_field(to.headers, "Retry-After")) made += "Retry-After: 1\r\n";
    append_fields(made, to.headers, max_refusal_fields);
    made += "\r\n";
    return to.is_head ? made : made += body;
}

std::string no_content(const request& to) {
    std::string made = "HTTP/1.1 204 No Content\r\nConnection: close\r\n";
    append_fields(made, to.headers, max_refusal_fields);
    return made += "\r\n";
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
