// Requests: decoding of targets, lookups, and the collected body.
#include <eddy/http/request.hpp>

#include <eddy/base/assert.hpp>

#include <algorithm>
#include <charconv>
#include <limits>
#include <system_error>
#include <utility>

namespace eddy::http {

result<request> request::make_undecoded(const http1::request_head& head, body_reader& content) {
    request made(head, content);
    const auto parts = http1::split_target(head.method, head.target);
    if (!parts) return fail(parts.error());
    made.parts_ = *parts;
    made.path_ = parts->path.empty() ? std::string_view("/") : parts->path;
    return made;
}

result<request> request::make(const http1::request_head& head, body_reader& content) {
    auto made = make_undecoded(head, content);
    if (!made || made->parts_.query.empty()) return made;
    http1::query_reader reader(made->parts_.query);
    made->query_.reserve(1);
    while (auto parameter = reader.next()) made->query_.push_back(std::move(*parameter));
    if (reader.malformed()) return fail(errc::malformed);
    return made;
}

std::optional<std::string_view> request::query(std::string_view name) const noexcept {
    for (const http1::query_parameter& each : query_)
        if (each.name == name) return each.value;
    return std::nullopt;
}

std::string_view request::path_parameter(std::string_view name) const noexcept {
    const auto found = std::ranges::find(arguments_, name, &path_argument::name);
    EDDY_PRECONDITION(
        found != arguments_.end(),
        "path_parameter() or path_integer(): the route's pattern has no parameter of this name");
    return found->value;
}

std::int64_t request::path_integer(std::string_view name) const noexcept {
    const std::string_view text = path_parameter(name);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    EDDY_PRECONDITION(error == std::errc() && end == text.data() + text.size(),
                      "path_integer(): the pattern's parameter is not declared as an integer");
    return value;
}

void request::set_route(std::vector<path_argument> arguments) noexcept {
    arguments_ = std::move(arguments);
}

void request::set_body(std::unique_ptr<body_reader> content) noexcept {
    own_body_ = std::move(content);
    body_ = own_body_.get();
}

task<result<>> request::collect() {
    // A parser limit bounds it already.
    auto text = co_await body_->whole(std::numeric_limits<std::size_t>::max());
    if (!text) co_return fail(text.error());
    content_ = std::move(*text);
    co_return result<>();
}

}  // namespace eddy::http
