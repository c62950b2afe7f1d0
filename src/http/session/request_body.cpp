// Whole bodies of a known type: text, URL-encoded forms, JSON.
#include "http/session/request_body.hpp"

#include <eddy/http/form.hpp>
#include <eddy/http/json_body.hpp>
#include <eddy/wire/http1/parameters.hpp>
#include <eddy/wire/json.hpp>

#include <utility>

namespace eddy::http {

std::error_code declare_fault(request& incoming, int status, std::string_view what) noexcept {
    incoming.set_fault({status, what});
    if (status == 413) return errc::limit_reached;
    return status == 415 ? errc::unsupported : errc::malformed;
}

std::string_view content_type_of(const request& incoming) noexcept {
    return incoming.headers().find("Content-Type").value_or(std::string_view());
}

task<result<std::string>> take_text(request& incoming, std::optional<std::uint64_t> limit) {
    if (!incoming.body().ended()) {
        if (limit) incoming.body().set_limit(*limit);
        const auto collected = co_await incoming.collect();
        if (!collected) co_return fail(collected.error());
    }
    co_return std::move(incoming.content());
}

std::optional<std::string_view> form::find(std::string_view name) const noexcept {
    for (const http1::query_parameter& each : fields_)
        if (each.name == name) return each.value;
    return std::nullopt;
}

task<result<form>> read_form(request& incoming, form_limits limits) {
    const auto refuse = [&](int status, std::string_view what) {
        return fail(declare_fault(incoming, status, what));
    };
    if (!http1::has_media_type(content_type_of(incoming), "application/x-www-form-urlencoded"))
        co_return refuse(415, "the body is not of type application/x-www-form-urlencoded");
    const auto text = co_await take_text(incoming, limits.bytes);
    if (!text) co_return fail(text.error());
    std::vector<http1::query_parameter> fields;
    http1::query_reader reader(*text);
    while (auto field = reader.next()) {
        if (fields.size() == limits.fields) co_return refuse(413, "the form has too many fields");
        if (field->name.size() > limits.name)
            co_return refuse(413, "the name of a field is too long");
        if (field->value.size() > limits.value)
            co_return refuse(413, "the value of a field is too long");
        fields.push_back(std::move(*field));
    }
    if (reader.malformed()) co_return refuse(400, "the form has a '%' without two digits");
    co_return form(std::move(fields));
}

task<result<form>> read_form(request& incoming) { return read_form(incoming, form_limits()); }

namespace {

/// RFC 8259, section 11, and the suffix of RFC 6839, section 3.1.
bool is_json(std::string_view content_type) noexcept {
    const std::string_view type = http1::parameter_reader(content_type).value();
    constexpr std::string_view prefix = "application/";
    constexpr std::string_view suffix = "+json";
    if (http1::equal_ignoring_case(type, "application/json")) return true;
    return type.size() > prefix.size() + suffix.size() &&
           http1::equal_ignoring_case(type.substr(0, prefix.size()), prefix) &&
           http1::equal_ignoring_case(type.substr(type.size() - suffix.size()), suffix);
}

}  // namespace

task<result<std::string>> read_json_text(request& incoming, json_limits limits) {
    const auto refuse = [&](int status, std::string_view what) {
        return fail(declare_fault(incoming, status, what));
    };
    if (!is_json(content_type_of(incoming)))
        co_return refuse(415, "the body is not of type application/json");
    auto text = co_await take_text(incoming, limits.bytes);
    if (text && nests_deeper(*text, limits.depth)) co_return refuse(400, "the JSON nests too deep");
    co_return text;
}

task<result<std::string>> read_json_text(request& incoming) {
    return read_json_text(incoming, json_limits());
}

std::error_code refuse_json(request& incoming) noexcept {
    return declare_fault(incoming, 400, "the body is not valid JSON");
}

}  // namespace eddy::http
