// Heads of proxied responses.
#include "runtime/stream/sources/proxied_head.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/result.hpp>

#include "base/text/text.hpp"
#include "runtime/stream/answer.hpp"
#include "wire/http1/forwarding.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <system_error>

namespace eddy::runtime::stream {
namespace {

/// Commands of an application to the web server before it, such as to send one of its files.
bool commands_server(std::string_view name) noexcept {
    constexpr std::string_view accel = "x-accel-";
    return is_word(name.substr(0, accel.size()), accel) || is_word(name, "x-sendfile");
}

/// Fields that are written anew: the content's framing. TE says nothing in a response.
bool is_replaced(std::string_view name) noexcept {
    return is_word(name, "content-length") || is_word(name, "te");
}

bool has_field(const stream_request& of, std::string_view name) noexcept {
    return std::ranges::any_of(of.headers, [&](const response_header& each) {
        return equal_in_any_case(each.name, name);
    });
}

bool has_no_content(int status) noexcept { return status == 204 || status == 304; }

/// The length that a response declares for content that is passed on as it comes.
std::optional<std::uint64_t> length_of(const http1::header_list& fields) noexcept {
    const auto text = fields.find("Content-Length");
    if (!text || fields.contains("Transfer-Encoding")) return std::nullopt;
    std::uint64_t length = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), length);
    if (error != std::errc{} || end != text->data() + text->size()) return std::nullopt;
    return length;
}

http1::body_framing framing_of(int status, const http1::header_list& fields,
                               const stream_request& to) {
    if (has_no_content(status)) return http1::body_framing::none();
    if (const auto length = length_of(fields)) return http1::body_framing::sized(*length);
    return to.is_before_http_1_1 ? http1::body_framing::until_close()
                                 : http1::body_framing::chunked();
}

}  // namespace

proxied_head make_proxied_head(int status, const http1::header_list& fields,
                               const stream_request& to) {
    EDDY_ASSERT(status >= 200);
    byte_buffer out;
    http1::head_writer head(out);
    head.response(status);
    const http1::end_to_end_fields kept(fields);
    for (const http1::header each : fields) {
        if (!kept.forwarded(each) || is_replaced(each.name) || commands_server(each.name)) continue;
        if (!is_word(each.name, "set-cookie") && has_field(to, each.name)) continue;
        head.field(each.name, each.value);
    }
    for (const response_header& each : to.headers) head.field(each.name, each.value);
    if (!fields.contains("Content-Type") && !has_no_content(status))
        head.field("Content-Type", "application/octet-stream");
    if (!fields.contains("Cache-Control")) head.field("Cache-Control", "no-cache");
    head.field("X-Accel-Buffering", "no");
    if (!fields.contains("Date") && !has_field(to, "Date")) head.field("Date", date_now());
    const http1::body_framing framing = framing_of(status, fields, to);
    // It is written with that framing.
    if (framing.how != http1::body_framing::kind::until_close) head.field("Connection", "close");
    const result<> written = head.end(framing);
    EDDY_ASSERT(written);  // both lists have checked their fields
    const bool has_content = !has_no_content(status) && !to.is_head;
    return {std::string(out.text()), has_content ? framing.how : http1::body_framing::kind::none};
}

std::string chunk_of(std::string_view content) {
    byte_buffer out;
    http1::write_chunk(out, content);
    return std::string(out.text());
}

}  // namespace eddy::runtime::stream
