// JSON bodies and data of templates as values of nlohmann::json, a library of headers that the
// program brings itself (nlohmann-json3-dev); the rest of Eddy does not need it.
//
//     auto note = co_await http::read_json(request);
//     if (!note) co_return http::response();
//     (*note)["seen"] = true;
//     co_return http::json(*note);
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/http/json_body.hpp>
#include <eddy/http/request.hpp>
#include <eddy/http/response.hpp>
#include <eddy/http/templates.hpp>
#include <eddy/io/task.hpp>

#include <nlohmann/json.hpp>

#include <concepts>
#include <cstdint>
#include <string>
#include <utility>

namespace eddy::http {

/// Reads a body of Content-Type application/json, or application/...+json, which must not have been
/// read in part. Yields a result<nlohmann::json>. Fails with errc::malformed for what is no JSON
/// (400), and as read_json_text(). After all of these the session answers by itself, whatever the
/// handler returns. The request must live until then. The loop's thread.
inline task<result<nlohmann::json>> read_json(request& incoming, json_limits limits) {
    const auto text = co_await read_json_text(incoming, limits);
    if (!text) co_return fail(text.error());
    auto value = nlohmann::json::parse(*text, nullptr, /*exceptions*/ false);
    if (value.is_discarded()) co_return fail(refuse_json(incoming));
    co_return result<nlohmann::json>(std::in_place, std::move(value));
}
/// The same with the default limits. Yields and fails as the other one; the request must live until
/// then.
inline task<result<nlohmann::json>> read_json(request& incoming) {
    return read_json(incoming, json_limits());
}

/// A response of Content-Type application/json. Bytes that are no UTF-8 become U+FFFD.
template <std::same_as<nlohmann::json> Json>
response json(const Json& content, int status = 200) {
    return json(content.dump(-1, ' ', false, Json::error_handler_t::replace), status);
}

/// The data of a page, for templates::render(): objects, lists, texts and truths as they are,
/// numbers as template_data makes texts of them, null and binary values as false. The name of a
/// member must have no '.' for a template to reach it. It recurses as deep as the value nests,
/// which read_json() bounds by json_limits::depth.
template <std::same_as<nlohmann::json> Json>
template_data template_data_of(const Json& value) {
    using kind = typename Json::value_t;
    switch (value.type()) {
        case kind::object: {
            template_data::object members;
            for (const auto& [name, each] : value.items())
                members.push_back({name, template_data_of(each)});
            return members;
        }
        case kind::array: {
            template_data::list values;
            values.reserve(value.size());
            for (const Json& each : value) values.push_back(template_data_of(each));
            return values;
        }
        case kind::string: return value.template get_ref<const std::string&>();
        case kind::boolean: return value.template get<bool>();
        case kind::number_integer: return value.template get<std::int64_t>();
        case kind::number_unsigned: return value.template get<std::uint64_t>();
        case kind::number_float: return value.template get<double>();
        case kind::null:
        case kind::binary:
        case kind::discarded: break;
    }
    return {};
}

}  // namespace eddy::http
