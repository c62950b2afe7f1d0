// Copies of requests for scripts.
#include "runtime/scripting/http_request.hpp"

#include <eddy/base/assert.hpp>

#include "base/text/authority.hpp"
#include "script/http_fields.hpp"
#include "transport/secure.hpp"

#include <utility>

namespace eddy::runtime {
namespace {

constexpr std::string_view wrapper = R"lua(
local run = ...
local error, setmetatable, type, lower = error, setmetatable, type, string.lower
local methods = {}
function methods.header(request, name)
    if type(request) ~= "table" or type(name) ~= "string" then
        error("header() takes a name, and is called as request:header(name)", 2)
    end
    return request.headers[lower(name)]
end
local meta = {__index = methods, __metatable = false}
local function request(method, host, path, query, headers, secure, client, body)
    return setmetatable({
        method = method, host = host, path = path, query = query, headers = headers, secure = secure, client = client,
        body = body,
    }, meta)
end
local function response(status, headers, method, path, backend)
    return setmetatable({
        status = status, headers = headers, method = method, path = path, backend = backend,
    }, meta)
end
)lua";

/// Owner of the parts of a request that has gone, or may.
class kept_request final : public pushed_arguments {
public:
    struct parts {
        std::string method, host, path, query, client, content;
        http1::header_list headers;
    };
    kept_request(std::unique_ptr<parts> its, std::unique_ptr<pushed_arguments> by) noexcept
        : parts_(std::move(its)), by_(std::move(by)) {}
    int push(lua::stack in) const override { return by_->push(in); }
    std::unique_ptr<pushed_arguments> copy() const override { return by_->copy(); }

private:
    std::unique_ptr<parts> parts_;
    std::unique_ptr<pushed_arguments> by_;  // with views of these
};

}  // namespace

std::string_view request_wrapper() noexcept { return wrapper; }

request_arguments::request_arguments(const eddy::http::request& incoming,
                                     const facts& beside) noexcept
    : method_(incoming.method()),
      path_(incoming.path()),
      query_(incoming.parts().query),
      headers_(&incoming.headers()),
      beside_(beside) {}

int request_arguments::push(lua::stack in) const {
    constexpr int most = 9;
    in.checkstack(most, "too many values");
    const int before = in.gettop();
    if (beside_.id != 0) in.pushnumber(static_cast<double>(beside_.id));
    in.pushstring(method_);
    in.pushstring(beside_.host);
    in.pushstring(path_);
    in.pushstring(query_);
    script::push_fields(in, *headers_);
    in.pushboolean(beside_.is_secure);
    if (beside_.client.empty())
        in.pushnil();
    else
        in.pushstring(beside_.client);
    if (beside_.content != nullptr) in.pushstring(*beside_.content);
    EDDY_ASSERT(in.gettop() - before <= most);
    return in.gettop() - before;
}

std::unique_ptr<pushed_arguments> request_arguments::copy() const {
    auto its = std::make_unique<kept_request::parts>();
    its->method = method_;
    its->path = path_;
    its->query = query_;
    its->host = beside_.host;
    its->client = beside_.client;
    if (beside_.content != nullptr) its->content = *beside_.content;
    its->headers = *headers_;
    auto made = std::unique_ptr<request_arguments>(new request_arguments());
    made->method_ = its->method;
    made->path_ = its->path;
    made->query_ = its->query;
    made->headers_ = &its->headers;
    made->beside_ = beside_;
    made->beside_.host = its->host;
    made->beside_.client = its->client;
    if (beside_.content != nullptr) made->beside_.content = &its->content;
    return std::make_unique<kept_request>(std::move(its), std::move(made));
}

int response_arguments::push(lua::stack in) const {
    in.checkstack(8, "too many values");
    in.pushnumber(answer_->status);
    script::push_fields(in, answer_->headers);
    in.pushstring(incoming_->method());
    in.pushstring(incoming_->path());
    const auto& backend = incoming_->upstream().name;
    if (backend == nullptr)
        in.pushnil();
    else
        in.pushstring(*backend);
    return 5;
}

/// The request and the response wait for the call.
std::unique_ptr<pushed_arguments> response_arguments::copy() const {
    return std::make_unique<response_arguments>(*incoming_, *answer_);
}

request_arguments::facts facts_of(const eddy::http::request& incoming, std::string& host) {
    // An authority in the target takes precedence over the field (RFC 9112, 3.2.2).
    const std::string_view named = incoming.parts().authority;
    host = host_of(!named.empty() ? named : incoming.headers().find("Host").value_or(""));
    request_arguments::facts made{.host = host, .client = {}};
    if (incoming.session() != nullptr) made.client = incoming.session()->client().host;
    if (incoming.connection() != nullptr)
        made.is_secure = transport::is_secure(*incoming.connection());
    return made;
}

}  // namespace eddy::runtime
