// Requests of HTTP as scripts see them: one object for on_http_request, on_route and the others
// that take one.
#pragma once

#include <eddy/http/request.hpp>
#include <eddy/http/response.hpp>

#include "runtime/scripting/loop_script.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace eddy::runtime {

/// Text of Lua that begins the wrapper of a callback that takes a request: `run` is the script's
/// function, and request(…) makes the object, a table with the fields method, host, path, query,
/// headers, client, secure and body and the method header(name), of what request_arguments pushes.
std::string_view request_wrapper() noexcept;

/// Arguments of such a wrapper's function: perhaps a client, and the parts of a request. It is a
/// copy for the script, which may keep it.
class request_arguments final : public pushed_arguments {
public:
    /// Facts about a request beside its head; they outlive the arguments, as the request does.
    struct facts {
        std::string_view host;    ///< in lower case, without a port
        std::string_view client;  ///< its address; empty for Unix sockets
        bool is_secure = false;
        const std::string* content = nullptr;  ///< null where it has not come yet
        std::uint64_t id = 0;                  ///< a client of a server's, before the others
    };

    request_arguments(const eddy::http::request& incoming, const facts& beside) noexcept;

    int push(lua::stack in) const override;
    std::unique_ptr<pushed_arguments> copy() const override;

private:
    request_arguments() = default;

    std::string_view method_;
    std::string_view path_;
    std::string_view query_;
    const http1::header_list* headers_ = nullptr;
    facts beside_;
};

/// Arguments of response(…) of the wrapper, which makes a table with the fields status, headers,
/// method, path and backend and the method header(name).
class response_arguments final : public pushed_arguments {
public:
    /// The request and the response outlive it.
    response_arguments(const eddy::http::request& incoming,
                       const eddy::http::response& answer) noexcept
        : incoming_(&incoming), answer_(&answer) {}

    int push(lua::stack in) const override;
    std::unique_ptr<pushed_arguments> copy() const override;

private:
    const eddy::http::request* incoming_;
    const eddy::http::response* answer_;
};

/// Facts of a request by its own session. `host` has the text of its host.
request_arguments::facts facts_of(const eddy::http::request& incoming, std::string& host);

}  // namespace eddy::runtime
