// Answers of a stream runtime to the clients that are handed over.
#include "runtime/stream/answer.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/base/byte_buffer.hpp>
#include <eddy/wire/http1.hpp>
#include <eddy/wire/json.hpp>

#include "base/text/text.hpp"
#include "http/fields/http_date.hpp"
#include "http/session/spare_buffers.hpp"

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

/// Adds fields to a head, and a Date where they have none, up to `limit` bytes of fields.
void add_fields(http1::head_writer& head, std::span<const response_header> fields,
                std::size_t limit) {
    if (!has_field(fields, "Date")) head.field("Date", date_now());
    for (const response_header& each : fields) {
        const std::size_t size = each.name.size() + each.value.size() + 4;
        if (size > limit) return;
        limit -= size;
        head.field(each.name, each.value);
    }
}

/// A head that `write` gives to an http1::head_writer, and what stands behind it. It is written to
/// a spare buffer, so that the text that is made is the one allocation.
template <class Write>
std::string text_of(Write&& write, std::string_view behind = {}) {
    byte_buffer out;
    http::take_spare(out);
    http1::head_writer head(out);
    write(head);
    const result<> written = head.end();
    EDDY_ASSERT(written);  // a request keeps only fields that a response may have
    out.append(behind);
    std::string made(out.text());
    out.clear();
    http::give_spare(out);
    return made;
}

}  // namespace

std::string_view date_now() noexcept {
    thread_local http::http_date_writer dates;
    return dates.write(http::wall_clock_seconds());
}

std::string response_head(std::span<const response_header> extra, int status,
                          std::string_view content_type) {
    return text_of([&](http1::head_writer& head) {
        head.response(status)
            .field("Content-Type", content_type)
            .field("Cache-Control", "no-cache")
            .field("Connection", "close")
            .field("X-Accel-Buffering", "no");
        add_fields(head, extra, SIZE_MAX);
    });
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

std::string refusal(int status, std::string_view reason, const stream_request& to,
                    std::chrono::seconds retry_after) {
    const std::string body = member("error", reason) + "\n";
    const auto write = [&](http1::head_writer& head) {
        head.response(status)
            .field("Content-Type", "application/json")
            .framing(http1::body_framing::sized(body.size()))
            .field("Connection", "close");
        const bool is_for_now = status == 429 || status == 503;
        if (is_for_now && !has_field(to.headers, "Retry-After"))
            head.field("Retry-After", std::to_string(retry_after.count()));
        add_fields(head, to.headers, max_refusal_fields);
    };
    return text_of(write, to.is_head ? std::string_view() : body);
}

std::string no_content(const stream_request& to) {
    return text_of([&](http1::head_writer& head) {
        head.response(204).field("Connection", "close");
        add_fields(head, to.headers, max_refusal_fields);
    });
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
