// Proxy backend: the response of a URL, passed through as it comes.
#include "runtime/stream/answer.hpp"
#include "runtime/stream/relay_backend.hpp"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::runtime::stream {
namespace {

/// The length that a response declares for content that is passed on as it comes.
std::optional<std::string> length_of(const http::pool_response& of) {
    const auto length = of.headers.find("Content-Length");
    if (!length || of.headers.contains("Transfer-Encoding") || of.status == 204 || of.status == 304)
        return std::nullopt;
    const bool is_number =
        !length->empty() && length->find_first_not_of("0123456789") == std::string_view::npos;
    return is_number ? std::optional(std::string(*length)) : std::nullopt;
}

}  // namespace

/// Sends the request, which keeps its fields for the response alone. As openai_backend::ask().
task<result<http::pool_response>> proxy_backend::ask(request& from) {
    http::pool_request asked = upstream("");
    if (!from.last_event_id.empty() && http1::is_field_value(from.last_event_id))
        add_field(asked, "Last-Event-ID", from.last_event_id);
    asked.body = from.message.empty() ? std::string("{}") : std::exchange(from.message, {});
    return web().send(std::move(asked));
}

task<std::string_view> proxy_backend::run(relay& to, std::unique_ptr<request> from) {
    auto answer = co_await ask(*from);
    if (!answer) co_return reason_of(answer.error());
    if (answer->status < 200) co_return "backend_status";
    const auto type = answer->headers.find("Content-Type");
    // With it the client notices content that broke off.
    if (auto length = length_of(*answer))
        from->headers.push_back({"Content-Length", std::move(*length)});
    else if (answer->status != 204 && answer->status != 304)
        end_by_close(to);
    // No coding was asked for, but a server may use one all the same (RFC 9110 12.5.3).
    for (const http1::header each : answer->headers)
        if (http1::equal_ignoring_case(each.name, "Content-Encoding"))
            from->headers.push_back({"Content-Encoding", std::string(each.value)});
    to.has_head = true;
    const std::string_view content_type =
        type ? std::string_view(*type) : std::string_view("application/octet-stream");
    std::string head = response_head(from->headers, answer->status, content_type);
    from.reset();
    answer->headers = {};
    answer->url = {};
    if (!co_await send(to, std::move(head))) co_return "";
    for (;;) {
        auto piece = co_await answer->body().read();
        if (!piece && piece.error() == errc::end_of_stream) co_return "";
        if (!piece && piece.error() == errc::timed_out) co_return "backend_stalled";
        if (!piece) co_return "backend_broke_off";
        if (!co_await send(to, std::string(*piece))) co_return "";
    }
}

}  // namespace eddy::runtime::stream
