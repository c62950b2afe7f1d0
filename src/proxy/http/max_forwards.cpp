// Reading of Max-Forwards, and the answers at its end.
#include "proxy/http/max_forwards.hpp"

#include "wire/http1/text.hpp"

#include <charconv>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace eddy::proxy {
namespace {

using http1::header;
using http1::is_lower_case_of;

bool is_secret(std::string_view name) noexcept {
    return is_lower_case_of(name, "authorization") ||
           is_lower_case_of(name, "proxy-authorization") || is_lower_case_of(name, "cookie");
}

}  // namespace

result<std::optional<std::uint32_t>> max_forwards_of(const http1::request_head& head) {
    std::optional<std::uint32_t> found;
    if (head.method != "TRACE" && head.method != "OPTIONS") return found;
    for (const header each : head.headers) {
        if (!is_lower_case_of(each.name, "max-forwards")) continue;
        std::uint32_t number = 0;
        const char* const end = each.value.data() + each.value.size();
        const auto read = std::from_chars(each.value.data(), end, number);
        if (read.ptr != end || read.ec == std::errc::invalid_argument || found)
            return fail(errc::malformed);
        found = read.ec == std::errc() ? number : UINT32_MAX;
    }
    return found;
}

http::response answer_as_recipient(const http1::request_head& head) {
    if (head.method != "TRACE") return http::response(200);
    std::string text = head.method + " " + head.target +
                       (head.minor_version == 0 ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n");
    for (const header each : head.headers)
        if (!is_secret(each.name))
            text.append(each.name).append(": ").append(each.value).append("\r\n");
    text += "\r\n";
    return {200, "message/http", std::move(text)};
}

}  // namespace eddy::proxy
