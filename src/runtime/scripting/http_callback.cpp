// Results of on_http_request as responses.
#include "runtime/scripting/http_callback.hpp"

#include <eddy/base/assert.hpp>

#include "runtime/scripting/awaited_call.hpp"
#include "runtime/scripting/http_request.hpp"
#include "runtime/scripting/loop_script.hpp"
#include "script/http_fields.hpp"

#include <fmt/format.h>

#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::runtime {
namespace {

using eddy::http::response;

constexpr std::string_view name = "on_http_request";

/// Makes (status, body, headers, is_json) of what the script's function returns. The body is
/// encoded here, where the script's own values are.
constexpr std::string_view wrapper = R"lua(
local encode = cjson.encode
local function answer(status, body, headers)
    if type(status) == "table" then
        local given = status
        status, body, headers = given.status or 200, given.body, given.headers
        if given.status == nil and body == nil and headers == nil then
            error("on_http_request returns a table without status, headers and body", 0)
        end
    end
    if type(body) == "table" then return status, encode(body), headers, true end
    return status, body, headers, false
end
return function(method, host, path, query, headers, secure, client, body)
    return answer(run(request(method, host, path, query, headers, secure, client, body)))
end
)lua";

/// A response without words of the script: they are in the journal.
response plain(int status) {
    return {status, "text/plain; charset=utf-8",
            fmt::format("{} {}\n", status, http1::reason_phrase(status))};
}

/// Adds the body and the fields; the error is the script's mistake.
std::expected<void, std::string> fill(response& to, const script::values& results) {
    if (auto added = script::add_fields(results[2], to.headers); !added) return added;
    if (results[1].is_nil()) return {};
    std::string kept;
    const std::string* const text = script::text_of(results[1], kept);
    if (text == nullptr) return std::unexpected(std::string("the body is no text or table"));
    to.body = eddy::http::body(*text);
    if (to.headers.contains("Content-Type")) return {};
    const bool is_json = results[3].truth() != nullptr && *results[3].truth();
    to.add("Content-Type", is_json ? "application/json" : "text/plain; charset=utf-8");
    return {};
}

std::optional<response> response_of(loop_script& by, const script::call_end& end) {
    using kind = script::call_end::kind;
    if (end.what == kind::gone) return plain(503);
    if (end.what == kind::failed) return plain(500);
    EDDY_ASSERT(end.results.size() == 4);
    const script::value& first = end.results[0];
    const bool* const truth = first.truth();
    if (first.is_nil() || (truth != nullptr && !*truth)) return std::nullopt;
    std::expected<void, std::string> good;
    response made(status_of(first));
    if (made.status == 0)
        good = std::unexpected(std::string(
            "it returns no status of 200 to 599, no table with one, and not nil or false"));
    else
        good = fill(made, end.results);
    if (good) return made;
    by.note_misuse(name, good.error());
    return plain(500);
}

}  // namespace

int status_of(const script::value& of, int least) noexcept {
    constexpr int most = 599;
    const double* const number = of.number();
    if (number == nullptr || !(*number >= least && *number <= most)) return 0;
    const int status = static_cast<int>(*number);
    return status == *number ? status : 0;
}

script::callback http_request_callback() {
    static const std::string whole = std::string(request_wrapper()).append(wrapper);
    return {.name = name, .arguments = "request", .results = 4, .wrapper = whole};
}

task<std::optional<response>> answer_by(loop_script& by, std::size_t callback,
                                        eddy::http::request& incoming, std::size_t max_body) {
    if (!incoming.body().ended()) {
        incoming.body().set_limit(max_body);
        // After a failure the session answers by itself.
        if (!co_await incoming.collect()) co_return plain(400);
    }
    std::string host;
    auto facts = facts_of(incoming, host);
    facts.content = &incoming.content();
    const script::call_end* end = nullptr;
    auto call = by.begin_with(callback, request_arguments(incoming, facts), end);
    if (!call) co_return response_of(by, *end);
    const auto awaited = co_await await_call(std::move(call));
    // The response to a request that was cancelled is no answer.
    if (!awaited) co_return plain(503);
    co_return response_of(by, *awaited);
}

}  // namespace eddy::runtime
